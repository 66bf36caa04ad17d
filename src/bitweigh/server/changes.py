"""Changes of a collection, what comes of them, and how many may wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bitweigh.server.payload_filters import Condition

__all__ = ["Change", "Item", "Remove", "RemoveMatching", "Upsert", "Written"]


class Item(NamedTuple):
    """An item to write, by id or by key."""

    id: int | None
    key: str | None
    value: bytes
    payload: str | None


class Upsert(NamedTuple):
    """Write items, over those that have their ids or keys; all in one step."""

    items: Sequence[Item]


class Remove(NamedTuple):
    """Remove items by id and by key; those that are not there are ignored."""

    ids: Sequence[int]
    keys: Sequence[str] = ()


class RemoveMatching(NamedTuple):
    """Remove the items whose payload meets a condition."""

    condition: Condition


class Written(NamedTuple):
    """A change that is on the disk, and seen by every later search."""

    seq: int
    n_items: int
    """Items that were written, or that were there and are removed."""
    ids: Sequence[int] = ()
    """Of an upsert, those of its items."""


Change = Upsert | Remove | RemoveMatching
Done = Callable[[list[tuple[Any, Written | Exception]]], None]
"""Takes what became of the changes of one batch, each with the token it was submitted with."""
