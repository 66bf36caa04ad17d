"""An index as a few byte strings, the files of its folder: what pickle carries."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bitweigh._storage.content import Array, Content, content_from, header_of, stored_arrays
from bitweigh._storage.files import DAMAGED
from bitweigh._storage.manifest import MANIFEST, ArrayFile, Manifest, digest_of
from bitweigh.errors import CorruptFileError

__all__ = ["from_files", "to_files"]


def to_files(content: Content) -> dict[str, bytes]:
    """The files of an index by name, as they would be in its folder."""
    manifest, arrays = stored_arrays(content)
    files = {name: b"".join(array.data()) for name, array in arrays.items()}
    return {MANIFEST: manifest.to_bytes(), **files}


def from_files(files: dict[str, bytes]) -> Content:
    """The index that such files hold; its arrays are theirs."""
    manifest = Manifest.from_bytes(files[MANIFEST], Path(MANIFEST))

    def read(file: ArrayFile) -> Array:
        raw = files.get(file.name, b"")
        start = len(header_of(file.dtype, file.shape))
        if len(raw) != start + file.nbytes or digest_of(raw) != file.checksum:
            raise CorruptFileError(file.name, DAMAGED)
        return np.frombuffer(raw, file.dtype, offset=start).reshape(file.shape)

    return content_from(manifest, read, Path())
