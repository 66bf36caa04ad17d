"""Whether bands pay, and how many: decided by what the engine would do for queries, counted.

Time here is the engine's own estimate from the keys, blocks and rows that it counted, never the
clock: the same rows, queries and options give the same bands on every machine.

A sample of the rows is probed first, with every number of bands that comes into question. That is
cheap, and flatters: fewer rows share a block with those looked for. So where not even the sample
gains enough, no band is built; otherwise the number that is best for the sample is built, measured
on all rows, and kept if it gains enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitweigh._index.bands import BandChoice, BandOptions, code_bytes, extra_bytes, layout_of
from bitweigh._index.evidence import Evidence, request_for
from bitweigh._index.request import nearest
from bitweigh._index.segments import Segment
from bitweigh.typing import BitOrder, Codes

__all__ = ["MIN_GAIN", "best_for_sample", "gain_of"]

# Bands that make searches less than this many times as fast are not worth their memory.
MIN_GAIN = 1.3
# Fewer bands are chosen where they gain at most this factor less.
_NEARLY_AS_GOOD = 1.1
# Queries made from stored codes gain up to this factor more than real queries did, on dense SIFT,
# GloVe and mixture codes of 32 to 256 bits hashed by LSH, ITQ and signs.
_STORED_CODES_FLATTER = 1.15
# The sample is an eighth of the rows, but at least and at most so many.
_SAMPLE_SHARE = 8
_MIN_SAMPLE_ROWS = 1 << 16
_MAX_SAMPLE_ROWS = 1 << 20
_SEED = 1


def best_for_sample(
    codes: Codes,
    n_bits: int,
    bitorder: BitOrder,
    options: BandOptions,
    max_bands: int,
    evidence: Evidence,
    weights: NDArray[np.float64] | None = None,
) -> BandChoice:
    """The number of bands that is best for a sample of the rows, with their gain there.

    `weights` are those of `layout_of`.
    """
    n = len(codes)
    sample_rows = min(n, max(_MIN_SAMPLE_ROWS, min(n // _SAMPLE_SHARE, _MAX_SAMPLE_ROWS)))
    rows = np.random.default_rng(_SEED).choice(n, sample_rows, replace=False)
    if evidence.rows is not None:
        rows = np.setdiff1d(rows, evidence.rows)
    sample = codes[np.sort(rows)]
    sample_rows = len(sample)
    factor = n / sample_rows
    # The nearest rows of a sample are as near as more rows of all.
    sampled = evidence._replace(k=max(1, round(evidence.k / factor)))
    gains = {}
    for count in _counts(max_bands):
        width = options.with_bands(count).ideal_shape(sample_rows, n_bits)[1]
        layout = layout_of(sample, n_bits, bitorder, count, width, weights)
        segment = Segment.build(sample, np.arange(sample_rows), n_bits, layout, bitorder)
        gains[count] = gain_of(segment, bitorder, sampled, factor)
    best = max(gains.values())
    count = min(count for count, gain in gains.items() if gain * _NEARLY_AS_GOOD >= best)
    width = options.with_bands(count).ideal_shape(n, n_bits)[1]
    return BandChoice(
        bands=count,
        band_bits=width,
        gain=gains[count],
        copies=1 + extra_bytes(n, n_bits, count, width) / code_bytes(n, n_bits),
        queries=len(evidence.costs),
        k=evidence.k,
        source=evidence.source,
    )


def gain_of(
    segment: Segment, bitorder: BitOrder, evidence: Evidence, scan_factor: float = 1.0
) -> float:
    """How many times as fast as a scan the queries are with the bands of a segment, as counted.

    `scan_factor` is how many times as long a scan takes as that of the segment.
    """
    request = request_for(segment, bitorder)
    request.engine.tuning.scan_factor = scan_factor
    stats = nearest(request, evidence.costs, min(evidence.k, len(segment)), stats=True).stats
    assert stats is not None
    scan_ns = int(stats.scan_ns.max())
    if scan_ns == 0:
        return 1.0  # too few rows for probing to be tried
    fallback_ns = np.where(stats.fallbacks > 0, scan_ns, 0)
    spent_ns = np.where(stats.probes > 0, stats.probe_spent_ns + fallback_ns, scan_ns)
    gain = scan_ns * len(evidence.costs) / float(spent_ns.sum())
    return gain / _STORED_CODES_FLATTER if evidence.source == "stored" else gain


def _counts(max_bands: int) -> list[int]:
    """Numbers of bands to try: powers of two, and the maximum."""
    return [*(2**i for i in range(1, max_bands.bit_length()) if 2**i < max_bands), max_bands]
