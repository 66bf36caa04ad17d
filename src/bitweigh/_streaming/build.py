"""The streaming build of a lean segment: `build_lean`, its stages, and how it is resumed.

1. Pieces of the source become runs: files of rows in ascending key of the first band.
2. Ranges of keys are merged from these runs into the files of the first band, and each becomes a
   run of every other band.
3. The other bands are merged from their runs.

The files depend on the rows, their order, their ids and the layout, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from bitweigh import _core, _system
from bitweigh._checks import as_bitorder, as_integer, as_optional_integer
from bitweigh._disk.folders import locked_folder
from bitweigh._disk.reading import resolved
from bitweigh._progress import ProgressBar
from bitweigh._streaming.files import naming_full_disk
from bitweigh._streaming.ids import check_distinct_ids, ids_ascend
from bitweigh._streaming.journal import Journal, remove_leftovers
from bitweigh._streaming.merge import BandFiles, Merging, merge_range
from bitweigh._streaming.pieces import Filling, Piece, sort_piece
from bitweigh._streaming.plan import MAX_LEAN_BITS, MIN_BUILD_MEMORY, Plan, max_workers
from bitweigh._streaming.ranges import Range, cut_ranges
from bitweigh._streaming.request import Request, check_resumed, checked_layout, plan_of
from bitweigh._streaming.results import LeanBandFiles, LeanFile, LeanFiles
from bitweigh._streaming.runs import Run, run_path
from bitweigh._streaming.sources import IteratorSource, RowSource, Source
from bitweigh._streaming.workers import Workspaces, do_parts
from bitweigh.typing import BitOrder

__all__ = ["build_lean"]


def build_lean(
    source: Source,
    folder: Path,
    n_bits: int,
    *,
    bitorder: BitOrder = "big",
    bands: int | None = None,
    band_bits: int | None = None,
    layout: Sequence[Sequence[int]] | None = None,
    build_memory: int = 1 << 30,
    threads: int | None = None,
    progress: bool | None = False,
    max_rows_at_once: int | None = None,
    facts: Mapping[str, Any] | None = None,
) -> LeanFiles:
    """Build the files of one lean segment in a folder, or continue a build that was ended there.

    `layout` gives the bits of each band; by default they are chosen from the first rows, `bands`
    and `band_bits`. `max_rows_at_once` limits the rows of a piece, for tests. `facts` are recorded
    when the build begins. Calling again after the end returns the same result without any work.
    """
    n_bits = as_integer(n_bits, "n_bits", 1, MAX_LEAN_BITS)
    request = Request(
        n_bits,
        as_bitorder(bitorder),
        as_optional_integer(bands, "bands", 1, n_bits),
        as_optional_integer(band_bits, "band_bits", 1, _core.max_band_bits),
        None if layout is None else checked_layout(layout, n_bits),
    )
    build_memory = as_integer(build_memory, "build_memory", MIN_BUILD_MEMORY, 2**62)
    workers = _system.default_threads() if threads is None else threads
    workers = as_integer(workers, "threads", 1, _system.MAX_THREADS)
    root = resolved(folder)
    with locked_folder(root):
        remove_leftovers(root)
        journal = Journal(root)
        check_resumed(journal, source, request, root)
        with naming_full_disk(root, lambda: _progress_text(journal)):
            plan = plan_of(
                journal, source, request, build_memory, workers, max_rows_at_once, facts or {}
            )
            return _Build(source, root, journal, plan, build_memory, workers, progress).run()


def _progress_text(journal: Journal) -> str:
    """How far a build is."""
    n_bands = len(journal.get("plan")["layout"]) if "plan" in journal else 0
    stages = ["pieces", *(f"ranges of band {i}" for i in range(n_bands))]
    counts = {name: len(journal.finished(name)) for name in stages}
    done = [f"{count} {name}" for name, count in counts.items() if count]
    return f"finished {', '.join(done)}" if done else "nothing is finished"


class _Build:
    """A build with its plan."""

    def __init__(
        self,
        source: Source,
        folder: Path,
        journal: Journal,
        plan: Plan,
        build_memory: int,
        threads: int,
        progress: bool | None,
    ) -> None:
        self._source = source
        self._folder = folder
        self._journal = journal
        self._plan = plan
        self._build_memory = build_memory
        self._workers = max_workers(plan, source, build_memory, threads)
        self._progress = progress
        self._stop = _core.Stop()

    def run(self) -> LeanFiles:
        if "result" not in self._journal:
            if "rows" not in self._journal:
                self._sort_pieces()
            n_bands = len(self._plan.layout)
            rows = self._journal.get("rows")
            # Each band is worth as much of the bar as any other.
            with ProgressBar("merging", rows, unit="rows", shown=self._progress) as bar:
                results = [self._merge_band(number, bar, n_bands) for number in range(n_bands)]
            self._journal.record(result=results)
        return self._result()

    def _workspaces(self, number_bytes: int) -> Workspaces:
        plan = self._plan
        return Workspaces(self._workers, plan.rows_at_once, plan.n_bytes, number_bytes)

    def _sort_pieces(self) -> None:
        """Write the runs of the first band."""
        total = self._source.rows if isinstance(self._source, RowSource) else None
        if total is not None:
            _check_rows(total)
        with ProgressBar("sorting", total, unit="rows", shown=self._progress) as bar:

            def record(part: Piece | Filling, fact: dict[str, Any]) -> None:
                self._journal.record_part("pieces", part.number, fact)
                bar.advance(fact["rows"])

            if isinstance(self._source, RowSource):
                finished = self._journal.finished("pieces")
                bar.advance(sum(fact["rows"] for fact in finished.values()))
                self._sort_rows(self._source, finished, record)
            else:
                self._sort_batches(self._source, record)
        rows = sum(fact["rows"] for fact in self._journal.finished("pieces").values())
        self._journal.record(rows=rows)

    def _sort_rows(
        self,
        source: RowSource,
        finished: Container[int],
        record: Callable[[Piece, dict[str, Any]], None],
    ) -> None:
        """Sort the pieces that are not finished; each thread reads its own."""
        plan = self._plan
        workspaces = self._workspaces(8 if plan.has_ids else 4)

        def sort(piece: Piece) -> dict[str, Any]:
            with workspaces.taken() as workspace:
                filling = Filling(plan, workspace, piece.number, piece.first)
                filling.add_all(source.read(piece.first, piece.last))
                return sort_piece(filling, plan, self._folder, self._stop)

        edges = source.edges(plan.rows_at_once)
        pieces = [Piece(i, *ends) for i, ends in enumerate(pairwise(edges))]
        todo = [piece for piece in pieces if piece.number not in finished]
        do_parts(todo, sort, self._workers, record, self._stop)

    def _sort_batches(
        self, source: IteratorSource, record: Callable[[Filling, dict[str, Any]], None]
    ) -> None:
        """Sort all batches of an iterator, which this thread reads."""
        plan = self._plan
        workspaces = self._workspaces(8 if plan.has_ids else 4)

        def sort(filling: Filling) -> dict[str, Any]:
            try:
                return sort_piece(filling, plan, self._folder, self._stop)
            finally:
                workspaces.give_back(filling.workspace)

        fillings = _fillings(source, plan, workspaces)
        do_parts(fillings, sort, self._workers, record, self._stop)

    def _runs(self, band: int) -> list[Run]:
        """The runs of a band."""
        plan = self._plan
        bits = plan.key_bits(band)
        if band == 0:
            facts = sorted(self._journal.finished("pieces").items())
            sizes = [(number, fact["rows"], fact["number_bytes"]) for number, fact in facts]
        else:
            facts = sorted(self._journal.finished("ranges of band 0").items())
            sizes = [(number, rows, 4) for number, rows in facts]
        return [
            Run(run_path(self._folder, band, number), rows, plan.n_bytes, width, bits)
            for number, rows, width in sizes
        ]

    def _merge_band(self, number: int, bar: ProgressBar, n_bands: int) -> dict[str, Any]:
        """Write the files of a band and return what to record of them."""
        rows = self._journal.get("rows")
        runs = self._runs(number)
        recorded = self._journal.get(f"band {number}")
        if recorded is not None:
            # The build may have ended before all of them were deleted.
            _remove(runs)
            bar.advance(rows / n_bands)
            return dict(recorded)
        plan = self._plan
        ranges = cut_ranges(runs, plan.band(number), plan.key_bits(number), plan.rows_at_once)
        wide = number == 0 and any(run.number_bytes == 8 for run in runs)
        files = BandFiles(self._folder, plan, number, rows, wide, ranges)
        try:
            self._merge_ranges(files, runs, lambda done: bar.advance(done / n_bands))
            if number == 0:
                self._check_ids(files)
            facts = {
                name: [array.path.name, array.dtype, list(array.shape), array.digest()]
                for name, array in files.arrays.items()
            }
        finally:
            files.close()
        self._journal.record(**{f"band {number}": facts})
        _remove(runs)
        return facts

    def _merge_ranges(
        self, files: BandFiles, runs: list[Run], advance: Callable[[int], None]
    ) -> None:
        """Write the ranges of a band that are not finished. Its workspaces end with this call."""
        stage = f"ranges of band {files.number}"
        workspaces = self._workspaces(files.number_bytes)
        merging = Merging(self._folder, self._plan, runs, files, self._stop)

        def merge(part: Range) -> int:
            with workspaces.taken() as workspace:
                merge_range(merging, part, workspace)
            files.add_finished([part.number])
            return part.rows

        def record(part: Range, done: int) -> None:
            self._journal.record_part(stage, part.number, done)
            advance(done)

        finished = self._journal.finished(stage)
        files.add_finished(finished)
        advance(sum(finished.values()))
        todo = [part for part in files.ranges if part.number not in finished]
        do_parts(todo, merge, self._workers, record, self._stop)

    def _check_ids(self, files: BandFiles) -> None:
        """Raise ValueError if two rows have the same id."""
        pieces = [fact for _, fact in sorted(self._journal.finished("pieces").items())]
        if not self._plan.has_ids or ids_ascend(pieces):
            return
        max_id = max(fact["max_id"] for fact in pieces)
        path = files.numbers.path
        check_distinct_ids(path, max_id, self._folder, self._build_memory // 2, self._stop)

    def _result(self) -> LeanFiles:
        plan = self._plan
        bands = []
        for bits, facts in zip(plan.layout, self._journal.get("result"), strict=True):
            files = [
                LeanFile(self._folder / name, dtype, tuple(shape), checksum)
                for name, dtype, shape, checksum in facts.values()
            ]
            bands.append(LeanBandFiles(bits, *files))
        rows = self._journal.get("rows")
        next_id = rows
        if plan.has_ids:
            pieces = self._journal.finished("pieces").values()
            next_id = 1 + max((fact["max_id"] for fact in pieces), default=-1)
        return LeanFiles(self._folder, plan.n_bits, plan.bitorder, rows, next_id, tuple(bands))


def _remove(runs: list[Run]) -> None:
    for run in runs:
        run.remove()


def _check_rows(rows: int) -> None:
    if rows >= _core.max_segment_rows:
        raise ValueError(
            f"a lean segment must have fewer than {_core.max_segment_rows} rows, got {rows}"
        )


def _fillings(source: IteratorSource, plan: Plan, workspaces: Workspaces) -> Iterator[Filling]:
    """Filled workspaces, from the batches of an iterator."""
    filling: Filling | None = None
    row = number = 0
    for codes, ids in source.batches():
        start = 0
        while start < len(codes):
            if filling is None:
                filling = Filling(plan, workspaces.take(), number, row)
                number += 1
            end = min(len(codes), start + filling.room)
            filling.add((codes[start:end], None if ids is None else ids[start:end]))
            row += end - start
            start = end
            _check_rows(row)
            if filling.room == 0:
                yield filling
                filling = None
    if filling is not None:
        yield filling
