"""scikit-learn's parameter conventions, without scikit-learn.

A parameter is an argument of ``__init__``, which only stores it; `fit` checks its value. Attributes
that `fit` learns end in an underscore. An object is fitted once it has `n_bits_`.
"""

from __future__ import annotations

import inspect
import os
from typing import Any, ClassVar, Self, TypeAlias

__all__ = ["Estimator", "Shape", "defaults", "not_fitted_error"]

Shape: TypeAlias = tuple[str | int | None, ...]
"""The shape of a learned array: numbers, names of counts, or None for any length."""


class Estimator:
    """The base of hashers and weighers: parameters, repr, saving, the check for being fitted."""

    # What `fit` learns, for the file: integers and float64 arrays. A class can be saved only if it
    # defines `_learned` itself, so that a subclass is not mistaken for its base.
    _counts: ClassVar[tuple[str, ...]] = ("n_bits_",)
    _learned: ClassVar[dict[str, Shape]]
    # Names of arrays in the file, where they differ from the name of the attribute.
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

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 of any type
        """Change parameters by name; they take effect at the next `fit`.

        `bitorder` takes effect at once: it only says how bits are packed.

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
        """The class and those parameters that differ from their defaults."""
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name, default in defaults(type(self)).items()
            if repr(getattr(self, name)) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to an .npz file without pickle; `hashers.load` or `weighers.load` reads it.

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
        """The parameters to save with what was learned."""
        return self.get_params()

    def _sizes(self) -> dict[str, Shape]:
        """The shapes of the arrays that `fit` learns with these parameters."""
        return self._learned

    def _check_loaded(self) -> None:
        """Complete what was read from a file; ValueError if its parts do not fit each other."""

    def _need_fitted(self) -> None:
        if not hasattr(self, "n_bits_"):
            raise not_fitted_error()(
                f"This {type(self).__name__} instance is not fitted yet: call fit first"
            )


class _NotFittedError(ValueError, AttributeError):
    """A stand-in for scikit-learn's NotFittedError if scikit-learn is not installed."""


def not_fitted_error() -> type[Exception]:
    """scikit-learn's NotFittedError, or its stand-in."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return _NotFittedError
    return NotFittedError  # type: ignore[no-any-return]


def defaults(cls: type) -> dict[str, Any]:
    """The parameters of a class and their defaults, `inspect.Parameter.empty` for none."""
    parameters = inspect.signature(cls).parameters
    return {name: parameter.default for name, parameter in parameters.items()}
