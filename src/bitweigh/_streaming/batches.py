"""From batches of codes to the folder of an index: `Index.from_batches` without its docstring."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bitweigh import _core
from bitweigh._checks import as_n_bits
from bitweigh._disk.reading import resolved
from bitweigh._index.bands import BandOptions
from bitweigh._streaming.build import build_lean
from bitweigh._streaming.publish import publish
from bitweigh._streaming.sources import IteratorSource, Source
from bitweigh.typing import BitOrder

__all__ = ["build_index"]

# A row has a share in this many bands: a third would take as much memory as the codes again.
_MAX_BANDS = 2


def build_index(
    source: Source,
    path: str | os.PathLike[str],
    n_bits: int | None,
    bitorder: BitOrder,
    options: BandOptions,
    build_memory: int,
    threads: int | None,
    progress: bool,
) -> None:
    """Build an index in a folder; raises FileExistsError if there is something already."""
    folder = resolved(path)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} must not exist or be empty: an index is built there")
    bits = _n_bits(source) if n_bits is None else as_n_bits(n_bits)
    if bits > _core.max_lean_bits:
        raise ValueError(
            f"batches must be of codes of at most {_core.max_lean_bits} bits, got {bits}; add "
            "longer codes to an Index"
        )
    bands = options.bands if options.bands is not None else min(_MAX_BANDS, bits)
    if bands > _MAX_BANDS:
        raise ValueError(f"bands must be 1 or {_MAX_BANDS} here, got {bands}")
    work = work_folder(folder)
    built = build_lean(
        source,
        work,
        bits,
        bitorder=bitorder,
        bands=bands,
        band_bits=options.band_bits,
        build_memory=build_memory,
        threads=threads,
        progress=progress,
    )
    publish(built, folder, options)
    shutil.rmtree(work)


def work_folder(folder: Path) -> Path:
    """Where a build keeps its files until it is finished: beside the index."""
    return folder.with_name(f"{folder.name}.building")


def _n_bits(source: Source) -> int:
    """Eight for each byte of the first row."""
    batches = source.begin(1) if isinstance(source, IteratorSource) else source.read(0, 1)
    for codes, _ in batches:
        if codes.ndim == 2 and codes.shape[1]:
            return 8 * int(codes.shape[1])
    raise ValueError("the source has no rows")
