"""Memory that this process can still allocate, limited by the machine and by its container.

A container's limit is that of its control group or of a group above it. The usage of a group
includes cached pages of files; the inactive ones are reclaimed first, so they count as free.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

__all__ = ["free_memory", "total_memory"]


class _Files(NamedTuple):
    """Where a version of control groups keeps its numbers."""

    mount: str
    limit: str
    used: str
    inactive: str
    """The name, in memory.stat, of the bytes of inactive file pages."""


_VERSION_1 = _Files(
    "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
)
_VERSION_2 = _Files("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")


def free_memory(root: Path = Path("/")) -> int:
    """Bytes that can be allocated without swapping; all memory if the system does not say.

    Tests pass a `root` with fake files.
    """
    return max(0, min([_free_on_machine(root), *_free_in_groups(root)]))


def total_memory() -> int:
    """Bytes of memory that the machine has, free or not."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _free_on_machine(root: Path) -> int:
    available = _numbers(root / "proc/meminfo").get("MemAvailable:")
    return total_memory() if available is None else available * 1024


def _free_in_groups(root: Path) -> Iterator[int]:
    """Bytes left under the limit of each group that this process is in, and of those above."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        files = _VERSION_1 if controllers else _VERSION_2
        # Inside a container the path may be that of the host, which does not exist here, or only
        # its end does. The container's group is then the root.
        group = PurePosixPath(path.lstrip("/"))
        for level in (group, *group.parents):
            free = _free_in_group(root / files.mount / level, files)
            if free is not None:
                yield free


def _free_in_group(folder: Path, files: _Files) -> int | None:
    """Bytes left under the limit of a group; None if it has no limit or does not exist."""
    limit, used = (_text(folder / name).strip() for name in (files.limit, files.used))
    if not (limit.isdecimal() and used.isdecimal()):
        return None
    inactive = _numbers(folder / "memory.stat").get(files.inactive, 0)
    return int(limit) - max(0, int(used) - inactive)


def _numbers(path: Path) -> dict[str, int]:
    """The numbers by name in a file with a name and a number on each line."""
    pairs = [line.split()[:2] for line in _text(path).splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
