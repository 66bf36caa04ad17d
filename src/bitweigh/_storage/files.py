"""Reading the files of an index, trusting none of them: sizes, headers and checksums."""

from __future__ import annotations

import io
import mmap
import os
from pathlib import Path

import numpy as np
import xxhash

from bitweigh import _core
from bitweigh._disk.reading import PIECE_BYTES, open_plain, pieces, read_plain
from bitweigh._storage.content import Array, header_of
from bitweigh._storage.manifest import MANIFEST, MOST_BYTES, ArrayFile, Manifest
from bitweigh.errors import CorruptFileError

__all__ = ["DAMAGED", "check_file", "map_array", "read_array", "read_manifest"]

DAMAGED = "the checksum does not match: the file is damaged"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the index in a folder."""
    path = folder / MANIFEST
    return Manifest.from_bytes(read_plain(path, MOST_BYTES), path)


def map_array(folder: Path, stored: ArrayFile) -> Array:
    """The array of a file, mapped: it is read when it is used."""
    path = folder / stored.name
    with open_plain(path) as file:
        start = _data_start(file, path, stored)
        mapping = mmap.mmap(file.fileno(), start + stored.nbytes, access=mmap.ACCESS_READ)
    return np.frombuffer(mapping, stored.dtype, offset=start).reshape(stored.shape)


def read_array(folder: Path, stored: ArrayFile, verify: bool) -> Array:
    """The array of a file, in memory; its checksum is verified on the way."""
    path = folder / stored.name
    with open_plain(path) as file:
        start = _data_start(file, path, stored)
        hasher = xxhash.xxh3_128(header_of(stored.dtype, stored.shape))
        file.seek(start)
        raw = _core.empty_blocks(stored.nbytes)
        view = raw.data
        done = 0
        while done < len(view):
            count = file.readinto(view[done : done + PIECE_BYTES])
            if not count:
                raise CorruptFileError(path, "the file ends too early")
            if verify:
                hasher.update(view[done : done + count])
            done += count
    if verify and hasher.hexdigest() != stored.checksum:
        raise CorruptFileError(path, DAMAGED)
    return raw.view(stored.dtype).reshape(stored.shape)


def check_file(folder: Path, stored: ArrayFile) -> None:
    """Raise CorruptFileError if the file is not what it was when it was written."""
    path = folder / stored.name
    hasher = xxhash.xxh3_128()
    with open_plain(path) as file:
        start = _data_start(file, path, stored)
        file.seek(0)
        for piece in pieces(file, start + stored.nbytes, path):
            hasher.update(piece)
    if hasher.hexdigest() != stored.checksum:
        raise CorruptFileError(path, DAMAGED)


def _data_start(file: io.FileIO, path: Path, stored: ArrayFile) -> int:
    """Where the data of a .npy file begin. Its header must be what the manifest leads to."""
    header = header_of(stored.dtype, stored.shape)
    if file.read(len(header)) != header:
        expected = f"{stored.dtype} of shape {stored.shape}"
        raise CorruptFileError(path, f"must hold an array, {expected}, as NumPy writes it")
    size = os.fstat(file.fileno()).st_size
    if size != len(header) + stored.nbytes:
        raise CorruptFileError(
            path, f"must have {len(header) + stored.nbytes} bytes for its array, has {size}"
        )
    return len(header)
