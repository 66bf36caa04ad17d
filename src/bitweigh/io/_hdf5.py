"""HDF5 files in the layout of ann-benchmarks: train, test, neighbors, distances and attributes.

They are read, not mapped. Needs h5py, from the extra ``bitweigh[io]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh.io._paths import PathLike, as_file, as_max_rows

__all__ = ["AnnBenchmarks", "read_ann_benchmarks", "read_hdf5"]


@dataclass(frozen=True, slots=True, eq=False)
class AnnBenchmarks:
    """The contents of an HDF5 file of ann-benchmarks, in the stored dtypes.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import io
    >>> rows = np.zeros((4, 2), dtype=np.float32)
    >>> data = io.AnnBenchmarks(rows, rows[:1], None, None, {"distance": "euclidean"})
    >>> data.train.shape, data.attributes["distance"]
    ((4, 2), 'euclidean')

    """

    train: NDArray[Any]
    """(n, d): the rows to index"""
    test: NDArray[Any]
    """(nq, d): the queries"""
    neighbours: NDArray[Any] | None
    """(nq, k) integers: rows of `train`, nearest first; None where the file has none"""
    distances: NDArray[Any] | None
    """(nq, k): the distances of `neighbours`; None where the file has none"""
    attributes: Mapping[str, object]
    """the attributes of the file, such as ``distance``"""


def read_ann_benchmarks(path: PathLike, *, max_rows: int | None = None) -> AnnBenchmarks:
    """Read all parts of an HDF5 file of ann-benchmarks.

    Parameters
    ----------
    path : path
        The file.
    max_rows : int, optional
        Max rows of ``train`` to read. The stored neighbours are those among all rows: if fewer are
        read, `neighbours` and `distances` are None.

    Returns
    -------
    AnnBenchmarks
        Hamming sets hold unpacked bool rows.

    Raises
    ------
    ImportError
        h5py is not installed.
    FileNotFoundError
        There is no such file.
    ValueError
        It is not an HDF5 file, a part is missing or empty, or the shapes of the parts do not match.

    Examples
    --------
    >>> from bitweigh import io
    >>> data = io.read_ann_benchmarks("sift-128-euclidean.hdf5")  # doctest: +SKIP
    >>> data.train.shape, data.attributes["distance"]  # doctest: +SKIP
    ((1000000, 128), 'euclidean')

    """
    file, _ = as_file(path)
    h5py = _h5py()
    with _open(h5py, file) as opened:
        train = _part(h5py, file, opened, "train", max_rows)
        test = _part(h5py, file, opened, "test", None)
        all_read = len(train) == opened["train"].shape[0]
        neighbours, distances = (
            _part(h5py, file, opened, name, None) if all_read and name in opened else None
            for name in ("neighbors", "distances")
        )
        attributes = {str(name): _plain(value) for name, value in opened.attrs.items()}
    if train.ndim != 2 or test.ndim != 2 or train.shape[1] != test.shape[1]:
        raise ValueError(
            f"{file}: train and test must be (n, d) and (nq, d), got {train.shape} and {test.shape}"
        )
    for name, part in (("neighbors", neighbours), ("distances", distances)):
        if part is not None and (part.ndim != 2 or len(part) != len(test)):
            raise ValueError(f"{file}: {name} must be ({len(test)}, k), got {part.shape}")
    return AnnBenchmarks(train, test, neighbours, distances, MappingProxyType(attributes))


def read_hdf5(
    path: PathLike, *, member: str = "train", max_rows: int | None = None
) -> NDArray[Any]:
    """Read one array of an HDF5 file.

    Parameters
    ----------
    path : path
        The file.
    member : str
        The name of the array inside the file.
    max_rows : int, optional
        Max rows to read, from the start; no others are read.

    Returns
    -------
    the stored dtype and shape, at most `max_rows` long

    Raises
    ------
    ImportError, FileNotFoundError, ValueError
        As for `read_ann_benchmarks`.

    Examples
    --------
    >>> from bitweigh import io
    >>> io.read_hdf5("glove-100-angular.hdf5", max_rows=10).shape  # doctest: +SKIP
    (10, 100)

    """
    file, _ = as_file(path)
    h5py = _h5py()
    with _open(h5py, file) as opened:
        return _part(h5py, file, opened, member, max_rows)


def _h5py() -> ModuleType:
    try:
        import h5py
    except ImportError:
        raise ImportError('HDF5 needs h5py: pip install "bitweigh[io]"') from None
    module: ModuleType = h5py
    return module


def _open(h5py: ModuleType, file: Path) -> Any:  # noqa: ANN401
    try:
        return h5py.File(file, "r")
    except OSError as error:
        raise ValueError(f"{file}: not a complete HDF5 file: {error}") from None


def _part(
    h5py: ModuleType,
    file: Path,
    opened: Any,  # noqa: ANN401
    name: str,
    max_rows: int | None,
) -> NDArray[Any]:
    part = opened.get(name)
    if not isinstance(part, h5py.Dataset):
        raise ValueError(f"{file}: has no array {name!r}; it has {sorted(opened)}")
    if len(part.shape or ()) == 0 or 0 in part.shape:
        raise ValueError(f"{file}: {name!r} is empty: shape {part.shape}")
    if part.dtype.kind not in "biuf":
        raise ValueError(f"{file}: {name!r} must hold numbers, got {part.dtype}")
    rows = as_max_rows(max_rows, part.shape[0])
    try:
        return np.asarray(part[:rows])
    except OSError as error:
        raise ValueError(f"{file}: {name!r} cannot be read: {error}") from None


def _plain(value: object) -> object:
    """Convert an attribute from bytes or a NumPy scalar to a plain Python value."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value
