"""Readers of fvecs, ivecs and bvecs: an int32 d before each row, then d values, little-endian.

The file is mapped, not read: the result is a view of it that skips the d before each row. The size
of the file and every d that is checked must agree with the first d.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh.io._paths import PathLike, as_file, as_max_rows

__all__ = ["read_bvecs", "read_fvecs", "read_ivecs"]

_HEADER = np.dtype("<i4")
# Rows whose d is checked without verify=True: each may take a read from disk.
_SAMPLED_ROWS = 256
_VERIFIED_BLOCK_ROWS = 1 << 16


def read_fvecs(
    path: PathLike, *, max_rows: int | None = None, verify: bool = False
) -> NDArray[np.float32]:
    """Map a file of float32 vectors.

    Parameters
    ----------
    path : path
        A file of rows, each an int32 d and d float32 values.
    max_rows : int, optional
        Max rows to read, from the start of the file. The size of the whole file is checked all the
        same.
    verify : bool
        Check the d of every row that is returned, which reads through the file. Otherwise only
        the first and the last row and a seeded sample between them are checked.

    Returns
    -------
    float32 (n, d), a read-only view of the mapped file

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file is empty or truncated, or its d is not positive or not the same for all rows. The
        message names the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh import io
    >>> rows = np.array([[0.5, 1.0], [2.0, 4.0]], dtype=np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "two.fvecs"
    ...     _ = file.write_bytes(b"".join(np.int32(2).tobytes() + row.tobytes() for row in rows))
    ...     print(io.read_fvecs(file))
    [[0.5 1. ]
     [2.  4. ]]

    """
    return _read(path, np.dtype("<f4"), max_rows, verify)


def read_ivecs(
    path: PathLike, *, max_rows: int | None = None, verify: bool = False
) -> NDArray[np.int32]:
    """Map a file of int32 vectors, which is how the ids of true neighbours are stored.

    Parameters
    ----------
    path : path
        A file of rows, each an int32 d and d int32 values.
    max_rows : int, optional
        Max rows to read, from the start of the file.
    verify : bool
        Check the d of every row that is returned, as for `read_fvecs`.

    Returns
    -------
    int32 (n, d), a read-only view of the mapped file

    Raises
    ------
    FileNotFoundError, ValueError
        As for `read_fvecs`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "one.ivecs"
    ...     _ = file.write_bytes(np.array([3, 7, 8, 9], dtype=np.int32).tobytes())
    ...     print(io.read_ivecs(file))
    [[7 8 9]]

    """
    return _read(path, np.dtype("<i4"), max_rows, verify)


def read_bvecs(
    path: PathLike, *, max_rows: int | None = None, verify: bool = False
) -> NDArray[np.uint8]:
    """Map a file of uint8 vectors, such as the billion rows of SIFT1B.

    Parameters
    ----------
    path : path
        A file of rows, each an int32 d and d bytes.
    max_rows : int, optional
        Max rows to read, from the start of the file.
    verify : bool
        Check the d of every row that is returned, as for `read_fvecs`.

    Returns
    -------
    uint8 (n, d), a read-only view of the mapped file

    Raises
    ------
    FileNotFoundError, ValueError
        As for `read_fvecs`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from bitweigh import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "two.bvecs"
    ...     _ = file.write_bytes(bytes([3, 0, 0, 0, 7, 8, 9, 3, 0, 0, 0, 1, 2, 4]))
    ...     print(io.read_bvecs(file, max_rows=1))
    [[7 8 9]]

    """
    return _read(path, np.dtype(np.uint8), max_rows, verify)


def _read(path: PathLike, dtype: np.dtype[Any], max_rows: int | None, verify: bool) -> NDArray[Any]:
    file, size = as_file(path)
    dimension = _first_dimension(file, size)
    row_bytes = _HEADER.itemsize + dimension * dtype.itemsize
    n_rows, extra_bytes = divmod(size, row_bytes)
    if extra_bytes:
        raise ValueError(
            f"{file}: truncated, or rows of mixed dimensions: a row of d={dimension} takes "
            f"{row_bytes} bytes, and the file has {size}: {n_rows} whole rows and {extra_bytes} "
            "bytes more"
        )
    rows = as_max_rows(max_rows, n_rows)
    # The d of a row takes the space of this many values.
    header_items = _HEADER.itemsize // dtype.itemsize
    items = np.memmap(file, dtype=dtype, mode="r", shape=(n_rows, header_items + dimension))
    headers = np.ndarray(
        (n_rows,), _HEADER, buffer=items.reshape(-1).view(np.uint8), strides=(row_bytes,)
    )
    _check_dimensions(file, headers, dimension, rows, verify)
    return items[:rows, header_items:]


def _first_dimension(file: Path, size: int) -> int:
    if size < _HEADER.itemsize:
        raise ValueError(f"{file}: truncated: {size} bytes, less than the d of the first row")
    with file.open("rb") as opened:
        dimension = int(np.frombuffer(opened.read(_HEADER.itemsize), _HEADER)[0])
    if dimension <= 0:
        raise ValueError(f"{file}: the dimension of row 0 must be positive, got d={dimension}")
    return dimension


def _check_dimensions(
    file: Path, headers: NDArray[np.int32], dimension: int, rows: int, verify: bool
) -> None:
    """Check the d of the file's first and last row, and of a sample or all of the first `rows`."""
    if verify:
        for first in range(0, rows, _VERIFIED_BLOCK_ROWS):
            _check_rows(
                file, headers, dimension, np.arange(first, min(first + _VERIFIED_BLOCK_ROWS, rows))
            )
    sampled = np.random.default_rng(rows).integers(0, rows, _SAMPLED_ROWS)
    _check_rows(file, headers, dimension, np.unique([0, *sampled, rows - 1, len(headers) - 1]))


def _check_rows(
    file: Path, headers: NDArray[np.int32], dimension: int, which: NDArray[np.int64]
) -> None:
    wrong = which[headers[which] != dimension]
    if wrong.size:
        raise ValueError(
            f"{file}: mixed dimensions: row 0 has d={dimension}, row {wrong[0]} has "
            f"d={headers[wrong[0]]}"
        )
