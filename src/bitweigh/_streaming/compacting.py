"""Compacting an index that may be larger than memory: its rows are streamed into one new segment.

The new files are in a folder of their own for as long as a segment uses them. A save links them
into the folder that it writes, so nothing is copied.
"""

from __future__ import annotations

import weakref
from pathlib import Path

from bitweigh import _storage
from bitweigh._disk.owned import OwnedFolder
from bitweigh._index.bands import BandOptions
from bitweigh._index.state import State
from bitweigh._streaming.batches import BuildRequest, build_index
from bitweigh._streaming.stored_rows import StoredRows
from bitweigh.typing import BitOrder

__all__ = ["streamed"]


def streamed(
    state: State,
    beside: Path,
    n_bits: int,
    bitorder: BitOrder,
    options: BandOptions,
    build_memory: int,
    threads: int | None,
    progress: bool,
) -> State:
    """The rows of a state, at least one, in one lean segment: mapped from a folder beside another.

    That folder is deleted when nothing uses the segment any more.
    """
    folder = OwnedFolder(beside.parent, f"{beside.name}.compacting")
    try:
        path = folder.path / "index"
        source = StoredRows(state)
        request = BuildRequest(n_bits, bitorder, options, "lean")
        build_index(
            source, path, request, build_memory=build_memory, threads=threads, progress=progress
        )
        content, _ = _storage.load(path, mapped=True, verify=False)
        (part,) = content.state.segments
        _storage.link_when_saved(part.segment, path)
        weakref.finalize(part.segment, folder.remove)
    except BaseException:
        folder.remove()
        raise
    return State((part,), None, state.next_id)
