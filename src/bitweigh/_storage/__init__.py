"""Indexes on disk: a folder of .npy files with a manifest, as docs/file-format.md describes it."""

from bitweigh._storage.content import Content
from bitweigh._storage.files import read_manifest
from bitweigh._storage.load import load
from bitweigh._storage.pickled import from_files, to_files
from bitweigh._storage.save import save
from bitweigh._storage.verify import verify

__all__ = ["Content", "from_files", "load", "read_manifest", "save", "to_files", "verify"]
