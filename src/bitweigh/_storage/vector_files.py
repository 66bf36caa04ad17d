"""The data of a vector index, converted between memory and the files of its folder.

The folder is that of an index of its codes, with more files. Its manifest has the fields of an
index, one more object, `attachments`, and a different `format`, so that a version of bitweigh that
knows only plain indexes refuses the folder.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from bitweigh._disk.reading import resolved
from bitweigh._storage import attachments, index_files, vectors_1
from bitweigh._storage import folder as folders
from bitweigh._storage.attachments import Attachments, VectorContent, VectorSource
from bitweigh._storage.formats import VECTORS
from bitweigh._storage.manifest import MANIFEST, Manifest, read_manifest, sealed

__all__ = ["VectorContent", "VectorSource", "check_files", "checksum_of", "load", "save"]


def save(content: VectorContent, path: str | os.PathLike[str]) -> None:
    """Make the folder hold this vector index, or leave it as it was."""
    fields, arrays = index_files.described(content.codes)
    attached, more = attachments.described(content)
    files = {**arrays, **more}
    fields["attachments"] = attached
    fields["files"] = {name: files[name].file.facts() for name in sorted(files)}
    manifest = sealed(fields, VECTORS)
    index_files.refuse_too_many_parts(fields, manifest)
    folders.save(path, VECTORS, manifest, files, older=vectors_1)


def load(
    path: str | os.PathLike[str], mapped: bool, verify: bool
) -> tuple[VectorContent, VectorSource]:
    """The vector index in a folder, and its source; raises CorruptFileError if it is damaged."""
    return folders.load(
        path,
        VECTORS,
        partial(_read, mapped=mapped, verify=verify),
        partial(vectors_1.attempt, mapped=mapped, verify=verify),
    )


def check_files(path: str | os.PathLike[str]) -> None:
    """Check the files of hasher, weigher and vectors in a folder against their checksums."""
    folder = resolved(path)
    if not os.path.lexists(folder / MANIFEST):
        vectors_1.check_files(folder)
    else:
        manifest = read_manifest(folder)
        n_bits = index_files.stored_index(manifest).n_bits
        attachments.check_attachments(folder, _attached(manifest, n_bits))


def checksum_of(path: str | os.PathLike[str]) -> str:
    """The checksum of the vector index in a folder, as in the `VectorSource` of `load`."""
    folder = resolved(path)
    if os.path.lexists(folder / MANIFEST):
        return read_manifest(folder).checksum
    return vectors_1.checksum_of(folder)


def _read(
    folder: Path, manifest: Manifest, mapped: bool, verify: bool
) -> tuple[VectorContent, VectorSource]:
    stored = index_files.stored_index(manifest)
    attached = _attached(manifest, stored.n_bits)
    codes = index_files.read_content(folder, stored, mapped, verify)
    content = attachments.read_attachments(folder, manifest.path, attached, codes, mapped, verify)
    vectors = None if attached.vectors is None else folder / attached.vectors.name
    return content, VectorSource(folder, manifest.checksum, vectors)


def _attached(manifest: Manifest, n_bits: int) -> Attachments:
    return attachments.read_fields(manifest.fields().object("attachments"), n_bits)
