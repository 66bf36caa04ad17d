"""Indexes on disk: folders of files with a manifest, as docs/file-format.md describes them."""

from bitweigh._storage.folder import folder_kind
from bitweigh._storage.formats import FolderKind
from bitweigh._storage.index_files import Content, from_files, load, save, to_files
from bitweigh._storage.manifest import read_manifest
from bitweigh._storage.verify import verify

__all__ = [
    "Content",
    "FolderKind",
    "folder_kind",
    "from_files",
    "load",
    "read_manifest",
    "save",
    "to_files",
    "verify",
]
