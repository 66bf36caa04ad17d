"""What this machine offers: kernels and threads, and how the environment overrides them.

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
    """What :func:`info` returns."""

    version: str
    """Version of bitweigh."""
    kernel: str
    """The scan kernel in use."""
    kernels: tuple[str, ...]
    """Kernels that this machine can run, fastest first."""
    threads: int
    """Max threads that a search without ``threads=`` uses."""


def info() -> Info:
    """Version, kernel in use, kernels available, threads.

    Examples
    --------
    >>> import bitweigh
    >>> bitweigh.info().kernel in bitweigh.info().kernels
    True

    """
    return Info(__version__, KERNEL, tuple(_core.kernel_names()), default_threads())


def default_threads() -> int:
    """``BITWEIGH_THREADS``, or the CPUs that this process may use."""
    wanted = os.environ.get("BITWEIGH_THREADS")
    if wanted:
        if not (wanted.isdecimal() and 1 <= int(wanted) <= MAX_THREADS):
            raise ValueError(
                f"BITWEIGH_THREADS must be an integer from 1 to {MAX_THREADS}, got {wanted!r}"
            )
        return int(wanted)
    return _usable_cpus()


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _choose_kernel() -> str:
    available = _core.kernel_names()
    wanted = os.environ.get("BITWEIGH_KERNEL") or available[0]
    if wanted not in available:
        raise ImportError(
            f"BITWEIGH_KERNEL must be one of {', '.join(available)} on this machine, got {wanted!r}"
        )
    return wanted


KERNEL = _choose_kernel()
