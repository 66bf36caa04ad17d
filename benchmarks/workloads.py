"""The table of workloads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.data import Recipe
from benchmarks.hashed import WeigherName

__all__ = ["BATCH", "GROUPS", "QUICK", "WORKLOADS", "Workload", "choose"]

BATCH = 64
GROUPS = {
    "quick": "a selection, in under five minutes",
    "all": "everything up to a million codes, quick included, in under 40 minutes",
    "large": "10 and 100 million codes, in about an hour and with 16 GB of memory",
}
QUICK = (
    "mixture-10k-64b-k10",
    *(f"mixture-100k-{n_bits}b-k10" for n_bits in (32, 64, 128, 256, 512)),
    *(f"mixture-100k-64b-{search}" for search in ("k1", "k100", "k10-wh", "k10-x64")),
    "mixture-100k-64b-k10-itq",
    "mixture-100k-128b-k10-sign-ip",
    *(f"mixture-1M-64b-{search}" for search in ("k1", "k10", "k100")),
    "random-100k-64b-k10",
)
"""The workloads of the group "quick"."""
_ALL: tuple[WeigherName, ...] = ("asym", "wh", "ip")


@dataclass(frozen=True, slots=True)
class Workload:
    """A set of codes and the parameters of a search."""

    recipe: Recipe
    k: int
    batch: int = 1
    """Queries per call: 1 or 64."""
    weigher: WeigherName = "asym"

    @property
    def name(self) -> str:
        """The name, such as mixture-1M-64b-k10, or glove-64b-k10-itq-wh-x64 without defaults."""
        kind, n, n_bits, hasher = self.recipe
        parts = [kind, *([] if n is None else [_short(n)]), f"{n_bits}b", f"k{self.k}"]
        parts += [] if hasher == "lsh" else [hasher]
        parts += [] if self.weigher == "asym" else [self.weigher]
        parts += [] if self.batch == 1 else [f"x{self.batch}"]
        return "-".join(parts)

    @property
    def large(self) -> bool:
        """Whether there are more than a million rows."""
        return (self.recipe.n or 0) > 10**6


def choose(names: Sequence[str]) -> list[Workload]:
    """Return the workloads named in `names`, directly or by group, in the table's order."""
    selected = {entry for name in names for entry in (QUICK if name == "quick" else [name])}
    unknown = selected - {workload.name for workload in WORKLOADS} - set(GROUPS)
    if unknown:
        raise ValueError(f"no workload {min(unknown)!r}; --help lists them")
    return [
        workload
        for workload in WORKLOADS
        if {workload.name, "large" if workload.large else "all"} & selected
    ]


def _short(n: int) -> str:
    return f"{n // 10**6}M" if n >= 10**6 else f"{n // 1000}k"


def _on(
    recipe: Recipe,
    ks: Sequence[int] = (10,),
    *,
    weighers: Sequence[WeigherName] = ("asym",),
    batches: bool = False,
) -> Iterator[Workload]:
    """Return searches of the same codes: single queries, other weighers at k = 10, and batches."""
    for k in ks:
        yield Workload(recipe, k, weigher=weighers[0])
    for weigher in weighers[1:]:
        yield Workload(recipe, 10, weigher=weigher)
    if batches:
        yield Workload(recipe, 10, BATCH, weighers[0])


_MIXTURES = (
    *_on(Recipe("mixture", 10_000, 64), (1, 10, 100, 1000)),
    *(one for n_bits in (32, 128, 256, 512) for one in _on(Recipe("mixture", 10_000, n_bits))),
    *_on(Recipe("mixture", 100_000, 32)),
    *_on(Recipe("mixture", 100_000, 64), (1, 10, 100), weighers=_ALL, batches=True),
    *_on(Recipe("mixture", 100_000, 128), batches=True),
    *_on(Recipe("mixture", 100_000, 256)),
    *_on(Recipe("mixture", 100_000, 512)),
    *_on(Recipe("mixture", 100_000, 64, "itq")),
    *_on(Recipe("mixture", 100_000, 128, "sign"), weighers=["ip"]),
    *_on(Recipe("mixture", 10**6, 32), (1, 10, 100, 1000), batches=True),
    *_on(Recipe("mixture", 10**6, 64), (1, 10, 100, 1000), weighers=_ALL, batches=True),
    *_on(Recipe("mixture", 10**6, 128), (1, 10, 100, 1000), weighers=_ALL, batches=True),
    *_on(Recipe("mixture", 10**6, 256), (1, 10, 100, 1000), batches=True),
    *_on(Recipe("mixture", 10**6, 512), (1, 10, 100)),
    *_on(Recipe("mixture", 10**6, 1024)),
    *_on(Recipe("mixture", 10**6, 64, "itq"), (1, 10, 100), weighers=["asym", "wh"]),
    *_on(Recipe("mixture", 10**6, 128, "itq")),
    *_on(Recipe("mixture", 10**6, 256, "sign"), (1, 10, 100), weighers=["ip"]),
    *_on(Recipe("mixture", 10**6, 512, "sign"), weighers=["ip"]),
    *_on(Recipe("mixture", 10**7, 32), (1, 10, 100)),
    *_on(Recipe("mixture", 10**7, 64), (1, 10, 100, 1000), batches=True),
    *_on(Recipe("mixture", 10**7, 128), (1, 10, 100)),
    *_on(Recipe("mixture", 10**8, 32), (1, 10, 100)),
    *_on(Recipe("mixture", 10**8, 64), (1, 10, 100, 1000)),
)
_RANDOM = (
    *_on(Recipe("random", 100_000, 64)),
    *_on(Recipe("random", 10**6, 32)),
    *_on(Recipe("random", 10**6, 64), (1, 10, 100, 1000), batches=True),
    *(one for n_bits in (128, 256, 512) for one in _on(Recipe("random", 10**6, n_bits))),
    *_on(Recipe("random", 10**7, 64), (1, 10, 100)),
)
_REAL = (
    *_on(Recipe("glove", None, 64), (1, 10, 100, 1000), weighers=["asym", "wh"], batches=True),
    *(one for n_bits in (32, 128, 256) for one in _on(Recipe("glove", None, n_bits))),
    *_on(Recipe("glove", None, 64, "itq")),
    *_on(Recipe("dsift", None, 64), (1, 10, 100, 1000), weighers=["asym", "wh"], batches=True),
    *(one for n_bits in (32, 128, 256) for one in _on(Recipe("dsift", None, n_bits))),
    *_on(Recipe("dsift", None, 64, "itq")),
    *_on(Recipe("dsift", None, 128, "itq"), weighers=["asym", "wh"]),
    *_on(Recipe("dsift", None, 128, "sign")),
)
WORKLOADS: tuple[Workload, ...] = (*_MIXTURES, *_RANDOM, *_REAL)
"""Searches of the same codes are adjacent, so that they share what is built."""
