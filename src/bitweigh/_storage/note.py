"""Notes: a small JSON object of the caller's that is saved with an index, in its manifest.

In memory a note is the JSON text in which it is written, so that nobody can change it; "" stands
for no note.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["MAX_NOTE_BYTES", "NO_NOTE", "note_from", "note_text"]

NO_NOTE = ""
MAX_NOTE_BYTES = 1 << 16
_MAX_DEPTH = 32
_MAX_INTEGER = 2**63
_ALLOWED = "objects, lists, strings, numbers, booleans and None"


def note_text(note: Mapping[str, Any]) -> str:
    """The text of a note; raises TypeError or ValueError if it is not one."""
    if not isinstance(note, dict):
        raise TypeError(f"note must be a dict or None, got {type(note).__name__}")
    _check(note, "note", 1)
    if not note:
        return NO_NOTE
    # As it is written in a manifest, one level deeper than by itself.
    size = len(json.dumps({"note": note}, indent=1))
    if size > MAX_NOTE_BYTES:
        raise ValueError(
            f"note must take at most {MAX_NOTE_BYTES} bytes as indented JSON, takes {size}"
        )
    return json.dumps(note)


def note_from(text: str) -> dict[str, Any]:
    """The note of a text, which the caller may change."""
    note: dict[str, Any] = json.loads(text) if text else {}
    return note


def _check(value: object, where: str, depth: int) -> None:
    """Raise for anything that JSON cannot hold, or that reading would change."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"note must be nested at most {_MAX_DEPTH} deep")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} must have strings as keys, got {key!r:.80}")
            _check(item, f"{where}[{key!r:.80}]", depth + 1)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _check(item, f"{where}[{i}]", depth + 1)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} must be finite, got {value}")
    elif isinstance(value, int):
        if not -_MAX_INTEGER <= value < _MAX_INTEGER:
            raise ValueError(f"{where} must fit in 64 bits, got {value!r:.80}")
    elif not (value is None or isinstance(value, str)):
        raise TypeError(f"{where} must be of {_ALLOWED}, got {type(value).__name__}")
