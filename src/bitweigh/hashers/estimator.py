"""scikit-learn's conventions of parameters, without scikit-learn.

A parameter is an argument of ``__init__``, which only stores it; values are checked by `fit`. What
`fit` learns ends in an underscore. `n_bits_` is there once an object is fitted.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

__all__ = ["Estimator"]


class Estimator:
    """Parameters by name, a short repr, and the error for what is not fitted yet."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 scikit-learn's
        """The parameters by name; `deep` changes nothing, as no parameter is an estimator.

        Examples
        --------
        >>> from bitweigh.weighers import Asym
        >>> Asym().get_params()
        {'variant': 'expectation'}

        """
        return {name: getattr(self, name) for name in _defaults(type(self))}

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 of every kind
        """Change parameters by name; what is fitted already stays as it is.

        Examples
        --------
        >>> from bitweigh.hashers import LSH
        >>> LSH(32).set_params(n_bits=64)
        LSH(n_bits=64)

        """
        known = list(_defaults(type(self)))
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
            for name, default in _defaults(type(self)).items()
            if repr(getattr(self, name)) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _need_fitted(self) -> None:
        if not hasattr(self, "n_bits_"):
            raise _not_fitted_error()(
                f"This {type(self).__name__} instance is not fitted yet: call fit first"
            )


class _NotFittedError(ValueError, AttributeError):
    """The twin of scikit-learn's NotFittedError, for where scikit-learn is not installed."""


def _not_fitted_error() -> type[Exception]:
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return _NotFittedError
    return NotFittedError  # type: ignore[no-any-return]


def _defaults(cls: type) -> dict[str, Any]:
    parameters = inspect.signature(cls).parameters
    return {name: parameter.default for name, parameter in parameters.items()}
