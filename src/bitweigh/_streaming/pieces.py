"""From a source to runs of the first band: pieces of rows are copied, checked, sorted, written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bitweigh import _core
from bitweigh._checks import as_codes, as_ids
from bitweigh._streaming.ids import id_facts
from bitweigh._streaming.plan import Plan
from bitweigh._streaming.runs import run_path, write_run
from bitweigh._streaming.sources import Batch
from bitweigh._streaming.workspace import Workspace
from bitweigh.typing import Codes

__all__ = ["Filling", "Piece", "sort_piece"]


class Piece(NamedTuple):
    """Adjacent rows of the source."""

    number: int
    first: int
    last: int


class Filling:
    """A piece being copied into a workspace; `first` is the number of its first row."""

    def __init__(self, plan: Plan, workspace: Workspace, number: int, first: int) -> None:
        """Begin with no rows."""
        self.workspace = workspace
        self.number = number
        self.first = first
        self.rows = 0
        self._plan = plan

    @property
    def room(self) -> int:
        """How many more rows fit."""
        return self.workspace.rows - self.rows

    def add(self, batch: Batch) -> None:
        """Check and copy the rows of a batch, for which there must be room."""
        plan, row = self._plan, self.first + self.rows
        codes = as_codes(batch[0], plan.n_bits, plan.bitorder, first=row)
        end = self.rows + len(codes)
        self.workspace.codes(0, end)[self.rows :] = codes
        if (batch[1] is not None) != plan.has_ids:
            raise ValueError(f"either all batches have ids or none; row {row} differs from row 0")
        if batch[1] is None:
            numbers = self.workspace.numbers(0, end, 4)[self.rows :].view(np.uint32)
            numbers[:, 0] = np.arange(row, row + len(codes))
        else:
            ids = as_ids(batch[1], first=row)
            if len(ids) != len(codes):
                raise ValueError(f"expected {len(codes)} ids, one for each code, got {len(ids)}")
            self.workspace.numbers(0, end, 8)[self.rows :].view(np.int64)[:, 0] = ids
        self.rows = end

    def add_all(self, batches: Iterable[Batch]) -> None:
        """Add several batches."""
        for batch in batches:
            self.add(batch)


def sort_piece(filling: Filling, plan: Plan, folder: Path, stop: _core.Stop) -> dict[str, Any]:
    """Write a filled workspace as a run of the first band, and return what to record of it."""
    workspace, n = filling.workspace, filling.rows
    facts: dict[str, Any] = {"first": filling.first, "rows": n, "number_bytes": 4}
    numbers, spare = workspace.numbers(0, n, 4), workspace.numbers(1, n, 4)
    if plan.has_ids:
        facts |= id_facts(workspace.numbers(0, n, 8).view(np.int64)[:, 0])
        facts["number_bytes"] = 4 if facts["max_id"] < 2**32 else 8
        numbers, spare = _stored_ids(workspace, n, facts["number_bytes"])
    band = plan.band(0)
    in_spare = band.sort(workspace.codes(0, n), numbers, workspace.codes(1, n), spare, stop)
    codes = workspace.codes(int(in_spare), n)
    path = run_path(folder, 0, filling.number)
    write_run(path, band, plan.key_bits(0), codes, spare if in_spare else numbers)
    return facts


def _stored_ids(workspace: Workspace, n: int, width: int) -> tuple[Codes, Codes]:
    """The ids as a run stores them, and the array that sorting may use."""
    wide = workspace.numbers(0, n, 8)
    if width == 8:
        return wide, workspace.numbers(1, n, 8)
    narrow = workspace.numbers(1, n, 4)
    np.copyto(narrow.view(np.uint32), wide.view(np.int64), casting="unsafe")
    return narrow, workspace.numbers(0, n, 4)
