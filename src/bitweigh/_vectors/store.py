"""Vectors by id, for ranking candidates by true distance: rows in files, and the row of each id.

A `Vectors` never changes, but shares its files with those derived from it: rows are written only
after the rows it refers to, and only by the index that created the file. A replaced or removed row
stays in the file until all other rows are written to a new one.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh.errors import CorruptFileError
from bitweigh.typing import Ids, RescoreDtype

__all__ = ["MAX_FILES", "Vectors", "Writer", "blocks_of", "check_vectors"]

Rows: TypeAlias = NDArray[Any]

MAX_FILES = 8
"""Files of vectors that are left as they are: each takes a file descriptor."""

# Values read at a time when all vectors are read: 4 MB of float32.
_BLOCK_VALUES = 2**20


class _Log:
    """A nameless temporary file of rows, deleted when nothing uses it any more."""

    def __init__(
        self, dtype: np.dtype[Any], n_features: int, folder: str | os.PathLike[str] | None = None
    ) -> None:
        self.dtype = dtype
        self.n_features = n_features
        self.row_bytes = dtype.itemsize * n_features
        # After a fork both processes have the file; only the one that created it writes.
        self.owner = os.getpid()
        self._folder = tempfile.gettempdir() if folder is None else os.fspath(folder)
        self._file = tempfile.TemporaryFile(  # noqa: SIM115
            prefix="bitweigh-", buffering=0, dir=self._folder
        )
        weakref.finalize(self, self._file.close)

    def write(self, first: int, block: Rows) -> None:
        """Write rows from row `first` on. A full disk raises; writing to a map would crash."""
        data = np.ascontiguousarray(block, self.dtype).reshape(-1).view(np.uint8).data
        self._file.seek(first * self.row_bytes)
        done = 0
        try:
            while done < len(data):
                done += self._file.write(data[done:])
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}, in the folder of temporary files, where vectors are kept; "
                "free space there, or set TMPDIR to another folder before starting Python",
                self._folder,
            ) from None

    def cut(self, rows: int) -> None:
        """Truncate the file to `rows` rows; nothing may refer to later ones."""
        if self.owner == os.getpid():
            self._file.truncate(rows * self.row_bytes)

    def mapped(self, rows: int) -> Rows:
        """Map the first `rows` rows, read-only."""
        if rows == 0:
            return np.empty((0, self.n_features), self.dtype)
        size = rows * self.row_bytes
        mapping = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ)
        return np.frombuffer(mapping, self.dtype).reshape(rows, self.n_features)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Ids and the row of each."""

    ids: Ids | range
    """In ascending order."""
    rows: NDArray[np.int64] | range
    """The row of each id, numbered across all files."""

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, ids: Ids, deadline: _core.Deadline | None = None) -> NDArray[np.int64]:
        """The row of each id, -1 for ids that are not in the run."""
        if isinstance(self.ids, range):
            positions = ids - self.ids.start
            present = (positions >= 0) & (positions < len(self.ids))
        else:
            positions = np.empty(len(ids), np.int64)
            _core.find_sorted(self.ids, ids, positions, deadline)
            present = positions >= 0
        if isinstance(self.rows, range):
            return np.where(present, positions + self.rows.start, -1)
        return np.where(present, self.rows[np.where(present, positions, 0)], -1)

    def arrays(self) -> tuple[Ids, NDArray[np.int64]]:
        """Ids and rows, as arrays."""
        ids, rows = (
            np.arange(part.start, part.stop, dtype=np.int64) if isinstance(part, range) else part
            for part in (self.ids, self.rows)
        )
        return ids, rows

    def continued_by(self, newer: _Run) -> bool:
        """Whether the ids and rows of `newer` directly follow, all of them ranges."""
        return (
            isinstance(self.ids, range)
            and isinstance(newer.ids, range)
            and isinstance(self.rows, range)
            and isinstance(newer.rows, range)
            and (self.ids.stop, self.rows.stop) == (newer.ids.start, newer.rows.start)
        )

    def merged(self, newer: _Run) -> _Run:
        """Both runs as one; an id that both have gets the newer row."""
        if self.continued_by(newer):
            return _Run(
                range(int(self.ids[0]), int(newer.ids[-1]) + 1),
                range(int(self.rows[0]), int(newer.rows[-1]) + 1),
            )
        old_ids, old_rows = self.arrays()
        new_ids, new_rows = newer.arrays()
        unreplaced = newer.find(old_ids) < 0
        ids = np.concatenate([old_ids[unreplaced], new_ids])
        rows = np.concatenate([old_rows[unreplaced], new_rows])
        order = np.argsort(ids, kind="stable")
        return _Run(ids[order], rows[order])


def _run_of(ids: Ids | range, first_row: int) -> _Run:
    """The run of ids in any order whose rows are consecutive, from `first_row` on."""
    if isinstance(ids, range):
        return _Run(ids, range(first_row, first_row + len(ids)))
    if (np.diff(ids) == 1).all():
        return _run_of(range(int(ids[0]), int(ids[-1]) + 1), first_row)
    order = np.argsort(ids, kind="stable")
    return _Run(ids[order], first_row + order)


def _in_few_files(arrays: tuple[Rows, ...]) -> tuple[Rows, ...]:
    """The same rows in at most `MAX_FILES` arrays; the smallest are copied to a new file."""
    groups = [[array] for array in arrays if len(array)]
    if len(groups) > MAX_FILES:
        while len(groups) > MAX_FILES // 2:
            sizes = [sum(map(len, group)) for group in groups]
            first = min(range(len(sizes) - 1), key=lambda i: sizes[i] + sizes[i + 1])
            groups[first : first + 2] = [groups[first] + groups[first + 1]]
    return tuple(group[0] if len(group) == 1 else _in_a_file(group) for group in groups)


def _in_a_file(arrays: list[Rows]) -> Rows:
    """The rows of all arrays in a new file, mapped."""
    log = _Log(arrays[0].dtype, arrays[0].shape[1])
    rows = 0
    for array in arrays:
        log.write(rows, array)
        rows += len(array)
    return log.mapped(rows)


class Vectors:
    """Vectors of the same width and dtype by id."""

    def __init__(
        self,
        log: _Log,
        frozen: tuple[Rows, ...] = (),
        log_rows: int = 0,
        runs: tuple[_Run, ...] = (),
        *,
        lineage: object = None,
        borrowed_arrays: tuple[Rows, ...] | None = None,
    ) -> None:
        """Number the rows through the arrays of `frozen`, then the first `log_rows` of the log.

        `lineage` is the same object for all that append to the same first rows. Vectors with
        borrowed arrays, which are those rows, never append to the log: it belongs to another index.
        """
        self._log = log
        self._lineage = object() if lineage is None else lineage
        self._borrowed = borrowed_arrays is not None
        self._frozen = frozen
        self._log_rows = log_rows
        self._runs = runs  # oldest first
        # Each mapping takes a file descriptor, so borrowed rows are not mapped again.
        self._arrays = borrowed_arrays or (*frozen, log.mapped(log_rows))
        self._ends = np.cumsum([len(array) for array in self._arrays])

    @classmethod
    def empty(cls, dtype: RescoreDtype, n_features: int) -> Vectors:
        """Create an empty store."""
        return cls(_Log(np.dtype(dtype), n_features))

    def emptied(self, folder: str | os.PathLike[str]) -> Vectors:
        """Create an empty store of such vectors, whose file is in this folder."""
        return Vectors(_Log(self.dtype, self.n_features, folder))

    @classmethod
    def of_arrays(cls, ids: Ids, vectors: Rows) -> Vectors:
        """Use the rows of an array without copying; `ids` are distinct and in ascending order."""
        consecutive = len(ids) > 0 and int(ids[-1]) - int(ids[0]) == len(ids) - 1
        run = _Run(range(int(ids[0]), int(ids[-1]) + 1) if consecutive else ids, range(len(ids)))
        return cls(_Log(vectors.dtype, vectors.shape[1]), (vectors,), 0, (run,))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the vectors."""
        return self._log.dtype

    @property
    def n_features(self) -> int:
        """The number of values in a vector."""
        return self._log.n_features

    @property
    def n_rows(self) -> int:
        """The number of rows in the files, including replaced and removed ones."""
        return int(self._ends[-1])

    @property
    def arrays(self) -> tuple[Rows, ...]:
        """The arrays of the rows, which are numbered across all of them."""
        return self._arrays

    def rows_of(self, ids: Ids, deadline: _core.Deadline | None = None) -> NDArray[np.int64]:
        """The row of each id, -1 for ids without a vector."""
        rows = np.full(len(ids), -1, dtype=np.int64)
        missing: NDArray[np.int64] | slice = slice(None)
        for run in reversed(self._runs):
            rows[missing] = run.find(ids[missing], deadline)
            missing = np.flatnonzero(rows < 0)
            if not len(missing):
                break
        return rows

    def of(self, ids: Ids) -> Rows:
        """The vectors of these ids, (n, n_features); KeyError for the first id without one."""
        rows = self.rows_of(ids)
        if (rows < 0).any():
            raise KeyError(int(ids[np.argmax(rows < 0)]))
        vectors = np.empty((len(ids), self.n_features), self.dtype)
        first = 0
        for array, end in zip(self._arrays, self._ends.tolist(), strict=True):
            here = (rows >= first) & (rows < end)
            vectors[here] = array[rows[here] - first]
            first = end
        return vectors

    def writer(self) -> Writer:
        """A writer that appends rows; only one may be in use at a time."""
        if self._log.owner == os.getpid() and not self._borrowed:
            return Writer(self._log, self._frozen, self._log_rows, self._runs, self._lineage)
        log = _Log(self.dtype, self.n_features)
        return Writer(log, _in_few_files(self._arrays), 0, self._runs, self._lineage)

    def shared(self) -> Vectors:
        """The same vectors for another index, whose additions go to a file of its own."""
        return Vectors(
            self._log,
            self._frozen,
            self._log_rows,
            self._runs,
            lineage=self._lineage,
            borrowed_arrays=self._arrays,
        )

    def continues(self, earlier: Vectors) -> bool:
        """Whether rows have the same numbers in both, and later ones were appended since."""
        return self._lineage is earlier._lineage and self.n_rows >= earlier.n_rows

    def only(self, ids: Ids) -> Vectors:
        """Copy the vectors of these ids, distinct and in ascending order, to a new file."""
        return Vectors(_Log(self.dtype, self.n_features)).joined_by(self, ids)

    def joined_by(self, other: Vectors, ids: Ids) -> Vectors:
        """Append other vectors, of these distinct ids; they replace vectors of the same ids."""
        writer = self.writer()
        try:
            for block in blocks_of(other, ids):
                writer.write(block)
        except BaseException:
            self.cut()
            raise
        return writer.finish(ids)

    def cut(self) -> None:
        """Free the space of rows that were written after these and then abandoned.

        Only for the newest `Vectors` of a file: otherwise newer ones refer to those rows.
        """
        if not self._borrowed:
            self._log.cut(self._log_rows)


class Writer:
    """Appends rows after those of a `Vectors`; they belong to what `finish` returns."""

    def __init__(
        self,
        log: _Log,
        frozen: tuple[Rows, ...],
        log_rows: int,
        runs: tuple[_Run, ...],
        lineage: object,
    ) -> None:
        """Start after `log_rows` of the log, overwriting rows that another writer abandoned."""
        self._log = log
        self._lineage = lineage
        self._frozen = frozen
        self._first = self._end = log_rows
        self._runs = runs

    def write(self, block: Rows, name: str = "X") -> None:
        """Append rows, rounded to the dtype of the file; `name` is the argument they come from."""
        dtype = self._log.dtype
        with np.errstate(over="ignore"):
            rounded = block.astype(dtype)
        finite = np.isfinite(rounded).all(axis=1)
        if not finite.all():
            row = self._end - self._first + int(np.argmin(finite))
            raise ValueError(
                f"{name} must fit in {dtype.name}, up to {np.finfo(dtype).max}, see {name}[{row}]"
            )
        self._log.write(self._end, rounded)
        self._end += len(block)

    def finish(self, ids: Ids | range) -> Vectors:
        """The vectors with those written, one for each id; they replace vectors of the same ids."""
        if self._end - self._first != len(ids):
            raise ValueError(f"{self._end - self._first} rows were written for {len(ids)} ids")
        runs = list(self._runs)
        if len(ids):
            run = _run_of(ids, sum(len(array) for array in self._frozen) + self._first)
            # Merging neighbours of similar size copies each id O(log n) times.
            while runs and (runs[-1].continued_by(run) or len(runs[-1]) <= 2 * len(run)):
                run = runs.pop().merged(run)
            runs.append(run)
        return Vectors(self._log, self._frozen, self._end, tuple(runs), lineage=self._lineage)


def blocks_of(vectors: Vectors, ids: Ids) -> Iterator[Rows]:
    """Yield the vectors of these ids, block by block."""
    step = max(1, _BLOCK_VALUES // vectors.n_features)
    for first in range(0, len(ids), step):
        yield vectors.of(ids[first : first + step])


def check_vectors(vectors: Vectors, ids: Ids) -> None:
    """Raise CorruptFileError unless each of these ids has a vector of finite numbers."""
    try:
        for block in blocks_of(vectors, ids):
            if not np.isfinite(block).all():
                raise CorruptFileError("vectors", "must hold finite numbers")
    except KeyError as error:
        raise CorruptFileError("vectors", f"the id {error} has no vector") from None
