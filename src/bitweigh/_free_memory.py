"""Memory that this process could still take: what the machine has, and what a container allows.

A container's limit is that of its control group, or of one above it. What a group uses counts the
pages of files that it has read; those that nobody has read again lately are given up first and are
as good as free.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

__all__ = ["free_memory", "total_memory"]


class _Files(NamedTuple):
    """Where a version of control groups says what we ask."""

    mount: str
    limit: str
    used: str
    inactive: str
    """The name in memory.stat."""


_VERSION_1 = _Files(
    "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
)
_VERSION_2 = _Files("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")


def free_memory(root: Path = Path("/")) -> int:
    """Bytes that could be had without swapping; all of the memory where nothing tells.

    Tests have files of their own under `root`.
    """
    return max(0, min([_left_by_machine(root), *_left_by_groups(root)]))


def total_memory() -> int:
    """Bytes of the machine, whoever has them."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _left_by_machine(root: Path) -> int:
    available = _numbers(root / "proc/meminfo").get("MemAvailable:")
    return total_memory() if available is None else available * 1024


def _left_by_groups(root: Path) -> Iterator[int]:
    """What each group that this process is in allows, and each above it."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        files = _VERSION_1 if controllers else _VERSION_2
        # Inside a container the path may be the host's, of which only the end or nothing is there;
        # the container's own group is the root then.
        group = PurePosixPath(path.lstrip("/"))
        for level in (group, *group.parents):
            left = _left_by(root / files.mount / level, files)
            if left is not None:
                yield left


def _left_by(folder: Path, files: _Files) -> int | None:
    """What a group allows; None where it has no limit or is not there."""
    limit, used = (_text(folder / name).strip() for name in (files.limit, files.used))
    if not (limit.isdecimal() and used.isdecimal()):
        return None
    inactive = _numbers(folder / "memory.stat").get(files.inactive, 0)
    return int(limit) - max(0, int(used) - inactive)


def _numbers(path: Path) -> dict[str, int]:
    """What a file of names and numbers, one of each in a line, says."""
    pairs = [line.split()[:2] for line in _text(path).splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
