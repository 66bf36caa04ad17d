"""JSON objects that contain their own checksum.

The checksum is the XXH3 of all bytes with 32 zeros in its place. It is checked before the JSON is
parsed: parsing may take far more memory than there are bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from bitweigh._storage.arrays import digest_of

__all__ = ["matching_checksum", "seal"]

_NO_CHECKSUM = "0" * 32
_CHECKSUM = re.compile(rb'"checksum": "([0-9a-f]{32})"')


def seal(head: Mapping[str, Any], fields: Mapping[str, Any]) -> bytes:
    """The bytes of an object with these fields, and its checksum between head and fields."""
    body = {**head, "checksum": _NO_CHECKSUM, **fields}
    blank = (json.dumps(body, indent=1) + "\n").encode()
    return _with_checksum(blank, digest_of(blank))


def matching_checksum(raw: bytes) -> str | None:
    """The checksum in these bytes if it is theirs, else None."""
    found = _CHECKSUM.search(raw)
    if found is None or digest_of(_with_checksum(raw, _NO_CHECKSUM)) != found[1].decode():
        return None
    return found[1].decode()


def _with_checksum(raw: bytes, checksum: str) -> bytes:
    """The object with its checksum replaced by another."""
    return _CHECKSUM.sub(b'"checksum": "' + checksum.encode() + b'"', raw, count=1)
