"""BLAS with one thread, for work that is cut into pieces for threads of our own.

Threads of BLAS wait for each other by spinning, in every product: where another program has one of
the CPUs, fitting a hasher was seen to take ten times as long. Needs threadpoolctl, which comes with
scikit-learn; without it BLAS keeps its threads.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["one_blas_thread"]

_changing = threading.Lock()
_users = 0
_limited: Any = None


@contextmanager
def one_blas_thread() -> Iterator[bool]:
    """Limit BLAS to one thread in the whole process until the last of its users has left.

    Yields whether that is possible here.
    """
    global _users, _limited
    try:
        limits = importlib.import_module("threadpoolctl").threadpool_limits
    except ModuleNotFoundError:
        yield False
        return
    with _changing:
        _users += 1
        if _users == 1:
            _limited = limits(limits=1, user_api="blas")
    try:
        yield True
    finally:
        with _changing:
            _users -= 1
            if _users == 0:
                _limited.restore_original_limits()
                _limited = None
