"""Queries that are codes: their costs are computed block by block, never for all at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _core
from bitweigh._checks import as_query_costs
from bitweigh.costs import check_weights_fit, expanded, packed_queries, weight_pairs
from bitweigh.typing import BitOrder, Codes

__all__ = ["CodeQueries"]

# Costs of a block, 4 MiB: many queries are faster together, and the costs stay in the cache.
_BLOCK_COSTS = 2**19
# The same for a call with a deadline: less than a millisecond of NumPy.
_DEADLINE_BLOCK_COSTS = 2**16


class CodeQueries:
    """Packed queries with weights, which nobody else can change."""

    def __init__(
        self, queries: ArrayLike, weights: ArrayLike | None, n_bits: int, bitorder: BitOrder
    ) -> None:
        """Check packed queries (n_bytes,) or (nq, n_bytes), and weights as `from_weights` does.

        Without weights each differing bit costs 1.
        """
        packed, self.single = packed_queries(queries, n_bits, bitorder)
        pairs = weight_pairs(np.ones(n_bits) if weights is None else weights)
        if pairs.shape[-2] != n_bits:
            raise ValueError(
                f"weights must have shape ({n_bits},), ({n_bits}, 2) or (nq, {n_bits}, 2), "
                f"got {np.shape(weights)}"  # type: ignore[arg-type]
            )
        check_weights_fit(pairs, pairs.shape, len(packed), self.single)
        finite = np.isfinite(pairs)
        if not finite.all():
            place = np.argwhere(~finite)[0]
            raise ValueError(f"every weight must be finite, got {pairs[tuple(place)]}")
        self._packed: Codes = packed.copy()
        self._pairs = pairs.copy()
        self._bitorder = bitorder

    def __len__(self) -> int:
        """The number of queries."""
        return len(self._packed)

    def blocks(
        self, deadline: _core.Deadline | None
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield the positions and the costs (m, n_bits, 2) of one block after the other."""
        at_once = _BLOCK_COSTS if deadline is None else _DEADLINE_BLOCK_COSTS
        n_bits = self._pairs.shape[-2]
        step = max(1, at_once // (2 * n_bits))
        for first in range(0, len(self), step):
            block = slice(first, first + step)
            pairs = self._pairs[block] if self._pairs.ndim == 3 else self._pairs
            costs = expanded(self._packed[block], pairs, self._bitorder)
            yield block, as_query_costs(costs, n_bits)
