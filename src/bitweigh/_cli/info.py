"""`bitweigh info` and `bitweigh verify`: show what an index holds, and check that it is sound."""

from __future__ import annotations

import time
from pathlib import Path

import bitweigh
from bitweigh import BinaryEmbeddings, Index
from bitweigh._cli.folders import AnyStored, codes_in, kind_of, open_stored, size_on_disk
from bitweigh._cli.options import Folder
from bitweigh._cli.output import Json, counted, readable_bytes, report
from bitweigh._index.explain import decision_of, layout_text

__all__ = ["info_command", "verify_command"]


def info_command(folder: Folder, as_json: Json = False) -> None:
    """Show what an index holds and how large it is. Quick for an index of any size.

    Example: bitweigh info index
    """
    index = open_stored(folder, mmap=True)
    facts = _facts(folder, index)
    report(_summary(index, facts), facts, as_json)


def verify_command(folder: Folder, as_json: Json = False) -> None:
    """Check every file of an index against its checksum, and that its parts agree.

    Takes about as long as building the index. The exit code is 1 if anything is damaged.

    Example: bitweigh verify index
    """
    start = time.perf_counter()
    index = open_stored(folder)
    index.verify()
    seconds = time.perf_counter() - start
    rows = counted(len(index), _row_kind(index))
    report(
        f"{folder}: {rows}, nothing is damaged ({seconds:.1f} s)",
        {"folder": str(folder), "rows": len(index), "sound": True, "seconds": seconds},
        as_json,
    )


def _row_kind(index: AnyStored) -> str:
    return "embedding" if isinstance(index, BinaryEmbeddings) else kind_of(index)


def _facts(folder: Path, index: AnyStored) -> dict[str, object]:
    codes = codes_in(index)
    memory = codes.memory()
    facts: dict[str, object] = {
        "folder": str(folder),
        "holds": f"{_row_kind(index)}s",
        "rows": len(index),
        "n_bits": codes.n_bits,
        "bitorder": codes.bitorder,
    }
    if isinstance(index, BinaryEmbeddings):
        facts |= {"rescore": index.rescore}
    elif not isinstance(index, Index):
        facts |= {
            "n_features": index.n_features,
            "hasher": str(index.hasher),
            "weigher": str(index.weigher),
            "metric": index.metric,
            "rerank": index.rerank,
        }
    return facts | {
        "bytes_on_disk": size_on_disk(folder),
        "bytes_in_memory": memory.total,
        "bytes_of_codes": memory.codes,
        "bytes_of_ids": memory.ids + memory.id_lookup,
        "bytes_of_bands": memory.band_codes + memory.band_rows + memory.directories,
        "decision": decision_of(codes._state, codes._policy),
        "layout": layout_text(codes._state),
        "version": bitweigh.__version__,
        "kernel": bitweigh.info().kernel,
        "threads": bitweigh.info().threads,
    }


def _summary(index: AnyStored, facts: dict[str, object]) -> str:
    """The facts as text for people."""
    codes = codes_in(index)
    rows = counted(len(index), _row_kind(index))
    sizes = {name: readable_bytes(int(str(facts[name]))) for name in facts if "bytes" in name}
    if isinstance(index, Index):
        lines = [f"{facts['folder']}: {rows} of {codes.n_bits} bits, bit order {codes.bitorder}"]
    elif isinstance(index, BinaryEmbeddings):
        lines = [
            f"{facts['folder']}: {rows} of {codes.n_bits:,} dimensions",
            f"ranked by      bits, then {index.rescore} vectors",
        ]
    else:
        ranking = "the codes alone" if index.rerank is None else f"true distances, {index.rerank}"
        lines = [
            f"{facts['folder']}: {rows} of {index.n_features:,} numbers, as codes of "
            f"{codes.n_bits} bits",
            f"hashed by      {facts['hasher']}",
            f"weighed by     {facts['weigher']}",
            f"distance       {index.metric}",
            f"ranked by      {ranking}",
        ]
    banded = facts["bytes_of_bands"] != 0
    lines += [
        f"on disk        {sizes['bytes_on_disk']}",
        f"in memory      {sizes['bytes_in_memory']}: codes {sizes['bytes_of_codes']}, ids "
        f"{sizes['bytes_of_ids']}, bands {sizes['bytes_of_bands']}",
        f"searched by    {'bands' if banded else 'scanning all codes; it has no bands'}"
        + (f": {facts['decision']}" if facts["decision"] else ""),
        f"rows           {facts['layout']}",
        f"this machine   kernel {facts['kernel']}, {counted(int(str(facts['threads'])), 'thread')}",
        f"bitweigh       {facts['version']}",
    ]
    return "\n".join(lines)
