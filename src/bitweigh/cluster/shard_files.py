"""The files of a shard: they follow from its rows, and the options and template of the version.

Rows are stored in ascending id. Bands are chosen by counted work on the rows themselves; neither
free memory nor earlier queries are asked. So the same rows give the same bytes in any process, and
an update gives what building everything again would.
"""

from __future__ import annotations

from pathlib import Path

from bitweigh._index.policy import SegmentPolicy
from bitweigh._index.row_layout import choose_row_layout
from bitweigh._index.state import State
from bitweigh._storage import index_files
from bitweigh._storage.manifest import read_manifest
from bitweigh._storage.note import NO_NOTE
from bitweigh._streaming.batches import BuildRequest, build_index
from bitweigh._streaming.sources import ArraySource
from bitweigh._vectors.store import Vectors
from bitweigh.cluster.templates import Template
from bitweigh.cluster.version import ShardOptions, StoredShard
from bitweigh.typing import Codes, Ids

__all__ = ["write_shard"]

# Memory of a streaming build beyond the rows, which are in memory already.
_BUILD_MEMORY = 1 << 28


def write_shard(
    codes: Codes,
    ids: Ids,
    vectors: Vectors | None,
    template: Template,
    options: ShardOptions,
    folder: Path,
    threads: int | None = 1,
) -> StoredShard:
    """Write the shard of these rows, in ascending id, to a folder that does not exist yet.

    The vectors are those of all ids, and perhaps of others.
    """
    n_bits, bitorder = template.n_bits, template.bitorder
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
        policy = SegmentPolicy(
            n_bits,
            bitorder,
            bands,
            minds_free_memory=False,
            costs_of_codes=template.costs_of_codes,
        )
        state = policy.with_rows(State(), codes, ids, threads=threads) if len(ids) else State()
        content = index_files.Content(n_bits, bitorder, bands, state, NO_NOTE)
        template.save_shard(content, vectors, folder)
    return StoredShard(
        read_manifest(folder).checksum,
        len(ids),
        int(ids[0]) if len(ids) else None,
        int(ids[-1]) if len(ids) else None,
        sum(path.stat().st_size for path in folder.iterdir()),
    )
