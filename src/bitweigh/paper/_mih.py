"""Multi-index hashing, which the paper compares with: Hamming distance first, then weights."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _paper
from bitweigh._results import SearchResult
from bitweigh.paper._tables import SplitIndex
from bitweigh.typing import BitOrder

__all__ = ["MIH"]

Culled: TypeAlias = Literal["found", "shell", "met"]


class MIH(SplitIndex):
    """Multi-index hashing (Norouzi et al. 2014), culled by weighted distance. Not exact.

    The Hamming radius around the cheapest code grows until k codes are within it; those are ranked
    by weighted distance. A code beyond that radius may be nearer by weight and is then missed.

    Parameters
    ----------
    codes : uint8 (n, n_bytes)
        Packed codes.
    n_bits : int
        Bits of a code.
    m : int, optional
        Number of tables; by default n_bits / log2 n, rounded.
    culled : "found", "shell" or "met"
        Which codes are ranked by weighted distance; the paper does not say. "found": the k codes
        nearest by Hamming distance. "shell": all codes within the radius at which k were found.
        "met": all codes that were compared on the way.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import paper
    >>> index = paper.MIH(np.packbits([[0, 0, 1], [1, 0, 1]], axis=1), 3)
    >>> index.search(np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]]), 1)
    PaperResult(distances=array([-0.5]), ids=array([0]))

    """

    def __init__(
        self,
        codes: ArrayLike,
        n_bits: int,
        *,
        m: int | None = None,
        culled: Culled = "shell",
        bitorder: BitOrder = "big",
    ) -> None:
        """Build the tables."""
        super().__init__(codes, n_bits, m, bitorder)
        if culled not in get_args(Culled):
            raise ValueError(f"culled must be one of {', '.join(get_args(Culled))}, got {culled!r}")
        self._culled: Culled = culled
        self._compiled = _paper.MultiIndexHashing(
            self._codes, self._n_bits, self._bitorder, self._m
        )

    def _run(
        self, costs: NDArray[np.float64], found: SearchResult, counts: NDArray[np.int64]
    ) -> None:
        self._compiled.search(costs, found.distances, found.ids, counts, self._culled)
