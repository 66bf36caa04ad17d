"""Imports of optional packages."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["optional"]


def optional(name: str, extra: str = "frames") -> ModuleType:
    """Import a package of an extra; ImportError says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ImportError(
            f"this needs {package}: pip install 'bitweigh[{extra}]'", name=package
        ) from None
