"""Checking that ids differ, in bounded memory.

Ids that ascend in the order of the rows need no check. Others are sorted, in shares if they do not
fit, but many ids below 2^32 are marked in a bitmap, a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._disk.reading import PIECE_BYTES
from bitweigh._streaming.files import write_whole

__all__ = ["check_distinct_ids", "id_facts", "ids_ascend"]

_IDS_AT_ONCE = 1 << 20


def id_facts(ids: NDArray[np.int64]) -> dict[str, Any]:
    """What is needed of some ids to tell whether all ascend, and which is the largest."""
    return {
        "max_id": int(ids.max()),
        "ends": [int(ids[0]), int(ids[-1])],
        "ascending": bool((ids[1:] > ids[:-1]).all()),
    }


def ids_ascend(facts: Sequence[dict[str, Any]]) -> bool:
    """Whether ids ascend in the order of their `id_facts`."""
    ends = [end for fact in facts for end in fact["ends"]]
    return all(fact["ascending"] for fact in facts) and all(
        a < b for a, b in zip(ends[1::2], ends[2::2], strict=False)
    )


def check_distinct_ids(
    path: Path, max_id: int, folder: Path, max_bytes: int, stop: _core.Stop
) -> None:
    """Raise ValueError if an id occurs twice in a .npy file of ids; use at most `max_bytes`."""
    ids: NDArray[Any] = np.asarray(np.lib.format.open_memmap(path, mode="r"))
    # The parts of a share and their concatenation, and room for shares of unequal size.
    n_shares = -(-len(ids) * 24 // max_bytes)
    repeated = (
        _repeated_by_marks(ids, max_id, folder, stop)
        if ids.dtype == np.uint32 and n_shares > 1
        else _repeated_by_sorting(ids, n_shares)
    )
    if repeated is not None:
        raise ValueError(f"ids must be distinct, but {repeated} is the id of two rows")


def _chunks(ids: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for first in range(0, len(ids), _IDS_AT_ONCE):
        yield ids[first : first + _IDS_AT_ONCE]


def _repeated_by_marks(
    ids: NDArray[Any], max_id: int, folder: Path, stop: _core.Stop
) -> int | None:
    """An id that occurs twice, by a bitmap of all ids. A file's pages can leave memory."""
    path = folder / "marks"
    size = max_id // 8 + 1
    try:
        # Written, not only reserved: without room this raises, where a mapping would end the
        # process.
        zeros = memoryview(bytes(min(size, PIECE_BYTES)))
        write_whole(path, (zeros[: size - at] for at in range(0, size, PIECE_BYTES)))
        marks = np.memmap(path, np.uint8, "r+", shape=(size,))
        for chunk in _chunks(ids):
            marked = _core.mark_ids(chunk, np.asarray(marks), stop)
            if marked < len(chunk):
                return int(chunk[marked])
        return None
    finally:
        path.unlink(missing_ok=True)


def _share_of(ids: NDArray[Any], n_shares: int) -> NDArray[np.uint64]:
    """The share of each id, by a hash, so that ids with a common factor spread as well."""
    mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(33)) % np.uint64(n_shares)


def _repeated_by_sorting(ids: NDArray[Any], n_shares: int) -> int | None:
    """An id that occurs twice, by sorting one share of the ids at a time."""
    for share in range(n_shares):
        sorted_ids = np.concatenate([c[_share_of(c, n_shares) == share] for c in _chunks(ids)])
        sorted_ids.sort()
        equal = np.flatnonzero(sorted_ids[1:] == sorted_ids[:-1])
        if len(equal):
            return int(sorted_ids[equal[0]])
    return None
