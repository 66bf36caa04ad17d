"""`bitweigh info` and `bitweigh verify`: what an index holds, and whether all of it is sound."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

import bitweigh
from bitweigh._cli.indexes import codes_in, kind_of, opened
from bitweigh._cli.telling import Json, counted, tell

__all__ = ["info_command", "verify_command"]


def info_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The index.")],
    as_json: Json = False,
) -> None:
    """Say what an index holds and what it takes. Reads little of it, whatever its size.

    Example: bitweigh info index
    """
    index = opened(folder, mmap=True)
    codes = codes_in(index)
    memory = codes.memory()
    facts: dict[str, object] = {
        "folder": str(folder),
        "holds": f"{kind_of(index)}s",
        "rows": len(index),
        "n_bits": codes.n_bits,
        "bitorder": codes.bitorder,
    }
    if not isinstance(index, bitweigh.Index):
        facts |= {"n_features": index.n_features}
        facts |= {
            name: str(getattr(index, name)) for name in ("hasher", "weigher", "metric", "rerank")
        }
    files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    facts |= {
        "bytes_on_disk": sum(files),
        "bytes_in_memory": memory.total,
        "bytes_of_codes": memory.codes,
        "bytes_of_ids": memory.ids + memory.id_lookup,
        "bytes_of_bands": memory.band_codes + memory.band_rows + memory.directories,
        "version": bitweigh.__version__,
        "kernel": bitweigh.info().kernel,
        "threads": bitweigh.info().threads,
    }
    lines = [f"{name.replace('_', ' '):16} {_plain(value)}" for name, value in facts.items()]
    tell("\n".join(lines), facts, as_json)


def verify_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The index.")],
    as_json: Json = False,
) -> None:
    """Compare every byte of an index with its checksum, and check that all of it agrees.

    Takes about as long as building the index. A damaged index is told with exit code 1.

    Example: bitweigh verify index
    """
    start = time.perf_counter()
    index = opened(folder)
    codes_in(index).verify()
    seconds = time.perf_counter() - start
    what = counted(len(index), kind_of(index))
    tell(
        f"{folder}: {what}, nothing is damaged ({seconds:.1f} s)",
        {"folder": str(folder), "rows": len(index), "sound": True, "seconds": seconds},
        as_json,
    )


def _plain(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
