"""Where versions and shards are: a folder, or an object store that `object_store` speaks to.

    versions/00000000000000000001.json    created if absent, never changed
    shards/<checksum>/                    an index folder, named by the checksum of its manifest
    staging/<build>/                      files of builds under way
    serving/<name>.json                   what a cluster of this name is to serve

A version is published by creating its file, which succeeds for one of several writers. A folder of
a shard appears as a whole, and what has its name has its content.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from bitweigh._disk.owned import OwnedFolder
from bitweigh._disk.reading import read_plain, resolved
from bitweigh._disk.writing import sync_folder, write_file, write_synced
from bitweigh._storage.manifest import MANIFEST, MAX_BYTES
from bitweigh.cluster.errors import PublishConflictError

__all__ = [
    "FolderStore",
    "Store",
    "is_url",
    "new_build",
    "open_store",
    "version_name",
    "version_number",
]

VERSIONS = "versions"
SHARDS = "shards"
STAGING = "staging"
SERVING = "serving"
# Begins the names of builds; folders of other names in `staging` are those of processes.
_BUILD = "build-"
_VERSION_NAME = re.compile(r"(\d{20})\.json")
_URL = re.compile(r"[a-z][a-z0-9+.-]+://")


class Store(Protocol):
    """The operations on versions and shards. Any number of processes may use one at a time."""

    url: str
    """As it was given, for messages."""
    address: str
    """The same for processes elsewhere."""

    def version_numbers(self) -> list[int]:
        """The numbers of all versions, ascending."""

    def read_version(self, number: int) -> bytes:
        """The file of a version; raises FileNotFoundError if there is none."""

    def create_version(self, number: int, content: bytes) -> None:
        """Publish a version; raises PublishConflictError if there is one with its number."""

    def remove_version(self, number: int) -> None:
        """Delete the file of a version."""

    def shard_names(self) -> list[str]:
        """The names of all complete shards."""

    def add_shard(self, name: str, folder: Path) -> None:
        """Store a shard. `folder` is in `workspace` and may be gone afterwards."""

    def shard_folder(self, name: str) -> Path:
        """A local folder with the files of a shard; raises FileNotFoundError if it has none."""

    def remove_shard(self, name: str) -> None:
        """Delete a shard."""

    def put_staged(self, build: str, name: str, file: Path) -> None:
        """Store a file of a build, replacing one of the same name. `file` is in `workspace`."""

    def read_staged(self, build: str, name: str, first: int, n_bytes: int) -> bytes:
        """Bytes of such a file, from `first` on."""

    def remove_staged(self, build: str) -> None:
        """Delete all files of a build."""

    def staged_builds(self) -> dict[str, float]:
        """When each build that has staged files wrote the newest of them, in seconds since 1970."""

    def write_state(self, name: str, content: bytes | None) -> None:
        """Replace what a cluster is to serve; None deletes it."""

    def read_states(self) -> dict[str, bytes]:
        """What each cluster is to serve, by name."""

    def workspace(self) -> contextlib.AbstractContextManager[Path]:
        """A local folder that lasts as long as the context."""


def version_name(number: int) -> str:
    """The name of the file of a version."""
    return f"{number:020d}.json"


def version_number(name: str) -> int | None:
    """The number of the version in a file of this name; None if it is none."""
    found = _VERSION_NAME.fullmatch(name)
    return int(found[1]) if found else None


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether this is a URL, and not the path of a file or folder."""
    return _URL.match(os.fspath(path)) is not None


def open_store(url: str | os.PathLike[str]) -> Store:
    """The store at a path or URL; nothing is read or created yet."""
    text = os.fspath(url)
    if not is_url(text):
        return FolderStore(resolved(text))
    if text.startswith("file://"):
        return FolderStore(resolved(text.removeprefix("file://")))
    from bitweigh.cluster.object_store import ObjectStore

    return ObjectStore(text)


class FolderStore:
    """Versions and shards in a folder: on this machine, or on a disk that all machines share."""

    def __init__(self, folder: Path) -> None:
        """Keep the path."""
        self.folder = folder
        self.url = str(folder)
        self.address = str(folder.absolute())

    def version_numbers(self) -> list[int]:
        """The numbers of all versions, ascending."""
        try:
            found = [version_number(path.name) for path in (self.folder / VERSIONS).iterdir()]
        except FileNotFoundError:
            return []
        return sorted(number for number in found if number is not None)

    def read_version(self, number: int) -> bytes:
        """The file of a version."""
        return read_plain(self.folder / VERSIONS / version_name(number), MAX_BYTES)

    def create_version(self, number: int, content: bytes) -> None:
        """Publish a version: a link to a synced file is created in one step, if it is absent."""
        versions = self._made(VERSIONS)
        with self.workspace() as work:
            written = write_synced(work, version_name(number), [memoryview(content)])
            try:
                (versions / version_name(number)).hardlink_to(written)
            except FileExistsError:
                raise PublishConflictError(number) from None
        sync_folder(versions)

    def remove_version(self, number: int) -> None:
        """Delete the file of a version."""
        (self.folder / VERSIONS / version_name(number)).unlink(missing_ok=True)

    def shard_names(self) -> list[str]:
        """The names of all complete shards."""
        try:
            return sorted(path.name for path in (self.folder / SHARDS).iterdir())
        except FileNotFoundError:
            return []

    def add_shard(self, name: str, folder: Path) -> None:
        """Store a shard by renaming its folder, unless one of the same content is there."""
        shards = self._made(SHARDS)
        target = shards / name
        if not (target / MANIFEST).exists():
            try:
                folder.rename(target)
            except OSError:
                # Another process has renamed the same shard a moment ago.
                if not (target / MANIFEST).exists():
                    raise
        sync_folder(shards)

    def shard_folder(self, name: str) -> Path:
        """The folder of a shard, where its files are."""
        folder = self.folder / SHARDS / name
        if not (folder / MANIFEST).exists():
            raise FileNotFoundError(f"{folder} has no shard")
        return folder

    def remove_shard(self, name: str) -> None:
        """Delete a shard; whoever has mapped its files keeps their content."""
        shutil.rmtree(self.folder / SHARDS / name)

    def put_staged(self, build: str, name: str, file: Path) -> None:
        """Move a file of a build to where all processes find it."""
        file.replace(self._made(f"{STAGING}/{build}") / name)

    def read_staged(self, build: str, name: str, first: int, n_bytes: int) -> bytes:
        """Bytes of a file of a build."""
        with (self.folder / STAGING / build / name).open("rb") as file:
            file.seek(first)
            return file.read(n_bytes)

    def remove_staged(self, build: str) -> None:
        """Delete all files of a build."""
        shutil.rmtree(self.folder / STAGING / build, ignore_errors=True)

    def staged_builds(self) -> dict[str, float]:
        """When each build that has staged files wrote the newest of them."""
        found = {}
        for build in (self.folder / STAGING).glob(f"{_BUILD}*"):
            with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
                found[build.name] = max(path.stat().st_mtime for path in (build, *build.iterdir()))
        return found

    def write_state(self, name: str, content: bytes | None) -> None:
        """Replace the file of a cluster in one step."""
        path = self._made(SERVING) / f"{name}.json"
        if content is None:
            path.unlink(missing_ok=True)
        else:
            write_file(path, [memoryview(content)])

    def read_states(self) -> dict[str, bytes]:
        """What each cluster is to serve, by name."""
        found = sorted((self.folder / SERVING).glob("*.json"))
        return {path.stem: read_plain(path, MAX_BYTES) for path in found}

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Path]:
        """A folder on the same disk, whose files can be renamed; one left by a kill is deleted."""
        owned = OwnedFolder(self._made(STAGING), "work")
        try:
            yield owned.path
        finally:
            owned.remove()

    def _made(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path


def new_build() -> str:
    """A name for the staged files of a build."""
    return f"{_BUILD}{uuid4().hex}"
