"""Batches of an iterator, copied to files, so that its rows are counted and can be read again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from bitweigh._checks import as_codes, as_ids
from bitweigh._streaming.files import write_all
from bitweigh._streaming.sources import ArraySource, IteratorSource
from bitweigh.typing import BitOrder

__all__ = ["SPOOL_FILES", "spool"]

SPOOL_FILES = ("spool.codes", "spool.ids")


def spool(
    source: IteratorSource, folder: Path, n_bits: int, bitorder: BitOrder, max_rows: int | None
) -> tuple[ArraySource, bool]:
    """Copy batches to a folder until there are `max_rows` rows, and say whether those are all.

    Raises ValueError if there are no rows. The files are not synced: they are of no use later.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    paths = [folder / name for name in SPOOL_FILES]
    codes_file, ids_file = (os.open(path, flags, 0o666) for path in paths)
    n_bytes = (n_bits + 7) // 8
    rows, has_ids, ended = 0, False, True
    try:
        for values, ids in source.batches():
            codes = np.ascontiguousarray(as_codes(values, n_bits, bitorder, first=rows))
            if rows and (ids is not None) != has_ids:
                raise ValueError(
                    f"either all batches have ids or none; row {rows} differs from row 0"
                )
            if ids is not None:
                has_ids = True
                checked = as_ids(ids, first=rows)
                if len(checked) != len(codes):
                    raise ValueError(
                        f"expected {len(codes)} ids, one for each code, got {len(checked)}"
                    )
                write_all(ids_file, checked.view(np.uint8).data, 8 * rows)
            write_all(codes_file, codes.reshape(-1).data, n_bytes * rows)
            rows += len(codes)
            if max_rows is not None and rows >= max_rows:
                ended = False
                break
    finally:
        os.close(codes_file)
        os.close(ids_file)
    if rows == 0:
        raise ValueError("the source has no rows")
    arrays = np.memmap(paths[0], np.uint8, "r", shape=(rows, n_bytes))
    ids_of_rows = [np.memmap(paths[1], np.int64, "r", shape=(rows,))] if has_ids else []
    return ArraySource([np.asarray(arrays)], [np.asarray(each) for each in ids_of_rows]), ended
