"""The streaming build of plain segments: `build_plain`, one segment after the other.

A segment is built in memory as `Index.add` builds it, and has as many rows as `build_memory` has
room for. Its files are written to the folder of the build, then it is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bitweigh import _core
from bitweigh._checks import as_codes, as_ids
from bitweigh._disk.folders import locked_folder
from bitweigh._index.bands import MAX_SPREAD_BITS, BandOptions
from bitweigh._index.policy import SegmentPolicy
from bitweigh._index.row_layout import LayoutReason
from bitweigh._index.segments import LiveSegment, Segment
from bitweigh._progress import ProgressBar
from bitweigh._storage.arrays import ArrayData, ArrayFile
from bitweigh._storage.index_files import described_part
from bitweigh._streaming.files import OutputArray, naming_full_disk, write_whole
from bitweigh._streaming.ids import check_distinct_ids, id_facts, ids_ascend
from bitweigh._streaming.journal import Journal, remove_leftovers
from bitweigh._streaming.plan import OTHER_BYTES
from bitweigh._streaming.request import check_source, source_facts
from bitweigh._streaming.sources import RowSource, loaded_bytes
from bitweigh._streaming.workers import do_parts
from bitweigh.typing import BitOrder, Codes, Ids

__all__ = ["PlainFiles", "build_plain"]

_STAGE = "segments"
# Each has up to seven files, which are open while the index is mapped; 1024 is a usual limit.
_MAX_SEGMENTS = 100
# Bytes for each bit of a code that choosing bands takes, measured: with a sample of unpacked bits,
# or only with queries.
_SPREADING, _ASKING = 80 << 10, 24 << 10
# Ids of all rows in their order, to check that they differ.
_ALL_IDS = "all_ids.npy"


class PlainFiles(NamedTuple):
    """What a build made: the parts of an index, and their files."""

    n_bits: int
    bitorder: BitOrder
    next_id: int
    """Larger than every id."""
    parts: list[dict[str, Any]]
    """The fields of each segment, as in a manifest."""
    arrays: dict[str, ArrayData]
    """The files by the names that they keep."""


def build_plain(
    source: RowSource,
    folder: Path,
    n_bits: int,
    bitorder: BitOrder,
    options: BandOptions,
    *,
    reason: LayoutReason | None = None,
    build_memory: int,
    threads: int,
    progress: bool | None,
    facts: Mapping[str, Any] | None = None,
) -> PlainFiles:
    """Build plain segments in a folder, or continue a build that was ended there.

    `facts` are recorded when the build begins. The caller has compared those of a resumed one.
    """
    with locked_folder(folder):
        remove_leftovers(folder)
        journal = Journal(folder)
        check_source(journal, source, folder)
        if source.rows == 0:
            raise ValueError("the source has no rows")
        with naming_full_disk(folder, lambda: _progress_text(journal)):
            if "plan" not in journal:
                plan = {"segment_rows": _segment_rows(source, n_bits, options, build_memory)}
                journal.record(plan=plan, source=source_facts(source), **(facts or {}))
            else:
                segment_rows = journal.get("plan")["segment_rows"]
                _check_room(source, segment_rows, n_bits, options, build_memory)
            build = _Build(source, folder, journal, n_bits, bitorder, options, reason)
            return build.run(build_memory, threads, progress)


def _progress_text(journal: Journal) -> str:
    """How far a build is."""
    done = len(journal.finished(_STAGE))
    return f"finished {done} segments" if done else "nothing is finished"


class _Build:
    """A build with its plan."""

    def __init__(
        self,
        source: RowSource,
        folder: Path,
        journal: Journal,
        n_bits: int,
        bitorder: BitOrder,
        options: BandOptions,
        reason: LayoutReason | None,
    ) -> None:
        self._source = source
        self._folder = folder
        self._journal = journal
        self._reason = reason
        self._stop = _core.Stop()
        segment_rows = journal.get("plan")["segment_rows"]
        self._edges = source.edges(segment_rows)
        if options.memory_limit is not None:
            # Each segment has the share of its rows.
            share = options.memory_limit * segment_rows // source.rows
            options = replace(options, memory_limit=share)
        self._policy = SegmentPolicy(n_bits, bitorder, options, minds_free_memory=False)

    def run(self, build_memory: int, threads: int, progress: bool | None) -> PlainFiles:
        if "result" not in self._journal:
            self._build_all(build_memory, threads, progress)
            self._journal.record(result=True)
        return self._result()

    def _build_all(self, build_memory: int, threads: int, progress: bool | None) -> None:
        rows = self._source.rows
        with ProgressBar("building", rows, unit="rows", shown=progress) as bar:
            for number, (first, last) in enumerate(pairwise(self._edges)):
                if number not in self._journal.finished(_STAGE):
                    self._build_segment(number, first, last, threads)
                bar.advance(last - first)
        self._check_ids(build_memory)

    def _build_segment(self, number: int, first: int, last: int, threads: int) -> None:
        """Write the files of a segment, and record it."""
        codes, ids = self._rows(first, last, threads)
        facts = {"max_id": last - 1}
        if self._source.has_ids:
            facts = id_facts(ids)
            self._keep_ids(first, ids)
        # As `Index.build` does: nobody will call that for an index of this size.
        segment = self._policy.segment_of((codes, ids), min_banded_rows=1, threads=threads)
        # Not needed any more, and as large as a band.
        del codes, ids
        facts |= self._written(replace(segment, layout_reason=self._reason))
        self._journal.record_part(_STAGE, number, facts)

    def _rows(self, first: int, last: int, threads: int) -> tuple[Codes, Ids]:
        """Rows of the source, read by several threads."""
        policy = self._policy
        codes = np.empty((last - first, (policy.n_bits + 7) // 8), np.uint8)
        ids = np.arange(first, last, dtype=np.int64)

        def read(part: tuple[int, int]) -> None:
            row = part[0]
            for values, row_ids in self._source.read(*part):
                place = slice(row - first, row - first + len(values))
                codes[place] = as_codes(values, policy.n_bits, policy.bitorder, first=row)
                if row_ids is not None:
                    if len(row_ids) != len(values):
                        raise ValueError(
                            f"expected {len(values)} ids, one for each code, got {len(row_ids)}"
                        )
                    ids[place] = as_ids(row_ids, first=row)
                row += len(values)

        # A source that loads whole pieces has room for one of them.
        readers = 1 if self._source.loaded_rows else threads
        parts = self._source.parts(first, last)
        do_parts(parts, read, readers, lambda *_: None, self._stop)
        return codes, ids

    def _keep_ids(self, first: int, ids: Ids) -> None:
        """Write ids to the file of all ids."""
        file = OutputArray(self._folder / _ALL_IDS, "<i8", (self._source.rows,))
        try:
            file.write(first, ids)
            file.sync()
        finally:
            file.close()

    def _written(self, segment: Segment) -> dict[str, Any]:
        """Write the files of a segment, and return what to record of it."""
        arrays: dict[str, ArrayData] = {}
        part = described_part(LiveSegment(segment), arrays)
        for name, data in arrays.items():
            write_whole(self._folder / name, data.data())
        files = {name: data.file.facts() for name, data in arrays.items()}
        return {"part": part, "files": files}

    def _check_ids(self, build_memory: int) -> None:
        """Raise ValueError if two rows have the same id."""
        segments = [fact for _, fact in sorted(self._journal.finished(_STAGE).items())]
        if self._source.has_ids and not ids_ascend(segments):
            max_id = max(fact["max_id"] for fact in segments)
            path = self._folder / _ALL_IDS
            check_distinct_ids(path, max_id, self._folder, build_memory // 2, self._stop)

    def _result(self) -> PlainFiles:
        segments = [fact for _, fact in sorted(self._journal.finished(_STAGE).items())]
        arrays = {}
        for fact in segments:
            for name, about in fact["files"].items():
                file = ArrayFile(name, about["dtype"], tuple(about["shape"]))
                arrays[name] = ArrayData(file, (), self._folder / name)
        return PlainFiles(
            self._policy.n_bits,
            self._policy.bitorder,
            1 + max(fact["max_id"] for fact in segments),
            [fact["part"] for fact in segments],
            arrays,
        )


def _segment_rows(source: RowSource, n_bits: int, options: BandOptions, build_memory: int) -> int:
    """Rows of a segment: as many as there is room for, and all segments about equal."""
    fewest = -(-source.rows // (_core.max_segment_rows - 1))
    for count in range(fewest, _MAX_SEGMENTS + 1):
        segment_rows = -(-source.rows // count)
        if _needed_bytes(source, segment_rows, n_bits, options) <= build_memory:
            break
    _check_room(source, segment_rows, n_bits, options, build_memory)
    return segment_rows


def _check_room(
    source: RowSource, segment_rows: int, n_bits: int, options: BandOptions, build_memory: int
) -> None:
    """Raise ValueError if there is no room for building segments of so many rows."""
    needed = _needed_bytes(source, segment_rows, n_bits, options)
    if needed > build_memory:
        raise ValueError(
            f"build_memory must be at least {needed} for segments of {segment_rows} codes of "
            f"{n_bits} bits, got {build_memory}"
        )


def _needed_bytes(source: RowSource, rows: int, n_bits: int, options: BandOptions) -> int:
    """The most memory that building a segment of so many rows takes."""
    n_bytes = (n_bits + 7) // 8
    bands, width = options.ideal_shape(rows, n_bits)
    if options.memory_limit == 0:
        bands = width = 0
    # Codes as they were read, in the order of the first band and in blocks; the same for the other
    # bands, with row numbers; ids, their order, and what sorting needs.
    row_bytes = (bands + 3) * n_bytes + 4 * bands + 48
    directories = (bands + 1) * 4 * ((1 << width) + 1)
    choosing = 0 if bands == 0 else n_bits * (_SPREADING if n_bits <= MAX_SPREAD_BITS else _ASKING)
    fixed = OTHER_BYTES + loaded_bytes(source, n_bytes, 8) + choosing
    return fixed + rows * row_bytes + directories
