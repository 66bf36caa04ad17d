"""The one table of workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.data import Kind

BATCH = 64


@dataclass(frozen=True, slots=True)
class Workload:
    """What is searched, and how."""

    data: Kind
    n: int | None
    """Rows; None takes all rows of a real data set."""
    n_bits: int
    k: int
    batch: int
    """Queries per call: 1 or 64."""
    quick: bool = False

    @property
    def name(self) -> str:
        """Such as mixture-1M-64b-k10 or, for batches of 64 queries, mixture-1M-64b-k10-x64."""
        parts = [self.data, f"{self.n_bits}b", f"k{self.k}"]
        if self.n is not None:
            parts.insert(1, f"{self.n // 10**6}M" if self.n >= 10**6 else f"{self.n // 1000}k")
        if self.batch > 1:
            parts.append(f"x{self.batch}")
        return "-".join(parts)


WORKLOADS: tuple[Workload, ...] = (
    # In about a minute.
    *(Workload("mixture", 100_000, n_bits, 10, 1, quick=True) for n_bits in (32, 64, 128, 256)),
    Workload("random", 100_000, 64, 10, 1, quick=True),
    *(Workload("mixture", 100_000, n_bits, 10, BATCH, quick=True) for n_bits in (64, 128)),
    # Single queries.
    *(Workload("mixture", 10**6, n_bits, 10, 1) for n_bits in (32, 64, 128, 256, 512, 1024)),
    *(Workload("mixture", 10**6, n_bits, k, 1) for k in (1, 100) for n_bits in (32, 64, 128)),
    Workload("random", 10**6, 64, 10, 1),
    *(Workload("glove", None, n_bits, 10, 1) for n_bits in (64, 128)),
    *(Workload("dsift", None, n_bits, 10, 1) for n_bits in (64, 128)),
    # Batches.
    *(Workload("mixture", 10**6, n_bits, 10, BATCH) for n_bits in (32, 64, 128, 256, 1024)),
)


def choose(names: Sequence[str]) -> list[Workload]:
    """The workloads that `names` ask for, in the table's order; "quick" and "all" are groups."""
    known = {workload.name for workload in WORKLOADS} | {"quick", "all"}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no workload {unknown[0]!r}; there are {', '.join(sorted(known))}")
    return [
        workload
        for workload in WORKLOADS
        if workload.name in names or ("quick" if workload.quick else "all") in names
    ]
