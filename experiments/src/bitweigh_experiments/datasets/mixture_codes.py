"""Codes of a mixture's rows at any number of rows: drawn, hashed and packed a piece at a time.

A linear projection of a Gaussian mixture is a Gaussian mixture, too, so rows are drawn in the
projected space: 64 bits of 128 dimensions take half of the random numbers, and no projection.

Invariant: piece i depends only on the mixture, the hasher, the seed and `piece_rows`. Neither the
number of rows nor that of threads matters: each piece has its own random stream, and products are
small enough for BLAS to compute them on one thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from bitweigh.hashers import ITQ, LSH
from bitweigh.typing import Codes
from bitweigh_experiments.arguments import as_integer
from bitweigh_experiments.datasets.generator import MixtureGenerator, Rows
from bitweigh_experiments.datasets.splits import as_seed
from bitweigh_experiments.datasets.streams import Purpose, stream

__all__ = ["PIECE_ROWS", "MixtureCodes"]

PIECE_ROWS = 2**20
_MAX_ROWS = 2**48
_SLAB_ROWS = 2048  # rows drawn at a time: half a megabyte of floats for 64 bits
# OpenBLAS computes products of up to this many multiplications on the calling thread.
_PRODUCT_SIZE = 2**18


class MixtureCodes:
    """A source of codes, addressable by piece: the hashed rows of a fitted mixture.

    Normal numbers are drawn by a table of 65,536 equally likely quantiles, scaled to variance 1:
    seven times as fast as NumPy's exact ones. They have no values beyond 4.3 standard deviations;
    what is left of that in the projections, each a weighted sum of many, no statistic shows.

    Parameters
    ----------
    mixture : MixtureGenerator
        A fitted mixture.
    hasher : LSH or ITQ
        Fitted on rows of as many dimensions.
    rows : int
        Rows in all.
    seed : int
        Determines every piece.
    piece_rows : int
        Rows of a piece; the last one may be shorter. A different size gives different rows.

    Attributes
    ----------
    rows, n_bits, n_bytes, n_pieces, piece_rows : int

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.hashers import LSH
    >>> from bitweigh_experiments import datasets
    >>> vectors = np.random.default_rng(0).standard_normal((2000, 16))
    >>> mixture = datasets.MixtureGenerator(n_clusters=4).fit(vectors)
    >>> source = datasets.MixtureCodes(mixture, LSH(32).fit(vectors), 5000, piece_rows=2048)
    >>> [piece.shape for piece in source.pieces()]
    [(2048, 4), (2048, 4), (904, 4)]
    >>> source.queries(10).shape  # projections
    (10, 32)

    """

    def __init__(
        self,
        mixture: MixtureGenerator,
        hasher: LSH | ITQ,
        rows: int,
        *,
        seed: int = 0,
        piece_rows: int = PIECE_ROWS,
    ) -> None:
        """Project the mixture; takes a second for 512 clusters of 128 dimensions."""
        self.rows = as_integer(rows, "rows", 0, _MAX_ROWS)
        self.piece_rows = as_integer(piece_rows, "piece_rows", 1, 2**28)
        self.seed = as_seed(seed)
        if mixture.n_features_in_ != hasher.n_features_in_:
            raise ValueError(
                f"the mixture has {mixture.n_features_in_} dimensions, the hasher "
                f"{hasher.n_features_in_}"
            )
        self.n_bits = hasher.n_bits_
        self.n_bytes = -(-self.n_bits // 8)
        self.n_pieces = -(-self.rows // self.piece_rows)
        self._bitorder = hasher.bitorder
        self._thresholds = hasher.thresholds_
        self._weights = mixture.weights_
        self._means = (mixture.means_ - hasher.mean_) @ hasher.projection_
        # A projection is over its threshold where its deviation from the mean is over the limit.
        self._limits = (self._thresholds - self._means).astype(np.float32)
        self._factors = _projected_factors(mixture, hasher.projection_)
        self._product_rows = max(1, _PRODUCT_SIZE // self._factors[0].size)

    def with_rows(self, rows: int) -> MixtureCodes:
        """Return the source of the first `rows` rows of the same endless sequence."""
        other = object.__new__(MixtureCodes)
        other.__dict__ |= self.__dict__
        other.rows = as_integer(rows, "rows", 0, _MAX_ROWS)
        other.n_pieces = -(-other.rows // other.piece_rows)
        return other

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.rows

    @property
    def fingerprint(self) -> str:
        """A hexadecimal text that sources share if and only if they draw the same sequence.

        On another machine it may differ, because BLAS rounds differently there.
        """
        content = hashlib.sha256(f"{self.seed} {self.piece_rows} {self._bitorder}".encode())
        for array in (self._weights, self._limits, self._factors):
            content.update(str(array.shape).encode())
            content.update(np.ascontiguousarray(array).tobytes())
        return content.hexdigest()

    def piece(self, number: int) -> Codes:
        """Draw the codes of piece `number`, counted from 0.

        Parameters
        ----------
        number : int
            Which piece.

        Returns
        -------
        uint8 (piece_rows, n_bytes), the last piece shorter where `rows` is no multiple

        """
        number = as_integer(number, "number", 0, self.n_pieces - 1)
        rng = stream(self.seed, Purpose.CODES, number)
        sizes = rng.multinomial(self.piece_rows, self._weights)
        codes = np.empty((self.piece_rows, self.n_bytes), dtype=np.uint8)
        first = 0
        for cluster, size in enumerate(sizes):
            for start in range(first, first + size, _SLAB_ROWS):
                stop = min(start + _SLAB_ROWS, first + size)
                bits = self._deviations(rng, cluster, stop - start) > self._limits[cluster]
                codes[start:stop] = np.packbits(bits, axis=1, bitorder=self._bitorder)
            first += size
        # A random order: any number of first rows are as likely to be of a cluster as all rows are.
        wanted = self.rows - number * self.piece_rows
        return codes[rng.permutation(self.piece_rows)[:wanted]]

    def pieces(self, threads: int = 1) -> Iterator[Codes]:
        """Yield all pieces in order, drawn on several threads a few pieces ahead.

        Parameters
        ----------
        threads : int
            Threads to draw with; the codes are the same for any number.

        Yields
        ------
        uint8 (piece_rows, n_bytes), the last one shorter where `rows` is no multiple

        """
        threads = as_integer(threads, "threads", 1, 1024)
        numbers = iter(range(self.n_pieces))
        if threads == 1:
            yield from map(self.piece, numbers)
            return
        with ThreadPoolExecutor(threads) as pool:
            drawn: list[Future[Codes]] = [
                pool.submit(self.piece, number) for number in islice(numbers, threads + 1)
            ]
            while drawn:
                codes = drawn.pop(0).result()
                drawn += [pool.submit(self.piece, number) for number in islice(numbers, 1)]
                yield codes

    def queries(self, n: int) -> NDArray[np.float64]:
        """Draw projections of queries: fresh rows of the mixture, from a stream of their own.

        Parameters
        ----------
        n : int
            Queries; the first are the same for any n.

        Returns
        -------
        float64 (n, n_bits)
            To give to a weigher. A query's own code has bit k where projection k is greater than
            the hasher's ``thresholds_[k]``.

        """
        return self._projections(n, Purpose.CODE_QUERIES)

    def sample(self, n: int) -> NDArray[np.float64]:
        """Draw projections of further rows, to fit a weigher on: float64 (n, n_bits)."""
        return self._projections(n, Purpose.CODE_SAMPLE)

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """The thresholds of the bits, (n_bits,)."""
        return self._thresholds

    def _projections(self, n: int, purpose: Purpose) -> NDArray[np.float64]:
        """Draw row after row with exact normal numbers, so that the first do not depend on n."""
        rng = stream(self.seed, purpose, 0)
        ends = np.cumsum(self._weights)[:-1]
        rows = np.empty((as_integer(n, "n", 0, 2**24), self.n_bits))
        for row in rows:
            cluster = int(np.searchsorted(ends, rng.random(), side="right"))
            factor = self._factors[cluster]
            row[:] = self._means[cluster] + rng.standard_normal(len(factor)) @ factor
        return rows

    def _deviations(self, rng: np.random.Generator, cluster: int, rows: int) -> Rows:
        """Draw projections of a cluster's rows less their mean, (rows, n_bits)."""
        factor, product_rows = self._factors[cluster], self._product_rows
        products = -(-rows // product_rows)
        count = products * product_rows * len(factor)
        raw = rng.integers(0, 2**64, -(-count // 4), dtype=np.uint64).view(np.uint16)[:count]
        # "wrap" spares a check of each position.
        normals = np.take(_quantiles(), raw.astype(np.intp), mode="wrap")
        projected: Rows = normals.reshape(products, product_rows, len(factor)) @ factor
        return projected.reshape(-1, self.n_bits)[:rows]


def _projected_factors(mixture: MixtureGenerator, projection: NDArray[np.float64]) -> Rows:
    """Return F (clusters, r, n_bits) such that F'F is the covariance of a projected cluster."""
    d, n_bits = projection.shape
    pooled = mixture.pooled_factor_.astype(np.float64) @ projection
    factors = np.zeros((mixture.n_clusters_, min(d, n_bits), n_bits), dtype=np.float32)
    for number, (factor, scale) in enumerate(
        zip(mixture.factors_, mixture.pooled_scales_, strict=True)
    ):
        if n_bits <= d:
            stacked = np.vstack([factor @ projection, scale * pooled])
            triangle = np.linalg.qr(stacked, mode="r")
        else:
            stacked = np.vstack([factor, scale * mixture.pooled_factor_]).astype(np.float64)
            triangle = np.linalg.qr(stacked, mode="r") @ projection
        factors[number, : len(triangle)] = triangle
    return factors


@cache
def _quantiles() -> Rows:
    """Return 65,536 equally likely values of a normal distribution, of mean 0 and variance 1."""
    normal = NormalDist()
    upper = np.array([normal.inv_cdf((2 * i + 1) / 2**17) for i in range(2**15, 2**16)])
    upper /= np.sqrt(np.square(upper).mean())
    return np.concatenate([-upper[::-1], upper]).astype(np.float32)
