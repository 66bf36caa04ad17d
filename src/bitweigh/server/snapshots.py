"""Snapshots: a collection as one tar file, and back.

A snapshot has a copy of the record, and the checkpoint of the index if there is one: hashers are in
that. Restoring it is opening it: what the checkpoint lacks is applied from the record.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from bitweigh._disk.writing import sync_folder
from bitweigh.server.collection import Collection
from bitweigh.server.problems import Problem, is_full
from bitweigh.server.store import Store

__all__ = ["delete_snapshot", "list_snapshots", "restore", "snapshot_path", "take_snapshot"]

_MAX_MEMBERS = 100_000
# Python reads such headers into memory: names, times.
_HEADERS = {tarfile.XHDTYPE}
_FILES = {tarfile.REGTYPE, tarfile.AREGTYPE}
_MAX_HEADER_BYTES = 1 << 16
_logger = logging.getLogger("bitweigh.server")
_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9]+\.tar")


def take_snapshot(store: Store, collection: Collection) -> dict[str, Any]:
    """Write a snapshot; returns its name, size and last change."""
    folder = store.folder / "snapshots" / collection.name
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".taking-", dir=folder) as staged:
        seq = collection.copy_to(Path(staged))
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        tar = Path(staged) / "snapshot.tar"
        with tarfile.open(tar, "w") as archive:
            for part in sorted(Path(staged).iterdir()):
                if part != tar:
                    archive.add(part, part.name)
        path = folder / f"{stamp}-{seq}.tar"
        with tar.open("rb") as written:
            os.fsync(written.fileno())
        tar.rename(path)
        sync_folder(folder)
    return _facts(path)


def list_snapshots(store: Store, name: str) -> list[dict[str, Any]]:
    """All snapshots of a collection, oldest first."""
    folder = store.folder / "snapshots" / name
    if not folder.is_dir():
        return []
    return [_facts(path) for path in sorted(folder.iterdir()) if _NAME.fullmatch(path.name)]


def _facts(path: Path) -> dict[str, Any]:
    seq = int(path.stem.rpartition("-")[2])
    return {"name": path.name, "bytes": path.stat().st_size, "seq": seq}


def snapshot_path(store: Store, name: str, snapshot: str) -> Path:
    """The file of a snapshot; Problem 404 if there is none."""
    path = store.folder / "snapshots" / name / snapshot
    if _NAME.fullmatch(snapshot) is None or not path.is_file():
        raise Problem(404, "no-such-snapshot", f"there is no snapshot {snapshot!r:.60}")
    return path


def delete_snapshot(store: Store, name: str, snapshot: str) -> None:
    """Delete a snapshot."""
    snapshot_path(store, name, snapshot).unlink()


def restore(store: Store, name: str, tar: Path) -> Collection:
    """Put what a snapshot has in the place of a collection, or of none."""

    def prepare(folder: Path) -> None:
        try:
            _check_members(tar)
            with tarfile.open(tar, "r:") as archive:
                if any(member.issparse() for member in archive):
                    raise _not_a_snapshot("a file in it is sparse")
                archive.extractall(folder, filter="data")
        except (tarfile.TarError, OSError, ValueError) as error:
            if isinstance(error, OSError) and is_full(error):
                raise
            raise _not_a_snapshot(str(error)) from error
        record = folder / "record.sqlite"
        if not record.is_file():
            raise _not_a_snapshot("it has no record")
        _check(record)
        try:
            Collection(folder, store.settings).abandon()
        except Exception as error:
            _logger.warning("%s: a snapshot cannot be opened: %s", name, error)
            raise _not_a_snapshot(f"it cannot be opened: {error}") from error

    return store.replace(name, prepare)


def _check_members(tar: Path) -> None:
    """Raise unless a tar file has plain files and folders only, that end where the file ends.

    `tarfile` would follow other kinds, and read headers of any length into memory.
    """
    size = tar.stat().st_size
    with tar.open("rb") as file:
        for _ in range(_MAX_MEMBERS):
            block = file.read(tarfile.BLOCKSIZE)
            if not block.strip(b"\0"):
                return
            member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            is_header = member.type in _HEADERS and member.size <= _MAX_HEADER_BYTES
            if not is_header and not member.isdir() and member.type not in _FILES:
                raise tarfile.TarError(f"{member.name!r:.100} is neither a file nor a folder")
            content = 0 if member.isdir() else -(-member.size // tarfile.BLOCKSIZE)
            file.seek(content * tarfile.BLOCKSIZE, 1)
            if file.tell() > size or member.size < 0:
                raise tarfile.TarError(f"{member.name!r:.100} is cut off")
    raise tarfile.TarError(f"it has more than {_MAX_MEMBERS} members")


def _not_a_snapshot(why: str) -> Problem:
    return Problem(422, "invalid-snapshot", f"not a snapshot: {why:.300}")


def _check(record: Path) -> None:
    """Raise Problem 422 unless a file is a record; what it holds is checked when it is opened."""
    connection = sqlite3.connect(f"{record.absolute().as_uri()}?mode=ro", uri=True)
    try:
        row = connection.execute("SELECT value FROM facts WHERE name = 'definition'").fetchone()
        if row is None:
            raise _not_a_snapshot("it defines no collection")
        # SQL in the file, which later changes would run.
        strange = "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')"
        if connection.execute(strange).fetchone()[0]:
            raise _not_a_snapshot("its record has more than tables")
    except sqlite3.DatabaseError as error:
        raise _not_a_snapshot(str(error)) from error
    finally:
        connection.close()
