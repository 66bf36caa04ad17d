"""`bitweigh build`: create an index from files of codes or from a file of vectors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from bitweigh import Index, VectorIndex
from bitweigh._checks import MAX_BITS
from bitweigh._cli.errors import prefix_errors
from bitweigh._cli.files import read_new_rows
from bitweigh._cli.folders import add_rows
from bitweigh._cli.options import (
    SPEED,
    BandBits,
    Bands,
    BitOrderOption,
    Columns,
    IdColumn,
    IdsFile,
    Layout,
    Member,
    MemoryLimit,
    check_bands,
    parse_bytes,
)
from bitweigh._cli.output import Json, counted, report
from bitweigh._disk.folders import locked_folder
from bitweigh._disk.reading import resolved
from bitweigh._progress import ProgressBar
from bitweigh._system import MAX_THREADS
from bitweigh.typing import (
    HasherChoice,
    Ids,
    Metric,
    RowLayout,
    VectorDtype,
    WeigherName,
)

__all__ = ["build_command"]

_BUILD_MEMORY = 1 << 30
_VECTORS = "Vectors"


def build_command(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="INPUT...",
            help="Codes or vectors: npy, npz, fvecs, bvecs, fbin, u8bin, i8bin, HDF5, parquet, or "
            "a folder of parquet files. Codes may be in several files, one after the other.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to save the index to.")
    ],
    codes: Annotated[
        bool, typer.Option("--codes", help="INPUT has packed codes, not vectors.")
    ] = False,
    bits: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=MAX_BITS,
            help="Code length in bits (default: 8 per byte with --codes, else 128, or one per "
            "number of a vector if itq can make no more).",
        ),
    ] = None,
    ids: IdsFile = None,
    column: Columns = None,
    id_column: IdColumn = None,
    member: Member = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the index in FOLDER.")
    ] = False,
    as_json: Json = False,
    bitorder: BitOrderOption = "big",
    hasher: Annotated[
        HasherChoice | None,
        typer.Option(
            help="How vectors become codes (default: itq). auto compares those that make at most "
            "--bits bits, and takes the best.",
            rich_help_panel=_VECTORS,
        ),
    ] = None,
    weigher: Annotated[
        WeigherName | None,
        typer.Option(
            help="How a query becomes a cost for each bit (default: asym, decoded for scalar and "
            "levels).",
            rich_help_panel=_VECTORS,
        ),
    ] = None,
    metric: Annotated[
        Metric | None,
        typer.Option(
            help="Distance between vectors (default: euclidean).", rich_help_panel=_VECTORS
        ),
    ] = None,
    rerank: Annotated[
        VectorDtype | None,
        typer.Option(
            help="Keep the vectors in this precision, and rank what the codes find by true "
            "distance.",
            rich_help_panel=_VECTORS,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Random seed.", rich_help_panel=_VECTORS)
    ] = 0,
    bands: Bands = None,
    band_bits: BandBits = None,
    memory_limit: MemoryLimit = None,
    layout: Layout = None,
    build_memory: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            parser=parse_bytes,
            help="Memory for building an index of codes, such as 512M or 2G (default: 1G).",
            rich_help_panel=SPEED,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=MAX_THREADS,
            help="Threads for building an index of codes (default: all CPUs).",
            rich_help_panel=SPEED,
        ),
    ] = None,
) -> None:
    """Build an index from files of packed codes or a file of vectors, and save it to a folder.

    Codes may take more space than there is memory. If the command is ended before it has finished,
    the same command continues where it was.

    Example, from scratch:
    python -c "import numpy as np; rng = np.random.default_rng(0); codes = (
    rng.integers(0, 256, (10000, 8), np.uint8)); np.save('codes.npy', codes); (
    np.save('queries.npy', codes[:100] ^ 1))"
    bitweigh build codes.npy --codes -o index
    """
    if codes and (hasher or weigher or metric or rerank):
        raise typer.BadParameter(
            "--hasher, --weigher, --metric and --rerank are for vectors, not for --codes"
        )
    start = time.perf_counter()
    if codes:
        from bitweigh._cli.build_codes import CodeFiles, CodeOptions, build_codes
        from bitweigh._streaming.batches import is_built

        _refuse_existing(out, overwrite or is_built(out.resolve()))
        files = CodeFiles(sources, ids, column, id_column, member)
        memory = _BUILD_MEMORY if build_memory is None else build_memory
        wanted = CodeOptions(
            bits, bitorder, bands, band_bits, memory_limit, layout, memory, threads
        )
        built = build_codes(files, out, wanted, overwrite)
        _report_codes(out, built.choice.layout, built.resumed, time.perf_counter() - start, as_json)
        return
    if layout or build_memory or threads:
        raise typer.BadParameter("--layout, --build-memory and --threads are for --codes")
    if len(sources) > 1:
        raise typer.BadParameter(f"vectors are in one file, got {len(sources)}: or give --codes")
    _refuse_existing(out, overwrite)
    (source,) = sources
    rows, row_ids = read_new_rows(
        source, "vector", columns=column, id_column=id_column, member=member, ids=ids
    )
    options: dict[str, Any] = {"bands": bands, "band_bits": band_bits, "memory_limit": memory_limit}
    options |= {"hasher": hasher, "weigher": weigher, "metric": metric, "rerank": rerank}
    index = _fitted_vector_index(source, rows, bits, seed, options)
    _fill(index, rows, row_ids, source)
    with locked_folder(resolved(out)):
        # Checked again: another command may have saved an index there meanwhile.
        _refuse_existing(out, overwrite)
        index.save(out)
    _report_vectors(out, index, time.perf_counter() - start, as_json)


def _report_vectors(out: Path, index: VectorIndex, seconds: float, as_json: bool) -> None:
    facts: dict[str, object] = {"folder": str(out), "rows": len(index), "n_bits": index.n_bits}
    facts["seconds"] = seconds
    if index.trials:
        typer.echo(str(index.trials), err=True)
        facts["trials"] = [
            {**trial._asdict(), "hasher": str(trial.hasher)} for trial in index.trials
        ]
    by = f" by {index.hasher}" if index.trials else ""
    rows = counted(len(index), "vector")
    report(f"{out}: {rows} as codes of {index.n_bits} bits{by}, in {seconds:.1f} s", facts, as_json)


def _report_codes(
    out: Path, layout: RowLayout, resumed: bool, seconds: float, as_json: bool
) -> None:
    index = Index.load(out, mmap=True)
    lean = ", lean" if layout == "lean" else ""
    since = " since the build was resumed" if resumed else ""
    report(
        f"{out}: {counted(len(index), 'code')} of {index.n_bits} bits{lean}, in {seconds:.1f} s"
        f"{since}",
        {
            "folder": str(out),
            "rows": len(index),
            "n_bits": index.n_bits,
            "layout": layout,
            "resumed": resumed,
            "seconds": seconds,
        },
        as_json,
    )


def _refuse_existing(out: Path, overwrite: bool) -> None:
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"{out} is a file; an index is a folder: give another name")
    if out.exists() and any(out.iterdir()) and not overwrite:
        raise FileExistsError(
            f"{out} is not empty; --overwrite replaces an index, `bitweigh add` adds to it"
        )


def _fitted_vector_index(
    source: Path,
    rows: NDArray[Any],
    bits: int | None,
    seed: int,
    options: dict[str, Any],
) -> VectorIndex:
    if rows.dtype == np.uint8 and options["hasher"] is None:
        raise TypeError(
            f"{source}: has uint8, which may be codes or vectors: give --codes or --hasher itq"
        )
    if bits is not None:
        check_bands(options["bands"], bits)
    set_options = {name: value for name, value in options.items() if value is not None}
    index = VectorIndex(n_bits=bits, seed=seed, **set_options)
    with prefix_errors(source):
        index._fit(rows, progress=None)
    return index


def _fill(index: VectorIndex, rows: NDArray[Any], ids: Ids | None, source: Path) -> None:
    """Add all rows to an empty index, compact it and build its bands."""
    add_rows(index, rows, ids, source)
    with ProgressBar("building"):
        index.compact()
        index.build()
