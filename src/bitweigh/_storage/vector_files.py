"""What a vector index consists of, between memory and the files of its folder.

The folder is that of an index of its codes, with more files. Its manifest has the fields of an
index and one object more, `attachments`, and another `format`: a version of bitweigh that knows
plain indexes only refuses the folder.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from bitweigh._disk.reading import resolved
from bitweigh._storage import attachments, index_files, vectors_1
from bitweigh._storage import folder as folders
from bitweigh._storage.attachments import VectorContent, VectorSource
from bitweigh._storage.formats import VECTORS
from bitweigh._storage.manifest import MANIFEST, Manifest, read_manifest, sealed

__all__ = ["VectorContent", "VectorSource", "checksum_of", "load", "load_codes", "save"]

INDEX_VERSIONS = {2: 1}
"""By version: which version of an index's format the fields of the codes have."""


def save(content: VectorContent, path: str | os.PathLike[str]) -> None:
    """Make the folder hold this, or leave what it holds."""
    fields, arrays = index_files.described(content.codes)
    attached, more = attachments.described(content)
    files = {**arrays, **more}
    fields["attachments"] = attached
    fields["files"] = {name: files[name].file.facts() for name in sorted(files)}
    manifest = sealed(fields, VECTORS)
    index_files.refuse_too_many_parts(fields, manifest)
    folders.save(path, VECTORS, manifest, files, older=vectors_1)


def load(path: str | os.PathLike[str], mapped: bool) -> tuple[VectorContent, VectorSource]:
    """What a folder holds, and where it came from.

    Raises CorruptFileError where it is damaged.
    """
    return folders.load(
        path, VECTORS, partial(_read, mapped=mapped), partial(vectors_1.attempt, mapped=mapped)
    )


def load_codes(
    path: str | os.PathLike[str], mapped: bool, verify: bool
) -> tuple[index_files.Content, str]:
    """The codes alone of a folder of version 2, and the checksum of its manifest."""
    return folders.load(path, VECTORS, partial(_read_codes, mapped=mapped, verify=verify))


def checksum_of(path: str | os.PathLike[str]) -> str:
    """The checksum of what a folder holds, as `load` would return it with the rest."""
    folder = resolved(path)
    if os.path.lexists(folder / MANIFEST):
        return read_manifest(folder).checksum
    return vectors_1.checksum_of(folder)


def _read(folder: Path, manifest: Manifest, mapped: bool) -> tuple[VectorContent, VectorSource]:
    stored = index_files.READERS[INDEX_VERSIONS[manifest.version]](manifest.fields())
    attached = attachments.read_fields(manifest.fields().object("attachments"), stored.n_bits)
    read = index_files.file_reader(folder, mapped, verify=not mapped)
    codes = index_files.content_from(stored, read, folder)
    content = attachments.read_attachments(folder, manifest.path, attached, codes, mapped)
    vectors = None if attached.vectors is None else folder / attached.vectors.name
    return content, VectorSource(folder, manifest.checksum, vectors)


def _read_codes(
    folder: Path, manifest: Manifest, mapped: bool, verify: bool
) -> tuple[index_files.Content, str]:
    stored = index_files.READERS[INDEX_VERSIONS[manifest.version]](manifest.fields())
    read = index_files.file_reader(folder, mapped, verify)
    return index_files.content_from(stored, read, folder), manifest.checksum
