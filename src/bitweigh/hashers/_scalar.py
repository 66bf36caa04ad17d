"""Scalar: features as uniform levels, whose binary digits are the bits of a code."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import MAX_BITS, as_codes, as_integer, as_optional_integer
from bitweigh._euclidean import euclidean_top
from bitweigh.hashers._base import Clipped, Hasher
from bitweigh.hashers._estimator import Shape
from bitweigh.hashers._linear import project_each, random_rotation, rounding_slack
from bitweigh.hashers._terms import BitTerms
from bitweigh.hashers._vectors import blocks, mean_of, sample_rows
from bitweigh.typing import BitOrder, Codes, Metric, WeigherName

__all__ = ["Scalar"]

MAX_BITS_A_FEATURE = 8
MAX_NORM_BITS = 40
# The step of stored norms, relative to the squared distance of a row's tenth neighbour.
_NORM_STEP = 0.01
# How far norms may be outside those of the sample, relative to their range.
_NORM_MARGIN = 0.25
# Rows that norms and neighbours are taken from.
_NORM_ROWS = 20_000
_NORM_QUERIES = 200
# Shares of the range of the values that levels may span; the best is taken for each feature.
_SPANS = np.linspace(0.15, 1.0, 35)
_SPAN_ROWS = 2_000
_ROUNDS = 2


class Scalar(Hasher):
    """A few bits for each feature: the number of the nearest of 2^bits evenly spaced levels.

    A feature of the rotated vector is stored as ``low + step * level``, with the level that is
    nearest, and the bits of a code are the binary digits of all levels. So a code stands for a
    vector, and `Decoded` weighs the bits so that the costs add up to the distance between a query
    and that vector. For the Euclidean distance with several bits a feature this needs the squared
    norm of the decoded vector, which the code stores as well, as `norm_bits` more bits; rounding it
    changes a squared distance by at most half of ``norm_range_[1]``.

    The digits of a feature are next to each other, the most significant one first: bit j of feature
    d, j = 0 being the least significant one, is bit ``d * bits + bits - 1 - j`` of the code. Those
    of the norm are last.

    Parameters
    ----------
    bits : int
        Bits of a feature, 1 to 8.
    rotation : "random" or None
        Whether vectors are rotated first, by a random orthogonal matrix, which makes features alike
        and hardly dependent on each other.
    norm_bits : int, optional
        Bits of the squared norm; 0 for inner products and cosines, which need none. By default as
        many as make its step less than 1 % of the squared distance of a tenth neighbour, and none
        with one bit a feature.
    seed : int
        Random seed of the rotation, and of the sample if there are more than `max_fit_rows` rows.
    max_fit_rows : int
        Maximum number of rows to learn from.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Attributes
    ----------
    rotation_ : float64 (n_features, n_features)
        Orthogonal; None without a rotation.
    mean_ : float64 (n_features,)
        What is subtracted first: the mean if norms are stored, else zeros.
    lows_, steps_ : float64 (n_features,)
        The lowest level of each feature, and the step between levels; 0 if it does not vary.
    limits_ : float64 (2, n_features)
        The smallest and the largest value of each feature in the sample.
    norm_range_ : float64 (2,)
        The smallest squared norm that can be stored, and the step.
    thresholds_ : float64 (n_bits,)
        Zeros: bits are digits, and not whether a number exceeds a threshold.
    n_features_in_, n_bits_ : int
        ``n_bits_ = bits * n_features + norm_bits``.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.hashers import Scalar
    >>> vectors = np.random.default_rng(1).standard_normal((1000, 32))  # (1000, 32)
    >>> hasher = Scalar(4, norm_bits=16).fit(vectors)
    >>> hasher.transform(vectors).shape  # 32 * 4 + 16 bits
    (1000, 18)
    >>> decoded = hasher.decode(hasher.transform(vectors))
    >>> bool(np.abs(decoded - vectors).mean() < 0.15)
    True

    """

    bits_: int
    norm_bits_: int
    rotation_: NDArray[np.float64] | None
    mean_: NDArray[np.float64]
    lows_: NDArray[np.float64]
    steps_: NDArray[np.float64]
    limits_: NDArray[np.float64]
    norm_range_: NDArray[np.float64]

    _learned: ClassVar[dict[str, Shape]] = {
        "mean_": ("n_features_in_",),
        "lows_": ("n_features_in_",),
        "steps_": ("n_features_in_",),
        "limits_": (2, "n_features_in_"),
        "norm_range_": (2,),
        "thresholds_": ("n_bits_",),
    }

    _default_weigher: ClassVar[WeigherName] = "decoded"
    _needs_decoding: ClassVar[bool] = True

    def __init__(
        self,
        bits: int = 4,
        *,
        rotation: Literal["random"] | None = "random",
        norm_bits: int | None = None,
        seed: int = 0,
        max_fit_rows: int = 100_000,
        bitorder: BitOrder = "big",
    ) -> None:
        """Store the parameters; `fit` checks them."""
        self.bits = bits
        self.rotation = rotation
        self.norm_bits = norm_bits
        self.seed = seed
        self.max_fit_rows = max_fit_rows
        self.bitorder = bitorder

    def decode(self, codes: Codes) -> NDArray[np.float64]:
        """The vectors that codes stand for.

        Parameters
        ----------
        codes : uint8 (n, n_bytes)
            Packed codes, as `transform` returns them.

        Returns
        -------
        float64 (n, n_features)

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.hashers import Scalar
        >>> hasher = Scalar(2, rotation=None, norm_bits=0).fit(np.array([[0.0], [3.0]]))
        >>> hasher.decode(hasher.transform([[2.2]]))
        array([[2.]])

        """
        self._need_fitted()
        packed = as_codes(codes, self.n_bits_, self.bitorder)
        decoded = self._decoded(packed)
        if self.rotation_ is not None:
            decoded = decoded @ self.rotation_.T
        found: NDArray[np.float64] = decoded + self.mean_
        return found

    def _decoded(self, codes: Codes) -> NDArray[np.float64]:
        """What codes stand for, in the coordinates of the levels."""
        n_features, bits = self.n_features_in_, self.bits_
        unpacked = np.unpackbits(codes, axis=1, count=self.n_bits_, bitorder=self.bitorder)
        digits = unpacked[:, : bits * n_features].reshape(len(codes), n_features, bits)
        levels = digits @ _digit_values(bits)
        decoded: NDArray[np.float64] = self.lows_ + self.steps_ * levels
        return decoded

    def _projected_codes(self, codes: Codes) -> NDArray[np.float64]:
        return self._for_each_bit(self._decoded(codes))

    def _bits_for(self, n_features: int) -> int:
        bits = as_integer(self.bits, "bits", 1, MAX_BITS_A_FEATURE)
        norm_bits = as_optional_integer(self.norm_bits, "norm_bits", 0, MAX_NORM_BITS) or 0
        if self.rotation not in ("random", None):
            raise ValueError(f"rotation must be 'random' or None, got {self.rotation!r}")
        if bits * n_features + norm_bits > MAX_BITS:
            raise _too_many_bits(bits, n_features, norm_bits)
        return bits * n_features + norm_bits

    def _prepare_for(self, metric: Metric) -> None:
        if metric == "euclidean":
            return
        if self.norm_bits:
            raise ValueError(f"norm_bits is for the metric 'euclidean', {metric!r} needs none")
        self.norm_bits = 0

    def _learn(self, rows: NDArray[Any], n_bits: int, generator: np.random.Generator) -> None:
        n_features = rows.shape[1]
        bits = self.bits_ = n_bits // n_features if self.norm_bits is None else self.bits
        stores_norms = bits > 1 if self.norm_bits is None else self.norm_bits > 0
        self.rotation_ = random_rotation(n_features, generator) if self.rotation else None
        self.mean_ = mean_of(rows) if stores_norms else np.zeros(n_features)
        self.limits_ = self._limits_of(rows)
        sample = sample_rows(rows, _SPAN_ROWS, generator)
        rotated = np.concatenate([self._rotated(block) for _, block in blocks(sample)])
        self.lows_, self.steps_ = _even_levels(rotated, self.limits_, bits)
        self.norm_bits_, self.norm_range_ = 0, np.zeros(2)
        if stores_norms:
            sample = sample_rows(rows, _NORM_ROWS, generator)
            self._learn_norms(sample, generator)
            if bits * n_features + self.norm_bits_ > MAX_BITS:
                raise _too_many_bits(bits, n_features, self.norm_bits_)
        self.thresholds_ = np.zeros(bits * n_features + self.norm_bits_)

    def _learn_norms(self, rows: NDArray[Any], generator: np.random.Generator) -> None:
        """Choose the range and the step of norms, by those of decoded rows."""
        norms = np.concatenate([self._norms_of(block) for _, block in blocks(rows)])
        lowest, highest = float(norms.min()), float(norms.max())
        margin = _NORM_MARGIN * (highest - lowest)
        low = max(0.0, lowest - margin)
        width = highest + margin - low
        bits = self.norm_bits
        if bits is None:
            wanted = _NORM_STEP * _tenth_distance(rows, generator)
            bits = math.ceil(math.log2(width / wanted + 1)) if wanted > 0 < width else 1
            bits = min(max(bits, 1), MAX_NORM_BITS)
        self.norm_bits_ = bits
        self.norm_range_ = np.array([low, width / (2**bits - 1)])

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: N803 scikit-learn's
        """Learn the levels from at most `max_fit_rows` of the vectors, drawn with `seed`.

        Parameters
        ----------
        X : real numbers (n, n_features)
            Training vectors, finite.
        y : ignored
            Only scikit-learn's pipelines pass it.

        Returns
        -------
        the hasher itself

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.hashers import Scalar
        >>> Scalar(2, rotation=None).fit(np.array([[0.0, 1.0], [3.0, 7.0]])).steps_
        array([1., 2.])

        """
        super().fit(X, y)
        self.n_bits_ = len(self.thresholds_)  # only now is the number of norm bits known
        return self

    def _limits_of(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        limits = np.full((2, rows.shape[1]), np.inf)
        for _, block in blocks(rows, sampled=True):
            rotated = self._rotated(block)
            np.minimum(limits[0], rotated.min(axis=0), out=limits[0])
            np.minimum(limits[1], -rotated.max(axis=0), out=limits[1])
        limits[1] *= -1
        return limits

    def _rotated(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows in the coordinates of the levels, with rounding that may depend on other rows."""
        centred = block - self.mean_
        return centred if self.rotation_ is None else centred @ self.rotation_

    def _rotated_each(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same, where each row depends on itself alone."""
        centred = block - self.mean_
        return centred if self.rotation_ is None else project_each(centred, self.rotation_)

    def _project_block(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rotated features, repeated for each of their bits; 0 for the bits of norms."""
        return self._for_each_bit(self._rotated_each(block))

    def _for_each_bit(self, rotated: NDArray[np.float64]) -> NDArray[np.float64]:
        norms = np.zeros((len(rotated), self.norm_bits_))
        return np.concatenate([np.repeat(rotated, self.bits_, axis=1), norms], axis=1)

    def _bits_block(self, block: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._bits_of(self._rotated_levels(block)[1])[0]

    def _codes_and_clipped(self, block: NDArray[np.float64]) -> tuple[Codes, Clipped]:
        rotated, levels = self._rotated_levels(block)
        bits, norms_outside = self._bits_of(levels)
        low, high = self.limits_
        # The limits were computed with other rounding, too.
        slack = 1e-9 * (high - low)
        outside = (rotated < low - slack) | (rotated > high + slack)
        clipped = Clipped(int(np.count_nonzero(outside)), norms_outside)
        return np.packbits(bits, axis=1, bitorder=self.bitorder), clipped

    def _rotated_levels(
        self, block: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rotated rows, and the level of each feature, which depends on the row alone."""
        rotated = self._rotated(block)
        levels, distances = self._levels_of(rotated)
        if self.rotation_ is not None:
            slack = rounding_slack(block - self.mean_, self.rotation_)
            with np.errstate(divide="ignore"):
                # The last term covers the rounding of `_levels_of` itself.
                certain = distances > slack / self.steps_ + 1e-12
            close = np.flatnonzero(~(certain | (self.steps_ == 0)).all(axis=1))
            if len(close):
                levels[close] = self._levels_of(self._rotated_each(block[close]))[0]
        return rotated, levels

    def _levels_of(
        self, rotated: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The nearest level of each feature, and how far it is from being the next one."""
        steps = np.where(self.steps_ > 0, self.steps_, 1.0)
        with np.errstate(over="ignore"):
            places = (rotated - self.lows_) / steps + 0.5
        places = np.clip(places, 0.0, 2.0**self.bits_ - 0.5)
        levels = np.where(self.steps_ > 0, np.floor(places), 0.0)
        return levels, np.minimum(places - np.floor(places), 1 - (places - np.floor(places)))

    def _norms_of(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """The squared norms of decoded rows."""
        return self._squares_of(self._rotated_levels(block)[1])

    def _squares_of(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        decoded = np.ascontiguousarray(self.lows_ + self.steps_ * levels)
        squares: NDArray[np.float64] = np.square(decoded).sum(axis=1)
        return squares

    def _bits_of(self, levels: NDArray[np.float64]) -> tuple[NDArray[np.bool_], int]:
        """The bits of levels and of the norms that they have, and how many norms were clipped."""
        digits = _digits(levels.astype(np.int64), self.bits_)
        if not self.norm_bits_:
            return digits, 0
        low, step = self.norm_range_
        most = 2**self.norm_bits_ - 1
        places = np.rint((self._squares_of(levels) - low) / (step if step > 0 else 1.0))
        outside = int(np.count_nonzero((places < 0) | (places > most)))
        norms = np.clip(places, 0, most).astype(np.int64)[:, np.newaxis]
        return np.concatenate([digits, _digits(norms, self.norm_bits_)], axis=1), outside

    def _terms_of_bits(self, metric: Metric) -> BitTerms:
        n_features, bits = self.n_features_in_, self.bits_
        values = np.outer(self.steps_, _digit_values(bits)).ravel()
        terms = BitTerms.zeros(self.n_bits_)
        of_features = slice(0, bits * n_features)
        first = slice(0, bits * n_features, bits)
        if metric != "euclidean":
            if self.norm_bits_:
                raise ValueError(f"{metric!r} needs a hasher with norm_bits=0, got {self}")
            terms.slopes[first] = -self.lows_
            terms.gains[of_features] = -values
            terms.constants[0] = 1.0 if metric == "cosine" else 0.0
            return terms
        terms.squares[first] = 1.0
        terms.slopes[first] = -2.0 * self.lows_
        terms.gains[of_features] = -2.0 * values
        if self.norm_bits_:
            low, step = self.norm_range_
            terms.constants[bits * n_features] = low
            terms.extras[bits * n_features :] = step * _digit_values(self.norm_bits_)
        elif bits == 1:
            terms.constants[first] = self.lows_**2
            terms.extras[first] = self.steps_ * (2.0 * self.lows_ + self.steps_)
        else:
            raise ValueError(f"'euclidean' needs the norms of vectors, got {self}")
        return terms

    def _fitted_params(self) -> dict[str, Any]:
        fitted = {"bits": self.bits_, "norm_bits": self.norm_bits_}
        fitted["rotation"] = None if self.rotation_ is None else "random"  # type: ignore[assignment]
        return {**self.get_params(), **fitted}

    def _sizes(self) -> dict[str, Shape]:
        rotated = self.rotation_ is not None if hasattr(self, "rotation_") else self.rotation
        rotation: dict[str, Shape] = {"rotation_": ("n_features_in_", "n_features_in_")}
        return {**self._learned, **(rotation if rotated else {})}

    def _check_loaded(self) -> None:
        """Take the numbers of bits from the parameters; ValueError if they do not fit the rest."""
        self.bits_, self.norm_bits_ = self.bits, self.norm_bits or 0
        if not self.rotation:
            self.rotation_ = None
        if self.n_bits_ != self._bits_for(self.n_features_in_):
            raise ValueError("bits and norm_bits must make n_bits_ bits")
        if (self.steps_ < 0).any() or self.norm_range_[1] < 0:
            raise ValueError("steps must not be negative")


def _digit_values(bits: int) -> NDArray[np.float64]:
    """What the binary digits of a number stand for, the most significant one first."""
    values: NDArray[np.float64] = np.ldexp(1.0, np.arange(bits)[::-1])
    return values


def _digits(numbers: NDArray[np.int64], bits: int) -> NDArray[np.bool_]:
    """Binary digits (m, n * bits) of numbers (m, n), those of a number together."""
    if bits <= 8:  # several times as fast
        unpacked = np.unpackbits(numbers.astype(np.uint8)[:, :, np.newaxis], axis=2)
        digits: NDArray[np.integer] = unpacked[:, :, 8 - bits :]
    else:
        digits = (numbers[:, :, np.newaxis] >> np.arange(bits)[::-1]) & 1
    return digits.reshape(len(numbers), -1).astype(np.bool_)


def _even_levels(
    values: NDArray[np.float64], limits: NDArray[np.float64], bits: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lowest level and the step of each feature, for a small squared error of its values.

    Ends are moved inwards from the limits, one after the other, as long as that helps.
    """
    low, high = limits.copy()
    for _ in range(_ROUNDS):
        for end in (0, 1):
            best = np.full(len(low), np.inf)
            found = np.empty_like(low)
            for span in _SPANS:
                ends = [low, high]
                ends[end] = ends[1 - end] + span * (limits[end] - ends[1 - end])
                errors = _squared_errors(values, ends[0], ends[1], bits)
                better = errors < best
                best[better], found[better] = errors[better], ends[end][better]
            low, high = (found, high) if end == 0 else (low, found)
    step = (high - low) / (2**bits - 1)
    # A step that is nothing beside the values would only make trouble.
    step[~(step > 1e-12 * np.maximum(np.abs(low), np.abs(high)))] = 0.0
    return low, step


def _squared_errors(
    values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], bits: int
) -> NDArray[np.float64]:
    step = (high - low) / (2**bits - 1)
    scaled = (values - low) / np.where(step > 0, step, 1.0)
    levels = np.clip(np.rint(scaled), 0, 2**bits - 1)
    errors: NDArray[np.float64] = np.square(values - (low + step * levels)).sum(axis=0)
    return errors


def _tenth_distance(rows: NDArray[Any], generator: np.random.Generator) -> float:
    """The median squared distance between rows and their tenth neighbours; 0 if it is not known."""
    if len(rows) < 2:
        return 0.0
    queries = sample_rows(rows, _NORM_QUERIES, generator).astype(np.float64)
    found = euclidean_top(rows, queries, min(11, len(rows)))[:, -1]
    gaps = rows[found].astype(np.float64) - queries
    return float(np.median(np.square(gaps).sum(axis=1)))


def _too_many_bits(bits: int, n_features: int, norm_bits: int) -> ValueError:
    fitting = max(0, (MAX_BITS - norm_bits) // n_features)
    norms = f" and {norm_bits} for the norm" if norm_bits else ""
    advice = f"at most {fitting} a feature fit" if fitting else "not even one a feature fits"
    return ValueError(
        f"{bits} bits for each of {n_features} features{norms} are more than {MAX_BITS}: {advice}"
    )
