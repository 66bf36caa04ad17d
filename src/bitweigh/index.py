"""The index: checks arguments, owns the state, hands it to the engine."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import ArrayLike

from bitweigh import _core, machine
from bitweigh.bands import BandOptions
from bitweigh.checks import (
    BitOrder,
    Codes,
    as_bitorder,
    as_codes,
    as_ids,
    as_integer,
    as_n_bits,
)
from bitweigh.explain import Explanation, explanation_of
from bitweigh.growth import Growth
from bitweigh.results import Memory
from bitweigh.searching import METHODS, Method, Searchable
from bitweigh.segments import State

__all__ = ["Index"]

_MOST_BITS: int = _core.max_band_bits


class Index(Searchable):
    """Exact nearest binary codes under a weighted Hamming distance.

    A query is an array of costs: ``costs[i, v]`` is paid by a code whose bit i is v, and the
    distance is the sum. :mod:`bitweigh.costs` makes them from bit weights, float queries or plain
    Hamming distance. Answers are exact for every finite cost, equal distances go to the lowest id,
    and the result is the same to the last bit on every CPU and for any number of threads.

    Any number of threads may search while others add.

    Parameters
    ----------
    n_bits : int
        Bits of a code, 1 to 8192.
    bitorder : "big" or "little"
        Order of the bits inside a byte, as in ``np.packbits``.
    bands : int, optional
        How many times the rows are stored, each time sorted by other bits of the code, so that a
        search need not look at most of them. By default as many as the bits allow, at
        most 16, in at most half of the free memory.
    band_bits : int, optional
        Bits that each band is sorted by, at most 24. By default such that some 16 rows share them,
        or 4 where codes are long.
    memory_limit : int, optional
        Bytes that the index may take. Fewer bands are built where more would not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> index = bitweigh.Index(n_bits=4)
    >>> index.add(np.packbits([[0, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0]], axis=1))
    >>> query = np.array([0.9, -0.2, 0.1, -0.8])
    >>> distances, ids = index.search(bitweigh.costs.inner_product(query), k=2)
    >>> ids
    array([2, 1])

    """

    def __init__(
        self,
        n_bits: int,
        *,
        bitorder: BitOrder = "big",
        bands: int | None = None,
        band_bits: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        """Make an empty index."""
        self._n_bits = as_n_bits(n_bits)
        self._bitorder = as_bitorder(bitorder)
        self._growth = Growth(
            self._n_bits,
            self._bitorder,
            BandOptions(
                None if bands is None else as_integer(bands, "bands", 1, self._n_bits),
                None if band_bits is None else as_integer(band_bits, "band_bits", 1, _MOST_BITS),
                None
                if memory_limit is None
                else as_integer(memory_limit, "memory_limit", 0, 2**62),
            ),
        )
        self._state = State()
        self._writing = threading.Lock()
        # What never changes an answer; tests set it so that few rows reach every path.
        self._kernel = machine.KERNEL
        self._tuning = _core.Tuning()

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self._n_bits

    @property
    def bitorder(self) -> BitOrder:
        """Order of the bits inside a byte."""
        return self._bitorder

    def __len__(self) -> int:
        """Return the number of codes."""
        return self._state.rows

    def __repr__(self) -> str:
        """Say what the index holds."""
        return f"<bitweigh.Index: {len(self)} codes of {self._n_bits} bits, {self._bitorder}>"

    def add(self, codes: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Add codes.

        Parameters
        ----------
        codes : uint8 (n, n_bytes)
            Packed codes, ``np.packbits(bits, axis=1, bitorder=...)``; n_bytes is n_bits / 8
            rounded up. Unused bits of the last byte must be 0.
        ids : int64 (n,), optional
            Ids of your own, not negative and not used yet. By default the numbers from the largest
            id ever used plus one on, starting at 0.

        Raises
        ------
        TypeError, ValueError
            If an argument has the wrong dtype or shape, or an id is negative or repeated. Nothing
            has been added then.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=16)
        >>> index.add(np.zeros((3, 2), dtype=np.uint8))
        >>> index.add(np.ones((1, 2), dtype=np.uint8), ids=[1000])
        >>> len(index)
        4

        """
        packed = as_codes(codes, self._n_bits, self._bitorder)
        own_ids = None if ids is None else as_ids(ids)
        if own_ids is not None and len(own_ids) != len(packed):
            raise ValueError(
                f"ids must have shape ({len(packed)},), one for each code, got {own_ids.shape}"
            )
        if len(packed) == 0:
            return
        with self._writing:
            self._state = self._growth.with_rows(self._state, packed, own_ids)

    def build(self) -> None:
        """Build the bands of all rows that have none yet.

        A search does it when it first needs them, and then takes that much longer. Small indexes
        have no bands unless this is called: scanning them is as fast.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=16)
        >>> index.add(np.arange(5000, dtype=">u2").view(np.uint8).reshape(-1, 2))
        >>> index.build()

        """
        self._build(1)

    def explain(self, costs: ArrayLike, k: int, *, method: Method = "auto") -> Explanation:
        """Search for one query, and say how it was done and why.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2)
            One query.
        k, method
            As in `search`.

        Returns
        -------
        Explanation
            The plan, its reason, what was predicted and what was done. ``print`` it, or take
            ``as_dict()``.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.arange(100, dtype=np.uint8).reshape(-1, 1))
        >>> index.explain(np.ones((8, 2)), 3).plan
        'scan'

        """
        if np.ndim(costs) != 2:
            raise ValueError(f"costs must be one query, (n_bits, 2), got {np.shape(costs)}")
        state = self._state_for(method)
        _, stats = self.search(costs, k, threads=1, method=method, stats=True)
        return explanation_of(state, self._n_bits, self._growth.band_options, method, k, stats)

    def memory(self) -> Memory:
        """Bytes that the index takes, by part.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=64)
        >>> index.add(np.zeros((320, 8), dtype=np.uint8))
        >>> index.memory().codes
        2560
        >>> index.memory().total
        3840

        """
        parts = [part.memory() for part in self._state.parts()]
        return (
            Memory(*(sum(own) for own in zip(*parts, strict=True))) if parts else Memory(*[0] * 6)
        )

    def _build(self, least_rows: int) -> State:
        with self._writing:
            self._state = self._growth.with_bands(self._state, least_rows)
            return self._state

    def _state_for(self, method: Method) -> State:
        """The state, with the bands that the method uses."""
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
        state = self._state
        if method == "scan":
            return state
        least = 1 if method == "probe" else self._growth.banded_rows
        return state if state.unbanded_rows < least else self._build(least)

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
        wanted = as_ids(ids)
        codes = np.empty((len(wanted), (self._n_bits + 7) // 8), dtype=np.uint8)
        missing = np.ones(len(wanted), dtype=np.bool_)
        for part in self._state.parts():
            rows, here = part.find(wanted)
            codes[here] = part.codes(rows[here])
            missing &= ~here
        if missing.any():
            raise KeyError(int(wanted[missing][0]))
        return codes
