"""`hasher="auto"`: which hasher finds most of the true neighbours, measured on a sample."""

from __future__ import annotations

import copy
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitweigh._euclidean import euclidean_top
from bitweigh._progress import ProgressBar
from bitweigh._vectors.learning import as_weigher, check_together, learn
from bitweigh.hashers import ITQ, LSH, Levels, Scalar, Sign
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._cells import MAX_BITS_A_FEATURE as MAX_LEVELS
from bitweigh.hashers._scalar import MAX_BITS_A_FEATURE
from bitweigh.hashers._vectors import blocks, sample_rows, unit_rows
from bitweigh.index import Index
from bitweigh.typing import Ids, Metric
from bitweigh.weighers._base import Weigher

__all__ = ["Choice", "Trial", "Trials", "Wish"]

# Rows that hashers are compared on, fewer of wide vectors: 64 MB of float64.
_ROWS, _FEWEST_WIDE_ROWS, _VALUES = 20_000, 2_000, 2**23
# With fewer vectors nothing is measured; queries are at most this share of the sample.
_FEWEST_ROWS = 500
_QUERIES, _QUERY_SHARE = 200, 0.2
_K = 10
# Limits of ITQ in a trial: rows, and multiplications of all rounds, about two seconds.
_ITQ_ROWS, _ITQ_WORK = 10_000, 4e10


class Trial(NamedTuple):
    """What one hasher found on the sample."""

    hasher: Hasher
    """Not fitted; ``VectorIndex(hasher=...)`` takes it."""
    n_bits: int
    n_bytes: int
    """Bytes of a code."""
    precision: float
    """The share of the ten nearest vectors that are among the ten results, by codes alone."""
    seconds: float
    """To learn, hash and search."""


class Trials(tuple[Trial, ...]):
    """All trials, the best one first. ``str`` makes a table of them."""

    __slots__ = ()

    def __str__(self) -> str:
        """A table, or nothing if nothing was measured."""
        if not self:
            return ""
        names = [str(trial.hasher) for trial in self]
        width = max(map(len, names))
        lines = [f"{'hasher':{width}}  bits  bytes  precision at {_K}  seconds"]
        for name, trial in zip(names, self, strict=True):
            lines.append(
                f"{name:{width}}  {trial.n_bits:4}  {trial.n_bytes:5}  {trial.precision:15.3f}"
                f"  {trial.seconds:7.1f}"
            )
        return "\n".join(lines)


class Choice(NamedTuple):
    """A hasher and a weigher, not fitted, and the trials in which they were the best."""

    hasher: Hasher
    weigher: Weigher
    trials: Trials


class Wish(NamedTuple):
    """What a hasher is chosen for."""

    n_bits: int
    """The most that a code may have."""
    weigher: object
    """None for that of each hasher."""
    metric: Metric
    seed: int

    def check(self) -> None:
        """Raise ValueError if no hasher can be chosen, whatever the vectors are."""
        # Vectors with one feature leave room for every hasher.
        if not self.candidates(1):
            raise ValueError(
                f"hasher='auto' knows no hasher for metric={self.metric!r} with "
                f"weigher={self.weigher!r}: leave weigher out"
            )

    def candidates(self, n_features: int) -> list[tuple[Hasher, Weigher]]:
        """Hashers that make at most so many bits, the fastest first, each with its weigher."""
        n_bits, seed = self.n_bits, self.seed
        most_levels = min(n_bits, MAX_LEVELS * n_features)
        hashers: list[Hasher] = [
            LSH(n_bits, seed=seed),
            Levels(most_levels, seed=seed),
            Levels(most_levels, rotation="random", seed=seed),
            ITQ(min(n_bits, n_features), seed=seed),
        ]
        if n_features <= n_bits:
            hashers = [Sign(seed=seed), Scalar(1, seed=seed), *hashers]
        return [found for hasher in hashers if (found := self.with_weigher(hasher))]

    def with_weigher(self, hasher: Hasher) -> tuple[Hasher, Weigher] | None:
        """The hasher and its weigher; None if it is no use with what is wished for."""
        signs = self.metric == "inner_product" and isinstance(hasher, Sign)
        name = "inner_product" if signs and self.weigher is None else self.weigher
        weigher = as_weigher(name, hasher, self.seed)
        try:
            check_together(hasher, weigher, self.metric)
        except ValueError:
            return None
        return hasher, weigher

    def choose(self, vectors: NDArray[Any], progress: bool | None) -> Choice:
        """The hasher with the highest precision, of equal ones that with fewer bits.

        If there are too few vectors to measure, it warns, and takes ITQ or else Levels.
        """
        n_features = max(1, vectors.shape[1])
        candidates = self.candidates(n_features)
        if not candidates:
            raise ValueError(
                f"hasher='auto' finds no hasher with at most n_bits={self.n_bits} bits of vectors "
                f"with {n_features} features for weigher={self.weigher!r}"
            )
        if len(vectors) < _FEWEST_ROWS:
            return Choice(*_unmeasured(candidates, len(vectors)), Trials())
        sample = _Sample.of(vectors, self.metric, np.random.default_rng(self.seed))
        candidates += self.larger_scalars(sample)
        trials = []
        with ProgressBar("choosing", len(candidates), shown=progress) as bar:
            for hasher, weigher in candidates:
                trials.append(sample.trial(hasher, weigher, self.seed))
                bar.advance(1)
        # Not by time, which differs from run to run: faster ones come first anyway.
        order = sorted(
            range(len(trials)), key=lambda place: (-trials[place].precision, trials[place].n_bits)
        )
        best = candidates[order[0]]
        return Choice(*best, Trials(trials[place] for place in order))

    def larger_scalars(self, sample: _Sample) -> list[tuple[Hasher, Weigher]]:
        """`Scalar` with the most bits a feature that fit, rotated and not."""
        n_features = sample.rows.shape[1]
        for bits in range(min(MAX_BITS_A_FEATURE, self.n_bits // n_features), 1, -1):
            hasher = Scalar(bits, norm_bits=0, seed=self.seed)
            if self.with_weigher(hasher) is None:
                return []
            if self.metric == "euclidean":
                # As many as the sample needs, for good: with other rows it may be more.
                norm_bits = Scalar(bits, seed=self.seed).fit(sample.rows).norm_bits_
                hasher.set_params(norm_bits=norm_bits)
            if hasher._bits_for(n_features) <= self.n_bits:
                # A rotation helps where features differ, and hurts where many are nearly 0.
                both = (hasher, copy.deepcopy(hasher).set_params(rotation=None))
                return [found for one in both if (found := self.with_weigher(one))]
        return []


class _Sample(NamedTuple):
    """Rows and queries that are not among them, as hashers take them, and the true neighbours."""

    rows: NDArray[np.float64]
    queries: NDArray[np.float64]
    truth: Ids
    metric: Metric

    @classmethod
    def of(cls, vectors: NDArray[Any], metric: Metric, generator: np.random.Generator) -> _Sample:
        n_rows = min(_ROWS, max(_FEWEST_WIDE_ROWS, _VALUES // max(1, vectors.shape[1])))
        drawn = sample_rows(vectors, n_rows + _QUERIES, generator)
        sample = np.empty(drawn.shape)
        for first, block in blocks(drawn, sampled=True):
            is_unit = metric == "cosine"
            part = unit_rows(block, first, sampled=True) if is_unit else block
            sample[first : first + len(block)] = part
        n_queries = min(_QUERIES, int(_QUERY_SHARE * len(sample)))
        order = generator.permutation(len(sample))
        rows, queries = sample[np.sort(order[n_queries:])], sample[order[:n_queries]]
        if metric == "inner_product":
            truth = np.argsort(-(queries @ rows.T), axis=1, kind="stable")[:, :_K]
        else:
            truth = euclidean_top(rows, queries, _K)
        return cls(rows, queries, truth, metric)

    def trial(self, hasher: Hasher, weigher: Weigher, seed: int) -> Trial:
        from bitweigh.evaluation import precision_at_k  # which the library does not load itself

        start = time.perf_counter()
        hurried = _hurried(hasher)
        fitted, weighing = learn(hurried, weigher, self.rows, self.metric, seed, False, None)
        index = Index(fitted.n_bits_, bitorder=fitted.bitorder, bands=0)
        index.add(fitted.transform(self.rows))
        found = index.search(weighing.costs(fitted.project(self.queries)), _K).ids
        precision = precision_at_k(found, self.truth)
        seconds = time.perf_counter() - start
        return Trial(hasher, fitted.n_bits_, (fitted.n_bits_ + 7) // 8, precision, seconds)


def _unmeasured(candidates: list[tuple[Hasher, Weigher]], n: int) -> tuple[Hasher, Weigher]:
    """The hasher to take if there are too few vectors, n, to compare any; warns of that."""
    preferred = [one for kind in (ITQ, Levels) for one in candidates if type(one[0]) is kind]
    hasher, weigher = [*preferred, *candidates][0]
    if n:  # without any, learning fails and says so
        warnings.warn(
            f"hasher='auto' needs {_FEWEST_ROWS} vectors to compare hashers, got {n}: took "
            f"{hasher}, and measured nothing",
            stacklevel=5,
        )
    return hasher, weigher


def _hurried(hasher: Hasher) -> Hasher:
    """The same hasher, or one that learns in bounded time and nearly as well."""
    if not isinstance(hasher, ITQ):
        return hasher
    rounds = int(_ITQ_WORK / (2 * _ITQ_ROWS * hasher.n_bits**2))
    limits = {"n_rounds": min(hasher.n_rounds, max(5, rounds)), "max_fit_rows": _ITQ_ROWS}
    return copy.deepcopy(hasher).set_params(**limits)
