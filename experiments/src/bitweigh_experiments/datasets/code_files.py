"""Codes in a folder of .npy files, a file per piece; a folder that is partly written is completed.

Invariant: a file under its final name is whole, because it is renamed only once it is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np

from bitweigh.typing import Codes
from bitweigh_experiments.arguments import as_integer

__all__ = ["CodeFiles", "CodeSource", "write_pieces"]


class CodeSource(Protocol):
    """Codes that can be read piece by piece, in any order and as often as needed.

    Examples
    --------
    >>> from bitweigh_experiments import datasets
    >>> def count(source: datasets.CodeSource) -> int:
    ...     return sum(len(codes) for codes in source.pieces())

    """

    @property
    def rows(self) -> int:
        """Rows in all."""

    @property
    def n_bits(self) -> int:
        """Bits of a code."""

    @property
    def n_pieces(self) -> int:
        """Pieces; all but the last have `piece_rows` rows."""

    @property
    def piece_rows(self) -> int:
        """Rows of a piece."""

    def piece(self, number: int) -> Codes:
        """Return piece `number`, uint8 (rows of the piece, n_bytes)."""

    def pieces(self) -> Iterator[Codes]:
        """Yield all pieces in order."""


class CodeFiles:
    """A source of codes, addressable by piece: the files that `write_pieces` wrote.

    Parameters
    ----------
    folder : Path
        Holds ``codes-000000.npy`` and so on, each uint8 (piece_rows, n_bytes), the last one may be
        shorter.
    n_bits : int
        Bits of a code.
    rows : int, optional
        Use only the first `rows` rows; by default all.

    Attributes
    ----------
    rows, n_bits, n_pieces, piece_rows : int
    paths : list of Path
        The files, in order.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh_experiments import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "codes-000000.npy", np.zeros((100, 4), dtype=np.uint8))
    ...     np.save(Path(folder) / "codes-000001.npy", np.ones((30, 4), dtype=np.uint8))
    ...     files = datasets.CodeFiles(Path(folder), 32)
    ...     files.rows, files.piece(1).shape
    (130, (30, 4))

    """

    def __init__(self, folder: Path, n_bits: int, rows: int | None = None) -> None:
        """Read the shapes of the first and the last file."""
        found = sorted(path for path in folder.iterdir() if re.fullmatch(_NAME, path.name))
        if not found:
            raise FileNotFoundError(f"{folder}: there are no files codes-000000.npy ...")
        if found[-1] != _path(folder, len(found) - 1):
            raise FileNotFoundError(f"{folder}: a file is missing before {found[-1].name}")
        self.n_bits = n_bits
        self.piece_rows = len(_read(found[0], n_bits))
        stored = (len(found) - 1) * self.piece_rows + len(_read(found[-1], n_bits))
        self.rows = as_integer(stored if rows is None else rows, "rows", 1, stored)
        self.n_pieces = -(-self.rows // self.piece_rows)
        self.paths = found[: self.n_pieces]

    def piece(self, number: int) -> Codes:
        """Map piece `number`, uint8 (rows of the piece, n_bytes)."""
        number = as_integer(number, "number", 0, self.n_pieces - 1)
        return _read(self.paths[number], self.n_bits)[: self.rows - number * self.piece_rows]

    def pieces(self) -> Iterator[Codes]:
        """Yield all pieces in order."""
        return map(self.piece, range(self.n_pieces))


def write_pieces(
    source: CodeSource,
    folder: Path,
    *,
    threads: int = 1,
    report: Callable[[int], object] | None = None,
) -> CodeFiles:
    """Write every piece of a source that the folder does not have yet.

    A piece in the folder is taken to be the source's if it has as many rows, or more.

    Parameters
    ----------
    source : CodeSource
        Where pieces come from.
    folder : Path
        Where to; created if missing.
    threads : int
        Pieces drawn and written at a time.
    report : callable, optional
        Called with the number of rows of each piece once it is in the folder.

    Returns
    -------
    CodeFiles
        The files as a source of the same rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh.hashers import LSH
    >>> from bitweigh_experiments import datasets
    >>> vectors = np.random.default_rng(0).standard_normal((2000, 16))
    >>> mixture = datasets.MixtureGenerator(n_clusters=4).fit(vectors)
    >>> source = datasets.MixtureCodes(mixture, LSH(32).fit(vectors), 5000, piece_rows=2048)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     datasets.write_pieces(source, Path(folder), threads=2).n_pieces
    3

    """
    folder.mkdir(parents=True, exist_ok=True)

    def write(number: int) -> int:
        wanted = min(source.piece_rows, source.rows - number * source.piece_rows)
        path = _path(folder, number)
        if not path.exists() or len(_read(path, source.n_bits)) < wanted:
            partial = path.with_suffix(".partial")
            with partial.open("wb") as file:
                np.save(file, source.piece(number))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        return wanted

    with ThreadPoolExecutor(threads) as pool:
        for rows in pool.map(write, range(source.n_pieces)):
            if report is not None:
                report(rows)
    return CodeFiles(folder, source.n_bits, source.rows)


_NAME = r"codes-\d{6}\.npy"


def _path(folder: Path, number: int) -> Path:
    return folder / f"codes-{number:06}.npy"


def _read(path: Path, n_bits: int) -> Codes:
    codes: Codes = np.load(path, mmap_mode="r", allow_pickle=False)
    n_bytes = -(-n_bits // 8)
    if codes.dtype != np.uint8 or codes.ndim != 2 or codes.shape[1] != n_bytes:
        raise ValueError(
            f"{path}: expected uint8 of {n_bytes} columns for codes of {n_bits} bits, got "
            f"{codes.dtype} {codes.shape}"
        )
    return codes
