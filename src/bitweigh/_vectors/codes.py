"""The codes of a vector index, as its callers see them."""

from __future__ import annotations

from typing import Any, NoReturn

from bitweigh.index import Index

__all__ = ["HeldCodes", "held_codes"]


class HeldCodes(Index):
    """The codes that a `VectorIndex` holds at one moment: an `Index` whose codes cannot be changed.

    They belong to vectors, which would not follow. Everything else works, and what `build` builds
    serves the `VectorIndex` too. A `copy` is an `Index` of its own, to do with as one likes.
    """

    def copy(self) -> Index:  # type: ignore[override]
        """An index of its own, which can be changed."""
        return self._as(Index, vars(self))

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Pickled as a copy."""
        return self.copy().__reduce__()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:  # noqa: ANN401
        raise TypeError(
            "these codes belong to a VectorIndex: change that, or a copy() of these, which is an "
            "Index of its own"
        )

    add = replace = remove = merge = reset = _refuse


def held_codes(index: Index) -> HeldCodes:
    """The same codes as those of a vector index."""
    return index._as(HeldCodes, vars(index))
