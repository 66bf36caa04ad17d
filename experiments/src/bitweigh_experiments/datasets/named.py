"""The paper's data sets, read from a folder supplied by the user. Nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh.io import read, read_npy, read_npz
from bitweigh_experiments.arguments import as_integer
from bitweigh_experiments.datasets.dataset import Dataset
from bitweigh_experiments.datasets.files import PathLike, need_files
from bitweigh_experiments.datasets.splits import as_seed, by_class

__all__ = ["gist1m", "places205", "sift1b", "sift1m"]

_TEXMEX = (
    "they are on the page 'Datasets for approximate nearest neighbor search' of the TEXMEX project "
    "(IRISA/INRIA, corpus-texmex.irisa.fr), as {archive}; unpack and give the folder of the files"
)
# The prefixes of the base, in millions of rows, that TEXMEX gives true neighbours for.
_MILLIONS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_PLACES_DIMENSIONS = 128


def gist1m(folder: PathLike) -> Dataset:
    """GIST1M: 1,000,000 GIST descriptors of 960 dimensions, 1000 queries.

    Parameters
    ----------
    folder : path
        Holds ``gist_base.fvecs`` and ``gist_query.fvecs``, and if you have them
        ``gist_learn.fvecs`` and ``gist_groundtruth.ivecs``: the files of TEXMEX as they are.

    Returns
    -------
    Dataset
        float32, mapped. `learn` and `neighbours` are None without their files.

    Raises
    ------
    FileNotFoundError
        Files are missing; the message lists them and says where they come from.
    ValueError
        A file is not what it should be, or does not fit the others.

    Examples
    --------
    >>> import tempfile
    >>> from bitweigh_experiments import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         datasets.gist1m(folder)
    ...     except FileNotFoundError as error:
    ...         print(str(error).split(": ")[1])
    gist_base.fvecs, gist_query.fvecs are missing

    """
    return _texmex(folder, "GIST1M", "gist", "gist.tar.gz")


def sift1m(folder: PathLike) -> Dataset:
    """SIFT1M: 1,000,000 SIFT descriptors of 128 dimensions, 10,000 queries.

    Parameters
    ----------
    folder : path
        Holds ``sift_base.fvecs`` and ``sift_query.fvecs``, and if you have them
        ``sift_learn.fvecs`` and ``sift_groundtruth.ivecs``: the files of TEXMEX as they are.

    Returns
    -------
    Dataset
        float32, mapped. `learn` and `neighbours` are None without their files.

    Raises
    ------
    FileNotFoundError
        Files are missing; the message lists them and says where they come from.
    ValueError
        A file is not what it should be, or does not fit the others.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh_experiments import datasets
    >>> row = np.int32(128).tobytes() + np.zeros(128, dtype=np.float32).tobytes()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "sift_base.fvecs").write_bytes(row * 5)
    ...     _ = (Path(folder) / "sift_query.fvecs").write_bytes(row)
    ...     print(datasets.sift1m(folder))
    Dataset('SIFT1M': 5 rows of 128 float32, 1 query)

    """
    return _texmex(folder, "SIFT1M", "sift", "sift.tar.gz")


def sift1b(folder: PathLike, *, max_rows: int | None = None) -> Dataset:
    """SIFT1B, also called BIGANN: 10^9 SIFT descriptors of 128 dimensions, 10,000 queries.

    Parameters
    ----------
    folder : path
        Holds ``bigann_base.bvecs`` and ``bigann_query.bvecs``, and if you have them
        ``bigann_learn.bvecs`` and ``gnd/idx_1M.ivecs`` to ``gnd/idx_1000M.ivecs``: the files of
        TEXMEX, unpacked.
    max_rows : int, optional
        At most this many rows of the base, from the first on.

    Returns
    -------
    Dataset
        uint8, mapped. `neighbours` are those of as many rows as there are: TEXMEX has them for the
        first 1, 2, 5, 10, 20, 50, 100, 200, 500 and 1000 million; None for other `max_rows`.
        `learn` and `neighbours` are None without their files.

    Raises
    ------
    FileNotFoundError
        Files are missing; the message lists them and says where they come from.
    ValueError
        A file is not what it should be, or does not fit the others.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from bitweigh_experiments import datasets
    >>> row = bytes([128, 0, 0, 0]) + bytes(128)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "bigann_base.bvecs").write_bytes(row * 5)
    ...     _ = (Path(folder) / "bigann_query.bvecs").write_bytes(row)
    ...     print(datasets.sift1b(folder, max_rows=3))
    Dataset('SIFT1B': 3 rows of 128 uint8, 1 query)

    """
    root = Path(folder)
    archives = "bigann_base.bvecs.gz, bigann_query.bvecs.gz and bigann_gnd.tar.gz"
    need_files(root, ["bigann_base.bvecs", "bigann_query.bvecs"], _TEXMEX.format(archive=archives))
    base = read(root / "bigann_base.bvecs", max_rows=max_rows)
    millions = {number * 10**6: number for number in _MILLIONS}
    truth_millions = millions.get(len(base), 1000 if max_rows is None else None)
    truth = None if truth_millions is None else root / "gnd" / f"idx_{truth_millions}M.ivecs"
    return Dataset(
        "SIFT1B",
        base,
        read(root / "bigann_query.bvecs"),
        learn=_read_if_present(root / "bigann_learn.bvecs"),
        neighbours=None if truth is None else _read_if_present(truth),
    )


def places205(
    folder: PathLike, *, per_class: int = 5000, queries_per_class: int = 50, seed: int = 0
) -> Dataset:
    """Places205, split as in the paper: 205 classes of 5000 rows and 50 queries each.

    The features of the paper (AlexNet fc7, reduced to 128 dimensions by PCA) are not public, and so
    there is no genuine file. Make your own from the images, in this layout.

    Parameters
    ----------
    folder : path
        Holds ``places205_features.npy`` ``(n, 128)`` and ``places205_labels.npy`` ``(n,)``, or
        ``places205.npz`` with the arrays ``features`` and ``labels``. Features are floats, labels
        integers, rows in any order.
    per_class : int
        At most this many rows of each class to search.
    queries_per_class : int
        Queries of each class.
    seed : int
        Chooses and shuffles the rows.

    Returns
    -------
    Dataset
        In the dtype of the features, with `labels` and `query_labels`.

    Raises
    ------
    FileNotFoundError
        Files are missing; the message lists them and says how to make them.
    ValueError
        A file is not what it should be, or a class has no more rows than queries.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh_experiments import datasets
    >>> labels = np.arange(30) % 3
    >>> features = np.random.default_rng(0).standard_normal((30, 128), dtype=np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "places205.npz", features=features, labels=labels)
    ...     print(datasets.places205(folder, queries_per_class=2))
    Dataset('Places205': 24 rows of 128 float32, 6 queries)

    """
    root = Path(folder)
    both = root / "places205.npz"
    if both.exists():
        features, labels = read_npz(both, member="features"), read_npz(both, member="labels")
    else:
        need_files(
            root,
            ["places205_features.npy", "places205_labels.npy"],
            "or places205.npz with the arrays 'features' and 'labels'. The paper's features are "
            "not public: take the images from the Places project of MIT CSAIL "
            "(places.csail.mit.edu) and reduce AlexNet's fc7 layer to 128 dimensions by PCA",
        )
        features = read_npy(root / "places205_features.npy")
        labels = read_npy(root / "places205_labels.npy")
    if features.ndim != 2 or features.shape[1] != _PLACES_DIMENSIONS or features.dtype.kind != "f":
        raise ValueError(
            f"{root}: the features of Places205 must be floats (n, {_PLACES_DIMENSIONS}), "
            f"got {features.dtype} {features.shape}"
        )
    if labels.shape != (len(features),) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{root}: the labels of Places205 must be integers ({len(features)},), "
            f"got {labels.dtype} {labels.shape}"
        )
    base, queries = by_class(
        labels,
        as_integer(per_class, "per_class", 1, 2**48),
        as_integer(queries_per_class, "queries_per_class", 1, 2**48),
        as_seed(seed),
    )
    return Dataset(
        "Places205",
        np.asarray(features[base]),
        np.asarray(features[queries]),
        labels=np.asarray(labels[base]),
        query_labels=np.asarray(labels[queries]),
    )


def _texmex(folder: PathLike, name: str, stem: str, archive: str) -> Dataset:
    root = Path(folder)
    base, queries = f"{stem}_base.fvecs", f"{stem}_query.fvecs"
    need_files(root, [base, queries], _TEXMEX.format(archive=archive))
    return Dataset(
        name,
        read(root / base),
        read(root / queries),
        learn=_read_if_present(root / f"{stem}_learn.fvecs"),
        neighbours=_read_if_present(root / f"{stem}_groundtruth.ivecs"),
    )


def _read_if_present(file: Path) -> NDArray[Any] | None:
    return read(file) if file.exists() else None
