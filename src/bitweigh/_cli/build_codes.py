"""`bitweigh build --codes`: streams packed codes from files into an index, and resumes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from bitweigh import Index
from bitweigh._checks import MAX_BITS
from bitweigh._cli.errors import prefix_errors
from bitweigh._cli.files import check_codes, read_new_rows
from bitweigh._cli.options import check_bands
from bitweigh._streaming.batches import BuildRequest, Built, build_index
from bitweigh._streaming.sources import STREAMED_ENDINGS, ArraySource, RowSource, as_source
from bitweigh.typing import BitOrder, RowLayout

__all__ = ["CodeFiles", "CodeOptions", "build_codes", "checked_bits"]

# Rows inspected to tell packed codes from unpacked bits.
_ROWS_INSPECTED = 1000


class CodeFiles(NamedTuple):
    """The input of a build, as the options of the command name it."""

    paths: Sequence[Path]
    ids: str | None
    columns: Sequence[str] | None
    id_column: str | None
    member: str | None


class CodeOptions(NamedTuple):
    """How the index is to be built."""

    bits: int | None
    bitorder: BitOrder
    bands: int | None
    band_bits: int | None
    memory_limit: int | None
    layout: RowLayout | None
    build_memory: int
    threads: int | None


def build_codes(files: CodeFiles, out: Path, options: CodeOptions, overwrite: bool) -> Built:
    """Build an index of codes in a folder, or continue a build that was ended."""
    name = files.paths[0]
    with prefix_errors(name):
        source = _source_of(files)
    n_bits = checked_bits(name, source, options.bits, options.bands)
    empty = Index(
        n_bits,
        bands=options.bands,
        band_bits=options.band_bits,
        memory_limit=options.memory_limit,
    )
    request = BuildRequest(n_bits, options.bitorder, empty._policy.band_options, options.layout)
    with prefix_errors(name):
        return build_index(
            source,
            out,
            request,
            build_memory=options.build_memory,
            threads=options.threads,
            progress=None,
            overwrite=overwrite,
        )


def checked_bits(path: str | Path, source: RowSource, bits: int | None, bands: int | None) -> int:
    """The bits of codes; raises if the first rows are no codes, or have too few bits for bands."""
    with prefix_errors(path):
        first = _first_rows(source)
    check_codes(path, first, bits)
    n_bits = _guess_bits(path, first) if bits is None else bits
    check_bands(bands, n_bits)
    return n_bits


def _source_of(files: CodeFiles) -> RowSource:
    """The rows of files: mapped, or read piece by piece, where their format allows that."""
    paths, ids = files.paths, files.ids
    endings = {path.suffix.lower() for path in paths if not path.is_dir()}
    is_streamed = endings <= STREAMED_ENDINGS and files.member is None
    # Those of parquet files are streamed if they are in a column.
    ids_are_streamed = ids is None or (ids.endswith(".npy") and endings.isdisjoint({".parquet"}))
    if len(paths) == 1 and not (is_streamed and ids_are_streamed):
        rows, row_ids = read_new_rows(
            paths[0],
            "code",
            columns=files.columns,
            id_column=files.id_column,
            member=files.member,
            ids=ids,
        )
        return ArraySource([rows], [] if row_ids is None else [row_ids])
    if len(files.columns or ()) > 1:
        raise ValueError("codes are in one column: give --column once")
    source = as_source(
        paths[0] if len(paths) == 1 else list(paths),
        ids=ids,
        column=files.columns[0] if files.columns else None,
        id_column=files.id_column,
    )
    assert isinstance(source, RowSource)
    return source


def _first_rows(source: RowSource) -> NDArray[Any]:
    for rows, _ in source.read(0, min(source.rows, _ROWS_INSPECTED)):
        return rows
    raise ValueError("there are no rows")


def _guess_bits(path: str | Path, rows: NDArray[Any]) -> int:
    """8 bits per byte; raises if the rows look like unpacked bits, or are too long."""
    if rows.shape[1] >= 8 and rows[:_ROWS_INSPECTED].max() <= 1:
        raise ValueError(
            f"{path}: has only zeros and ones, as unpacked bits would: pack them with "
            f"np.packbits(bits, axis=1), or say --bits {8 * rows.shape[1]} if they are packed"
        )
    if rows.shape[1] > MAX_BITS // 8:
        raise ValueError(
            f"{path}: codes have at most {MAX_BITS // 8} bytes, got {rows.shape[1]}; are these "
            "vectors? leave out --codes"
        )
    return 8 * int(rows.shape[1])
