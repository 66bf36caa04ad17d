"""Filters that were evaluated, kept for as long as nothing changes."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np

import bitweigh
from bitweigh.server.payload_filters import Condition
from bitweigh.server.record import Reader

__all__ = ["KeptFilters"]

_MAX_KEPT = 64


class KeptFilters:
    """The ids that meet a condition, by condition; those of older changes are dropped."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._seq = -1
        self._kept: OrderedDict[Condition, bitweigh.Filter] = OrderedDict()

    def of(
        self, reader: Reader, seq: int, condition: Condition, deadline: float
    ) -> bitweigh.Filter:
        """The filter of a condition; `reader` must be pinned to that change.

        Raises DeadlineError if it takes until `deadline`, by time.monotonic().
        """
        with self._lock:
            if seq == self._seq and condition in self._kept:
                self._kept.move_to_end(condition)
                return self._kept[condition]
        with reader.until(deadline):
            ids = np.fromiter(reader.matching(*condition), np.int64)
        found = bitweigh.Filter(allow=ids)
        with self._lock:
            if seq > self._seq:
                self._kept.clear()
                self._seq = seq
            if seq == self._seq:
                self._kept[condition] = found
                if len(self._kept) > _MAX_KEPT:
                    self._kept.popitem(last=False)
        return found
