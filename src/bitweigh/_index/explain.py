"""Explanations of a search: its plan, the reason and the counters, for people and programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from bitweigh import _core
from bitweigh._index.policy import SegmentPolicy
from bitweigh._index.row_layout import why_this_layout
from bitweigh._index.segments import LiveSegment, Segment, Unbanded
from bitweigh._index.state import State
from bitweigh._results import SearchResult
from bitweigh.typing import Method, RowLayout

__all__ = ["Explanation", "SegmentFacts", "decision_of", "explanation_of", "layout_text"]


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """Facts about one segment of an index."""

    rows: int
    removed_rows: int
    """Removed rows that are still stored, not counted in `rows`; `Index.compact` drops them."""
    bands: int
    wanted_bands: int
    """Bands that the segment would have if there were enough memory."""
    band_bits: int
    """Bits of the widest band; 0 without bands."""
    covered_bits: int
    """Bits of the code that belong to a band."""
    decision: str
    """Why it has these bands, or none; "" if that is not known."""
    layout: RowLayout
    """How its rows are stored: see docs/large.md."""
    layout_reason: str
    """Why they are; "" if there was no choice, as in an index that was not built on disk."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result of `Index.explain`; ``str(explanation)`` is text for people."""

    plan: str
    """ "scan", "probe", or "probe, then scan"."""
    reason: str
    k: int
    n_bits: int
    segments: tuple[SegmentFacts, ...]
    predicted_us: float
    """Microseconds that probing was first estimated to take; 0 if nothing was probed.

    The estimate falls as near codes are found, so more than a scan's is no reason to give up yet.
    """
    scan_us: float
    """Microseconds that scanning instead was estimated to take."""
    engine_us: float
    """Microseconds that the search took, measured."""
    searches: int
    """Queries that this index and its copies were searched for since it was created or loaded.

    Ranges of infinite radius, which have all codes, are not counted.
    """
    searches_by_bands: int
    """Those among them that bands alone answered."""
    pages: int
    """Pages of 4 KiB that the search read of the index, each counted once; of its files if mapped.

    Pages of ids that only decide ties are not counted; those of all rows of a scanned segment are.
    """
    pages_from_disk: int
    """Those among them that were not in memory before; the system tells only on Linux."""
    counters: dict[str, int]
    """The counters of `SearchStats`, without the times."""
    found: SearchResult = field(repr=False, compare=False)
    """What the search found: distances and ids (k,)."""

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain types, for JSON, without what was found."""
        facts = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "found"}
        segments = tuple(asdict(segment) for segment in self.segments)
        return {**facts, "segments": segments, "counters": dict(self.counters)}

    def __str__(self) -> str:
        """Return a few lines of text for a terminal."""
        rows = sum(facts.rows for facts in self.segments)
        lines = [
            f"{self.plan}: {self.reason}",
            f"  {rows:,} codes of {self.n_bits} bits, k = {self.k}, {self.engine_us:.1f} us",
        ]
        lines += [
            f"  segment of {facts.rows:,} codes: {_bands(facts)}"
            + (f", {facts.covered_bits} of {self.n_bits} bits covered" if facts.bands else "")
            + (f", {facts.removed_rows:,} more removed" if facts.removed_rows else "")
            + (f"; {facts.decision}" if facts.bands and facts.decision else "")
            + _layout(facts)
            for facts in self.segments
        ]
        if self.scan_us:
            lines.append(
                f"  estimated: probing {self.predicted_us:.1f} us, scanning {self.scan_us:.1f} us"
            )
        if self.searches and any(facts.bands for facts in self.segments):
            share = 100 * self.searches_by_bands / self.searches
            lines.append(f"  bands were used by {share:.0f} % of {self.searches:,} searches")
        lines.append(f"  {self.pages:,} pages of 4 KiB read, {self.pages_from_disk:,} from disk")
        width = max(len(name) for name in self.counters)
        lines += [f"  {name:{width}}  {count:,}" for name, count in self.counters.items() if count]
        return "\n".join(lines)


def _bands(segment: SegmentFacts) -> str:
    if not segment.bands:
        return "without bands"
    shape = f"{segment.bands} bands of up to {segment.band_bits} bits"
    if segment.bands < segment.wanted_bands:
        shape += f" ({segment.wanted_bands} would be faster, but take more memory than allowed)"
    return shape


def _layout(segment: SegmentFacts) -> str:
    if segment.layout == "plain" and not segment.layout_reason:
        return ""
    reason = f" ({segment.layout_reason})" if segment.layout_reason else ""
    return f"; {segment.layout} rows{reason}"


def explanation_of(
    state: State,
    policy: SegmentPolicy,
    engine: _core.Engine,
    method: Method,
    k: int,
    found: SearchResult,
    pages: _core.PageCounter,
) -> Explanation:
    """The explanation of one query's search of a state; `found` must have its stats."""
    stats = found.stats
    assert stats is not None
    counters = {name: int(count) for name, count in stats._asdict().items()}
    nanoseconds = {
        name: counters.pop(name)
        for name in ("predicted_ns", "probe_spent_ns", "scan_ns", "nanoseconds")
    }
    plan, reason = _plan(state, policy, method, k, counters)
    return Explanation(
        plan=plan,
        reason=reason,
        k=k,
        n_bits=policy.n_bits,
        segments=tuple(_facts(part, policy) for part in state.parts()),
        predicted_us=nanoseconds["predicted_ns"] / 1e3,
        scan_us=nanoseconds["scan_ns"] / 1e3,
        engine_us=nanoseconds["nanoseconds"] / 1e3,
        searches=engine.queries,
        searches_by_bands=engine.queries_by_bands,
        pages=pages.pages,
        pages_from_disk=pages.missing,
        counters=counters,
        found=found,
    )


def _facts(part: LiveSegment, policy: SegmentPolicy) -> SegmentFacts:
    widths = [len(band.bits) for band in part.segment.bands]
    wanted = policy.band_options.ideal_shape(len(part.segment), policy.n_bits)[0]
    return SegmentFacts(
        rows=len(part),
        removed_rows=part.removed_rows,
        bands=len(widths),
        # More bands of lean rows would take as much memory as the codes again, each.
        wanted_bands=wanted if part.segment.layout == "plain" else len(widths),
        band_bits=max(widths, default=0),
        covered_bits=sum(widths),
        decision=_decision(part.segment, policy),
        layout=part.segment.layout,
        layout_reason=why_this_layout(part.segment.layout, part.segment.layout_reason),
    )


def _plan(
    state: State, policy: SegmentPolicy, method: Method, k: int, counters: dict[str, int]
) -> tuple[str, str]:
    if counters["fallbacks"]:
        return "probe, then scan", "probing became more expensive than a scan"
    if counters["probes"]:
        return "probe", "few codes are near the query, and bands lead to them"
    parts = list(state.parts())
    if not parts:
        return "scan", "the index is empty"
    if k > state.rows:
        return "scan", "k is larger than the number of codes"
    if any(part.segment.bands for part in parts):
        if method == "scan":
            return "scan", "method='scan'"
        return "scan", "a scan is faster than setting up probes here"
    return "scan", f"there are no bands: {decision_of(state, policy)}"


def decision_of(state: State, policy: SegmentPolicy) -> str:
    """Why the largest segment has its bands, or none; "" if that is not known, or it is empty."""
    parts = list(state.parts())
    return _decision(max(parts, key=len).segment, policy) if parts else ""


def layout_text(state: State) -> str:
    """How the rows of the largest segment are stored, and why if there was a choice."""
    parts = list(state.parts())
    if not parts:
        return "plain"
    segment = max(parts, key=len).segment
    reason = why_this_layout(segment.layout, segment.layout_reason)
    return f"{segment.layout}: {reason}" if reason else segment.layout


def _decision(segment: Segment, policy: SegmentPolicy) -> str:
    """Why a segment has its bands, or none; "" if that is not known."""
    if segment.choice is not None:
        return str(segment.choice)
    if not segment.bands:
        # Where there are few codes, that says more than that nothing was decided about them.
        is_small = policy.band_options.bands is None and len(segment) < policy.banded_rows
        reason = segment.unbanded
        return _why_unbanded("small" if is_small and reason in _UNDECIDED else reason, policy)
    return "" if policy.band_options.bands is None else f"bands={policy.band_options.bands}"


# Segments without bands that nothing has been decided about.
_UNDECIDED: tuple[Unbanded, ...] = ("manual", "stored")


def _why_unbanded(reason: Unbanded, policy: SegmentPolicy) -> str:
    limit = policy.band_options.memory_limit
    return {
        "small": f"scanning fewer than {policy.banded_rows:,} codes is as fast",
        "manual": "none were built for these codes (build='manual'); build() decides about them",
        "memory_limit": f"memory_limit={limit} leaves no room for any" if limit else "bands=0",
        "free_memory": "there was too little free memory for them; build() tries again",
        "no_gain": "searches would not be faster",
        "stored": "the index was saved without any; build() decides about them",
    }[reason]
