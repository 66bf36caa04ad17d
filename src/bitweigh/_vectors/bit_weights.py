"""What the index of the codes is told about its bits: how much they weigh for usual queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitweigh._index.evidence import CostsOfCodes
from bitweigh.hashers._base import Hasher
from bitweigh.index import Index
from bitweigh.typing import Codes
from bitweigh.weighers import Decoded
from bitweigh.weighers._base import Weigher

__all__ = ["costs_of_codes", "know_bits"]


def know_bits(index: Index, hasher: Hasher, weigher: Weigher) -> None:
    """Let an index choose the bits of its bands by what codes stand for, if that is known."""
    index._policy.costs_of_codes = costs_of_codes(hasher, weigher)


def costs_of_codes(hasher: Hasher, weigher: Weigher) -> CostsOfCodes | None:
    """Makes queries from codes, or None where bits are alike or codes stand for nothing."""
    if not isinstance(weigher, Decoded):
        return None

    def costs(codes: Codes) -> NDArray[np.float64]:
        projected = hasher._projected_codes(codes)
        assert projected is not None
        return weigher._costs_block(projected)

    return costs
