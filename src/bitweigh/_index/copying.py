"""Copies of an index: what two of them share never changes, so a copy takes microseconds."""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from bitweigh._index.changing import Changeable, survive_fork

__all__ = ["AnyCopyable", "Copyable"]

AnyCopyable = TypeVar("AnyCopyable", bound="Copyable")


class Copyable(Changeable):
    """Makes another index of its own class; `__init__` of that class may take anything."""

    _own_attributes: ClassVar[frozenset[str]]
    """Those of every index; a class derived from it may add others."""

    def copy(self) -> Self:
        """An index of its own with the same codes; changing one leaves the other as it is.

        Takes microseconds: the two share what neither has changed. Of a class derived from Index it
        is one of that class, with the attributes of this one.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> other = index.copy()
        >>> index.reset()
        >>> len(other)
        2

        """
        return self._as(type(self), vars(self))

    def __copy__(self) -> Self:
        """A copy."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """A copy, with deep copies of what a derived class has added."""
        made = self.copy()
        memo[id(self)] = made
        for name, value in self._added_attributes().items():
            setattr(made, name, copy.deepcopy(value, memo))
        return made

    def _as(self, cls: type[AnyCopyable], attributes: Mapping[str, Any]) -> AnyCopyable:
        """An index of this class, with these attributes and a lock of its own."""
        made = cls.__new__(cls)
        vars(made).update(attributes)
        made._growth = dataclasses.replace(self._growth)
        made._writing = threading.Lock()
        survive_fork(made)
        return made

    def _added_attributes(self) -> dict[str, Any]:
        return {name: own for name, own in vars(self).items() if name not in self._own_attributes}
