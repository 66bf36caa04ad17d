"""A document: the text that is shown and the text that is embedded."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Document"]


class Document(NamedTuple):
    """A document that can be found."""

    name: str
    """A short name; may be empty."""
    text: str
    """A one-line description."""
    more: str = ""
    """Further text, embedded but not shown."""

    @property
    def embedded(self) -> str:
        """The text that the model embeds."""
        named = f"{self.name}: {self.text}" if self.name else self.text
        return f"{named} {self.more}" if self.more else named
