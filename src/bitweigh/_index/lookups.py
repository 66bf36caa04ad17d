"""What an index holds, by id: which ids there are, their codes, and the neighbours of those."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import MAX_K, as_costs, as_ids, as_integer
from bitweigh._index.searching import Searchable, nearest
from bitweigh._index.state import State
from bitweigh._results import SearchResult
from bitweigh.costs import from_weights
from bitweigh.typing import Codes, Ids, Method

__all__ = ["Lookups"]

_LARGEST_ID = 2**63 - 1


class Lookups(Searchable):
    """Looks up ids in whatever state there is."""

    _state: State

    @property
    def ids(self) -> Ids:
        """All ids in ascending order, int64 (n,)."""
        ids = [part.segment.ids_of(part.rows()) for part in self._state.parts()]
        return np.sort(np.concatenate(ids)) if ids else np.empty(0, dtype=np.int64)

    def codes_of(self, ids: ArrayLike) -> Codes:
        """Get codes back by id.

        Parameters
        ----------
        ids : int64 (n,)
            Ids in any order; the same one may stand there twice.

        Returns
        -------
        uint8 (n, n_bytes)

        Raises
        ------
        KeyError
            If an id is not in the index; it names the first such.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2], [3]], dtype=np.uint8))
        >>> index.codes_of([2, 0])
        array([[3],
               [1]], dtype=uint8)

        """
        return self._codes_in(self._state, as_ids(ids))

    def _codes_in(self, state: State, wanted: Ids) -> Codes:
        places = state.locate(wanted)
        if not places.found.all():
            raise KeyError(int(wanted[np.argmin(places.found)]))
        codes = np.empty((len(wanted), (self._n_bits + 7) // 8), dtype=np.uint8)
        for number, part in enumerate(state.parts()):
            here = places.numbers == number
            codes[here] = part.segment.codes(places.rows[here])
        return codes

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are codes with these ids; ``id in index`` asks for one.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8), ids=[10, 20])
        >>> index.contains([20, 30])
        array([ True, False])
        >>> 10 in index
        True

        """
        return self._state.locate(as_ids(ids)).found

    def __contains__(self, id: object) -> bool:  # noqa: A002
        """Whether there is a code with this id."""
        try:
            number = as_integer(id, "id", 0, _LARGEST_ID)
        except (TypeError, ValueError):
            return False
        return bool(self._state.locate(np.array([number])).found[0])

    def search_by_id(
        self,
        ids: ArrayLike,
        k: int,
        *,
        weights: ArrayLike | None = None,
        include_self: bool = False,
        threads: int | None = None,
        method: Method = "auto",
    ) -> SearchResult:
        """Find the k codes nearest to codes that are in the index, by a weighted Hamming distance.

        Parameters
        ----------
        ids : int or int64 (n,)
            Whose neighbours to look for.
        k : int
            How many neighbours, at least 1.
        weights : float (n_bits,), optional
            What each bit that differs costs; 1 by default.
        include_self : bool
            Whether a code counts as its own neighbour.
        threads, method
            As in `search`.

        Returns
        -------
        SearchResult
            As `search` returns it; ``(k,)`` for a single id.

        Raises
        ------
        KeyError
            If an id is not in the index; it names the first such.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[0], [255], [1]], dtype=np.uint8))
        >>> index.search_by_id(0, k=1)
        SearchResult(distances=array([1.]), ids=array([2]))

        """
        more = 0 if include_self else 1
        k = as_integer(k, "k", 1, MAX_K - more)
        single = np.ndim(ids) == 0
        wanted = as_ids([ids] if single else ids)
        if weights is not None and np.shape(weights) != (self._n_bits,):
            raise ValueError(f"weights must have shape ({self._n_bits},), got {np.shape(weights)}")
        state = self._state_for(method)
        codes = self._codes_in(state, wanted)
        costs = from_weights(
            codes, np.ones(self._n_bits) if weights is None else weights, bitorder=self._bitorder
        )
        checked, _ = as_costs(costs, self._n_bits)
        ask = self._ask(checked, False, threads, method, None, None, state)
        (distances, found), _ = nearest(ask, k + more)
        if more:
            # The others keep their order, whether the code itself is among them or too far behind
            # codes that are equal to it.
            own = found == wanted[:, np.newaxis]
            own[~own.any(axis=1), -1] = True
            distances, found = (array[~own].reshape(-1, k) for array in (distances, found))
        return SearchResult(distances[0], found[0]) if single else SearchResult(distances, found)
