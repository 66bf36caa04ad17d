"""The files of a shard: they follow from its rows, n_bits and the options of the version alone.

Rows are stored in ascending id, whatever order they came in. Bands are chosen by counted work on
the rows themselves; neither free memory nor earlier queries are asked. So the same rows give the
same bytes in any process, and an update gives what building everything again would.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from bitweigh._index.policy import SegmentPolicy
from bitweigh._index.row_layout import choose_row_layout
from bitweigh._index.state import State
from bitweigh._storage import index_files
from bitweigh._storage.manifest import read_manifest
from bitweigh._storage.note import NO_NOTE
from bitweigh._streaming.batches import BuildRequest, build_index
from bitweigh._streaming.sources import ArraySource
from bitweigh.cluster.version import ShardOptions, StoredShard
from bitweigh.typing import BitOrder, Codes, Ids

__all__ = ["write_shard"]

# Memory of a streaming build beyond the rows, which are in memory already.
_BUILD_MEMORY = 1 << 28


def write_shard(
    codes: Codes,
    ids: Ids,
    n_bits: int,
    bitorder: BitOrder,
    options: ShardOptions,
    folder: Path,
    threads: int | None = 1,
) -> StoredShard:
    """Write the shard of these rows, in any order, to a folder that does not exist yet.

    The arrays are sorted in place: a second copy of them would be all the memory that is allowed.
    Raises ValueError if an id occurs twice.
    """
    if (ids[1:] <= ids[:-1]).any():
        order = np.argsort(ids, kind="stable")
        ids[:] = ids[order]
        if (ids[1:] == ids[:-1]).any():
            raise _repeated_error(ids)
        codes[:] = codes[order]
        del order
    bands = options.band_options()
    choice = choose_row_layout(len(ids), n_bits, bands, options.layout)
    if choice.layout == "lean" and len(ids):
        request = BuildRequest(n_bits, bitorder, bands, "lean")
        build_index(
            ArraySource([codes], [ids]),
            folder,
            request,
            build_memory=_BUILD_MEMORY,
            threads=threads,
            progress=False,
        )
    else:
        policy = SegmentPolicy(n_bits, bitorder, bands, minds_free_memory=False)
        state = policy.with_rows(State(), codes, ids) if len(ids) else State()
        index_files.save(index_files.Content(n_bits, bitorder, bands, state, NO_NOTE), folder)
    return StoredShard(
        read_manifest(folder).checksum,
        len(ids),
        int(ids[0]) if len(ids) else None,
        int(ids[-1]) if len(ids) else None,
        sum(path.stat().st_size for path in folder.iterdir()),
    )


def _repeated_error(sorted_ids: Ids) -> ValueError:
    first = next(a for a, b in pairwise(sorted_ids.tolist()) if a == b)
    return ValueError(f"an id must occur once, but {first} occurs twice")
