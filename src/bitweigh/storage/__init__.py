"""Indexes on disk: a folder of .npy files with a manifest, as docs/file-format.md describes it."""

from bitweigh.storage.content import Content
from bitweigh.storage.files import read_manifest
from bitweigh.storage.load import load
from bitweigh.storage.pickled import from_files, to_files
from bitweigh.storage.save import save
from bitweigh.storage.verify import verify

__all__ = ["Content", "from_files", "load", "read_manifest", "save", "to_files", "verify"]
