"""A document: what is shown of it, and what is embedded."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Document"]


class Document(NamedTuple):
    """One thing that can be found."""

    name: str
    """What it is called; may be empty."""
    text: str
    """One line about it."""
    more: str = ""
    """More about it, not shown."""

    @property
    def embedded(self) -> str:
        """What the model reads."""
        named = f"{self.name}: {self.text}" if self.name else self.text
        return f"{named} {self.more}" if self.more else named
