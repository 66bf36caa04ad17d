"""Levels: the leading features as thermometers, a bit for each threshold that a value exceeds."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bitweigh._blas import one_blas_thread
from bitweigh._checks import as_choice, as_codes, as_n_bits
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._cells import MAX_BITS_A_FEATURE, cells_of_features
from bitweigh.hashers._estimator import Shape
from bitweigh.hashers._linear import (
    leading_components,
    project_each,
    random_rotation,
    rounding_slack,
)
from bitweigh.hashers._terms import BitTerms
from bitweigh.hashers._vectors import blocks, mean_of, sample_rows
from bitweigh.typing import BitOrder, Codes, Metric, WeigherName

__all__ = ["Levels"]

# Rows that thresholds are learned from, fewer if there are many features: 128 MB of float64.
_CELL_ROWS, _FEWEST_CELL_ROWS, _CELL_VALUES = 20_000, 2_000, 2**24


class Levels(Hasher):
    """A few thresholds for each feature that is worth it: bit i is 1 where the i-th is exceeded.

    Vectors are rotated, and the thresholds of a rotated feature divide its values into cells, so
    that the squared error within them is small (Lloyd and Max). A feature gets as many bits as are
    worth more there than in other features; some get none. A code stands for the vector of the
    means of its cells, and `Decoded` weighs the bits so that the costs add up to

    - "euclidean": the squared distance to ``decode(code)`` in the features that have bits; the
      others would add the same to all codes;
    - "cosine": half of that, which for vectors of length 1 is 1 minus the inner product;
    - "inner_product": minus the inner product with ``decode(code)``.

    Of the ten nearest of 100,000 SIFT descriptors (128 features) its codes of 64, 128 and 256 bits
    find 0.33, 0.48 and 0.62, those of ITQ 0.26 and 0.37 with 64 and 128. On word vectors, whose
    components are alike, ITQ finds more with up to a bit per feature; from two bits per feature on
    `Scalar` finds more everywhere. docs/hashing.md has the figures.

    The bits of a feature are next to each other, in ascending order of their thresholds; features
    are in the order of `directions_`.

    Parameters
    ----------
    n_bits : int
        Bits of a code; may exceed the number of features, up to 255 times.
    rotation : "pca" or "random"
        The features: principal components, of which the leading ones get most bits, or those of a
        random rotation, which are alike.
    origin : "mean" or "zero"
        What is subtracted from vectors first; "zero" for inner products, for which `VectorIndex`
        sets it.
    seed : int
        Random seed of a random rotation, and of the sample if there are over `max_fit_rows` rows.
    max_fit_rows : int
        Maximum number of rows to learn from.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Attributes
    ----------
    mean_ : float64 (n_features,)
        What is subtracted; zeros with "zero".
    directions_ : float64 (n_features, n_used)
        The features that have bits, orthonormal columns.
    features_ : int64 (n_bits,)
        The column of `directions_` that each bit is about, ascending.
    thresholds_ : float64 (n_bits,)
    means_ : float64 (n_bits + n_used,)
        The mean of each cell: those of the first feature in ascending order, then of the others.
    n_features_in_, n_bits_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.hashers import Levels
    >>> spread = np.array([9.0, 3.0, 0.1, 0.1])
    >>> vectors = spread * np.random.default_rng(1).standard_normal((1000, 4))  # (1000, 4)
    >>> hasher = Levels(8).fit(vectors)
    >>> hasher.features_
    array([0, 0, 0, 0, 0, 0, 1, 1])
    >>> decoded = hasher.decode(hasher.transform(vectors))
    >>> bool(np.abs(decoded - vectors).mean() < 0.9)
    True

    """

    mean_: NDArray[np.float64]
    directions_: NDArray[np.float64]
    features_: NDArray[np.int64]
    means_: NDArray[np.float64]

    _learned: ClassVar[dict[str, Shape]] = {
        "mean_": ("n_features_in_",),
        "directions_": ("n_features_in_", None),
        "features_": ("n_bits_",),
        "thresholds_": ("n_bits_",),
        "means_": (None,),
    }

    _default_weigher: ClassVar[WeigherName] = "decoded"

    def __init__(
        self,
        n_bits: int,
        *,
        rotation: Literal["pca", "random"] = "pca",
        origin: Literal["mean", "zero"] = "mean",
        seed: int = 0,
        max_fit_rows: int = 50_000,
        bitorder: BitOrder = "big",
    ) -> None:
        """Store the parameters; `fit` checks them."""
        self.n_bits = n_bits
        self.rotation = rotation
        self.origin = origin
        self.seed = seed
        self.max_fit_rows = max_fit_rows
        self.bitorder = bitorder

    def decode(self, codes: Codes) -> NDArray[np.float64]:
        """The vectors that codes stand for: the means of their cells.

        Features without bits are those of the mean, or 0 with the origin "zero".

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
        >>> from bitweigh.hashers import Levels
        >>> hasher = Levels(2).fit(np.array([[0.0], [1.0], [5.0], [9.0]]))
        >>> hasher.decode(hasher.transform([[0.2], [7.1]]))
        array([[0.5],
               [9. ]])

        """
        self._need_fitted()
        packed = as_codes(codes, self.n_bits_, self.bitorder)
        found: NDArray[np.float64] = self._decoded(packed) @ self.directions_.T + self.mean_
        return found

    def _decoded(self, codes: Codes) -> NDArray[np.float64]:
        """What codes stand for, in the directions."""
        bits = np.unpackbits(codes, axis=1, count=self.n_bits_, bitorder=self.bitorder)
        counts = np.add.reduceat(bits, self._first_bits(), axis=1, dtype=np.int64)
        decoded: NDArray[np.float64] = self.means_[self._lowest_cells() + counts]
        return decoded

    def _first_bits(self) -> NDArray[np.int64]:
        """The first bit of each direction, (n_used,)."""
        return np.searchsorted(self.features_, np.arange(self.directions_.shape[1]))

    def _lowest_cells(self) -> NDArray[np.int64]:
        """The number of the lowest cell of each direction, (n_used,)."""
        return self._first_bits() + np.arange(self.directions_.shape[1])

    def _projected_codes(self, codes: Codes) -> NDArray[np.float64]:
        return self._decoded(codes)[:, self.features_]

    def _bits_for(self, n_features: int) -> int:
        n_bits = as_n_bits(self.n_bits)
        as_choice(self.rotation, "rotation", ("pca", "random"))
        as_choice(self.origin, "origin", ("mean", "zero"))
        if n_bits > MAX_BITS_A_FEATURE * n_features:
            raise ValueError(
                f"Levels has at most {MAX_BITS_A_FEATURE} bits per feature, got n_bits={n_bits} "
                f"and n_features={n_features}"
            )
        return n_bits

    def _prepare_for(self, metric: Metric) -> None:
        if metric == "inner_product":
            self.origin = "zero"

    def _learn(self, rows: NDArray[Any], n_bits: int, generator: np.random.Generator) -> None:
        n_features = rows.shape[1]
        n_directions = min(n_features, n_bits)
        mean = mean_of(rows)
        if self.rotation == "pca":
            with one_blas_thread():
                directions = leading_components(rows, mean, n_directions, self._report)
        else:
            directions = random_rotation(n_features, generator)[:, :n_directions]
        self.mean_ = mean if self.origin == "mean" else np.zeros(n_features)
        n_rows = min(_CELL_ROWS, max(_FEWEST_CELL_ROWS, _CELL_VALUES // n_directions))
        sample = sample_rows(rows, n_rows, generator)
        rotated = [(block - self.mean_) @ directions for _, block in blocks(sample)]
        cells = cells_of_features(np.concatenate(rotated), n_bits)
        used = [number for number, one in enumerate(cells) if len(one.thresholds)]
        self.directions_ = np.ascontiguousarray(directions[:, used])
        counts = [len(cells[number].thresholds) for number in used]
        self.features_ = np.repeat(np.arange(len(used)), counts)
        self.thresholds_ = np.concatenate([cells[number].thresholds for number in used])
        self.means_ = np.concatenate([cells[number].means for number in used])

    def _project_block(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """The features, repeated for each of their bits."""
        return project_each(block - self.mean_, self.directions_)[:, self.features_]

    def _bits_block(self, block: NDArray[np.float64]) -> NDArray[np.bool_]:
        """The bits of `_project_block`: by one matrix product, and row by row where it is close."""
        centred = block - self.mean_
        projected = (centred @ self.directions_)[:, self.features_]
        slack = rounding_slack(centred, self.directions_)[:, self.features_]
        bits: NDArray[np.bool_] = projected > self.thresholds_
        certain = np.abs(projected - self.thresholds_) > slack
        close = np.flatnonzero(~certain.all(axis=1))
        if len(close):
            bits[close] = self._project_block(block[close]) > self.thresholds_
        return bits

    def _terms_of_bits(self, metric: Metric) -> BitTerms:
        terms = BitTerms.zeros(self.n_bits_)
        first, lowest = self._first_bits(), self._lowest_cells()
        above = np.arange(self.n_bits_) + self.features_ + 1  # the cell above each threshold
        steps = self.means_[above] - self.means_[above - 1]
        if metric == "inner_product":
            if self.mean_.any():
                raise ValueError(f"{metric!r} needs a hasher with origin='zero', got {self}")
            terms.slopes[first] = -self.means_[lowest]
            terms.gains[:] = -steps
            return terms
        scale = 0.5 if metric == "cosine" else 1.0
        squares = scale * self.means_**2
        terms.squares[first] = scale
        terms.slopes[first] = -2.0 * scale * self.means_[lowest]
        terms.constants[first] = squares[lowest]
        terms.gains[:] = -2.0 * scale * steps
        terms.extras[:] = squares[above] - squares[above - 1]
        return terms

    def _check_loaded(self) -> None:
        """Turn the numbers of features into integers; ValueError if parts do not fit others."""
        self._bits_for(self.n_features_in_)
        features, n_used = self.features_, self.directions_.shape[1]
        steps = np.diff(features, prepend=-1.0, append=float(n_used))
        if not (((steps[1:-1] == 0) | (steps[1:-1] == 1)).all() and (steps[[0, -1]] == 1).all()):
            raise ValueError("features_ must number the columns of directions_")
        self.features_ = features.astype(np.int64)
        if len(self.means_) != self.n_bits_ + n_used:
            raise ValueError("means_ must have a number for each cell")
        same_feature = np.diff(self.features_) == 0
        if (np.diff(self.thresholds_)[same_feature] < 0).any():
            raise ValueError("the thresholds_ of a feature must ascend")
