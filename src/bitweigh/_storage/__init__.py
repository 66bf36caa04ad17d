"""Indexes on disk: folders of files with a manifest, as described in docs/file-format.md."""

from bitweigh._storage.folder import folder_kind
from bitweigh._storage.formats import FolderKind
from bitweigh._storage.index_files import (
    Content,
    Source,
    from_files,
    link_when_saved,
    load,
    load_codes,
    save,
    to_files,
)
from bitweigh._storage.note import NO_NOTE, note_from, note_text
from bitweigh._storage.verify import verify

__all__ = [
    "NO_NOTE",
    "Content",
    "FolderKind",
    "Source",
    "folder_kind",
    "from_files",
    "link_when_saved",
    "load",
    "load_codes",
    "note_from",
    "note_text",
    "save",
    "to_files",
    "verify",
]
