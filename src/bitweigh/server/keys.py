"""API keys: 256 random bits each, kept as SHA-256 hashes in a file that only the owner can read.

A slow hash would add nothing: a key has full entropy. Keys are looked up by their hash, so the
time does not depend on how much of a wrong key is right.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from bitweigh._disk.writing import sync_folder
from bitweigh.errors import CorruptFileError

__all__ = ["Key", "KeyFile", "Scope"]

Scope = Literal["read", "write", "admin"]
_RANKS = {scope: rank for rank, scope in enumerate(get_args(Scope))}
_PREFIX = "bw_"
# Seconds between two looks whether the file has changed.
_LOOK_SECONDS = 1.0
_logger = logging.getLogger("bitweigh.server")


@dataclass(frozen=True, slots=True)
class Key:
    """What a key may do."""

    name: str
    scope: Scope
    collections: tuple[str, ...]
    """Those it is for; empty for all."""
    sha256: str
    created: str

    def allows(self, scope: Scope, collection: str | None) -> bool:
        """Whether it may do something in a collection, or with None in all of them."""
        return _RANKS[self.scope] >= _RANKS[scope] and (
            not self.collections or (collection is not None and collection in self.collections)
        )


class KeyFile:
    """The keys of a server. The server reads the file again when it changes."""

    def __init__(self, path: Path) -> None:
        """Read the file, if there is one."""
        self._path = path
        self._stamp: object = None
        self._keys: dict[str, Key] = {}
        self._looked = 0.0
        self._had_any = False
        self._read()

    def __len__(self) -> int:
        """The number of keys."""
        self._look()
        return len(self._keys)

    @property
    def had_any(self) -> bool:
        """Whether there were keys since this object was made: without them now, nobody has one."""
        self._look()
        return self._had_any

    def find(self, secret: str) -> Key | None:
        """The key with this secret."""
        self._look()
        return self._keys.get(_hash(secret))

    def listed(self) -> list[Key]:
        """All keys, oldest first."""
        return list(self._keys.values())

    def add(self, name: str, scope: Scope, collections: Iterable[str] = ()) -> str:
        """Create a key; return its secret, which is not kept."""
        if scope not in _RANKS:
            raise ValueError(f"scope must be one of {', '.join(_RANKS)}, got {scope!r}")
        if not name or len(name) > 100:
            raise ValueError("name must have 1 to 100 characters")
        if any(key.name == name for key in self._keys.values()):
            raise ValueError(f"there is a key {name!r} already")
        secret = _PREFIX + secrets.token_urlsafe(32)
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        key = Key(name, scope, tuple(collections), _hash(secret), created)
        self._write([*self._keys.values(), key])
        return secret

    def revoke(self, name: str) -> None:
        """Delete a key; KeyError if there is none with this name."""
        kept = [key for key in self._keys.values() if key.name != name]
        if len(kept) == len(self._keys):
            raise KeyError(f"there is no key {name!r}")
        self._write(kept)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked > _LOOK_SECONDS:
            self._looked = now
            try:
                self._read()
            except (CorruptFileError, OSError) as error:
                _logger.error("the keys of before stay valid: %s", error)

    def _read(self) -> None:
        try:
            facts = self._path.stat()
        except FileNotFoundError:
            self._keys, self._stamp = {}, None
            return
        stamp = (facts.st_mtime_ns, facts.st_ino, facts.st_size)
        if stamp == self._stamp:
            return
        try:
            listed = json.loads(self._path.read_text())["keys"]
            keys = [Key(**{**one, "collections": tuple(one["collections"])}) for one in listed]
            if any(key.scope not in _RANKS for key in keys):
                raise ValueError("unknown scope")
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFileError(self._path, f"is not a file of keys: {error}") from error
        self._keys, self._stamp = {key.sha256: key for key in keys}, stamp
        self._had_any = self._had_any or bool(keys)

    def _write(self, keys: list[Key]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        staged = self._path.with_suffix(".new")
        staged.unlink(missing_ok=True)
        file = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w") as opened:
            json.dump({"keys": [asdict(key) for key in keys]}, opened, indent=1)
            opened.flush()
            os.fsync(opened.fileno())
        staged.rename(self._path)
        sync_folder(self._path.parent)
        self._read()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
