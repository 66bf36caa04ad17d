"""Loading: the manifest, then its files, read into memory or mapped.

A save may remove the files of a manifest between the two. It never does so while that manifest is
in its place: a file is missing only if the manifest has been there from before it was read until
after the file was looked for.
"""

from __future__ import annotations

import os
from pathlib import Path

from bitweigh._disk.folders import undisturbed
from bitweigh._disk.reading import resolved, watched
from bitweigh._storage.content import Array, Content, content_from
from bitweigh._storage.files import check_file, map_array, read_array, read_manifest
from bitweigh._storage.manifest import MANIFEST, ArrayFile
from bitweigh.errors import CorruptFileError

__all__ = ["load"]


def load(path: str | os.PathLike[str], mapped: bool, verify: bool) -> tuple[Content, str]:
    """The index in a folder, and the checksum of its manifest.

    Raises CorruptFileError where it is damaged.
    """
    folder = resolved(path)
    return undisturbed(folder, lambda: _load(folder, mapped, verify))


def _load(folder: Path, mapped: bool, verify: bool) -> tuple[Content, str] | None:
    """None if a save has come in between."""

    def read(file: ArrayFile) -> Array:
        if not mapped:
            return read_array(folder, file, verify)
        if verify:
            check_file(folder, file)
        return map_array(folder, file)

    with watched(folder / MANIFEST) as is_still_there:
        manifest = read_manifest(folder)
        try:
            return content_from(manifest, read, folder), manifest.checksum
        except FileNotFoundError as error:
            if is_still_there():
                raise CorruptFileError(Path(error.filename), "the file is missing") from None
            return None
