"""Options and arguments that several commands share, and the parser of sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from bitweigh._checks import MAX_BITS
from bitweigh._core import max_band_bits
from bitweigh.typing import BitOrder, RowLayout

__all__ = [
    "FILES",
    "SPEED",
    "BandBits",
    "Bands",
    "BitOrderOption",
    "Columns",
    "Folder",
    "IdColumn",
    "IdsFile",
    "Layout",
    "Member",
    "MemoryLimit",
    "check_bands",
    "parse_bytes",
]

FILES = "Files"
"""The heading, in the help, of options about files."""
SPEED = "Speed and memory (answers stay the same)"
"""The heading of options of a build that no answer depends on."""

Folder: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="The folder of the index.")
]
Columns: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME",
        help="Parquet: the column of codes or vectors (default: `code` or `vector`). Repeat it for "
        "vectors with one column per number.",
        rich_help_panel=FILES,
    ),
]
IdColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--id-column", metavar="NAME", help="Parquet: the column of ids.", rich_help_panel=FILES
    ),
]
Member: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="npz and HDF5: the array to read.", rich_help_panel=FILES),
]
IdsFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ids",
        metavar="FILE",
        help="Ids: .npy, `ids` of .npz, or text with one id per line; - for stdin.",
    ),
]


def check_bands(bands: int | None, n_bits: int) -> None:
    """Raise unless a code has enough bits for so many bands."""
    if bands is not None and bands > n_bits:
        raise typer.BadParameter(
            f"expected at most {n_bits}, one for each bit of a code, got {bands}",
            param_hint="'--bands'",
        )


_SIZE = re.compile(r"(\d+(?:\.\d+)?) *(?:([KMGT])(I?B)?|B)?", re.IGNORECASE)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}


def parse_bytes(text: str) -> int:
    """Bytes of a size like 800, 1.5G or 4GiB (powers of 1024), or 4GB (powers of 1000)."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"expected bytes, such as 800M, 4G or 4GiB, got {text!r}")
    number, prefix, suffix = match.groups()
    if prefix is None:
        factor = 1
    else:
        factor = (1000 if (suffix or "").upper() == "B" else 1024) ** _POWERS[prefix.upper()]
    return int(float(number) * factor) if "." in number else int(number) * factor


BitOrderOption: TypeAlias = Annotated[
    BitOrder,
    typer.Option("--bitorder", help="Order of the bits in a byte.", rich_help_panel="Codes"),
]
Bands: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        max=MAX_BITS,
        help="Sorted copies of the codes, which take memory and may make searches faster; 0 "
        "for none (default: as many as make them faster, at most 16).",
        rich_help_panel=SPEED,
    ),
]
BandBits: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=max_band_bits,
        help="Bits that each copy is sorted by (default: chosen from the number of codes).",
        rich_help_panel=SPEED,
    ),
]
MemoryLimit: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="BYTES",
        parser=parse_bytes,
        help="Memory that the index may use, such as 800M, 4G or 4GiB; fewer bands are built "
        "if more would not fit.",
        rich_help_panel=SPEED,
    ),
]
Layout: TypeAlias = Annotated[
    RowLayout | None,
    typer.Option(
        help="How to store codes: plain, or lean, which takes less memory (default: lean for "
        "16,777,216 codes or more of at most 64 bits).",
        rich_help_panel=SPEED,
    ),
]
