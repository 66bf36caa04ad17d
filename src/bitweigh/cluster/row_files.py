"""The rows of a shard in files, while it is built.

Bands are built from all rows, beside which they take the most memory of a build. The system can
write pages of a file back and give them to others, which it cannot do with those of an array.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh.typing import Codes, Ids

__all__ = ["sorted_in_files"]

# Rows that are written at a time.
_ROWS_WRITTEN = 1 << 18


def sorted_in_files(codes: Codes, ids: Ids, folder: Path) -> tuple[Codes, Ids]:
    """The rows in ascending id, mapped from two new files in a folder.

    Raises ValueError if an id occurs twice. The files are not synced: they are of no use later.
    """
    if not len(ids):
        return codes, ids
    order = None if (ids[1:] > ids[:-1]).all() else _ascending(ids)
    # Written, not mapped and then filled: on a full disk that would end the process.
    paths = folder / "rows.codes", folder / "rows.ids"
    columns: tuple[NDArray[Any], ...] = codes, ids
    for path, values in zip(paths, columns, strict=True):
        with path.open("wb") as file:
            for first in range(0, len(ids), _ROWS_WRITTEN):
                here = slice(first, first + _ROWS_WRITTEN)
                (values[here] if order is None else values[order[here]]).tofile(file)
    mapped_codes = np.asarray(np.memmap(paths[0], np.uint8, "r", shape=codes.shape))
    mapped_ids = np.asarray(np.memmap(paths[1], np.int64, "r", shape=ids.shape))
    if (mapped_ids[1:] == mapped_ids[:-1]).any():
        raise _repeated_error(mapped_ids)
    return mapped_codes, mapped_ids


def _ascending(ids: Ids) -> NDArray[Any]:
    """The rows in ascending id."""
    if len(ids) >= _core.max_segment_rows:
        return np.argsort(ids, kind="stable")
    # Several times as fast as NumPy's.
    order = np.empty(len(ids), np.uint32)
    _core.sort_ids(ids, order)
    return order


def _repeated_error(sorted_ids: Ids) -> ValueError:
    first = next(a for a, b in pairwise(sorted_ids.tolist()) if a == b)
    return ValueError(f"an id must occur once, but {first} occurs twice")
