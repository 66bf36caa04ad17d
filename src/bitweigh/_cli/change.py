"""`bitweigh add`, `remove`, `merge` and `compact`: load an index, change it, save it.

The folder holds the index before the change or after it, never anything in between. It is locked
from loading to saving, so that no change is lost when commands run at the same time. Input is read
before that: it may come from a slow pipe.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bitweigh import Index, VectorIndex
from bitweigh._checks import as_ids
from bitweigh._cli.files import check_codes, read_ids, read_new_rows
from bitweigh._cli.folders import (
    AnyIndex,
    add_rows,
    changing,
    kind_of,
    kind_stored,
    open_index,
    size_on_disk,
    stored_parts,
)
from bitweigh._cli.options import Columns, Folder, IdColumn, IdsFile, Member
from bitweigh._cli.output import Json, counted, readable_bytes, report
from bitweigh._progress import ProgressBar
from bitweigh.typing import Ids

__all__ = ["add_command", "compact_command", "merge_command", "remove_command"]


def add_command(
    folder: Folder,
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A file of codes or vectors, as for `build`.")
    ],
    ids: IdsFile = None,
    column: Columns = None,
    id_column: IdColumn = None,
    member: Member = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace rows whose ids are already in the index.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add codes or vectors to an index: all of them or, if anything is wrong, none.

    Example: bitweigh add index queries.npy
    """
    kind = kind_stored(folder)
    rows, row_ids = read_new_rows(
        source, kind, columns=column, id_column=id_column, member=member, ids=ids
    )
    with changing(folder, kind) as index:
        if isinstance(index, Index):
            check_codes(source, rows, index.n_bits)
        if row_ids is not None and not replace:
            _refuse_used(folder, index, row_ids)
        before = len(index)
        add_rows(index, rows, row_ids, source, replace=replace)
        index.save(folder)
    _report_added(folder, index, len(rows), before, as_json)


def remove_command(
    folder: Folder,
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="ID", help="The ids of the rows to remove.")
    ] = None,
    ids: IdsFile = None,
    ignore_missing: Annotated[
        bool, typer.Option("--ignore-missing", help="Skip ids that are not in the index.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove codes or vectors by id: all of them or, if one is missing, none.

    Example: bitweigh remove index 17 4

    Example: seq 100 199 | bitweigh remove index --ids -
    """
    if not numbers and ids is None:
        raise typer.BadParameter("give ids to remove, or --ids FILE, or --ids - for stdin")
    kind = kind_stored(folder)
    row_ids = as_ids(numbers or [])
    if ids is not None:
        row_ids = np.concatenate([row_ids, read_ids(ids)])
    with changing(folder, kind) as index:
        try:
            removed = index.remove(row_ids, on_missing="ignore" if ignore_missing else "error")
        except KeyError as error:
            raise ValueError(
                f"{folder} has no id {error}; nothing was removed. --ignore-missing skips such ids"
            ) from None
        index.save(folder)
    report(
        f"{folder}: removed {counted(removed, kind)}; it has {len(index):,}",
        {"folder": str(folder), "removed": removed, "rows": len(index)},
        as_json,
    )


def merge_command(
    folder: Folder,
    other: Annotated[
        Path, typer.Argument(metavar="OTHER", help="The folder of the index to add; it stays.")
    ],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace rows whose ids are already in FOLDER.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add all rows of another index, with their ids: all of them or, if anything is wrong, none.

    Vectors are added as OTHER keeps them (see --rerank of `build`), and hashed by FOLDER's hasher.

    Example: bitweigh merge index tail
    """
    kind = kind_stored(folder)
    if folder.resolve() == other.resolve():
        raise ValueError(f"{other} is the same folder as {folder}; name two different indexes")
    added = open_index(other)
    with changing(folder, kind) as index:
        _check_mergeable(folder, index, other, added)
        ids = added.ids
        if not replace:
            _refuse_used(folder, index, ids)
        before = len(index)
        with ProgressBar("merging", len(ids), unit="rows") as bar:
            for part, rows in stored_parts(added, ids):
                index.add(rows, part, on_duplicate="replace")
                bar.advance(len(part))
        index.save(folder)
    _report_added(folder, index, len(ids), before, as_json)


def compact_command(folder: Folder, as_json: Json = False) -> None:
    """Rewrite an index without removed and replaced rows, for less disk and faster searches.

    Worth it after many removals or many small additions. Answers stay the same. An index that was
    built from more codes than fit into memory is rewritten on disk.

    Example: bitweigh compact index
    """
    kind = kind_stored(folder)
    start = time.perf_counter()
    with changing(folder, kind, mmap=kind == "code") as index:
        before = size_on_disk(folder)
        with ProgressBar("compacting"):
            index.compact()
            index.build()
        index.save(folder)
        after = size_on_disk(folder)
    seconds = time.perf_counter() - start
    sizes = f"{readable_bytes(before)} before, {readable_bytes(after)} after"
    report(
        f"{folder}: compacted {counted(len(index), kind)}, {sizes}, in {seconds:.1f} s",
        {
            "folder": str(folder),
            "rows": len(index),
            "bytes_before": before,
            "bytes_after": after,
            "seconds": seconds,
        },
        as_json,
    )


def _refuse_used(folder: Path, index: AnyIndex, ids: Ids) -> None:
    used = ids[index.contains(ids)]
    if len(used):
        raise ValueError(f"{folder} already has the id {used[0]}; --replace replaces its row")


def _check_mergeable(folder: Path, index: AnyIndex, other: Path, added: AnyIndex) -> None:
    """Raise unless rows of one index mean the same in the other."""
    if isinstance(index, Index) and isinstance(added, Index):
        expected, found = (f"{each.n_bits} bits, {each.bitorder}" for each in (index, added))
    elif isinstance(index, VectorIndex) and isinstance(added, VectorIndex):
        if added.rerank is None:
            raise ValueError(
                f"{other} keeps no vectors to merge; add the file that it was built from, with "
                f"`bitweigh add {folder} INPUT`, or build it with --rerank"
            )
        expected, found = (f"{each.n_features} numbers, {each.metric}" for each in (index, added))
    else:
        raise ValueError(
            f"{other} has {kind_of(added)}s, {folder} has {kind_of(index)}s; both must be alike"
        )
    if expected != found:
        kind = kind_of(index)
        raise ValueError(
            f"{other} has {kind}s of {found}, {folder} has {kind}s of {expected}; both must be "
            "alike"
        )


def _report_added(folder: Path, index: AnyIndex, rows: int, before: int, as_json: bool) -> None:
    """Report that `rows` rows were added to an index that had `before` rows."""
    added = len(index) - before
    replaced = rows - added
    replacements = f", replaced {replaced:,}" if replaced else ""
    report(
        f"{folder}: added {counted(added, kind_of(index))}{replacements}; it has {len(index):,}",
        {"folder": str(folder), "added": added, "replaced": replaced, "rows": len(index)},
        as_json,
    )
