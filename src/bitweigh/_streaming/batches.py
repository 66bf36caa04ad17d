"""From batches of codes to the folder of an index: `Index.from_batches` without its docstring."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bitweigh import _core
from bitweigh._checks import as_n_bits
from bitweigh._disk.reading import resolved
from bitweigh._index.bands import BandOptions
from bitweigh._storage.manifest import MANIFEST
from bitweigh._streaming.build import build_lean, is_finished
from bitweigh._streaming.files import is_disk_full
from bitweigh._streaming.journal import JOURNAL
from bitweigh._streaming.publish import is_published, publish
from bitweigh._streaming.results import LeanFiles
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
    work = work_folder(folder)
    # A finished build may have been ended while its files were published, or after that.
    if folder.exists() and any(folder.iterdir()) and not is_finished(work):
        raise _not_empty(folder)
    bits = _n_bits(source) if n_bits is None else as_n_bits(n_bits)
    if bits > _core.max_lean_bits:
        raise ValueError(
            f"batches must be of codes of at most {_core.max_lean_bits} bits, got {bits}; add "
            "longer codes to an Index"
        )
    bands = options.bands if options.bands is not None else min(_MAX_BANDS, bits)
    if bands > _MAX_BANDS:
        raise ValueError(f"bands must be 1 or {_MAX_BANDS} here, got {bands}")
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
    if not is_published(built, folder):
        if os.path.lexists(folder / MANIFEST):
            raise _not_empty(folder)
        _publish(built, folder, options)
    _remove_work(work)


def work_folder(folder: Path) -> Path:
    """Where a build keeps its files until it is finished: beside the index."""
    return folder.with_name(f"{folder.name}.building")


def _not_empty(folder: Path) -> FileExistsError:
    return FileExistsError(f"{folder} must not exist or be empty: an index is built there")


def _publish(built: LeanFiles, folder: Path, options: BandOptions) -> None:
    try:
        publish(built, folder, options)
    except OSError as error:
        if not is_disk_full(error):
            raise
        raise OSError(
            error.errno,
            f"no room for the index in {folder}: all of it is built, and the same call continues "
            "when there is room",
        ) from error


def _remove_work(work: Path) -> None:
    """Delete the files of a published build, the journal last: until then it can be continued."""
    for path in work.iterdir():
        if path.name != JOURNAL:
            path.unlink()
    shutil.rmtree(work)


def _n_bits(source: Source) -> int:
    """Eight for each byte of the first row."""
    batches = source.begin(1) if isinstance(source, IteratorSource) else source.read(0, 1)
    for codes, _ in batches:
        if codes.ndim == 2 and codes.shape[1]:
            return 8 * int(codes.shape[1])
    raise ValueError("the source has no rows")
