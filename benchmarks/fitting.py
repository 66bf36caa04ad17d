"""How long `VectorIndex.fit` takes, and how good the codes are that it leads to.

``python -m benchmarks.fitting [--rows 63000] [--bits 128] [--rounds 3]``

The vectors are the demo's documents, embedded in 256 dimensions and filled up with noisy copies.
"""

from __future__ import annotations

import argparse
import time

from rich.console import Console

from benchmarks import machine
from bitweigh import VectorIndex, evaluation
from bitweigh_experiments.demo.embedded import embedded

__all__ = ["main"]

K = 10


def main() -> None:
    """Fit some times, and print seconds and precision."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fitting", description=__doc__)
    parser.add_argument("--rows", type=int, default=63_000)
    parser.add_argument("--bits", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    console = Console(width=150)
    console.print(", ".join(machine.facts().values()), style="dim")
    data = embedded(arguments.rows)
    truth = evaluation.euclidean_top(data.base, data.queries, K)
    seconds = []
    for _ in range(arguments.rounds):
        began = time.perf_counter()
        index = VectorIndex(n_bits=arguments.bits).fit(data.base)
        seconds.append(time.perf_counter() - began)
    index.add(data.base)
    precision = evaluation.precision_at_k(index.search(data.queries, K).ids, truth)
    n, n_features = data.base.shape
    console.print(
        f"{index.hasher}: {n:,} x {n_features} to {arguments.bits} bits in "
        f"{min(seconds):.2f} to {max(seconds):.2f} s, precision at {K} {precision:.4f}"
    )


if __name__ == "__main__":
    main()
