"""New locks for forked children.

A fork copies a lock that another thread holds, but not the thread that would release it. Children
get new locks so that they can change the indexes they inherit.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

__all__ = ["LockOwner", "renew_lock_after_fork"]


class LockOwner(Protocol):
    """An object whose changes are serialised by a lock."""

    _writing: threading.Lock


_owners: weakref.WeakSet[LockOwner] = weakref.WeakSet()


def renew_lock_after_fork(owner: LockOwner) -> None:
    """Give the owner a new lock in every child that is forked from now on."""
    _owners.add(owner)


def _renew_locks() -> None:
    for owner in _owners:
        owner._writing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
