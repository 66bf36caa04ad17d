"""scikit-learn's conventions of parameters, without scikit-learn.

A parameter is an argument of ``__init__``, which only stores it; values are checked by `fit`. What
`fit` learns ends in an underscore. `n_bits_` is there once an object is fitted.
"""

from __future__ import annotations

import inspect
import os
from typing import Any, ClassVar, Self, TypeAlias

__all__ = ["Estimator", "Shape", "defaults", "not_fitted_error"]

Shape: TypeAlias = tuple[str | int | None, ...]
"""Of a learned array: numbers, names of counts, None for any length."""


class Estimator:
    """Parameters by name, a short repr, a file, and the error for what is not fitted yet."""

    # What `fit` learns, for the file: numbers of things, and arrays of float64. A class that can
    # be saved lists its arrays itself, so that nothing derived from it is taken for it.
    _counts: ClassVar[tuple[str, ...]] = ("n_bits_",)
    _learned: ClassVar[dict[str, Shape]]
    # What an array is called in the file, where that is not the name of the attribute.
    _stored_names: ClassVar[dict[str, str]] = {}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 scikit-learn's
        """The parameters by name; `deep` changes nothing, as no parameter is an estimator.

        Examples
        --------
        >>> from bitweigh.weighers import Asym
        >>> Asym().get_params()
        {'variant': 'expectation'}

        """
        return {name: getattr(self, name) for name in defaults(type(self))}

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 of every kind
        """Change parameters by name; what is fitted already stays as it is until the next `fit`.

        But for `bitorder`, the order in which bits are packed: nothing is learned for it.

        Examples
        --------
        >>> from bitweigh.hashers import LSH
        >>> LSH(32).set_params(n_bits=64)
        LSH(n_bits=64)

        """
        known = list(defaults(type(self)))
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}, it has: {', '.join(known)}"
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The class with the parameters that are not at their default."""
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name, default in defaults(type(self)).items()
            if repr(getattr(self, name)) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save what was learned to a file, .npz without pickle; `load` of the same module reads it.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from bitweigh import hashers
        >>> hasher = hashers.LSH(16).fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hasher.save(Path(folder) / "hasher.npz")
        ...     hashers.load(Path(folder) / "hasher.npz")
        LSH(n_bits=16)

        """
        from bitweigh.hashers import _files

        _files.write(self, path)

    def _fitted_params(self) -> dict[str, Any]:
        """The parameters that what was learned goes with, for the file."""
        return self.get_params()

    def _sizes(self) -> dict[str, Shape]:
        """The arrays that these parameters make `fit` learn."""
        return self._learned

    def _need_fitted(self) -> None:
        if not hasattr(self, "n_bits_"):
            raise not_fitted_error()(
                f"This {type(self).__name__} instance is not fitted yet: call fit first"
            )


class _NotFittedError(ValueError, AttributeError):
    """The twin of scikit-learn's NotFittedError, for where scikit-learn is not installed."""


def not_fitted_error() -> type[Exception]:
    """scikit-learn's NotFittedError, or its twin."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return _NotFittedError
    return NotFittedError  # type: ignore[no-any-return]


def defaults(cls: type) -> dict[str, Any]:
    """The parameters of a class with their defaults, `inspect`'s own mark where there is none."""
    parameters = inspect.signature(cls).parameters
    return {name: parameter.default for name, parameter in parameters.items()}
