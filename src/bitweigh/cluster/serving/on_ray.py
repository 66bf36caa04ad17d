"""Starting a cluster on Ray, connecting to it, and calling its actors.

Ray notices a lost node late, so whether a holder answers is up to the coordinators. The data path
needs neither the keeper nor Ray's control plane.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

from bitweigh._checks import as_integer, as_optional_integer
from bitweigh._optional import optional
from bitweigh.cluster.errors import ControlPlaneError
from bitweigh.cluster.opening import read
from bitweigh.cluster.serving.client import Cluster, Keeper
from bitweigh.cluster.serving.coordinator import Coordinator
from bitweigh.cluster.serving.desired import Desired
from bitweigh.cluster.serving.maps import Map
from bitweigh.cluster.serving.ray_actors import (
    CONCURRENCY,
    NAMESPACE,
    KeeperActor,
    actor_named,
)
from bitweigh.cluster.serving.replicas import HolderLostError, Patience
from bitweigh.cluster.stores import open_store
from bitweigh.cluster.version import Version

__all__ = ["connect", "start"]

_MIN_RAY = (2, 60)
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
# Above this many bytes, an argument for several holders is put into Ray's store once.
_PUT_BYTES = 100_000
_CONTROL_SECONDS = 10.0
_OPEN_SECONDS = 600.0
_LOOK_SECONDS = 0.5


def start(
    url: str | os.PathLike[str],
    name: str = "default",
    *,
    replicas: int = 1,
    groups: int | None = None,
    threads: int = 1,
    version: int | None = None,
    address: str | None = None,
    patience: Patience | None = None,
) -> Cluster:
    """Start holders for all shards on a Ray cluster, and wait until all are open.

    Parameters
    ----------
    url : str or path
        The shards, as in `build`; every node must be able to read it.
    name : str
        The name of the cluster: letters, digits and underscores.
    replicas : int
        How many holders have the same shards; with two, one may be lost at any time.
    groups : int, optional
        Into how many groups the shards are divided, each held by one process for each replica. By
        default one for each node and replica, at most one for each shard.
    threads : int
        Threads of a holder, and the CPUs that Ray reserves for it.
    version : int, optional
        The version to serve; by default the newest.
    address : str, optional
        The Ray cluster to connect to, as in ``ray.init``, if this process is not connected yet. By
        default the one that ``RAY_ADDRESS`` names, or a new one on this machine.
    patience : Patience, optional
        How long this process waits for holders.

    Returns
    -------
    Cluster

    Raises
    ------
    ValueError
        If there is a cluster of that name.
    CorruptFileError, FileNotFoundError
        If a shard cannot be opened; nothing stays.

    Examples
    --------
    >>> from bitweigh import cluster
    >>> wiki = cluster.start("s3://indexes/wiki", "wiki", replicas=2)  # doctest: +SKIP
    >>> distances, ids = wiki.search(costs, k=10)  # doctest: +SKIP

    """
    ray = _connected(address)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"name must be letters, digits and underscores, got {name!r}")
    replicas = as_integer(replicas, "replicas", 1, 100)
    threads = as_integer(threads, "threads", 1, 1024)
    store = open_store(url)
    served = read(store, version)
    alive = sum(node["Alive"] for node in ray.nodes())
    most = min(len(served.shards), max(1, alive // replicas))
    groups = as_optional_integer(groups, "groups", 1, len(served.shards)) or most
    if actor_named(ray, f"bitweigh-{name}") is not None:
        raise ValueError(f"there is a cluster {name!r} already: connect to it, or stop it")
    desired = Desired(served.number, None, groups, replicas, threads)
    keeper = (
        ray.remote(KeeperActor)
        .options(
            name=f"bitweigh-{name}",
            namespace=NAMESPACE,
            lifetime="detached",
            max_restarts=-1,
            max_concurrency=CONCURRENCY,
            num_cpus=0,
        )
        .remote(store.address, name)
    )
    desired.write(store, name)
    try:
        _control(ray, keeper.begin.remote(), _OPEN_SECONDS)
    except BaseException:
        with contextlib.suppress(Exception):
            _control(ray, keeper.stop.remote())
        ray.kill(keeper)
        raise
    return connect(name, patience=patience)


def connect(
    name: str = "default", *, address: str | None = None, patience: Patience | None = None
) -> Cluster:
    """Connect to a cluster that `start` has started, from any process of the Ray cluster.

    Parameters
    ----------
    name : str
        The name that `start` was given.
    address, patience
        As in `start`.

    Raises
    ------
    KeyError
        If there is no such cluster.

    Examples
    --------
    >>> from bitweigh import cluster
    >>> wiki = cluster.connect("wiki", address="auto")  # doctest: +SKIP
    >>> print(wiki.status())  # doctest: +SKIP

    """
    ray = _connected(address)
    keeper = actor_named(ray, f"bitweigh-{name}")
    if keeper is None:
        raise KeyError(f"no cluster {name!r}: start it first")
    directory = _RayDirectory(ray, keeper)
    handle = Keeper(
        publish=lambda number: int(_changed(ray, keeper, "publish", number)),
        scale=lambda replicas: _changed(ray, keeper, "scale", replicas),
        stop=lambda: _stop(ray, keeper),
    )
    return Cluster(Coordinator(directory, patience), handle)


class _RayReplica:
    """A holder that is an actor."""

    def __init__(self, ray: Any, name: str, find: Callable[[], Any]) -> None:  # noqa: ANN401
        self._ray = ray
        self.name = name
        self._find = find
        self._handle: Any = None
        self._finding = threading.Lock()
        self._found_at = 0.0
        self._look()

    def call(self, method: str, *arguments: Any) -> Future[Any]:  # noqa: ANN401
        """Call a method of the actor."""
        answer: Future[Any] = Future()
        if method == "ping":
            # Only suspects are pinged, and there may be another actor of the same name by now.
            self._look_again()
        try:
            reference = getattr(self._handle, method).remote(*arguments)
            reference.future().add_done_callback(lambda done: self._ended(done, answer))
        except Exception as error:  # whatever Ray raises here, the holder is not reached
            self._look_again()
            answer.set_exception(HolderLostError(_first_line(error)))
        return answer

    def _look_again(self) -> None:
        """Look for the actor in another thread: Ray's control plane may not answer."""
        if time.monotonic() - self._found_at > _LOOK_SECONDS and self._finding.acquire(False):
            threading.Thread(target=self._look_and_release, daemon=True).start()

    def _look_and_release(self) -> None:
        try:
            self._look()
        finally:
            self._finding.release()

    def _look(self) -> None:
        self._found_at = time.monotonic()
        with contextlib.suppress(Exception):  # the next call says what is wrong
            self._handle = self._find()

    def _ended(self, done: Future[Any], answer: Future[Any]) -> None:
        error = done.exception()
        with contextlib.suppress(InvalidStateError):  # the asker has stopped waiting
            if error is None:
                answer.set_result(done.result())
            elif isinstance(error, self._ray.exceptions.RayTaskError):
                answer.set_exception(getattr(error, "cause", None) or error)
            else:
                answer.set_exception(HolderLostError(_reason(self._ray, error)))


class _RayDirectory:
    """The map, as the keeper knows it."""

    def __init__(self, ray: Any, keeper: Any) -> None:  # noqa: ANN401
        self._ray = ray
        self._keeper = keeper
        self._replicas: dict[str, _RayReplica] = {}

    def current(self) -> Map:
        """The present map."""
        url, raw, names = _control(self._ray, self._keeper.describe.remote())
        version = Version.from_json(raw, url)
        return Map(version, tuple(tuple(map(self._replica, group)) for group in names), url)

    def shared(self, raw: bytes) -> Any:  # noqa: ANN401
        """Small arguments travel with the call, large ones are put into Ray's store."""
        return raw if len(raw) < _PUT_BYTES else self._ray.put(raw)

    def _replica(self, name: str) -> _RayReplica:
        if name not in self._replicas:
            ray = self._ray
            self._replicas[name] = _RayReplica(
                ray, name, lambda: ray.get_actor(name, namespace=NAMESPACE)
            )
        return self._replicas[name]


def _connected(address: str | None) -> Any:  # noqa: ANN401 the module
    ray: Any = optional("ray", "cluster")
    if tuple(map(int, re.findall(r"\d+", ray.__version__)[:2])) < _MIN_RAY:
        # Older ones let everybody in who reaches their ports, unless told otherwise.
        raise ImportError(f"this needs Ray 2.60 or later, got {ray.__version__}")
    if not ray.is_initialized():
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False)
    return ray


def _control(ray: Any, reference: Any, seconds: float = _CONTROL_SECONDS) -> Any:  # noqa: ANN401
    """The answer of the keeper; raises ControlPlaneError if there is none."""
    try:
        return ray.get(reference, timeout=seconds)
    except ray.exceptions.RayTaskError as error:
        raise getattr(error, "cause", None) or error from None
    except ray.exceptions.RayError as error:
        raise ControlPlaneError(f"the keeper does not answer: {_first_line(error)}") from None


def _changed(ray: Any, keeper: Any, method: str, *arguments: Any) -> Any:  # noqa: ANN401
    """The answer to a change, which may have to open shards first."""
    # Opening takes its time, but a control plane that is down is told soon.
    _control(ray, keeper.check.remote())
    return _control(ray, getattr(keeper, method).remote(*arguments), _OPEN_SECONDS)


def _stop(ray: Any, keeper: Any) -> None:  # noqa: ANN401
    _control(ray, keeper.check.remote())
    _control(ray, keeper.stop.remote())
    ray.kill(keeper)
    # Names are free again once Ray has noticed.
    time.sleep(0.1)


def _reason(ray: Any, error: BaseException) -> str:  # noqa: ANN401
    if isinstance(error, ray.exceptions.ActorUnavailableError):
        return "its holder is restarting"
    if isinstance(error, ray.exceptions.ActorDiedError):
        return "its holder has died"
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
