"""The base classes of hashers: fit on a sample, project and pack in blocks, scikit-learn's tags.

Invariant: a row's projection and code depend on that row and the fitted hasher alone.
"""
# ruff: noqa: N803 X is scikit-learn's name

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_bitorder, as_integer, as_n_bits
from bitweigh.hashers._estimator import Estimator
from bitweigh.hashers._linear import project_each, rounding_slack
from bitweigh.hashers._terms import BitTerms
from bitweigh.hashers._vectors import as_out, as_vectors, blocks, sample_rows
from bitweigh.typing import BitOrder, Codes, Metric, WeigherName

__all__ = ["Clipped", "Hasher", "LinearHasher"]


class Clipped(NamedTuple):
    """How much of some rows is outside the range that a hasher has learned."""

    values: int = 0
    """Features whose values are."""
    norms: int = 0
    """Rows whose norms are."""


class Hasher(Estimator, ABC):
    """The base class: `_learn` fits, `_project_block` computes one real number per bit."""

    seed: int
    max_fit_rows: int
    bitorder: BitOrder

    n_features_in_: int
    n_bits_: int
    thresholds_: NDArray[np.float64]

    _counts: ClassVar[tuple[str, ...]] = ("n_features_in_", "n_bits_")
    _stored_names: ClassVar[dict[str, str]] = {"thresholds_": "threshold_"}

    _on_progress: Callable[[float], None] | None = None
    """Shows progress while `fit` runs; only whoever shows it sets this, and only that long."""

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002 scikit-learn's
        """Learn from at most `max_fit_rows` of the vectors, drawn with `seed`.

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
        max_rows = as_integer(self.max_fit_rows, "max_fit_rows", 1, 2**63 - 1)
        generator = np.random.default_rng(as_integer(self.seed, "seed", 0, 2**63 - 1))
        self._learn(sample_rows(vectors, max_rows, generator), n_bits, generator)
        self.n_features_in_ = n_features
        self.n_bits_ = n_bits
        return self

    def project(
        self, X: ArrayLike, *, out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Compute one real number per bit; the bit is 1 where it is greater than `thresholds_`.

        Parameters
        ----------
        X : real numbers (n, n_features)
            Vectors, finite. Read block by block.
        out : float64 (n, n_bits), optional
            Array to write to.

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
        vectors = self._checked_vectors(X)
        projected = as_out(out, (len(vectors), self.n_bits_), np.float64)
        for start, block in blocks(vectors, self.n_bits_):
            projected[start : start + len(block)] = self._project_block(block)
        return projected

    def transform(self, X: ArrayLike, *, out: Codes | None = None) -> Codes:
        """Compute packed codes: bit k is 1 where projection k is greater than ``thresholds_[k]``.

        Parameters
        ----------
        X : real numbers (n, n_features)
            Vectors, finite. Read block by block, so a memory map larger than memory will do.
        out : uint8 (n, n_bytes), optional
            Array to write to, for instance another memory map.

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
        vectors = self._checked_vectors(X)
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
        """Name the columns of `transform`, the bytes of a code, as scikit-learn does.

        Parameters
        ----------
        input_features : n_features names, optional
            Only their number is checked.

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
        """Describe this transformer to scikit-learn, the only caller."""
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
        )

    def _checked_vectors(self, X: object) -> NDArray[Any]:
        self._need_fitted()
        return as_vectors(X, type(self).__name__, self.n_features_in_)

    def _report(self, share: float) -> None:
        """Say that a further share of the work of `_learn` is done; all shares add up to 1."""
        if self._on_progress is not None:
            self._on_progress(share)

    @abstractmethod
    def _bits_for(self, n_features: int) -> int:
        """Check the parameters, and return the number of bits for this many features."""

    @abstractmethod
    def _learn(self, rows: NDArray[Any], n_bits: int, generator: np.random.Generator) -> None:
        """Learn `thresholds_` and any other attributes ending in an underscore from the rows.

        If that takes long, `_report` lets a progress bar move on.
        """

    @abstractmethod
    def _project_block(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project checked rows (m, n_features) to (m, n_bits), each independently of the others."""

    def _codes_block(self, block: NDArray[np.float64]) -> Codes:
        """Packed codes (m, n_bytes) of checked rows."""
        return np.packbits(self._bits_block(block), axis=1, bitorder=self.bitorder)

    def _codes_and_clipped(self, block: NDArray[np.float64]) -> tuple[Codes, Clipped]:
        """Packed codes (m, n_bytes) of checked rows, and what was clipped to make them."""
        return self._codes_block(block), Clipped()

    _default_weigher: ClassVar[WeigherName] = "asym"
    """The weigher that goes with the hasher, unless another one is given."""
    _needs_decoding: ClassVar[bool] = False
    """Whether bits mean nothing one by one."""

    def _prepare_for(self, metric: Metric) -> None:
        """Set parameters that depend on the metric, before `fit`; ValueError if it is no use."""

    def _projected_codes(self, codes: Codes) -> NDArray[np.float64] | None:  # noqa: ARG002
        """The projections (n, n_bits) of what codes stand for; None if that is not known."""
        return None

    def _terms_of_bits(self, metric: Metric) -> BitTerms | None:  # noqa: ARG002 overrides use it
        """What each bit adds to the distance of a query; None if codes stand for no vectors."""
        return None

    def _bits_block(self, block: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Bits (m, n_bits) of checked rows; an override must return exactly the same."""
        bits: NDArray[np.bool_] = self._project_block(block) > self.thresholds_
        return bits


class LinearHasher(Hasher):
    """A hasher whose projection is ``(x - mean_) @ projection_``."""

    n_bits: int

    mean_: NDArray[np.float64]
    projection_: NDArray[np.float64]

    def _bits_for(self, n_features: int) -> int:  # noqa: ARG002 overrides use it
        return as_n_bits(self.n_bits)

    def _project_block(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return project_each(block - self.mean_, self.projection_)

    def _bits_block(self, block: NDArray[np.float64]) -> NDArray[np.bool_]:
        """The bits of `_project_block`: by one matrix product, and row by row where it is close."""
        centred = block - self.mean_
        projected = centred @ self.projection_
        slack = rounding_slack(centred, self.projection_)
        bits: NDArray[np.bool_] = projected > self.thresholds_
        certain = np.abs(projected - self.thresholds_) > slack
        close = np.flatnonzero(~certain.all(axis=1))
        if len(close):
            bits[close] = project_each(centred[close], self.projection_) > self.thresholds_
        return bits
