"""Precision on SIFT-like vectors: Table 6, at as many rows as whole vectors allow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import bitweigh
from bitweigh import paper
from bitweigh.evaluation import euclidean_top, precision_at_k
from bitweigh.hashers import LSH
from bitweigh.weighers import Asym
from bitweigh_experiments.reproduce.large.records import Precision
from bitweigh_experiments.reproduce.large.setting import Origin
from bitweigh_experiments.reproduce.results import KS

__all__ = ["precisions"]

TRUE_NEIGHBOURS = 1000
MAX_QUERIES = 500  # finding their true neighbours takes half a minute for a million rows


def precisions(
    start: Origin, bits: tuple[int, ...], rows: int, queries: int, seed: int
) -> Iterator[Precision]:
    """Yield the precision of Baseline, MIH, Linear Scan and bitweigh.

    A row is a true neighbour if it is among the 1000 nearest by Euclidean distance. MIWQ returns
    what Linear Scan returns.
    """
    base = start.mixture.sample(rows)
    vectors = start.mixture.queries(min(queries, MAX_QUERIES), perturbed=0)
    truth = euclidean_top(base, vectors, min(TRUE_NEIGHBOURS, rows))
    for n_bits in bits:
        hasher = LSH(n_bits, seed=seed).fit(start.training)
        codes, projected = hasher.transform(base), hasher.project(vectors)
        weigher = Asym().fit(hasher.project(start.training), hasher.thresholds_)
        costs = weigher.costs(projected)
        hamming = bitweigh.costs.hamming(hasher.transform(vectors), n_bits)
        index = bitweigh.Index(n_bits)
        index.add(codes)
        hashed = paper.MIH(codes, n_bits)
        max_k = max(KS)
        ranked = {
            "Baseline": paper.hamming_ranking(codes, hamming, max_k).ids,
            "Linear Scan": paper.linear_scan(codes, costs, max_k, dtype=np.float64).ids,
            "bitweigh": index.search(costs, max_k).ids,
        }
        for k in KS:
            # MIH alone may find others for another K.
            found = {"MIH": hashed.search(costs, k).ids}
            found |= {method: ids[:, :k] for method, ids in ranked.items()}
            for method, ids in found.items():
                yield Precision(n_bits, rows, k, method, precision_at_k(ids, truth))
