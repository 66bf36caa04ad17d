"""Versions and shards in an object store: S3, Google Cloud Storage, Azure. Needs obstore.

The manifest of a shard is uploaded last, so a shard is there when its manifest is. Shards are
downloaded to a cache on this machine, checked, and mapped from there: a mapped file that vanished
from network storage would end the process.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bitweigh._disk.owned import OwnedFolder
from bitweigh._optional import optional
from bitweigh._storage.manifest import MANIFEST
from bitweigh.cluster.errors import PublishConflictError
from bitweigh.cluster.stores import (
    SERVING,
    SHARDS,
    STAGING,
    VERSIONS,
    version_name,
    version_number,
)
from bitweigh.index import Index

__all__ = ["ObjectStore", "cache_folder"]


def cache_folder() -> Path:
    """Where downloaded shards are: ``BITWEIGH_CACHE``, or ``~/.cache/bitweigh``."""
    given = os.environ.get("BITWEIGH_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "bitweigh"


class ObjectStore:
    """Versions and shards below a URL such as ``s3://bucket/name``.

    Credentials and regions come from the environment, as obstore documents.
    """

    def __init__(self, url: str) -> None:
        """Prepare the connection; nothing is read yet."""
        self.url = self.address = url.rstrip("/")
        self._obstore: Any = optional("obstore", "cluster")
        stores: Any = optional("obstore.store", "cluster")
        self._errors: Any = optional("obstore.exceptions", "cluster")
        self._store = stores.from_url(self.url)

    def version_numbers(self) -> list[int]:
        """The numbers of all versions, ascending."""
        found = [version_number(name.rpartition("/")[2]) for name in self._names(f"{VERSIONS}/")]
        return sorted(number for number in found if number is not None)

    def read_version(self, number: int) -> bytes:
        """The file of a version."""
        return self._get(f"{VERSIONS}/{version_name(number)}")

    def create_version(self, number: int, content: bytes) -> None:
        """Publish a version: the store creates the file only if it is absent."""
        name = f"{VERSIONS}/{version_name(number)}"
        try:
            self._obstore.put(self._store, name, content, mode="create")
        except (FileExistsError, self._errors.AlreadyExistsError):
            # A request that was retried after its answer was lost finds its own file.
            if self._get(name) != content:
                raise PublishConflictError(number) from None

    def remove_version(self, number: int) -> None:
        """Delete the file of a version."""
        self._delete([f"{VERSIONS}/{version_name(number)}"])

    def shard_names(self) -> list[str]:
        """The names of all complete shards."""
        ending = f"/{MANIFEST}"
        return sorted(
            name.removesuffix(ending).rpartition("/")[2]
            for name in self._names(f"{SHARDS}/")
            if name.endswith(ending)
        )

    def add_shard(self, name: str, folder: Path) -> None:
        """Upload a shard, unless it is there."""
        if self._has(f"{SHARDS}/{name}/{MANIFEST}"):
            return
        files = sorted(folder.iterdir(), key=lambda file: file.name == MANIFEST)
        for file in files:
            self._obstore.put(self._store, f"{SHARDS}/{name}/{file.name}", file)

    def shard_folder(self, name: str) -> Path:
        """The folder of a shard in the cache, downloaded and checked if it is not there yet."""
        shards = cache_folder() / SHARDS
        folder = shards / name
        if (folder / MANIFEST).exists():
            return folder
        names = self._names(f"{SHARDS}/{name}/")
        if f"{SHARDS}/{name}/{MANIFEST}" not in names:
            raise FileNotFoundError(f"{self.url}/{SHARDS}/{name} has no shard")
        shards.mkdir(parents=True, exist_ok=True)
        owned = OwnedFolder(shards, "download")
        try:
            target = owned.path / "shard"
            target.mkdir()
            for each in names:
                with (target / each.rpartition("/")[2]).open("wb") as file:
                    for piece in self._obstore.get(self._store, each):
                        file.write(piece)
            Index.load(target, mmap=True, verify=True)
            with contextlib.suppress(OSError):  # another process was faster
                target.rename(folder)
        finally:
            owned.remove()
        return folder

    def remove_shard(self, name: str) -> None:
        """Delete a shard, its manifest first."""
        manifest = f"{SHARDS}/{name}/{MANIFEST}"
        self._delete([manifest])
        self._delete([each for each in self._names(f"{SHARDS}/{name}/") if each != manifest])

    def put_staged(self, build: str, name: str, file: Path) -> None:
        """Upload a file of a build."""
        self._obstore.put(self._store, f"{STAGING}/{build}/{name}", file)

    def read_staged(self, build: str, name: str, first: int, n_bytes: int) -> bytes:
        """Bytes of a file of a build."""
        if not n_bytes:
            return b""
        path = f"{STAGING}/{build}/{name}"
        return bytes(self._obstore.get_range(self._store, path, start=first, length=n_bytes))

    def remove_staged(self, build: str) -> None:
        """Delete all files of a build."""
        self._delete(self._names(f"{STAGING}/{build}/"))

    def staged_builds(self) -> dict[str, float]:
        """When each build that has staged files wrote the newest of them."""
        newest: dict[str, float] = {}
        for each in self._listed(f"{STAGING}/"):
            build = each["path"].removeprefix(f"{STAGING}/").partition("/")[0]
            written = each["last_modified"].timestamp()
            newest[build] = max(written, newest.get(build, written))
        return newest

    def write_state(self, name: str, content: bytes | None) -> None:
        """Replace the file of a cluster."""
        path = f"{SERVING}/{name}.json"
        if content is None:
            self._delete([path])
        else:
            self._obstore.put(self._store, path, content)

    def read_states(self) -> dict[str, bytes]:
        """What each cluster is to serve, by name."""
        names = [name for name in self._names(f"{SERVING}/") if name.endswith(".json")]
        return {name.rpartition("/")[2].removesuffix(".json"): self._get(name) for name in names}

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Path]:
        """A temporary folder of this machine."""
        folder = Path(tempfile.mkdtemp(prefix="bitweigh-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _names(self, prefix: str) -> list[str]:
        """The names of all files below a prefix."""
        return [str(each["path"]) for each in self._listed(prefix)]

    def _listed(self, prefix: str) -> list[Any]:
        """What the store says of all files below a prefix."""
        return [each for page in self._obstore.list(self._store, prefix) for each in page]

    def _get(self, name: str) -> bytes:
        try:
            return bytes(self._obstore.get(self._store, name).bytes())
        except (FileNotFoundError, self._errors.NotFoundError):
            raise FileNotFoundError(f"{self.url}/{name} is not there") from None

    def _has(self, name: str) -> bool:
        try:
            self._obstore.head(self._store, name)
        except (FileNotFoundError, self._errors.NotFoundError):
            return False
        return True

    def _delete(self, names: list[str]) -> None:
        if names:
            self._obstore.delete(self._store, names)
