"""ITQ: principal components, rotated to lose as little as possible by taking signs."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitweigh import _system
from bitweigh._blas import one_blas_thread
from bitweigh._checks import as_integer
from bitweigh.hashers._base import LinearHasher
from bitweigh.hashers._estimator import Shape
from bitweigh.hashers._linear import leading_components, random_rotation
from bitweigh.hashers._vectors import blocks, mean_of
from bitweigh.typing import BitOrder

__all__ = ["ITQ"]

# Values rotated at a time: 1 MB of float32, which stays in cache.
_ROUND_BLOCK_VALUES = 2**18
# Sums of products that are computed side by side. Not the number of threads: the same rows give the
# same rotation on any machine with the same BLAS.
_LANES = 8


class ITQ(LinearHasher):
    """Iterative quantisation: ``g = (x - mean) P R``, threshold 0.

    P holds the leading eigenvectors of the covariance. R starts as a random rotation; each round
    sets ``B = sign(V R)`` for the projected rows V (with sign(0) = -1, as a bit is ``g > 0``), and
    then R to the rotation with the least ``||B - V R||``: with ``U S A^T`` the singular value
    decomposition of ``B^T V``, that is ``R = A U^T``. Neither step increases that error.

    Parameters
    ----------
    n_bits : int
        Bits of a code; at most the number of features.
    n_rounds : int
        Rounds of the two steps.
    seed : int
        Random seed of the first rotation, and of the sample if there are over `max_fit_rows` rows.
    max_fit_rows : int
        Maximum number of rows to learn from. More take longer, and gave no better codes of word
        vectors, SIFT descriptors and texts.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Attributes
    ----------
    mean_ : float64 (n_features,)
    projection_ : float64 (n_features, n_bits)
        P R, orthonormal columns.
    thresholds_ : float64 (n_bits,)
        Zeros.
    quantisation_errors_ : float64 (n_rounds,)
        ``||B - V R||`` between the two steps of each round. Never increases.
    n_features_in_, n_bits_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.hashers import ITQ
    >>> vectors = np.random.default_rng(1).standard_normal((1000, 32))  # (1000, 32)
    >>> hasher = ITQ(24).fit(vectors)
    >>> hasher.transform(vectors).shape
    (1000, 3)
    >>> bool(hasher.quantisation_errors_[-1] < hasher.quantisation_errors_[0])
    True

    """

    quantisation_errors_: NDArray[np.float64]

    _learned: ClassVar[dict[str, Shape]] = {
        "mean_": ("n_features_in_",),
        "projection_": ("n_features_in_", "n_bits_"),
        "thresholds_": ("n_bits_",),
        "quantisation_errors_": (None,),
    }

    def __init__(
        self,
        n_bits: int,
        *,
        n_rounds: int = 50,
        seed: int = 0,
        max_fit_rows: int = 50_000,
        bitorder: BitOrder = "big",
    ) -> None:
        """Store the parameters; `fit` checks them."""
        self.n_bits = n_bits
        self.n_rounds = n_rounds
        self.seed = seed
        self.max_fit_rows = max_fit_rows
        self.bitorder = bitorder

    def _bits_for(self, n_features: int) -> int:
        n_bits = super()._bits_for(n_features)
        if n_bits > n_features:
            raise ValueError(
                f"ITQ has at most one bit per feature, got n_bits={n_bits} and "
                f"n_features={n_features}; LSH takes any number of bits"
            )
        return n_bits

    def _learn(self, rows: NDArray[Any], n_bits: int, generator: np.random.Generator) -> None:
        n_rounds = as_integer(self.n_rounds, "n_rounds", 0, 2**31)
        # Multiplications for each row; two products in each round.
        n_features = rows.shape[1]
        for_components, for_round = n_features * (n_features + n_bits), 2 * n_bits * n_bits
        work = for_components + n_rounds * for_round
        mean = mean_of(rows)
        with one_blas_thread() as limited:
            components = leading_components(
                rows, mean, n_bits, lambda share: self._report(share * for_components / work)
            )
            projected = np.empty((len(rows), n_bits))
            for start, block in blocks(rows):
                projected[start : start + len(block)] = (block - mean) @ components
            rotation, errors = _rotate(
                projected,
                random_rotation(n_bits, generator),
                n_rounds,
                _system.default_threads() if limited else 1,
                lambda: self._report(for_round / work),
            )
        self.mean_ = mean
        self.projection_ = np.ascontiguousarray(components @ rotation)
        self.thresholds_ = np.zeros(n_bits)
        self.quantisation_errors_ = errors


def _rotate(
    projected: NDArray[np.float64],
    rotation: NDArray[np.float64],
    n_rounds: int,
    threads: int,
    report: Callable[[], None],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rotation after `n_rounds`, and the error of each round; the paper's V is `projected`.

    `report` is called after each round.

    Rows are rotated in float32, which halves the time and moves no more than a few bits of rows
    that are next to a threshold. The rotation itself is computed in float64. The error follows from
    sums that are needed anyway: ||B - V R||^2 = ||B||^2 + ||V||^2 - 2 trace(B^T V R).
    """
    errors = np.empty(n_rounds)
    # Divided by a power of 2, so that nothing is rounded, and float32 holds numbers of any size.
    largest = np.abs(projected).max(initial=0.0)
    scale = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    narrow = np.divide(projected, scale).astype(np.float32)
    squares = projected.size + float(np.square(projected).sum())
    step = max(1, _ROUND_BLOCK_VALUES // projected.shape[1])
    row_blocks = [narrow[first : first + step] for first in range(0, len(narrow), step)]
    lanes = [row_blocks[lane::_LANES] for lane in range(min(_LANES, len(row_blocks)))]
    with ThreadPoolExecutor(min(len(lanes), threads)) as pool:
        for number in range(n_rounds):
            rotations = [rotation.astype(np.float32)] * len(lanes)
            # The products of one lane after the other, in order.
            product = sum(pool.map(_signs_by_rows, lanes, rotations), np.zeros_like(rotation))
            error = squares - 2.0 * scale * float(np.vdot(product, rotation.T))
            errors[number] = math.sqrt(max(0.0, error))
            u, _, a_transposed = np.linalg.svd(product)
            rotation = a_transposed.T @ u.T
            report()
    return rotation, errors


def _signs_by_rows(
    row_blocks: list[NDArray[np.float32]], rotation: NDArray[np.float32]
) -> NDArray[np.float64]:
    """B^T V of some blocks of rows V, where B are the signs of V R."""
    product = np.zeros(rotation.shape)
    signs = np.empty_like(row_blocks[0])
    for block in row_blocks:
        block_signs = signs[: len(block)]
        np.matmul(block, rotation, out=block_signs)
        block_signs[:] = np.where(block_signs > 0, np.float32(1), np.float32(-1))
        product += block_signs.T @ block
    return product
