"""What can be done to an index: adding, removing and replacing codes, and tidying up."""

from __future__ import annotations

import os
import threading
import time
import weakref

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_choice, as_codes, as_ids
from bitweigh._index.growth import Growth, first_repeated
from bitweigh._index.state import State
from bitweigh.typing import BitOrder, Codes, Ids, OnDuplicate, OnMissing

__all__ = [
    "Changeable",
    "OnDuplicate",
    "OnMissing",
    "check_distinct",
    "not_new",
    "survive_fork",
]


class Changeable:
    """Changes a state that others may be reading: it is replaced in one step.

    One thread changes it at a time. Readers never wait, and see the state before or after.
    """

    _n_bits: int
    _bitorder: BitOrder
    _growth: Growth
    _state: State
    _writing: threading.Lock

    def add(
        self,
        codes: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        on_duplicate: OnDuplicate = "error",
    ) -> None:
        """Add codes.

        Parameters
        ----------
        codes : uint8 (n, n_bytes)
            Packed codes, ``np.packbits(bits, axis=1, bitorder=...)``; n_bytes is n_bits / 8
            rounded up. Unused bits of the last byte must be 0.
        ids : int64 (n,), optional
            Ids of your own, not negative and distinct. By default the numbers from the largest id
            ever used plus one on, starting at 0.
        on_duplicate : "error" or "replace"
            What to do where an id is in the index already: refuse all codes, or replace the code
            that has it.

        Raises
        ------
        TypeError, ValueError
            If an argument has the wrong dtype or shape, or an id is negative, repeated or in use.
            Nothing has been added then.

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
        replacing = as_choice(on_duplicate, "on_duplicate", ("error", "replace")) == "replace"
        packed, own_ids = self._rows(codes, ids)
        if len(packed) == 0:
            return
        with self._writing:
            state = self._state
            if own_ids is not None:
                found = state.locate(own_ids).found
                if found.any():
                    if not replacing:
                        raise not_new(own_ids, found, "code")
                    state = _without(state, own_ids, True)
            self._state = self._growth.with_rows(state, packed, own_ids)

    def replace(self, ids: ArrayLike, codes: ArrayLike) -> None:
        """Give new codes to ids that are in the index, all in one step.

        Parameters
        ----------
        ids : int64 (n,)
            Distinct ids.
        codes : uint8 (n, n_bytes)
            Packed codes, as in `add`.

        Raises
        ------
        KeyError
            If an id is not in the index; it names the first such. Nothing has been replaced then.
        TypeError, ValueError
            As in `add`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8), ids=[10, 20])
        >>> index.replace([20], np.array([[5]], dtype=np.uint8))
        >>> index.codes_of([10, 20])
        array([[1],
               [5]], dtype=uint8)

        """
        if ids is None:
            raise TypeError("ids must be those of the codes to replace, got None; `add` adds codes")
        packed, own_ids = self._rows(codes, ids)
        if own_ids is None or len(own_ids) == 0:
            return
        with self._writing:
            left = _without(self._state, own_ids, False)
            self._state = self._growth.with_rows(left, packed, own_ids)

    def remove(self, ids: ArrayLike, *, missing: OnMissing = "error") -> int:
        """Remove codes by id. Takes microseconds for a few; no other id changes.

        Memory is given back by `compact`, or when later codes are added.

        Parameters
        ----------
        ids : int64 (n,)
            Ids in any order.
        missing : "error" or "ignore"
            What to do where an id is not in the index.

        Returns
        -------
        int
            How many codes were removed.

        Raises
        ------
        KeyError
            If an id is not in the index; it names the first such. Nothing has been removed then.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2], [3]], dtype=np.uint8))
        >>> index.remove([1])
        1
        >>> index.ids
        array([0, 2])

        """
        may_miss = as_choice(missing, "missing", ("error", "ignore")) == "ignore"
        wanted = as_ids(ids)
        with self._writing:
            before = self._state
            self._state = _without(before, wanted, may_miss)
            return before.rows - self._state.rows

    def merge(self, other: Changeable, *, on_duplicate: OnDuplicate = "error") -> None:
        """Add all codes of another index, with their ids, in one step.

        Parameters
        ----------
        other : Index
            Of as many bits in the same order; it stays as it is.
        on_duplicate : "error" or "replace"
            As in `add`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index, more = bitweigh.Index(n_bits=8), bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> more.add(np.array([[3]], dtype=np.uint8), ids=[7])
        >>> index.merge(more)
        >>> index.ids
        array([0, 1, 7])

        """
        if not isinstance(other, Changeable):
            raise TypeError(f"other must be an Index, got {type(other).__name__}")
        if (other._n_bits, other._bitorder) != (self._n_bits, self._bitorder):
            raise ValueError(
                f"other must have codes of {self._n_bits} bits, {self._bitorder}, got "
                f"{other._n_bits} bits, {other._bitorder}"
            )
        parts = [part.codes_and_ids() for part in other._state.parts()]
        if parts:
            codes, ids = (np.concatenate(own) for own in zip(*parts, strict=True))
            self.add(codes, ids, on_duplicate=on_duplicate)

    def reset(self) -> None:
        """Remove everything: the index is as a new one, and counts ids from 0 again.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> index.reset()
        >>> len(index)
        0

        """
        with self._writing:
            self._state = State()

    def compact(self) -> None:
        """Put all codes into as few segments as can hold them, and let go of what was removed.

        Worth it after many removals or small adds. Others may search meanwhile, and see the same
        codes. Needs memory for a second copy of the index while it runs.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.arange(100, dtype=np.uint8).reshape(-1, 1))
        >>> index.remove(range(90))
        90
        >>> index.compact()
        >>> index.memory().removed
        0

        """
        with self._writing:
            had_bands = any(part.segment.bands for part in self._state.parts())
            compacted = self._growth.compacted(self._state)
            self._state = self._growth.with_bands(compacted, 1) if had_bands else compacted

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
        with self._writing:
            self._state = self._growth.with_bands(self._state, 1)

    def _state_with_bands(self, least_rows: int) -> State:
        """The state, with bands for parts of so many rows unless somebody is changing it.

        A search does not wait for others: it scans what has no bands yet.
        """
        state = self._state
        if state.unbanded_rows < least_rows or time.monotonic() < state.bands_wait_until:
            return state
        # Ctrl-C is seen between calls: an `acquire()` of our own could return, and its answer be
        # lost, before a `try` knows that the lock is taken. Unpacking is not a call.
        writing = self._writing
        attempt = map(writing.acquire, (False,))
        taken = False
        try:
            (taken,) = attempt
            if taken:
                state = self._state = self._growth.with_bands(self._state, least_rows)
            return state
        finally:
            if taken:
                writing.release()

    def _rows(self, codes: ArrayLike, ids: ArrayLike | None) -> tuple[Codes, Ids | None]:
        """Codes and ids that fit each other, checked."""
        packed = as_codes(codes, self._n_bits, self._bitorder)
        own_ids = None if ids is None else as_ids(ids)
        if own_ids is None:
            return packed, None
        if len(own_ids) != len(packed):
            raise ValueError(
                f"ids must have shape ({len(packed)},), one for each code, got {own_ids.shape}"
            )
        check_distinct(own_ids)
        return packed, own_ids


def check_distinct(ids: Ids) -> None:
    """Raise ValueError for an id that stands there twice."""
    repeated = first_repeated(ids)
    if repeated is not None:
        place, first = repeated
        raise ValueError(
            f"ids must be distinct, but ids[{place}] = {ids[place]} is the same as ids[{first}]"
        )


def not_new(ids: Ids, used: NDArray[np.bool_], what: str) -> ValueError:
    """The error for ids that are in use; `what` is what they are the ids of."""
    place = int(np.argmax(used))
    return ValueError(
        f"ids must be new, but ids[{place}] = {ids[place]} is in use; on_duplicate='replace' "
        f"replaces its {what}"
    )


def _without(state: State, ids: Ids, may_miss: bool) -> State:
    """The state without these ids; raises KeyError for the first that it does not have."""
    left = state.without(ids, may_miss)
    if left is None:
        raise KeyError(int(ids[np.argmin(state.locate(ids).found)]))
    return left


# A fork copies a lock that another thread holds, and that thread is not there to release it.
_alive: weakref.WeakSet[Changeable] = weakref.WeakSet()


def survive_fork(index: Changeable) -> None:
    """Let a forked child change the index, whatever other threads were doing to it."""
    _alive.add(index)


def _renew_locks() -> None:
    for index in _alive:
        index._writing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
