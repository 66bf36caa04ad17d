"""Readers of the big-ann files fbin, u8bin and i8bin: uint32 n and d once, then n rows of d values.

Little-endian. The file is mapped, not read, and must have exactly the size that its header says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh.io._paths import PathLike, as_file, as_max_rows

__all__ = ["read_fbin", "read_i8bin", "read_u8bin"]

_HEADER_BYTES = 8


def read_fbin(path: PathLike, *, max_rows: int | None = None) -> NDArray[np.float32]:
    """Map a big-ann file of float32 vectors.

    Parameters
    ----------
    path : path
        A file of uint32 n, uint32 d and n * d float32 values.
    max_rows : int, optional
        Max rows to read, from the start of the file.

    Returns
    -------
    float32 (n, d), a read-only view of the mapped file

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file is empty, has n = 0 or d = 0, or does not have the size that its header says.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh import io
    >>> rows = np.array([[0.5, 1.0], [2.0, 4.0]], dtype=np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "two.fbin"
    ...     _ = file.write_bytes(np.array(rows.shape, dtype=np.uint32).tobytes() + rows.tobytes())
    ...     print(io.read_fbin(file))
    [[0.5 1. ]
     [2.  4. ]]

    """
    return _read(path, np.dtype("<f4"), max_rows)


def read_u8bin(path: PathLike, *, max_rows: int | None = None) -> NDArray[np.uint8]:
    """Map a big-ann file of uint8 vectors.

    Parameters
    ----------
    path : path
        A file of uint32 n, uint32 d and n * d bytes.
    max_rows : int, optional
        Max rows to read, from the start of the file.

    Returns
    -------
    uint8 (n, d), a read-only view of the mapped file

    Raises
    ------
    FileNotFoundError, ValueError
        As for `read_fbin`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from bitweigh import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "one.u8bin"
    ...     _ = file.write_bytes(bytes([1, 0, 0, 0, 3, 0, 0, 0, 7, 8, 200]))
    ...     print(io.read_u8bin(file))
    [[  7   8 200]]

    """
    return _read(path, np.dtype(np.uint8), max_rows)


def read_i8bin(path: PathLike, *, max_rows: int | None = None) -> NDArray[np.int8]:
    """Map a big-ann file of int8 vectors.

    Parameters
    ----------
    path : path
        A file of uint32 n, uint32 d and n * d bytes.
    max_rows : int, optional
        Max rows to read, from the start of the file.

    Returns
    -------
    int8 (n, d), a read-only view of the mapped file

    Raises
    ------
    FileNotFoundError, ValueError
        As for `read_fbin`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from bitweigh import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "one.i8bin"
    ...     _ = file.write_bytes(bytes([1, 0, 0, 0, 3, 0, 0, 0, 7, 8, 255]))
    ...     print(io.read_i8bin(file))
    [[ 7  8 -1]]

    """
    return _read(path, np.dtype(np.int8), max_rows)


def _read(path: PathLike, dtype: np.dtype[Any], max_rows: int | None) -> NDArray[Any]:
    file, size = as_file(path)
    if size < _HEADER_BYTES:
        raise ValueError(f"{file}: truncated: {size} bytes, less than its header of n and d")
    with file.open("rb") as opened:
        header = np.frombuffer(opened.read(_HEADER_BYTES), "<u4")
    n, dimension = int(header[0]), int(header[1])
    if n == 0 or dimension == 0:
        raise ValueError(f"{file}: expected rows and dimensions, got n={n} and d={dimension}")
    expected = _HEADER_BYTES + n * dimension * dtype.itemsize
    if size != expected:
        raise ValueError(
            f"{file}: {'truncated' if size < expected else 'too long'}: n={n} rows of "
            f"d={dimension} {dtype.name} take {expected} bytes, and the file has {size}"
        )
    mapped = np.memmap(file, dtype=dtype, mode="r", offset=_HEADER_BYTES, shape=(n, dimension))
    return mapped[: as_max_rows(max_rows, n)]
