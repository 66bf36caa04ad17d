"""Files for tests of readers and data sets: writers of the formats, and real files if available."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

DTYPES = {"fvecs": np.float32, "ivecs": np.int32, "bvecs": np.uint8}
BIN_DTYPES = {"fbin": np.float32, "u8bin": np.uint8, "i8bin": np.int8}


def write_vecs(file: Path, rows: NDArray[Any]) -> Path:
    """Write fvecs, ivecs or bvecs, by the file's ending."""
    typed = rows.astype(DTYPES[file.suffix[1:]])
    header = np.full((len(rows), 1), rows.shape[1], dtype="<i4").view(np.uint8)
    data = np.ascontiguousarray(typed).view(np.uint8).reshape(len(rows), -1)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(np.hstack([header, data]).tobytes())
    return file


def write_bin(file: Path, rows: NDArray[Any]) -> Path:
    """Write fbin, u8bin or i8bin, by the file's ending."""
    typed = rows.astype(BIN_DTYPES[file.suffix[1:]])
    file.write_bytes(np.array(rows.shape, dtype="<u4").tobytes() + typed.tobytes())
    return file


def some_rows(n: int, d: int, seed: int = 0) -> NDArray[np.int64]:
    """Draw integers that every format holds without loss."""
    return np.random.default_rng(seed).integers(0, 128, (n, d))


def real_data(name: str) -> Path:
    """Return the folder named by BITWEIGH_DATA if it has the file; skip the test otherwise."""
    folder = os.environ.get("BITWEIGH_DATA")
    if folder is None or not (Path(folder) / name).exists():
        pytest.skip(f"set BITWEIGH_DATA to a folder with {name}")
    return Path(folder)
