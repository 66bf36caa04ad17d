"""Loading: the manifest, then its files, read into memory or mapped."""

from __future__ import annotations

import os
from pathlib import Path

from bitweigh.results import CorruptIndexError
from bitweigh.storage.content import Array, Content, content_from
from bitweigh.storage.files import check_file, map_array, read_array, read_manifest
from bitweigh.storage.manifest import ArrayFile

__all__ = ["load"]

# A save that ends between reading the manifest and opening its files removes the old ones.
_ATTEMPTS = 10


def load(path: str | os.PathLike[str], mapped: bool, verify: bool) -> tuple[Content, str]:
    """The index in a folder, and the checksum of its manifest.

    Raises CorruptIndexError where it is damaged.
    """
    folder = Path(path)
    for _ in range(_ATTEMPTS):
        manifest = read_manifest(folder)

        def read(file: ArrayFile) -> Array:
            if not mapped:
                return read_array(folder, file, verify)
            if verify:
                check_file(folder, file)
            return map_array(folder, file)

        try:
            return content_from(manifest, read), manifest.checksum
        except FileNotFoundError as error:
            missing = Path(error.filename)
            if read_manifest(folder) == manifest:
                raise CorruptIndexError(missing, "the file is missing") from None
    raise OSError(f"{folder} is being saved to faster than it can be read")
