"""What a build was asked for: compared with what the folder has already, turned into a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bitweigh import _core
from bitweigh._checks import as_codes, as_integer
from bitweigh._storage.arrays import digest_of
from bitweigh._streaming.journal import Journal
from bitweigh._streaming.plan import (
    SAMPLE_ROWS,
    Plan,
    choose_layout,
    max_workers,
    rows_at_once,
)
from bitweigh._streaming.sources import (
    Batch,
    IteratorSource,
    RowSource,
    Source,
    loaded_bytes,
)
from bitweigh.typing import BitOrder, Codes

__all__ = [
    "Request",
    "check_resumable",
    "check_resumed",
    "check_source",
    "checked_layout",
    "compare",
    "plan_of",
    "source_facts",
]

# Rows of a resumable source whose digest must be the same at a resume.
_COMPARED_ROWS = 1 << 10


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments that determine the files."""

    n_bits: int
    bitorder: BitOrder
    bands: int | None
    band_bits: int | None
    layout: tuple[tuple[int, ...], ...] | None

    def facts(self) -> dict[str, Any]:
        """The arguments as JSON."""
        layout = None if self.layout is None else [list(bits) for bits in self.layout]
        return {
            "n_bits": self.n_bits,
            "bitorder": self.bitorder,
            "bands": self.bands,
            "band_bits": self.band_bits,
            "layout": layout,
        }


def checked_layout(layout: Sequence[Sequence[int]], n_bits: int) -> tuple[tuple[int, ...], ...]:
    checked = tuple(
        tuple(as_integer(bit, "bits of a band", 0, n_bits - 1) for bit in bits) for bits in layout
    )
    used = [bit for bits in checked for bit in bits]
    if not checked or len(set(used)) != len(used):
        raise ValueError("layout must have at least one band, and no bit in two bands")
    max_bits = _core.max_band_bits
    for bits in checked:
        if not 1 <= len(bits) <= max_bits or list(bits) != sorted(bits):
            raise ValueError(f"a band must have 1 to {max_bits} bits, ascending, got {list(bits)}")
    return checked


def check_resumed(journal: Journal, source: Source, request: Request, folder: Path) -> None:
    """Raise ValueError if the folder has another build than the one asked for."""
    if "request" in journal:
        check_resumable(source, folder)
        compare(journal.get("request"), request.facts(), folder)
        check_source(journal, source, folder)


def check_resumable(source: Source, folder: Path) -> None:
    """Raise ValueError if a build from such a source cannot be continued."""
    if not source.resumable:
        raise ValueError(
            f"{folder} has an unfinished build, and a build from an iterator or an array cannot "
            "be resumed: delete the folder, or build from files or from pieces that can be loaded "
            "by number"
        )


def compare(recorded: dict[str, Any], asked: dict[str, Any], folder: Path) -> None:
    """Raise ValueError if arguments differ from those of the build in a folder."""
    for name, value in asked.items():
        if recorded[name] != value:
            raise ValueError(
                f"{folder} has an unfinished build with {name}={recorded[name]}, got {value}: "
                "continue with the same, or delete the folder"
            )


def check_source(journal: Journal, source: Source, folder: Path) -> None:
    """Raise ValueError if the source of a resumed build has changed."""
    if "source" in journal and journal.get("source") != source_facts(source):
        raise ValueError(
            f"the source has changed since the build in {folder} was started (names, sizes, times "
            "of change, or rows): delete the folder to start again"
        )


def source_facts(source: Source) -> Any:  # noqa: ANN401 any JSON
    """What must not change between a build and its resume; None for a source that has none."""
    if isinstance(source, IteratorSource):
        return None
    rows = [np.ascontiguousarray(b[0]) for b in source.read(0, min(source.rows, _COMPARED_ROWS))]
    digest = digest_of(b"".join(array.tobytes() for array in rows))
    return {"source": source.fingerprint(), "rows": source.rows, "first_rows": digest}


def plan_of(
    journal: Journal,
    source: Source,
    request: Request,
    build_memory: int,
    threads: int,
    max_rows_at_once: int | None,
    facts: Mapping[str, Any],
) -> Plan:
    """The recorded plan, or a new one, which is then recorded."""
    if "plan" in journal:
        return Plan.from_facts(journal.get("plan"))
    first, has_ids = _first_rows(source, request)
    if len(first) == 0:
        raise ValueError("the source has no rows")
    # Fewer rows than a sample has are all rows.
    rows = len(first) if len(first) < SAMPLE_ROWS else None
    rows = source.rows if isinstance(source, RowSource) else rows
    bits = request.layout or tuple(
        tuple(band.tolist())
        for band in choose_layout(
            first, rows, request.n_bits, request.bitorder, request.bands, request.band_bits
        )
    )
    n_bytes, number_bytes = (request.n_bits + 7) // 8, 8 if has_ids else 4
    room = build_memory - threads * loaded_bytes(source, n_bytes, number_bytes)
    at_once = rows_at_once(n_bytes, number_bytes, room, threads)
    at_once = min(at_once, max_rows_at_once or at_once)
    plan = Plan(request.n_bits, request.bitorder, bits, has_ids, at_once)
    max_workers(plan, source, build_memory, threads)  # raises if there is no room
    # In one step: a build has begun, with all of this, or it has not.
    journal.record(request=request.facts(), source=source_facts(source), plan=plan.facts(), **facts)
    return plan


def _first_rows(source: Source, request: Request) -> tuple[Codes, bool]:
    """The first rows of a source, and whether it has ids."""
    if isinstance(source, RowSource):
        batches: Iterable[Batch] = source.sample(SAMPLE_ROWS)
        has_ids = source.has_ids
    else:
        batches = source.begin(SAMPLE_ROWS)
        has_ids = bool(batches) and batches[0][1] is not None
    parts = [np.empty((0, (request.n_bits + 7) // 8), np.uint8)]
    rows = 0
    for codes, _ in batches:
        parts.append(as_codes(codes, request.n_bits, request.bitorder, first=rows))
        rows += len(codes)
    return np.concatenate(parts)[:SAMPLE_ROWS], has_ids
