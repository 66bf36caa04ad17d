"""Help texts whose examples can be pasted: their lines stay as they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable

__all__ = ["pasteable"]


def pasteable(command: Callable[..., object]) -> str:
    """The help of a command out of its docstring; the lines of an example are not joined."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    # The first character tells typer not to join the lines of a paragraph.
    return "\n\n".join(
        f"\b\n{one}" if one.startswith("Example") and "\n" in one else one for one in paragraphs
    )
