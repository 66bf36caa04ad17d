"""Running the tasks of a build: in this process, in others, or on the nodes of a Ray cluster.

Results are the same, in the same order, however tasks are run. A task whose process was killed is
run again; an error that a task raises is raised here.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from bitweigh._checks import as_integer
from bitweigh._optional import optional

__all__ = ["Workers", "as_workers", "connected_for", "run_tasks"]

Workers: TypeAlias = int | Literal["ray"]
"""How many processes run the tasks of a build, or "ray" for the cluster that is connected to."""

Result = TypeVar("Result")

_MAX_WORKERS = 256
# Times that tasks are run again because a process was killed.
_RETRIES = 5


class Bar(Protocol):
    """A progress bar."""

    def advance(self, count: float) -> None:
        """Move on."""


def run_tasks(
    function: Callable[..., Result],
    tasks: Sequence[tuple[Any, ...]],
    workers: Workers,
    bar: Bar,
    sizes: Sequence[float],
) -> list[Result]:
    """The result of each task, called with these arguments; `bar` moves on by its size."""
    done: dict[int, Result] = {}
    for number, result in _run(function, tasks, workers):
        done[number] = result
        bar.advance(sizes[number])
    return [done[number] for number in range(len(tasks))]


def as_workers(workers: object) -> Workers:
    """The argument `workers`, checked."""
    if workers == "ray":
        return "ray"
    return as_integer(workers, "workers", 1, _MAX_WORKERS)


@contextmanager
def connected_for(workers: Workers, address: str | None) -> Iterator[None]:
    """With "ray", a connection to the Ray cluster at this address, unless there is one already."""
    if workers != "ray":
        yield
        return
    from bitweigh.cluster.serving.on_ray import _connected

    ray: Any = optional("ray", "cluster")
    was_connected = ray.is_initialized()
    _connected(address)
    try:
        yield
    finally:
        if not was_connected:
            ray.shutdown()


def _run(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], workers: Workers
) -> Iterator[tuple[int, Result]]:
    if workers == "ray":
        return _on_ray(function, tasks)
    if workers == 1 or len(tasks) < 2:
        return ((number, function(*task)) for number, task in enumerate(tasks))
    return _in_processes(function, tasks, workers)


def _in_processes(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[tuple[int, Result]]:
    left = dict(enumerate(tasks))
    # New processes, so that no thread or lock of this one is copied.
    context = multiprocessing.get_context("spawn")
    for attempt in range(_RETRIES + 1):
        pool: AbstractContextManager[ProcessPoolExecutor] = ProcessPoolExecutor(
            min(workers, len(left)), mp_context=context
        )
        with pool as running:
            futures = {running.submit(function, *task): number for number, task in left.items()}
            waiting: set[Future[Result]] = set(futures)
            try:
                while waiting:
                    finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in finished:
                        result = future.result()
                        del left[futures[future]]
                        yield futures[future], result
            except BrokenProcessPool:
                if attempt == _RETRIES:
                    raise
            finally:
                running.shutdown(wait=False, cancel_futures=True)
        if not left:
            return


def _on_ray(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Result]]:
    ray: Any = optional("ray", "cluster")
    if not ray.is_initialized():
        raise RuntimeError("workers='ray' needs a connection: call ray.init first")
    remote = ray.remote(function).options(max_retries=_RETRIES, num_cpus=1)
    waiting = {remote.remote(*task): number for number, task in enumerate(tasks)}
    while waiting:
        finished, _ = ray.wait(list(waiting), num_returns=1)
        for reference in finished:
            yield waiting.pop(reference), ray.get(reference)
