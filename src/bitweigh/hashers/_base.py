"""What all hashers share: fit on a sample, project and pack in blocks, scikit-learn's tags.

Invariant: a row's projection and code depend on that row and the fitted hasher alone.
"""
# ruff: noqa: N803 X is scikit-learn's name

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_bitorder, as_integer, as_n_bits
from bitweigh.hashers._estimator import Estimator
from bitweigh.hashers._vectors import as_out, as_vectors, blocks, sample_rows
from bitweigh.typing import BitOrder, Codes

__all__ = ["Hasher", "LinearHasher"]


class Hasher(Estimator, ABC):
    """A hasher: `_learn` fits it, `_project_block` makes one real number per bit."""

    seed: int
    max_fit_rows: int
    bitorder: BitOrder

    n_features_in_: int
    n_bits_: int
    thresholds_: NDArray[np.float64]

    _counts: ClassVar[tuple[str, ...]] = ("n_features_in_", "n_bits_")
    _stored_names: ClassVar[dict[str, str]] = {"thresholds_": "threshold_"}

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002 scikit-learn's
        """Learn from vectors, at most `max_fit_rows` of them, drawn by `seed`.

        Parameters
        ----------
        X : real numbers (n, n_features)
            Training vectors, finite. A memory map will do: only the rows drawn are read.
        y : ignored
            Only scikit-learn's pipelines pass it.

        Returns
        -------
        the hasher itself

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.hashers import LSH
        >>> LSH(16).fit(np.eye(4)).thresholds_.shape
        (16,)

        """
        vectors = as_vectors(X, type(self).__name__)
        n, n_features = vectors.shape
        if n == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={vectors.shape}), need at least 1"
            )
        if n_features == 0:
            raise ValueError(
                f"Found array with 0 feature(s) (shape={vectors.shape}) while a minimum of 1 is "
                "required."
            )
        as_bitorder(self.bitorder)
        n_bits = self._bits_for(n_features)
        most = as_integer(self.max_fit_rows, "max_fit_rows", 1, 2**63 - 1)
        generator = np.random.default_rng(as_integer(self.seed, "seed", 0, 2**63 - 1))
        self._learn(sample_rows(vectors, most, generator), n_bits, generator)
        self.n_features_in_ = n_features
        self.n_bits_ = n_bits
        return self

    def project(
        self, X: ArrayLike, *, out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """One real number per bit, whose comparison with `thresholds_` is that bit.

        Parameters
        ----------
        X : real numbers (n, n_features)
            Vectors, finite. Read block by block.
        out : float64 (n, n_bits), optional
            Where to write.

        Returns
        -------
        float64 (n, n_bits)

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.hashers import Sign
        >>> Sign().fit_transform(np.array([[0.5, -2.0]], dtype=np.float32))
        array([[128]], dtype=uint8)
        >>> Sign().fit(np.ones((1, 2))).project([[0.5, -2.0]])
        array([[ 0.5, -2. ]])

        """
        vectors = self._fitting(X)
        made = as_out(out, (len(vectors), self.n_bits_), np.float64)
        for start, block in blocks(vectors, self.n_bits_):
            made[start : start + len(block)] = self._project_block(block)
        return made

    def transform(self, X: ArrayLike, *, out: Codes | None = None) -> Codes:
        """Packed codes: bit k is 1 where projection k is greater than ``thresholds_[k]``.

        Parameters
        ----------
        X : real numbers (n, n_features)
            Vectors, finite. Read block by block, so a memory map larger than memory will do.
        out : uint8 (n, n_bytes), optional
            Where to write, for instance another memory map.

        Returns
        -------
        uint8 (n, n_bytes), n_bytes = n_bits / 8 rounded up

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.hashers import LSH
        >>> vectors = np.random.default_rng(1).standard_normal((100, 8))
        >>> LSH(32).fit(vectors).transform(vectors).shape
        (100, 4)

        """
        vectors = self._fitting(X)
        as_bitorder(self.bitorder)
        codes = as_out(out, (len(vectors), (self.n_bits_ + 7) // 8), np.uint8)
        for start, block in blocks(vectors, self.n_bits_):
            codes[start : start + len(block)] = self._codes_block(block)
        return codes

    def fit_transform(self, X: ArrayLike, y: object = None) -> Codes:
        """``fit(X).transform(X)``: uint8 (n, n_bytes).

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.hashers import Sign
        >>> Sign().fit_transform(np.array([[1.0, -1.0, 1.0]]))
        array([[160]], dtype=uint8)

        """
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the columns of `transform`, the bytes of a code, as scikit-learn makes them.

        Parameters
        ----------
        input_features : n_features names, optional
            Only their number is looked at.

        Returns
        -------
        object (n_bytes,)

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.hashers import LSH
        >>> LSH(16).fit(np.eye(4)).get_feature_names_out()
        array(['lsh0', 'lsh1'], dtype=object)

        """
        self._need_fitted()
        if input_features is not None and len(np.asarray(input_features)) != self.n_features_in_:
            raise ValueError(
                "input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(np.asarray(input_features))}"
            )
        prefix = type(self).__name__.lower()
        names = [f"{prefix}{number}" for number in range((self.n_bits_ + 7) // 8)]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> object:
        """scikit-learn's description of a transformer; only scikit-learn asks for it."""
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
        )

    def _fitting(self, X: object) -> NDArray[Any]:
        self._need_fitted()
        return as_vectors(X, type(self).__name__, self.n_features_in_)

    @abstractmethod
    def _bits_for(self, n_features: int) -> int:
        """The number of bits for vectors of this width; checks the parameters."""

    @abstractmethod
    def _learn(self, rows: NDArray[Any], n_bits: int, generator: np.random.Generator) -> None:
        """Set `thresholds_` and whatever else ends in an underscore, from the rows drawn."""

    @abstractmethod
    def _project_block(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project rows that were checked, (m, n_features), to (m, n_bits), each as if alone."""

    def _codes_block(self, block: NDArray[np.float64]) -> Codes:
        """Packed codes (m, n_bytes) of rows that were checked."""
        return np.packbits(self._bits_block(block), axis=1, bitorder=self.bitorder)

    def _bits_block(self, block: NDArray[np.float64]) -> NDArray[np.bool_]:
        """The bits (m, n_bits) of some rows: exactly those of `_project_block`."""
        bits: NDArray[np.bool_] = self._project_block(block) > self.thresholds_
        return bits


class LinearHasher(Hasher):
    """A hasher whose projection is ``(x - mean_) @ projection_``.

    The last bits of a matrix product by BLAS depend on its shape, and within one product on where
    a row stands. So the projection is defined as one product of a vector with the matrix for each
    row: the same call whatever is beside it. A product of matrices, several times faster, decides
    the bits it can decide.
    """

    n_bits: int

    mean_: NDArray[np.float64]
    projection_: NDArray[np.float64]

    def _bits_for(self, n_features: int) -> int:  # noqa: ARG002 for those that depend on it
        return as_n_bits(self.n_bits)

    def _project_block(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._project_each(block - self.mean_)

    def _project_each(self, centred: NDArray[np.float64]) -> NDArray[np.float64]:
        each: NDArray[np.float64] = np.matmul(centred[:, np.newaxis, :], self.projection_)[:, 0, :]
        return each

    def _bits_block(self, block: NDArray[np.float64]) -> NDArray[np.bool_]:
        """The bits of `_project_block`, by a matrix product and a second look at close calls.

        Proof: a sum of d products in any order, fused or not, is within d u / (1 - d u) times
        sum |x_i w_i| <= |x| |w| of the true one, u = 2^-53. So two of them differ by at most twice
        that, and `slack` is about twice as much again, which covers the rounding of the norms. The
        constants cover squares and products that underflow.
        """
        centred = block - self.mean_
        projected = centred @ self.projection_
        lengths = np.linalg.norm(centred, axis=1)[:, np.newaxis] + 1e-150
        share = 4 * (centred.shape[1] + 8) * 2.0**-53
        slack = share * lengths * np.linalg.norm(self.projection_, axis=0) + 1e-290
        bits: NDArray[np.bool_] = projected > self.thresholds_
        certain = np.abs(projected - self.thresholds_) > slack
        close = np.flatnonzero(~certain.all(axis=1))
        if len(close):
            bits[close] = self._project_each(centred[close]) > self.thresholds_
        return bits
