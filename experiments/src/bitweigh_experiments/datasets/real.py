"""Real sets of moderate size that stand in for the paper's, read from a folder of the user's.

Each keeps its size, is shuffled with a seed, and has queries held out. Nothing is downloaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh.io import read_npy, read_npz
from bitweigh_experiments.arguments import as_integer
from bitweigh_experiments.datasets.dataset import Dataset
from bitweigh_experiments.datasets.files import PathLike, need_files
from bitweigh_experiments.datasets.splits import as_seed, by_group

__all__ = ["cifar", "dsift", "dsift512", "glove"]

_PER_IMAGE = 16  # descriptors per image: a 4 x 4 grid, row by row
_JOINED = 4  # descriptors side by side in a row of dsift512: one row of the grid


def dsift(folder: PathLike, *, n_queries: int = 1000, seed: int = 0) -> Dataset:
    """Dense SIFT descriptors of photos: a stand-in for SIFT1M and SIFT1B.

    Neighbouring descriptors of an image overlap, so whole images are held out for the queries.

    Parameters
    ----------
    folder : path
        Holds ``dsift480k_u8.npy``: uint8 ``(n, 128)``, image by image, 16 descriptors each.
    n_queries : int
        Descriptors of held-out images.
    seed : int
        Chooses the images and shuffles the rows.

    Returns
    -------
    Dataset
        uint8.

    Raises
    ------
    FileNotFoundError
        The file is missing; the message says how to create one.
    ValueError
        The file is not what it should be, or has too few rows for the queries.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh_experiments import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "dsift480k_u8.npy", np.zeros((80, 128), dtype=np.uint8))
    ...     print(datasets.dsift(folder, n_queries=10))
    Dataset('dense SIFT': 64 rows of 128 uint8, 10 queries)

    """
    return _split("dense SIFT", _descriptors(folder), _PER_IMAGE, n_queries, seed)


def dsift512(folder: PathLike, *, n_queries: int = 1000, seed: int = 0) -> Dataset:
    """Four neighbouring dense SIFT descriptors side by side: 512 dimensions, for 256 bits of ITQ.

    ITQ cannot produce more bits than there are dimensions. The 16 descriptors of an image give 4
    rows, so there are a quarter as many rows as in `dsift`.

    Parameters
    ----------
    folder : path
        As for `dsift`.
    n_queries : int
        Rows of held-out images.
    seed : int
        Chooses the images and shuffles the rows.

    Returns
    -------
    Dataset
        uint8.

    Raises
    ------
    FileNotFoundError, ValueError
        As for `dsift`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh_experiments import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "dsift480k_u8.npy", np.zeros((80, 128), dtype=np.uint8))
    ...     print(datasets.dsift512(folder, n_queries=3))
    Dataset('dense SIFT x 4': 16 rows of 512 uint8, 3 queries)

    """
    rows = _descriptors(folder)
    joined = rows.reshape(len(rows) // _JOINED, _JOINED * rows.shape[1])
    return _split("dense SIFT x 4", joined, _PER_IMAGE // _JOINED, n_queries, seed)


def glove(folder: PathLike, *, n_queries: int = 1000, seed: int = 0, unit: bool = False) -> Dataset:
    """GloVe word vectors: hard data, with few near neighbours.

    Parameters
    ----------
    folder : path
        Holds ``glove341k_int8.npz``: ``vectors`` int8 ``(n, 100)`` and ``scale`` float32
        ``(100,)``. A row is ``vectors * scale``.
    n_queries : int
        Rows held out.
    seed : int
        Chooses the queries and shuffles the rows.
    unit : bool
        Scale each row to length 1, so that the Euclidean distance ranks as the cosine does.

    Returns
    -------
    Dataset
        float32.

    Raises
    ------
    FileNotFoundError, ValueError
        As for `dsift`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh_experiments import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "glove341k_int8.npz"
    ...     ones = np.ones(100, dtype=np.float32)
    ...     np.savez(file, vectors=np.full((9, 100), 2, dtype=np.int8), scale=0.5 * ones)
    ...     data = datasets.glove(folder, n_queries=2)
    >>> data
    Dataset('GloVe': 7 rows of 100 float32, 2 queries)
    >>> float(data.base[0, 0])
    1.0

    """
    name = "glove341k_int8.npz"
    need_files(
        Path(folder),
        [name],
        "save vectors, int8 (n, 100), and scale, float32 (100,), with np.savez; the word vectors "
        "are those of the GloVe project of Stanford NLP (6B tokens, 100 dimensions)",
    )
    file = Path(folder) / name
    vectors, scale = read_npz(file, member="vectors"), read_npz(file, member="scale")
    if vectors.ndim != 2 or scale.shape != vectors.shape[1:]:
        raise ValueError(
            f"{file}: expected vectors (n, d) and scale (d,), got {vectors.shape} and {scale.shape}"
        )
    rows = vectors.astype(np.float32) * scale.astype(np.float32)
    if unit:
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= lengths.clip(min=np.finfo(np.float32).tiny)
    return _split("GloVe", rows, 1, n_queries, seed)


def cifar(folder: PathLike, *, n_queries: int = 1000, seed: int = 0) -> Dataset:
    """Features of photos by a neural network, with labels: a stand-in for Places205.

    Parameters
    ----------
    folder : path
        Holds ``cifar60k_cnn128_f16.npz``: ``vectors`` ``(n, 128)`` and ``labels`` ``(n,)``.
    n_queries : int
        Rows held out.
    seed : int
        Chooses the queries and shuffles the rows.

    Returns
    -------
    Dataset
        float32, with `labels` and `query_labels`.

    Raises
    ------
    FileNotFoundError, ValueError
        As for `dsift`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh_experiments import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "cifar60k_cnn128_f16.npz"
    ...     np.savez(file, vectors=np.zeros((9, 128), dtype=np.float16), labels=np.arange(9) % 2)
    ...     print(datasets.cifar(folder, n_queries=2))
    Dataset('CIFAR-10 features': 7 rows of 128 float32, 2 queries)

    """
    name = "cifar60k_cnn128_f16.npz"
    need_files(
        Path(folder),
        [name],
        "save vectors, floats (n, 128), and labels, integers (n,), with np.savez: features of the "
        "CIFAR-10 images (Krizhevsky, University of Toronto) from a network trained on ImageNet, "
        "reduced to 128 dimensions by PCA",
    )
    file = Path(folder) / name
    vectors, labels = read_npz(file, member="vectors"), read_npz(file, member="labels")
    if vectors.ndim != 2 or labels.shape != (len(vectors),):
        raise ValueError(
            f"{file}: expected vectors (n, d) and labels (n,), got {vectors.shape} "
            f"and {labels.shape}"
        )
    rows = vectors.astype(np.float32)
    return _split("CIFAR-10 features", rows, 1, n_queries, seed, labels)


def _descriptors(folder: PathLike) -> NDArray[Any]:
    name = "dsift480k_u8.npy"
    need_files(
        Path(folder),
        [name],
        "save dense SIFT descriptors of any photos with np.save, uint8 (n, 128), image by image, "
        "16 each, for example OpenCV's of the CIFAR-10 images (Krizhevsky, University of Toronto)",
    )
    rows = read_npy(Path(folder) / name)
    if rows.dtype != np.uint8 or rows.ndim != 2 or len(rows) % _PER_IMAGE:
        raise ValueError(
            f"{Path(folder) / name}: expected uint8 (n, d) with {_PER_IMAGE} rows for each image, "
            f"got {rows.dtype} {rows.shape}"
        )
    return rows


def _split(
    name: str,
    rows: NDArray[Any],
    group: int,
    n_queries: int,
    seed: int,
    labels: NDArray[Any] | None = None,
) -> Dataset:
    base, queries = by_group(
        len(rows), group, as_integer(n_queries, "n_queries", 1, 2**48), as_seed(seed)
    )
    return Dataset(
        name,
        np.asarray(rows[base]),
        np.asarray(rows[queries]),
        labels=None if labels is None else labels[base],
        query_labels=None if labels is None else labels[queries],
    )
