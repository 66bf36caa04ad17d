"""The quality of codes: ``python -m benchmarks.quality [--data DIR] [--markdown FILE.md]``.

The share of the ten nearest vectors that are found by their codes: with plain Hamming distance,
with weights, and with weights and reranking of 100 candidates. Real sets need ``--data``; without
it scikit-learn's digits are measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks import report
from bitweigh import costs, evaluation, weighers
from bitweigh.hashers import ITQ, LSH
from bitweigh.hashers._base import Hasher
from bitweigh.vector_index import VectorIndex
from bitweigh_experiments import datasets, plots

__all__ = ["Line", "Vectors", "digits", "measure", "real_sets"]

K = 10
BITS = (32, 64, 128, 256)
_SEED = 20200207
_WAYS = ("plain Hamming", "Asym", "Wh", "Asym + rerank")


class Vectors(NamedTuple):
    """Rows to search and queries that are not among them."""

    name: str
    rows: NDArray[Any]
    queries: NDArray[Any]


class Line(NamedTuple):
    """The share of true neighbours found by each way, for one hasher and code length."""

    hasher: str
    n_bits: int
    precision: list[float]


def digits() -> Vectors:
    """Return scikit-learn's images of digits, 64 grey levels each."""
    from sklearn.datasets import load_digits

    images = load_digits(return_X_y=True)[0].astype(np.float32)
    images = images[np.random.default_rng(_SEED).permutation(len(images))]
    return Vectors("digits", images[200:], images[:200])


def real_sets(folder: Path, n_rows: int, n_queries: int) -> Iterator[Vectors]:
    """Yield the first rows and queries of the real sets in a folder; the loaders shuffle."""
    loaders: dict[str, Callable[[], datasets.Dataset]] = {
        "GloVe word vectors of length 1": lambda: datasets.glove(folder, seed=_SEED, unit=True),
        "dense SIFT descriptors": lambda: datasets.dsift(folder, seed=_SEED),
        "four SIFT descriptors side by side": lambda: datasets.dsift512(folder, seed=_SEED),
        "CNN features of CIFAR-10": lambda: datasets.cifar(folder, seed=_SEED),
    }
    for name, load in loaders.items():
        try:
            loaded = load()
        except FileNotFoundError:
            continue
        yield Vectors(name, loaded.base[:n_rows], loaded.queries[:n_queries])


def measure(data: Vectors, fit_rows: int) -> Iterator[Line]:
    """Measure each hasher with each number of bits that it supports."""
    rows, queries = (vectors.astype(np.float32) for vectors in (data.rows, data.queries))
    truth = evaluation.euclidean_top(rows, queries, K)
    for n_bits in BITS:
        kinds: list[Hasher] = [LSH(n_bits, max_fit_rows=fit_rows)]
        if n_bits <= rows.shape[1]:
            kinds.append(ITQ(n_bits, max_fit_rows=fit_rows))
        for hasher in kinds:
            found = _found(hasher, rows, queries)
            precision = [evaluation.precision_at_k(ids, truth) for ids in found]
            yield Line(type(hasher).__name__, n_bits, precision)


def _found(
    hasher: Hasher, rows: NDArray[np.float32], queries: NDArray[np.float32]
) -> Iterator[NDArray[np.int64]]:
    """Yield the ids that each way finds, (nq, K)."""
    index = VectorIndex(hasher=hasher, rerank="float32").fit(rows)
    index.add(rows)
    fitted, codes = index.hasher, index.index
    plain = costs.hamming(fitted.transform(queries), codes.n_bits)
    projected = fitted.project(queries)
    sample = rows[: hasher.max_fit_rows]
    wh = weighers.Wh().fit(fitted.project(sample), fitted.thresholds_, vectors=sample)
    for query_costs in (plain, index.weigher.costs(projected), wh.costs(projected)):
        yield codes.search(query_costs, K).ids
    yield index.search(queries, K).ids


def section(data: Vectors, lines: list[Line]) -> str:
    """Return the lines as a markdown section."""
    n, d = data.rows.shape
    title = f"### {data.name}: {n:,} vectors of {d} numbers, {len(data.queries)} queries"
    rows = [
        [
            f"{line.hasher}, {line.n_bits} bits",
            str(line.n_bits // 8),
            *(f"{share:.3f}" for share in line.precision),
        ]
        for line in lines
    ]
    return f"{title}\n\n{report.table(['codes', 'bytes', *_WAYS], rows)}"


def plot(measured: dict[str, list[Line]]) -> str:
    """Plot, per set, the share found against the bits: a colour for each way, LSH dashed."""

    def on(figure: Any) -> None:  # noqa: ANN401 matplotlib may be missing
        every = figure.subplots(2, -(-len(measured) // 2), sharex=True, sharey=True, squeeze=False)
        for axes, (name, lines) in zip(every.flat, measured.items(), strict=False):
            for way, colour in enumerate(plots.COLOURS):
                for hasher, style in (("ITQ", "o-"), ("LSH", "o:")):
                    selected = [line for line in lines if line.hasher == hasher]
                    axes.plot(
                        [line.n_bits for line in selected],
                        [line.precision[way] for line in selected],
                        style,
                        color=colour,
                        markersize=3.5,
                        label=f"{_WAYS[way]}, {hasher}",
                    )
            axes.set_title(name, loc="left", fontsize=10)
            axes.set_xscale("log", base=2)
            axes.set_xticks(BITS, [str(n_bits) for n_bits in BITS])
            axes.grid(True)
        for axes in every[-1]:
            axes.set_xlabel("bits")
        figure.supylabel(f"share of the {K} nearest found")
        handles, labels = every.flat[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9
        )

    return plots.svg(on, 9.0, 6.4)


def main() -> None:
    """Measure every set; print the tables or write them between a file's markers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with the real data sets")
    parser.add_argument(
        "--rows", type=int, default=100_000, help="maximum rows of each set (100000)"
    )
    parser.add_argument(
        "--queries", type=int, default=500, help="maximum queries of each set (500)"
    )
    parser.add_argument(
        "--fit-rows",
        type=int,
        default=20_000,
        help="rows that hashers and weighers are fitted on (20000)",
    )
    parser.add_argument(
        "--markdown", type=Path, help="write the tables between the quality markers of this file"
    )
    arguments = parser.parse_args()
    sets: Iterator[Vectors] = iter([digits()])
    if arguments.data is not None:
        sets = real_sets(arguments.data, arguments.rows, arguments.queries)
    console = Console()
    sections, measured = [], {}
    for data in sets:
        console.print(f"measuring {data.name}", style="dim")
        measured[data.name] = list(measure(data, arguments.fit_rows))
        sections.append(section(data, measured[data.name]))
    if not sections:
        parser.error(f"none of the real sets is in {arguments.data}")
    text = "\n\n".join(sections)
    if arguments.markdown is not None:
        report.write_between_markers(arguments.markdown, "quality", text)
        arguments.markdown.with_name("quality.svg").write_text(plot(measured))
    console.print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
