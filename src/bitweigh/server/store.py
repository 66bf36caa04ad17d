"""The data folder of a server: its collections, its lock, and what is done in the background.

lock                      held by the server that writes; contains its process id
keys.json                 see keys.py
collections/<name>/       record.sqlite and the checkpoint index/
snapshots/<name>/         tar files

A collection whose record is damaged keeps the server from starting, with an error that names the
file: serving the others would hide it. A damaged checkpoint only makes a start slower.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bitweigh._disk.writing import sync_folder
from bitweigh.server.collection import Collection
from bitweigh.server.definition import Definition, check_name
from bitweigh.server.keys import KeyFile
from bitweigh.server.problems import Problem
from bitweigh.server.settings import Settings

__all__ = ["FolderInUseError", "Store"]

_TICK_SECONDS = 0.5
# Until maintenance that failed is tried again, as when the disk is full.
_RETRY_SECONDS = 5.0
# Begins the name of a folder whose place another one is taking.
_REPLACED = ".replaced-"
_logger = logging.getLogger("bitweigh.server")


class FolderInUseError(OSError):
    """Another server has the folder."""


class Store:
    """All collections of a folder, open until `close`. For any thread."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        """Lock the folder and open what is in it."""
        self.folder = folder
        self.settings = settings
        self._collections_folder = folder / "collections"
        if not settings.read_only:
            self._collections_folder.mkdir(parents=True, exist_ok=True)
        elif not folder.is_dir():
            raise FileNotFoundError(f"{folder}: there is no such folder")
        self._lock_file = self._locked()
        self._changing = threading.Lock()
        self._collections: dict[str, Collection] = {}
        self._stopping = threading.Event()
        self.failures = 0
        try:
            self.keys = KeyFile(folder / "keys.json")
            if not settings.read_only:
                self._tidy()
            self._open_all()
        except BaseException:
            for collection in self._collections.values():
                collection.abandon()
            self._unlock()
            raise
        self._thread = threading.Thread(target=self._maintain, name="maintenance", daemon=True)
        if not settings.read_only:
            self._thread.start()

    def _locked(self) -> int | None:
        """Lock the folder, for this server alone or for all that only read."""
        path = self.folder / "lock"
        reads = self.settings.read_only
        try:
            file = os.open(path, os.O_RDONLY if reads else os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            return None  # nobody has ever written here, and this server will not
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if reads else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner_of(file)
            os.close(file)
            raise FolderInUseError(
                f"{self.folder}: process {owner} serves this folder already"
            ) from None
        if not reads:
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        return file

    def _unlock(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def _tidy(self) -> None:
        """Finish or undo what a server that was killed has left half done."""
        for path in sorted(self._collections_folder.glob(f"{_REPLACED}*")):
            place = path.with_name(path.name.removeprefix(_REPLACED))
            if place.exists():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.rename(place)
        for path in self._collections_folder.iterdir():
            if path.name.startswith((".creating-", ".deleting-")):
                shutil.rmtree(path, ignore_errors=True)
        for pattern in ("import-*.parquet", "restore-*.tar"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        for path in self.folder.glob("snapshots/*/.taking-*"):
            shutil.rmtree(path, ignore_errors=True)

    def _open_all(self) -> None:
        if not self._collections_folder.is_dir():
            return
        for path in sorted(self._collections_folder.iterdir()):
            if path.is_dir() and not path.name.startswith("."):
                self._collections[path.name] = Collection(path, self.settings)

    def __getitem__(self, name: str) -> Collection:
        """The collection of a name; Problem 404 if there is none."""
        found = self._collections.get(name)
        if found is None:
            raise Problem(404, "no-such-collection", f"there is no collection {name!r:.100}")
        return found

    def collections(self) -> list[Collection]:
        """All of them, by name."""
        return [self._collections[name] for name in sorted(self._collections)]

    def create(self, name: str, definition: Definition) -> tuple[Collection, bool]:
        """Create a collection; if it is there with the same definition, return that."""
        check_name(name)
        with self._changing:
            there = self._collections.get(name)
            if there is not None:
                if there.definition != definition.check():
                    raise Problem(
                        409,
                        "collection-exists",
                        f"collection {name!r} exists with another definition",
                        definition=there.definition.to_json(),
                    )
                return there, False
            if len(self._collections) >= self.settings.limits.collections:
                raise Problem(
                    422,
                    "too-many-collections",
                    f"a server has at most {self.settings.limits.collections} collections",
                )
            made = Collection.create(self._collections_folder / name, definition, self.settings)
            self._collections[name] = made
            return made, True

    def delete(self, name: str) -> None:
        """Delete a collection for good."""
        with self._changing:
            found = self[name]
            del self._collections[name]
            found.abandon()
            gone = found.folder.with_name(f".deleting-{name}")
            shutil.rmtree(gone, ignore_errors=True)
            found.folder.rename(gone)
            sync_folder(self._collections_folder)
        shutil.rmtree(gone, ignore_errors=True)

    def replace(self, name: str, prepare: Callable[[Path], None]) -> Collection:
        """Put a collection that `prepare` makes in a new folder in the place of one, or of none.

        A server that is killed meanwhile has the old one or the new one when it starts again.
        `prepare` must see to it that the new one can be opened.
        """
        check_name(name)
        staged = self._collections_folder / f".creating-{name}-{secrets.token_hex(4)}"
        staged.mkdir()
        try:
            prepare(staged)
            _sync_all(staged)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
        place = self._collections_folder / name
        replaced = place.with_name(_REPLACED + name)
        with self._changing:
            there = self._collections.pop(name, None)
            if there is not None:
                there.abandon()
                shutil.rmtree(replaced, ignore_errors=True)
                place.rename(replaced)
            staged.rename(place)
            sync_folder(self._collections_folder)
            made = self._collections[name] = Collection(place, self.settings)
        shutil.rmtree(replaced, ignore_errors=True)
        return made

    def _maintain(self) -> None:
        built = time.monotonic()
        waits: dict[str, float] = {}
        tick = min(_TICK_SECONDS, self.settings.checkpoint_seconds, self.settings.build_seconds)
        while not self._stopping.wait(tick):
            builds = time.monotonic() - built > self.settings.build_seconds
            if builds:
                built = time.monotonic()
            for collection in self.collections():
                if time.monotonic() < waits.get(collection.name, 0.0):
                    continue
                try:
                    collection.mend()
                    if self._is_due(collection):
                        collection.checkpoint()
                    if builds and not collection.compact():
                        collection.build()
                except Exception:
                    if self._collections.get(collection.name) is collection:
                        self.failures += 1
                        waits[collection.name] = time.monotonic() + _RETRY_SECONDS
                        _logger.exception("%s: maintenance failed", collection.name)

    def _is_due(self, collection: Collection) -> bool:
        changes = collection.changes_since_checkpoint
        if changes >= self.settings.checkpoint_changes or collection.must_save:
            return True
        age = time.time() - collection.checkpoint_time
        return changes > 0 and age >= self.settings.checkpoint_seconds

    def close(self) -> None:
        """Save all collections, and give the folder up."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for collection in self.collections():
            collection.close()
        self._collections.clear()
        self._unlock()


def _owner_of(lock_file: int) -> str:
    """The process that has a lock on a file: as Linux lists them, else as the file says."""
    facts = os.fstat(lock_file)
    device = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5] == device:
                return fields[4]
    return os.pread(lock_file, 32, 0).decode(errors="replace").strip() or "unknown"


def _sync_all(folder: Path) -> None:
    """Wait until a folder and all files in it are on disk."""
    for path in folder.rglob("*"):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    sync_folder(folder)
