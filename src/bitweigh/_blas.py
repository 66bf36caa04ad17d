"""BLAS with one thread, for work that is cut into pieces for threads of our own.

Threads of BLAS wait for each other by spinning, in every product: where another program has one of
the CPUs, fitting a hasher was seen to take ten times as long. Needs threadpoolctl, which comes with
scikit-learn; without it BLAS keeps its threads.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["one_blas_thread"]


class _Limit:
    """The limit of this process, and how many need it."""

    def __init__(self) -> None:
        self.changing = threading.Lock()
        self.users = 0
        self.limited: Any = None


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[bool]:
    """Limit BLAS to one thread in the whole process until the last of its users has left.

    Yields whether that is possible here.
    """
    limits = _threadpool_limits()
    if limits is None:
        yield False
        return
    limit = _limit
    with limit.changing:
        if limit.users == 0:
            limit.limited = limits(limits=1, user_api="blas")
        limit.users += 1
    try:
        yield True
    finally:
        if limit is _limit:  # not in a process forked meanwhile
            with limit.changing:
                limit.users -= 1
                if limit.users == 0:
                    limit.limited.restore_original_limits()
                    limit.limited = None


def _threadpool_limits() -> Any:  # noqa: ANN401
    """Threadpoolctl's function, or None without that package."""
    try:
        return importlib.import_module("threadpoolctl").threadpool_limits
    except ModuleNotFoundError:
        return None


def _renew_in_child() -> None:
    """Give BLAS its threads back: the threads that fit hashers are not in the child."""
    global _limit
    limited = _limit.limited
    _limit = _Limit()
    if limited is not None:
        limited.restore_original_limits()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_in_child)
