"""Options and arguments that several commands share, and the parser of sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = [
    "FILES",
    "Columns",
    "Folder",
    "IdColumn",
    "IdsFile",
    "Member",
    "check_bands",
    "parse_bytes",
]

FILES = "Files"
"""The heading, in the help, of options about files."""

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
