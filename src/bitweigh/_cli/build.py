"""`bitweigh build`: an index from a file of codes or of vectors."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from bitweigh import Index
from bitweigh._checks import MAX_BITS
from bitweigh._cli.files import Columns, IdColumn, IdsFile, Member, check_codes, naming, read_rows
from bitweigh._cli.indexes import AnyIndex, add_rows, codes_in
from bitweigh._cli.telling import Json, counted, tell
from bitweigh._disk.folders import held
from bitweigh._disk.reading import resolved
from bitweigh.typing import Ids
from bitweigh.vector_index import VectorIndex

__all__ = ["build_command"]

# Rows that are looked at to tell packed codes from single bits.
_LOOKED_AT = 1000


class BitOrderName(StrEnum):
    """As in np.packbits."""

    BIG = "big"
    LITTLE = "little"


class HasherName(StrEnum):
    """How vectors become codes."""

    ITQ = "itq"
    LSH = "lsh"
    SIGN = "sign"


class WeigherName(StrEnum):
    """How queries become costs."""

    ASYM = "asym"
    WH = "wh"
    INNER_PRODUCT = "inner_product"


class MetricName(StrEnum):
    """What near means."""

    EUCLIDEAN = "euclidean"
    COSINE = "cosine"


class RerankName(StrEnum):
    """How the vectors are kept."""

    FLOAT16 = "float16"
    FLOAT32 = "float32"


def build_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="npy, npz, fvecs, bvecs, fbin, u8bin, HDF5, or parquet: a file or a folder of it.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the index is saved.")
    ],
    codes: Annotated[
        bool, typer.Option("--codes", help="INPUT has packed codes, not vectors.")
    ] = False,
    bits: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_BITS,
            help="Of a code. If not given: 8 for each byte; of vectors 128, or what ITQ can make.",
        ),
    ] = None,
    bitorder: Annotated[
        BitOrderName, typer.Option(help="Codes: the order of the bits inside a byte.")
    ] = BitOrderName.BIG,
    hasher: Annotated[
        HasherName | None, typer.Option(help="Vectors: how they become codes; itq if not given.")
    ] = None,
    weigher: Annotated[
        WeigherName | None, typer.Option(help="Vectors: what a bit costs; asym if not given.")
    ] = None,
    metric: Annotated[
        MetricName | None, typer.Option(help="Vectors: what is near; euclidean if not given.")
    ] = None,
    rerank: Annotated[
        RerankName | None,
        typer.Option(help="Vectors: keep them, and order what was found by their distances."),
    ] = None,
    ids: IdsFile = None,
    column: Columns = None,
    id_column: IdColumn = None,
    member: Member = None,
    seed: Annotated[int, typer.Option(min=0, help="Vectors: of what the hasher draws.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the index that FOLDER has.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build an index from a file of packed codes or of vectors, and save it to a folder.

    Example, from nothing:
    python -c "import numpy as np; rng = np.random.default_rng(0); codes = (
    rng.integers(0, 256, (10000, 8), np.uint8)); np.save('codes.npy', codes); (
    np.save('queries.npy', codes[:100] ^ 1))"
    bitweigh build codes.npy --codes -o index
    """
    if codes and (hasher or weigher or metric or rerank):
        raise typer.BadParameter(
            "--hasher, --weigher, --metric and --rerank are for vectors, not for --codes"
        )
    _need_room(out, overwrite)
    start = time.perf_counter()
    rows, own = read_rows(
        source,
        "code" if codes else "vector",
        columns=column,
        id_column=id_column,
        member=member,
        ids=ids,
    )
    index: AnyIndex
    if codes:
        index = _of_codes(source, rows, own, bits, bitorder.value)
    else:
        chosen = {"hasher": hasher, "weigher": weigher, "metric": metric, "rerank": rerank}
        options = {name: one.value for name, one in chosen.items() if one is not None}
        index = _of_vectors(source, rows, own, bits, seed, options)
    with held(resolved(out)):
        # Another command may have saved an index there meanwhile.
        _need_room(out, overwrite)
        index.save(out)
    seconds = time.perf_counter() - start
    n_bits = codes_in(index).n_bits
    what = counted(len(index), "code" if codes else "vector")
    made = f"of {n_bits} bits" if codes else f"as codes of {n_bits} bits"
    tell(
        f"{out}: {what} {made}, in {seconds:.1f} s",
        {"folder": str(out), "rows": len(index), "n_bits": n_bits, "seconds": seconds},
        as_json,
    )


def _need_room(out: Path, overwrite: bool) -> None:
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"{out} is a file; an index is a folder: give another name")
    if out.exists() and any(out.iterdir()) and not overwrite:
        raise FileExistsError(
            f"{out} is not empty; --overwrite replaces an index, `bitweigh add` adds to it"
        )


def _of_codes(
    source: Path,
    rows: NDArray[Any],
    ids: Ids | None,
    bits: int | None,
    bitorder: Any,  # noqa: ANN401
) -> Index:
    check_codes(source, rows, bits)
    if bits is None:
        bits = _bits_of(source, rows)
    index = Index(bits, bitorder=bitorder)
    add_rows(index, rows, ids, source)
    index.compact()
    index.build()
    return index


def _bits_of(source: Path, rows: NDArray[Any]) -> int:
    """8 for each byte, unless the bytes look like single bits."""
    if rows.shape[1] >= 8 and rows[:_LOOKED_AT].max() <= 1:
        raise ValueError(
            f"{source}: has only zeros and ones, as unpacked bits would: pack them with "
            f"np.packbits(bits, axis=1), or say --bits {8 * rows.shape[1]} if they are packed"
        )
    if rows.shape[1] > MAX_BITS // 8:
        raise ValueError(
            f"{source}: codes have at most {MAX_BITS // 8} bytes, got {rows.shape[1]}; are these "
            "vectors? leave out --codes"
        )
    return 8 * int(rows.shape[1])


def _of_vectors(
    source: Path,
    rows: NDArray[Any],
    ids: Ids | None,
    bits: int | None,
    seed: int,
    options: dict[str, Any],
) -> AnyIndex:
    if rows.dtype == np.uint8 and "hasher" not in options:
        raise TypeError(
            f"{source}: has uint8, which may be codes or vectors: give --codes or --hasher itq"
        )
    index = VectorIndex(n_bits=bits, seed=seed, **options)
    with naming(source):
        index.fit(rows, progress=Console(stderr=True).is_terminal)
    add_rows(index, rows, ids, source)
    index.compact()
    index.build()
    return index
