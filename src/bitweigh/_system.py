"""Kernels and threads of this machine, and the environment variables that override them.

``BITWEIGH_KERNEL`` forces a kernel and is read once, at import. ``BITWEIGH_THREADS`` sets the
number of threads for calls without ``threads=`` and is read at each of them.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from bitweigh import _core

__all__ = ["Info", "info"]

MAX_THREADS = 1024
__version__: str = _core.version


class Info(NamedTuple):
    """The result of :func:`info`."""

    version: str
    """Version of bitweigh."""
    kernel: str
    """The scan kernel in use."""
    kernels: tuple[str, ...]
    """Kernels that this machine can run, fastest first."""
    threads: int
    """The most threads that a search without ``threads=`` uses."""


def info() -> Info:
    """Version of bitweigh, kernel in use, kernels available, default number of threads.

    Examples
    --------
    >>> import bitweigh
    >>> bitweigh.info().kernel in bitweigh.info().kernels
    True

    """
    return Info(__version__, KERNEL, tuple(_core.kernel_names()), default_threads())


def default_threads() -> int:
    """``BITWEIGH_THREADS``, or the number of CPUs that this process may use."""
    value = os.environ.get("BITWEIGH_THREADS")
    if value:
        if not (value.isdecimal() and 1 <= int(value) <= MAX_THREADS):
            raise ValueError(
                f"BITWEIGH_THREADS must be an integer from 1 to {MAX_THREADS}, got {value!r}"
            )
        return int(value)
    return _usable_cpus()


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _choose_kernel() -> str:
    available = _core.kernel_names()
    kernel = os.environ.get("BITWEIGH_KERNEL") or available[0]
    if kernel not in available:
        raise ImportError(
            f"BITWEIGH_KERNEL must be one of {', '.join(available)} on this machine, got {kernel!r}"
        )
    return kernel


KERNEL = _choose_kernel()
