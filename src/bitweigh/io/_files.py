"""One reader for every format, chosen by the ending of the file's name."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh.io._bins import read_fbin, read_i8bin, read_u8bin
from bitweigh.io._hdf5 import read_hdf5
from bitweigh.io._parquet import read_parquet
from bitweigh.io._paths import PathLike, as_file, as_max_rows
from bitweigh.io._vecs import read_bvecs, read_fvecs, read_ivecs

__all__ = ["read", "read_npy", "read_npz"]

_VECS: dict[str, Callable[..., NDArray[Any]]] = {
    ".fvecs": read_fvecs,
    ".ivecs": read_ivecs,
    ".bvecs": read_bvecs,
}
_BINS: dict[str, Callable[..., NDArray[Any]]] = {
    ".fbin": read_fbin,
    ".u8bin": read_u8bin,
    ".i8bin": read_i8bin,
}
_WITH_MEMBERS = {".npz", ".hdf5", ".h5"}
_ENDINGS = [*_VECS, *_BINS, ".npy", *sorted(_WITH_MEMBERS), ".parquet"]
# Raised by NumPy and zipfile for a file that is not what its name says.
_BROKEN = (ValueError, EOFError, OSError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error)


def read(
    path: PathLike,
    *,
    max_rows: int | None = None,
    member: str | None = None,
    columns: Sequence[str] | None = None,
    verify: bool = False,
) -> NDArray[Any]:
    """Read vectors from a file whose name ends in its format.

    ========================= ======================================== =============
    ending                    contents                                 access
    ========================= ======================================== =============
    .fvecs .ivecs .bvecs      int32 d before each row                  mapped
    .fbin .u8bin .i8bin       uint32 n and d, then the rows            mapped
    .npy                      one array                                mapped
    .npz                      `member`, needed if it has several       read
    .hdf5 .h5                 `member`, "train" if not given           read, h5py
    .parquet                  `columns`                                read, pyarrow
    ========================= ======================================== =============

    Parameters
    ----------
    path : path
        The file.
    max_rows : int, optional
        Max rows to read, from the start of the file.
    member : str, optional
        Which array, for npz and HDF5.
    columns : sequence of str, optional
        Which columns, for parquet; see `read_parquet`.
    verify : bool
        Check the d of every row, for fvecs, ivecs and bvecs.

    Returns
    -------
    (n, d), or whatever shape is stored, in the stored dtype; nothing is converted

    Raises
    ------
    ImportError
        The format needs a package that is not installed.
    FileNotFoundError
        There is no such file.
    ValueError
        The ending is unknown, an argument is for another format, or the file is not what its name
        says. The message names the file and what is wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "rows.npy"
    ...     np.save(file, np.arange(6, dtype=np.float32).reshape(3, 2))
    ...     print(io.read(file, max_rows=2))
    [[0. 1.]
     [2. 3.]]

    """
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise ValueError(f"{path}: the name must end in one of {' '.join(_ENDINGS)}")
    if member is not None and ending not in _WITH_MEMBERS:
        raise ValueError(f"{path}: member= is for npz and HDF5 only")
    if columns is not None and ending != ".parquet":
        raise ValueError(f"{path}: columns= is for parquet only")
    if verify and ending not in _VECS:
        raise ValueError(f"{path}: verify= is for fvecs, ivecs and bvecs only")
    if ending in _VECS:
        return _VECS[ending](path, max_rows=max_rows, verify=verify)
    if ending in _BINS:
        return _BINS[ending](path, max_rows=max_rows)
    if ending == ".npy":
        return read_npy(path, max_rows=max_rows)
    if ending == ".npz":
        return read_npz(path, member=member, max_rows=max_rows)
    if ending == ".parquet":
        return read_parquet(path, columns=columns, max_rows=max_rows)
    return read_hdf5(path, member="train" if member is None else member, max_rows=max_rows)


def read_npy(path: PathLike, *, max_rows: int | None = None) -> NDArray[Any]:
    """Map an array of numbers that ``np.save`` wrote.

    Parameters
    ----------
    path : path
        The file.
    max_rows : int, optional
        Max rows to read, from the start of the file.

    Returns
    -------
    the stored dtype and shape, at most `max_rows` long, a read-only view of the mapped file

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is not a complete npy file, or does not hold rows of numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "rows.npy"
    ...     np.save(file, np.arange(6, dtype=np.uint8).reshape(3, 2))
    ...     print(io.read_npy(file).shape)
    (3, 2)

    """
    file, _ = as_file(path)
    try:
        # Unlike np.load, this accepts neither a zip file nor a pickle.
        array = np.lib.format.open_memmap(file, mode="r")
    except _BROKEN as error:
        raise ValueError(f"{file}: truncated, or not an npy file of numbers: {error}") from None
    return _checked_rows(file, "the array", array, max_rows)


def read_npz(
    path: PathLike, *, member: str | None = None, max_rows: int | None = None
) -> NDArray[Any]:
    """Read one array out of a file that ``np.savez`` or ``np.savez_compressed`` wrote.

    Parameters
    ----------
    path : path
        The file.
    member : str, optional
        The name of the array; needed if there are several.
    max_rows : int, optional
        Max rows to read, from the start of the file. The whole array is read all the same.

    Returns
    -------
    the stored dtype and shape, at most `max_rows` long

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is not a complete npz file, has no such array, or the array does not hold rows of
        numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "both.npz"
    ...     np.savez(file, vectors=np.zeros((3, 2)), labels=np.array([1, 0, 1]))
    ...     print(io.read_npz(file, member="labels"))
    [1 0 1]

    """
    file, _ = as_file(path)
    if not zipfile.is_zipfile(file):
        raise ValueError(f"{file}: truncated, or not an npz file")
    try:
        with np.load(file, allow_pickle=False) as arrays:
            names = list(arrays.files)
            chosen = names[0] if member is None and len(names) == 1 else member
            array = arrays[chosen] if chosen in names else None
    except MemoryError as error:
        raise ValueError(f"{file}: an array is too large for memory: {error}") from None
    except _BROKEN as error:
        raise ValueError(f"{file}: {member or 'an array'} cannot be read: {error}") from None
    if array is None:
        problem = f"has no array {member!r}" if member is not None else "which array? give member="
        raise ValueError(f"{file}: {problem}; it has {names}")
    return _checked_rows(file, repr(chosen), array, max_rows)


def _checked_rows(file: Path, what: str, array: NDArray[Any], max_rows: int | None) -> NDArray[Any]:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{file}: {what} must hold numbers, got {array.dtype}")
    if array.ndim == 0 or array.size == 0:
        raise ValueError(f"{file}: {what} is empty: shape {array.shape}")
    return array[: as_max_rows(max_rows, len(array))]
