"""Fitted hashers and weighers as files, without pickle.

A file is an ``np.savez`` archive: `about`, JSON with the class and its parameters, and an array for
each attribute that `fit` learned. Its contents are not trusted: only classes that the caller lists
are instantiated, and every array must have the shape that its class needs.
"""

from __future__ import annotations

import io
import json
import math
import operator
import os
import zipfile
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import MAX_BITS
from bitweigh._disk.reading import PIECE_BYTES, open_plain, resolved
from bitweigh._disk.writing import write_file
from bitweigh.errors import CorruptFileError
from bitweigh.hashers._estimator import Estimator, defaults

__all__ = ["from_bytes", "most_bytes_for", "read", "read_from", "to_bytes", "write"]

FORMAT = "bitweigh-estimator"
VERSION = 1
_ABOUT = "about"
# Values of the parameters that are not integers.
_CHOICES = {
    "bitorder": ("big", "little"),
    "threshold": ("zero", "median"),
    "variant": ("expectation", "lower_bound"),
    "rotation": (None, "random", "pca"),
    "origin": ("mean", "zero"),
}
# The maximum size of a file: enough for 8192 bits and half a million features.
MAX_FILE_BYTES = 1 << 35
# Room for the zip directory, `about`, and a number per round of ITQ, beside projections and means.
_OTHER_BYTES = 1 << 20
_MAX_DIRECTORY_BYTES = _MAX_ABOUT_BYTES = 1 << 14
_MAX_COUNTS = {"n_bits_": MAX_BITS, "n_features_in_": 2**31}

Kind = TypeVar("Kind", bound=Estimator)


def write(estimator: Estimator, path: str | os.PathLike[str]) -> None:
    """Write the file atomically: a reader finds the old one or the new one."""
    raw = to_bytes(estimator)
    if len(raw) > MAX_FILE_BYTES:
        raise ValueError(
            f"the file may have at most {MAX_FILE_BYTES} bytes, but would have {len(raw)}"
        )
    write_file(resolved(path), [memoryview(raw)])


def read(path: str | os.PathLike[str], kinds: tuple[type[Kind], ...]) -> Kind:
    """Read an estimator of one of `kinds`; CorruptFileError if the file does not hold one."""
    file_path = resolved(path)
    with open_plain(file_path) as file:
        return read_from(file, file_path, kinds)


def read_from(file: io.FileIO, path: Path, kinds: tuple[type[Kind], ...]) -> Kind:
    """Read an estimator from an open file, with no more memory than the file has bytes."""
    size = os.fstat(file.fileno()).st_size
    if size > MAX_FILE_BYTES:
        raise CorruptFileError(path, f"must have at most {MAX_FILE_BYTES} bytes, has {size}")
    return _from_file(file, size, path, kinds)


def most_bytes_for(n_features: int, n_bits: int) -> int:
    """An upper bound on the size of the file of a hasher or weigher."""
    return 8 * (n_features + 1) * (n_bits + 2) + _OTHER_BYTES


def to_bytes(estimator: Estimator) -> bytes:
    """The contents of the file; the same fitted state always gives the same bytes."""
    kind = type(estimator)
    if "_learned" not in vars(kind):
        raise TypeError(f"only hashers and weighers of bitweigh can be saved, got {kind.__name__}")
    estimator._need_fitted()
    about = {
        "format": FORMAT,
        "version": VERSION,
        "class": kind.__name__,
        "parameters": {name: _plain(value) for name, value in estimator._fitted_params().items()},
    }
    arrays: dict[str, Any] = {_ABOUT: np.array(json.dumps(about))}
    for name in estimator._counts:
        arrays[name] = np.array(getattr(estimator, name), np.int64)
    for name in estimator._sizes():
        stored_name = estimator._stored_names.get(name, name)
        arrays[stored_name] = np.ascontiguousarray(getattr(estimator, name), np.float64)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def from_bytes(raw: bytes, path: Path, kinds: tuple[type[Kind], ...]) -> Kind:
    """Read an estimator from the contents of a file; errors name `path`."""
    return _from_file(io.BytesIO(raw), len(raw), path, kinds)


def _from_file(
    file: io.FileIO | io.BytesIO, size: int, path: Path, kinds: tuple[type[Kind], ...]
) -> Kind:
    try:
        members = _members(file, size)
    except MemoryError:
        raise
    except Exception as error:  # zipfile and NumPy raise many types for damage
        raise CorruptFileError(path, f"not the file of a hasher or weigher: {error}") from None
    return _Reader(path, members).estimator(kinds)


def _plain(value: object) -> int | str | None:
    if value is None or isinstance(value, str):
        return value
    return operator.index(value)  # type: ignore[arg-type]


def _members(file: io.FileIO | io.BytesIO, size: int) -> dict[str, NDArray[Any]]:
    """The arrays of the file by name."""
    arrays = {}
    _check_directory(file, size)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        # Without compression the arrays cannot be larger than the file.
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("its arrays must not be compressed")
        if sum(entry.file_size for entry in entries) > size:
            raise ValueError("its arrays are larger than the file")
        for entry in entries:
            # Reading to the end compares the CRC.
            with archive.open(entry) as member:
                arrays[entry.filename.removesuffix(".npy")] = _array(member, entry.file_size)
    return arrays


def _check_directory(file: io.FileIO | io.BytesIO, size: int) -> None:
    """Raise ValueError if the zip directory is longer than ours: zipfile reads all of it.

    Only the records of its size follow it in the file: one, and beyond 2 GiB two more.
    """
    file.seek(-min(size, 98), os.SEEK_END)
    ends = file.read(98)
    sizes = []
    if ends[-22:-18] == b"PK\x05\x06":
        sizes.append(int.from_bytes(ends[-10:-6], "little"))
    if ends[-42:-38] == b"PK\x06\x07" and len(ends) == 98:
        sizes.append(int.from_bytes(ends[40:48], "little"))
    if not sizes:
        raise ValueError("File is not a zip file")
    if max(sizes) > _MAX_DIRECTORY_BYTES:
        raise ValueError("it lists too many arrays")


def _array(file: IO[bytes], size: int) -> NDArray[Any]:
    """The array of a .npy file, whose header must match the size of its data."""
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("its arrays must be in version 1.0 of the .npy format")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    n_bytes = size - file.tell()
    if fortran_order or dtype.hasobject or math.prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError("the header of an array does not fit its data")
    raw = np.empty(n_bytes, np.uint8)
    done = 0
    while done < n_bytes:
        piece = file.read(min(n_bytes - done, PIECE_BYTES))
        if not piece:
            raise ValueError("an array ends too early")
        raw[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    return raw.view(dtype).reshape(shape) if n_bytes else np.empty(shape, dtype)


class _Reader:
    """Builds an estimator from arrays; errors name what is wrong."""

    def __init__(self, path: Path, arrays: dict[str, NDArray[Any]]) -> None:
        self.path = path
        self.arrays = arrays

    def fail(self, reason: str) -> NoReturn:
        raise CorruptFileError(self.path, reason)

    def estimator(self, kinds: tuple[type[Kind], ...]) -> Kind:
        about = self.about()
        by_name = {kind.__name__: kind for kind in kinds}
        kind = by_name.get(str(about.get("class")))
        if kind is None:
            self.fail(f"must hold one of {', '.join(by_name)}, got {about.get('class')!r}")
        estimator = kind(**self.parameters(about.get("parameters"), kind))
        counts = {name: self.count(name) for name in estimator._counts}
        for name, value in counts.items():
            setattr(estimator, name, value)
        shapes = estimator._sizes()
        stored_names = {name: estimator._stored_names.get(name, name) for name in shapes}
        for name, shape in shapes.items():
            setattr(estimator, name, self.floats(stored_names[name], shape, counts))
        unknown = self.arrays.keys() - {_ABOUT, *counts, *stored_names.values()}
        if unknown:
            self.fail(f"{kind.__name__} has no {min(unknown)}")
        try:
            estimator._check_loaded()
        except ValueError as error:
            self.fail(str(error))
        return estimator

    def about(self) -> dict[str, Any]:
        text = self.arrays.get(_ABOUT)
        if text is None or text.dtype.kind != "U" or text.shape != ():
            self.fail(f"must have a text {_ABOUT!r}")
        if text.nbytes > _MAX_ABOUT_BYTES:
            self.fail(f"{_ABOUT} must have at most {_MAX_ABOUT_BYTES} bytes, has {text.nbytes}")
        try:
            about = json.loads(str(text))
        except (ValueError, RecursionError) as error:
            self.fail(f"{_ABOUT} must be JSON: {error}")
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            self.fail("not the file of a hasher or weigher of bitweigh")
        if about.get("version") != VERSION:
            self.fail(
                f"written in format {about.get('version')!r}; this version of bitweigh reads "
                f"{VERSION}"
            )
        return about

    def parameters(self, found: object, kind: type[Estimator]) -> dict[str, Any]:
        expected = defaults(kind)
        if not isinstance(found, dict) or found.keys() != expected.keys():
            self.fail(f"parameters must be {', '.join(expected)}")
        for name, value in found.items():
            choices = _CHOICES.get(name)
            if choices is None and type(value) is not int:
                self.fail(f"the parameter {name} must be an integer, got {value!r}")
            if choices is not None and value not in choices:
                self.fail(f"the parameter {name} must be one of {', '.join(map(str, choices))}")
        return found

    def count(self, name: str) -> int:
        array = self.arrays.get(name)
        if array is None or array.dtype != np.int64 or array.shape != ():
            self.fail(f"{name} must be an integer")
        if not 1 <= int(array) <= _MAX_COUNTS[name]:
            self.fail(f"{name} must be from 1 to {_MAX_COUNTS[name]}, got {int(array)}")
        return int(array)

    def floats(
        self, name: str, expected: tuple[str | int | None, ...], counts: dict[str, int]
    ) -> NDArray[np.float64]:
        array = self.arrays.get(name)
        if array is None or array.dtype != np.float64:
            self.fail(f"{name} must be an array of float64")
        shape = [counts[size] if isinstance(size, str) else size for size in expected]
        fits = len(shape) == array.ndim and all(
            size in (None, length) for size, length in zip(shape, array.shape, strict=True)
        )
        if not fits:
            self.fail(f"{name} must have shape {tuple(shape)}, got {array.shape}")
        if not np.isfinite(array).all():
            self.fail(f"{name} must be finite")
        return array
