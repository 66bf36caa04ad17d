"""Binary embeddings by all codes or by a shortlist: ``python -m benchmarks.shortlist``.

`BinaryEmbeddings.search` against sentence-transformers' `semantic_search_faiss`, which takes the
nearest codes by Hamming distance and ranks them by the inner product of the float query with their
bits. Both rank by that product; the truth is its ten largest over all codes. The embeddings are
those of the demo's documents.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks import machine, report
from bitweigh import BinaryEmbeddings
from bitweigh.embeddings import quantize
from bitweigh_experiments import hardware
from bitweigh_experiments.demo.embedded import descriptions

__all__ = ["Line", "exact", "measure", "section", "shares"]

K = 10
_MULTIPLIERS = (2, 4, 10, 40)
_TURN = 100
"""Queries of a way's turn: long enough for its data to be in the caches again."""
_SEED = 20200207
_TIE = 1e-5
"""Scores this near are one score: the peer adds in another order, and in float32."""

Floats: TypeAlias = NDArray[np.float32]
Search: TypeAlias = Callable[[Floats], NDArray[np.int64]]
"""From one query (d,) to the ids (K,) that are found, on one thread."""


class Line(NamedTuple):
    """What one way finds, and in what time."""

    way: str
    share: float
    """Of the ten best of all codes."""
    all_ten: float
    """The share of the queries for which all ten are found."""
    ms: float
    """The median of single queries."""


def exact(rows: Floats) -> Search:
    """Return bitweigh's search over all codes."""
    embeddings = BinaryEmbeddings(rows.shape[1])
    embeddings.add(quantize(rows))
    return lambda query: embeddings.search(query, K, threads=1).ids


def _shortlists(rows: Floats) -> dict[str, Search]:
    """Return sentence-transformers' search with shortlists of different lengths."""
    faiss, quantization = _peer()
    faiss.omp_set_num_threads(1)
    index = faiss.IndexBinaryFlat(rows.shape[1])
    index.add(quantization.quantize_embeddings(rows, precision="ubinary"))

    def search(multiplier: int) -> Search:
        def found(query: Floats) -> NDArray[np.int64]:
            results, _ = quantization.semantic_search_faiss(
                query[np.newaxis],
                corpus_index=index,
                corpus_precision="ubinary",
                top_k=K,
                rescore_multiplier=multiplier,
            )
            return np.array([result["corpus_id"] for result in results[0]])

        return found

    return {
        f"`semantic_search_faiss`, `rescore_multiplier={multiplier}`": search(multiplier)
        for multiplier in _MULTIPLIERS
    }


def _peer() -> tuple[Any, Any]:
    """Import FAISS and sentence-transformers' module; SystemExit says what to install."""
    try:
        return (
            importlib.import_module("faiss"),
            importlib.import_module("sentence_transformers.util.quantization"),
        )
    except ImportError as error:
        raise SystemExit(
            f"{error}: the peer of this benchmark needs\n"
            "  pip install sentence-transformers faiss-cpu\n"
            "which bring PyTorch; a virtual environment of their own is a good place"
        ) from None


def measure(rows: Floats, queries: Floats, searches: dict[str, Search]) -> list[Line]:
    """Let all searches take turns, and compare what they find with the best of all codes."""
    times: dict[str, list[float]] = {way: [] for way in searches}
    found: dict[str, list[NDArray[np.int64]]] = {way: [] for way in searches}
    for first in range(0, len(queries), _TURN):
        for way, search in searches.items():
            search(queries[first])
            for query in queries[first : first + _TURN]:
                began = time.perf_counter()
                ids = search(query)
                times[way].append(time.perf_counter() - began)
                found[way].append(ids)
    lines = []
    for way, ids_of_queries in found.items():
        each = shares(rows, queries, ids_of_queries)
        ms = 1e3 * float(np.median(times[way]))
        lines.append(Line(way, float(each.mean()), float((each == 1).mean()), ms))
    return lines


def shares(rows: Floats, queries: Floats, found: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return, for each query, the share of the K best scores of all codes that was found."""
    bits = (rows > 0).astype(np.float64)
    share = np.empty(len(queries))
    for number, (query, ids) in enumerate(zip(queries, found, strict=True)):
        scores = bits @ query.astype(np.float64)
        tenth = np.partition(scores, -K)[-K]
        share[number] = np.count_nonzero(scores[np.unique(ids)] >= tenth - _TIE) / K
    return share


def section(n: int, n_queries: int, dim: int, lines: list[Line]) -> str:
    """Return the lines as markdown, with what they were measured on."""
    rows = [
        [line.way, f"{line.share:.1%}", f"{line.all_ten:.1%}", f"{line.ms:.3f}"] for line in lines
    ]
    facts = machine.facts() | {
        "sentence-transformers": hardware.version_of("sentence-transformers")
    }
    header = ["way", "of the ten best", "queries with all ten", "ms a query"]
    return (
        f"{n:,} embeddings of {dim} bits, {n_queries:,} queries.\n\n"
        f"{report.table(header, rows)}\n\n{report.machine_list(facts)}"
    )


def main() -> None:
    """Measure; print the table, or write it between a file's markers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shortlist", description=__doc__)
    parser.add_argument("--queries", type=int, default=1000, help="documents held out (1000)")
    parser.add_argument(
        "--markdown", type=Path, help="write the table between the shortlist markers of this file"
    )
    arguments = parser.parse_args()
    data = descriptions(n_queries=arguments.queries, seed=_SEED)
    searches = {"`BinaryEmbeddings.search`": exact(data.base), **_shortlists(data.base)}
    lines = measure(data.base, data.queries, searches)
    text = section(len(data.base), len(data.queries), data.base.shape[1], lines)
    if arguments.markdown is not None:
        report.write_between_markers(arguments.markdown, "shortlist", text)
    Console().print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
