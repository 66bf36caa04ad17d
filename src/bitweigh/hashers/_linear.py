"""Rotations, and products of rows with a matrix whose rounding depends on the row alone.

The last bits of a matrix product by BLAS depend on its shape and, within one product, on the
position of a row. So a projection is defined as a separate product of each row with the matrix: the
same call whatever the other rows are. One product for all rows, several times faster, decides what
its rounding cannot change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh.hashers._vectors import blocks

__all__ = ["leading_components", "project_each", "random_rotation", "rounding_slack"]


def project_each(rows: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product of each row (m, n) with a matrix (n, k), independent of the other rows."""
    products: NDArray[np.float64] = np.matmul(rows[:, np.newaxis, :], matrix)
    return products[:, 0, :]


def rounding_slack(rows: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much two products of the same rows and matrix can differ at most, (m, k).

    Proof: a sum of d products in any order, fused or not, is within d u / (1 - d u) times
    sum |x_i w_i| <= |x| |w| of the exact sum, u = 2^-53. So two of them differ by at most twice
    that, and this is about twice that difference, which covers the rounding of the norms. The
    constants cover squares and products that underflow.
    """
    lengths = np.linalg.norm(rows, axis=1)[:, np.newaxis] + 1e-150
    relative = 4 * (rows.shape[1] + 8) * 2.0**-53
    slack: NDArray[np.float64] = relative * lengths * np.linalg.norm(matrix, axis=0) + 1e-290
    return slack


def random_rotation(n: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """An orthogonal matrix (n, n), uniformly distributed."""
    q, r = np.linalg.qr(generator.standard_normal((n, n)))
    return q * np.where(np.diagonal(r) < 0, -1.0, 1.0)


def leading_components(
    rows: NDArray[Any], mean: NDArray[np.float64], n: int, report: Callable[[float], None]
) -> NDArray[np.float64]:
    """Eigenvectors of the covariance with the largest eigenvalues first, (n_features, n).

    `report` is called with the share of the rows after each block.
    """
    covariance = np.zeros((rows.shape[1], rows.shape[1]))
    for _, block in blocks(rows):
        centred = block - mean
        covariance += centred.T @ centred
        report(len(block) / len(rows))
    _, vectors = np.linalg.eigh(covariance / len(rows))  # ascending eigenvalues
    return vectors[:, ::-1][:, :n]
