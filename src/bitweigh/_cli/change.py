"""`bitweigh add` and `bitweigh remove`: load an index, change it, save it.

The folder holds the index before the change or after it, never anything between. It is locked from
loading to saving, so that of commands that run at the same time none is lost. What they read is
read before: it may come from a pipe that takes its time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bitweigh import Index
from bitweigh._checks import as_ids
from bitweigh._cli.files import (
    Columns,
    IdColumn,
    IdsFile,
    Member,
    check_codes,
    read_ids,
    read_rows,
)
from bitweigh._cli.indexes import add_rows, changing, codes_in, kind_of, kind_stored
from bitweigh._cli.telling import Json, counted, tell

__all__ = ["add_command", "remove_command"]


def add_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The index.")],
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="As for `build`: codes, or vectors.")
    ],
    ids: IdsFile = None,
    column: Columns = None,
    id_column: IdColumn = None,
    member: Member = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace rows whose ids are in the index.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add codes or vectors to an index, all of them or, if anything is wrong, none.

    Example: bitweigh add index queries.npy
    """
    kind = kind_stored(folder)
    rows, own = read_rows(source, kind, columns=column, id_column=id_column, member=member, ids=ids)
    with changing(folder, kind) as index:
        if isinstance(index, Index):
            check_codes(source, rows, index.n_bits)
        if own is not None and not replace:
            used = own[index.contains(own)]
            if len(used):
                raise ValueError(
                    f"{folder} has the id {used[0]} already; --replace replaces its row"
                )
        before = len(index)
        add_rows(index, rows, own, source, replace=replace)
        codes_in(index).build()
        index.save(folder)
    replaced = len(rows) - (len(index) - before)
    what = counted(len(rows) - replaced, kind_of(index))
    also = f", replaced {replaced:,}" if replaced else ""
    tell(
        f"{folder}: added {what}{also}; it has {len(index):,}",
        {
            "folder": str(folder),
            "added": len(rows) - replaced,
            "replaced": replaced,
            "rows": len(index),
        },
        as_json,
    )


def remove_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The index.")],
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="ID...", help="Whose codes to remove.")
    ] = None,
    ids: IdsFile = None,
    ignore_missing: Annotated[
        bool, typer.Option("--ignore-missing", help="Pass over ids that are not in the index.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove codes or vectors from an index by id, all of them or, if one is missing, none.

    Example: bitweigh remove index 17 4

    Example: seq 100 199 | bitweigh remove index --ids -
    """
    if not numbers and ids is None:
        raise typer.BadParameter("give ids to remove, or --ids FILE, or --ids - for stdin")
    kind = kind_stored(folder)
    wanted = as_ids(numbers or [])
    if ids is not None:
        wanted = np.concatenate([wanted, read_ids(ids)])
    with changing(folder, kind) as index:
        try:
            removed = index.remove(wanted, on_missing="ignore" if ignore_missing else "error")
        except KeyError as error:
            raise ValueError(
                f"{folder} has no id {error}; nothing was removed. --ignore-missing passes over "
                "such ids"
            ) from None
        index.save(folder)
    what = counted(removed, kind_of(index))
    tell(
        f"{folder}: removed {what}; it has {len(index):,}",
        {"folder": str(folder), "removed": removed, "rows": len(index)},
        as_json,
    )
