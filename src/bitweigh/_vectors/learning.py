"""Fitting the hasher and the weigher of a vector index, before any vectors are added."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitweigh import hashers, weighers
from bitweigh._checks import as_integer
from bitweigh._progress import ProgressBar
from bitweigh.hashers import Sign
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._estimator import Estimator, defaults
from bitweigh.hashers._vectors import blocks, sample_rows, unit_rows
from bitweigh.typing import Metric
from bitweigh.weighers import Decoded, InnerProduct, Wh
from bitweigh.weighers._base import Weigher

__all__ = [
    "MAX_DEFAULT_BITS",
    "as_hasher",
    "as_weigher",
    "check_bits",
    "check_together",
    "learn",
]

MAX_DEFAULT_BITS = 128

Kind = TypeVar("Kind", bound=Estimator)

# The share of the time of learning that a hasher takes if it iterates, as ITQ does.
_HASHER_SHARE = 0.9
# Values of the projections that a weigher learns from: 128 MB of float64.
_WEIGHER_VALUES = 2**24


def as_hasher(hasher: object, n_bits: int, seed: int) -> Hasher:
    """Create a hasher by name; a hasher object is returned as it is."""
    if isinstance(hasher, Hasher):
        return hasher
    return _by_name("hasher", hasher, hashers.BY_NAME, ("auto",), n_bits=n_bits, seed=seed)


def as_weigher(weigher: object, hasher: Hasher, seed: int) -> Weigher:
    """Create a weigher by name, None for that of the hasher; an object is returned as it is."""
    if isinstance(weigher, Weigher):
        return weigher
    name = hasher._default_weigher if weigher is None else weigher
    return _by_name("weigher", name, weighers.BY_NAME, (), seed=seed)


def check_together(hasher: Hasher, weigher: Weigher, metric: Metric) -> None:
    """Raise ValueError unless the weigher makes sense of the hasher's bits, for the metric."""
    decodes = isinstance(weigher, Decoded)
    if hasher._needs_decoding and not decodes:
        raise ValueError(f"the bits of {hasher} are digits: leave weigher out, got {weigher}")
    if decodes and hasher._default_weigher != "decoded":
        raise ValueError(f"the weigher Decoded is for Scalar and Levels, got {hasher}")
    products = isinstance(weigher, InnerProduct) and isinstance(hasher, Sign)
    if metric == "inner_product" and not (decodes or products):
        raise ValueError(
            "metric='inner_product' needs codes that stand for vectors: use hasher='scalar' or "
            f"'levels', or 'sign' with weigher='inner_product', got {hasher} and {weigher}"
        )


def _by_name(
    what: str,
    name: object,
    by_name: Mapping[Any, type[Kind]],
    others: tuple[str, ...],
    **parameters: int,
) -> Kind:
    """Create an estimator by the name of its class, with the parameters that the class accepts.

    `others` are names that callers know of.
    """
    if not isinstance(name, str) or name not in by_name:
        names = ", ".join(map(repr, (*by_name, *others)))
        raise ValueError(f"{what} must be {names} or a {what}, got {name!r}")
    kind = by_name[name]
    accepted = defaults(kind)
    return kind(**{key: value for key, value in parameters.items() if key in accepted})


def check_bits(n_bits: int | None, hasher: Hasher, n_features: int | None = None) -> None:
    """Raise ValueError if the hasher makes another number of bits than was asked for.

    Without `n_features` the bits of some hashers are not known yet.
    """
    if n_bits is None:
        return
    if n_features is None:
        bits = hasher.get_params().get("n_bits", n_bits)
    else:
        bits = hasher._bits_for(n_features)
    if bits == n_bits:
        return
    vectors = "" if n_features is None else f" of vectors with {n_features} features"
    raise ValueError(
        f"n_bits={n_bits} contradicts {hasher}, which makes {bits} bits{vectors}; leave n_bits out"
    )


def learn(
    hasher: Hasher,
    weigher: Weigher,
    vectors: NDArray[Any],
    metric: Metric,
    seed: int,
    cap_bits: bool,
    bar: ProgressBar | None,
) -> tuple[Hasher, Weigher]:
    """Fit copies of a hasher and a weigher, and return them.

    With `cap_bits` the number of bits is at most the number of features. A bar moves on by 1.
    """
    generator = np.random.default_rng(seed)
    sample = _sample_for(hasher, vectors, metric, generator)
    hasher = copy.deepcopy(hasher)
    hasher._prepare_for(metric)
    if cap_bits:
        hasher.set_params(n_bits=max(1, min(hasher.get_params()["n_bits"], sample.shape[1])))
    if bar is None:
        hasher.fit(sample)
    else:
        _fit_reporting(hasher, sample, bar)
    weigher = copy.deepcopy(weigher)
    if isinstance(weigher, Decoded):
        weigher.fit_hasher(hasher, metric)
    else:
        _fit_weigher(weigher, hasher, sample, generator)
    if bar is not None:
        bar.advance(1 - _HASHER_SHARE)
    return hasher, weigher


def _fit_reporting(hasher: Hasher, sample: NDArray[Any], bar: ProgressBar) -> None:
    """Fit a hasher, moving the bar on by `_HASHER_SHARE` whether it reports progress or not."""
    reported = 0.0

    def report(share: float) -> None:
        nonlocal reported
        reported += share
        bar.advance(_HASHER_SHARE * share)

    hasher._on_progress = report
    try:
        hasher.fit(sample)
    finally:
        del hasher._on_progress
    bar.advance(_HASHER_SHARE * (1 - reported))


def _sample_for(
    hasher: Hasher, vectors: NDArray[Any], metric: Metric, generator: np.random.Generator
) -> NDArray[Any]:
    """The rows to learn from: at most the hasher's `max_fit_rows`, of length 1 for "cosine"."""
    max_rows = as_integer(hasher.max_fit_rows, "max_fit_rows", 1, 2**63 - 1)
    sample = sample_rows(vectors, max_rows, generator)
    if metric != "cosine":
        return sample
    units = np.empty(sample.shape, np.result_type(sample.dtype, np.float32))
    for first, block in blocks(sample, sampled=True):
        units[first : first + len(block)] = unit_rows(block, first, sampled=True)
    return units


def _fit_weigher(
    weigher: Weigher, hasher: Hasher, sample: NDArray[Any], generator: np.random.Generator
) -> None:
    """Fit a weigher on a fitted hasher's projections of the sample, or of part of it."""
    rows = sample_rows(sample, max(1000, _WEIGHER_VALUES // hasher.n_bits_), generator)
    projected = hasher.project(rows)
    if isinstance(weigher, Wh):
        weigher.fit(projected, hasher.thresholds_, vectors=rows)
    else:
        weigher.fit(projected, hasher.thresholds_)
