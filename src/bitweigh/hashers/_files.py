"""Fitted hashers and weighers as files, without pickle.

A file is what ``np.savez`` makes: `about`, JSON with the class and its parameters, and an array for
each attribute that `fit` has learned. Reading one trusts nothing in it: only classes that the
caller names are made, and every array must have the shape that they need.
"""

from __future__ import annotations

import io
import json
import math
import operator
import os
import threading
import zipfile
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import MAX_BITS
from bitweigh._disk.reading import PIECE_BYTES, open_plain, resolved
from bitweigh._disk.writing import refuse_unless_plain, sync_folder, temporary_of, write_synced
from bitweigh.errors import CorruptFileError
from bitweigh.hashers._estimator import Estimator, defaults

__all__ = ["from_bytes", "most_bytes_for", "read", "read_from", "to_bytes", "write"]

FORMAT = "bitweigh-estimator"
VERSION = 1
_ABOUT = "about"
# The words that a parameter may be, where it is a word.
_CHOICES = {
    "bitorder": ("big", "little"),
    "threshold": ("zero", "median"),
    "variant": ("expectation", "lower_bound"),
}
# As 8192 bits of half a million features need.
MOST_BYTES = 1 << 35
# What a file has beside projections and means: the list of arrays, some words, a number per round.
_BESIDE_PROJECTIONS = 1 << 20
_MOST_LISTED = _MOST_ABOUT = 1 << 14
_MOST = {"n_bits_": MAX_BITS, "n_features_in_": 2**31}

Kind = TypeVar("Kind", bound=Estimator)


def write(estimator: Estimator, path: str | os.PathLike[str]) -> None:
    """Write the file in one step: whoever reads it finds the old one or the new one."""
    target = resolved(path)
    raw = to_bytes(estimator)
    if len(raw) > MOST_BYTES:
        raise ValueError(f"a file may have at most {MOST_BYTES} bytes, this would have {len(raw)}")
    # Not /dev/null, where root would replace the device.
    refuse_unless_plain(target)
    # A name that no other thread or process writes to.
    own = f"{target.name}.{os.getpid()}-{threading.get_ident()}"
    try:
        write_synced(target.parent, own, [memoryview(raw)]).replace(target)
    except BaseException:
        target.with_name(temporary_of(own)).unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def read(path: str | os.PathLike[str], kinds: tuple[type[Kind], ...]) -> Kind:
    """What such a file holds, one of `kinds`; raises CorruptFileError if it is not that."""
    own = resolved(path)
    with open_plain(own) as file:
        return read_from(file, own, kinds)


def read_from(file: io.FileIO, path: Path, kinds: tuple[type[Kind], ...]) -> Kind:
    """What an open file holds; it takes no more memory than the file has bytes."""
    size = os.fstat(file.fileno()).st_size
    if size > MOST_BYTES:
        raise CorruptFileError(path, f"must have at most {MOST_BYTES} bytes, has {size}")
    return _from_file(file, size, path, kinds)


def most_bytes_for(n_features: int, n_bits: int) -> int:
    """A file of a hasher or weigher that fits these is not larger."""
    return 8 * (n_features + 1) * (n_bits + 2) + _BESIDE_PROJECTIONS


def to_bytes(estimator: Estimator) -> bytes:
    """The file: the same bytes whenever what was learned is the same."""
    own = type(estimator)
    if "_learned" not in vars(own):
        raise TypeError(f"only hashers and weighers of bitweigh can be saved, got {own.__name__}")
    estimator._need_fitted()
    about = {
        "format": FORMAT,
        "version": VERSION,
        "class": own.__name__,
        "parameters": {name: _plain(value) for name, value in estimator._fitted_params().items()},
    }
    arrays: dict[str, Any] = {_ABOUT: np.array(json.dumps(about))}
    for name in estimator._counts:
        arrays[name] = np.array(getattr(estimator, name), np.int64)
    for name in estimator._sizes():
        stored = estimator._stored_names.get(name, name)
        arrays[stored] = np.ascontiguousarray(getattr(estimator, name))
    made = io.BytesIO()
    np.savez(made, **arrays)
    return made.getvalue()


def from_bytes(raw: bytes, path: Path, kinds: tuple[type[Kind], ...]) -> Kind:
    """What a file holds; `path` is where it came from."""
    return _from_file(io.BytesIO(raw), len(raw), path, kinds)


def _from_file(
    file: io.FileIO | io.BytesIO, size: int, path: Path, kinds: tuple[type[Kind], ...]
) -> Kind:
    try:
        members = _members(file, size)
    except MemoryError:
        raise
    except Exception as error:  # whatever damage leads zipfile and NumPy to
        raise CorruptFileError(path, f"not the file of a hasher or weigher: {error}") from None
    return _Reader(path, members).estimator(kinds)


def _plain(value: object) -> int | str:
    return value if isinstance(value, str) else operator.index(value)  # type: ignore[arg-type]


def _members(file: io.FileIO | io.BytesIO, size: int) -> dict[str, NDArray[Any]]:
    """The arrays of the file by name."""
    arrays = {}
    _check_directory(file, size)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        # What is stored as it is cannot be larger than the file.
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("its arrays must not be compressed")
        if sum(entry.file_size for entry in entries) > size:
            raise ValueError("its arrays are larger than the file")
        for entry in entries:
            # Reading compares with the checksum.
            with archive.open(entry) as member:
                arrays[entry.filename.removesuffix(".npy")] = _array(member, entry.file_size)
    return arrays


def _check_directory(file: io.FileIO | io.BytesIO, size: int) -> None:
    """Raise ValueError where the list of arrays is longer than ours: zipfile reads all of it.

    It is the last thing in the file but for records of its size: one, and beyond 2 GiB two more.
    """
    file.seek(-min(size, 98), os.SEEK_END)
    ends = file.read(98)
    n_bytes = []
    if ends[-22:-18] == b"PK\x05\x06":
        n_bytes.append(int.from_bytes(ends[-10:-6], "little"))
    if ends[-42:-38] == b"PK\x06\x07" and len(ends) == 98:
        n_bytes.append(int.from_bytes(ends[40:48], "little"))
    if not n_bytes:
        raise ValueError("File is not a zip file")
    if max(n_bytes) > _MOST_LISTED:
        raise ValueError("it lists too many arrays")


def _array(file: IO[bytes], size: int) -> NDArray[Any]:
    """The array of a .npy file, whose header must fit what follows it."""
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("its arrays must be in version 1.0 of the .npy format")
    shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
    n_bytes = size - file.tell()
    if by_column or dtype.hasobject or math.prod(shape) * dtype.itemsize != n_bytes:
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
    """Makes an estimator of arrays; each method names what it found wrong."""

    def __init__(self, path: Path, arrays: dict[str, NDArray[Any]]) -> None:
        self.path = path
        self.arrays = arrays

    def fail(self, reason: str) -> NoReturn:
        raise CorruptFileError(self.path, reason)

    def estimator(self, kinds: tuple[type[Kind], ...]) -> Kind:
        about = self.about()
        named = {kind.__name__: kind for kind in kinds}
        kind = named.get(str(about.get("class")))
        if kind is None:
            self.fail(f"must hold one of {', '.join(named)}, got {about.get('class')!r}")
        made = kind(**self.parameters(about.get("parameters"), kind))
        counts = {name: self.count(name) for name in made._counts}
        for name, value in counts.items():
            setattr(made, name, value)
        shapes = made._sizes()
        stored = {name: made._stored_names.get(name, name) for name in shapes}
        for name, shape in shapes.items():
            setattr(made, name, self.floats(stored[name], shape, counts))
        strange = self.arrays.keys() - {_ABOUT, *counts, *stored.values()}
        if strange:
            self.fail(f"{kind.__name__} has no {min(strange)}")
        return made

    def about(self) -> dict[str, Any]:
        text = self.arrays.get(_ABOUT)
        if text is None or text.dtype.kind != "U" or text.shape != ():
            self.fail(f"must have a text {_ABOUT!r}")
        if text.nbytes > _MOST_ABOUT:
            self.fail(f"{_ABOUT} must have at most {_MOST_ABOUT} bytes, has {text.nbytes}")
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
        wanted = defaults(kind)
        if not isinstance(found, dict) or found.keys() != wanted.keys():
            self.fail(f"parameters must be {', '.join(wanted)}")
        for name, value in found.items():
            choices = _CHOICES.get(name)
            if choices is None and type(value) is not int:
                self.fail(f"the parameter {name} must be an integer, got {value!r}")
            if choices is not None and value not in choices:
                self.fail(f"the parameter {name} must be one of {', '.join(choices)}")
        return found

    def count(self, name: str) -> int:
        array = self.arrays.get(name)
        if array is None or array.dtype != np.int64 or array.shape != ():
            self.fail(f"{name} must be an integer")
        if not 1 <= int(array) <= _MOST[name]:
            self.fail(f"{name} must be from 1 to {_MOST[name]}, got {int(array)}")
        return int(array)

    def floats(
        self, name: str, wanted: tuple[str | int | None, ...], counts: dict[str, int]
    ) -> NDArray[np.float64]:
        array = self.arrays.get(name)
        if array is None or array.dtype != np.float64:
            self.fail(f"{name} must be an array of float64")
        shape = [counts[size] if isinstance(size, str) else size for size in wanted]
        fits = len(shape) == array.ndim and all(
            size in (None, own) for size, own in zip(shape, array.shape, strict=True)
        )
        if not fits:
            self.fail(f"{name} must have shape {tuple(shape)}, got {array.shape}")
        if not np.isfinite(array).all():
            self.fail(f"{name} must be finite")
        return array
