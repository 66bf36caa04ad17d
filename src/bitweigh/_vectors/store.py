"""Vectors by id, for ranking candidates by true distance: rows in files, and where each id's is.

A `Vectors` never changes, but shares its files with those made from it: rows are only ever
appended, beyond what it knows of. A row that was replaced or removed stays in the file until all
rows that count are written to a new one.
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
from bitweigh.typing import Ids, VectorDtype

__all__ = ["Vectors", "Writer", "blocks_of", "check_vectors"]

Rows: TypeAlias = NDArray[Any]

# Values read at a time where all vectors are read: 4 MB of float32.
_BLOCK_VALUES = 2**20


class _Log:
    """A temporary file that rows are appended to. It has no name, and goes with its last user."""

    def __init__(self, dtype: np.dtype[Any], n_features: int) -> None:
        self.dtype = dtype
        self.n_features = n_features
        self.row_bytes = dtype.itemsize * n_features
        # After a fork both processes have the file; only the one that made it writes to it.
        self.owner = os.getpid()
        self._folder = tempfile.gettempdir()
        self._file = tempfile.TemporaryFile(  # noqa: SIM115
            prefix="bitweigh-", buffering=0, dir=self._folder
        )
        weakref.finalize(self, self._file.close)

    def write(self, first: int, block: Rows) -> None:
        """Write rows from a place on. A full disk raises, where writing to a map would kill."""
        data = np.ascontiguousarray(block, self.dtype).reshape(-1).view(np.uint8).data
        self._file.seek(first * self.row_bytes)
        done = 0
        try:
            while done < len(data):
                done += self._file.write(data[done:])
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}, in the folder of temporary files, where rerank= keeps vectors; "
                "make room there, or let TMPDIR name another folder before Python starts",
                self._folder,
            ) from None

    def cut(self, rows: int) -> None:
        """Give back the space behind so many rows, which nobody knows of."""
        if self.owner == os.getpid():
            self._file.truncate(rows * self.row_bytes)

    def mapped(self, rows: int) -> Rows:
        """The first rows."""
        if rows == 0:
            return np.empty((0, self.n_features), self.dtype)
        size = rows * self.row_bytes
        mapping = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ)
        return np.frombuffer(mapping, self.dtype).reshape(rows, self.n_features)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Where the rows of some ids are."""

    ids: Ids | range
    """Ascending."""
    rows: NDArray[np.int64] | range
    """Of each id, counted over all files."""

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, wanted: Ids) -> NDArray[np.int64]:
        """The row of each id, -1 where it is not here."""
        if isinstance(self.ids, range):
            places = wanted - self.ids.start
            here = (places >= 0) & (places < len(self.ids))
        else:
            places = np.empty(len(wanted), np.int64)
            _core.find_sorted(self.ids, wanted, places)
            here = places >= 0
        if isinstance(self.rows, range):
            return np.where(here, places + self.rows.start, -1)
        return np.where(here, self.rows[np.where(here, places, 0)], -1)

    def arrays(self) -> tuple[Ids, NDArray[np.int64]]:
        """Ids and rows, as arrays."""
        ids, rows = (
            np.arange(own.start, own.stop, dtype=np.int64) if isinstance(own, range) else own
            for own in (self.ids, self.rows)
        )
        return ids, rows

    def continued_by(self, newer: _Run) -> bool:
        """Whether both together are one range."""
        return (
            isinstance(self.ids, range)
            and isinstance(newer.ids, range)
            and isinstance(self.rows, range)
            and isinstance(newer.rows, range)
            and (self.ids.stop, self.rows.stop) == (newer.ids.start, newer.rows.start)
        )

    def merged(self, newer: _Run) -> _Run:
        """Both as one; the newer row counts where both have an id."""
        if self.continued_by(newer):
            return _Run(
                range(int(self.ids[0]), int(newer.ids[-1]) + 1),
                range(int(self.rows[0]), int(newer.rows[-1]) + 1),
            )
        old_ids, old_rows = self.arrays()
        new_ids, new_rows = newer.arrays()
        left = newer.find(old_ids) < 0
        ids = np.concatenate([old_ids[left], new_ids])
        rows = np.concatenate([old_rows[left], new_rows])
        order = np.argsort(ids, kind="stable")
        return _Run(ids[order], rows[order])


def _run_of(ids: Ids | range, first_row: int) -> _Run:
    """The run of ids in any order whose rows follow each other."""
    if isinstance(ids, range):
        return _Run(ids, range(first_row, first_row + len(ids)))
    if (np.diff(ids) == 1).all():
        return _run_of(range(int(ids[0]), int(ids[-1]) + 1), first_row)
    order = np.argsort(ids, kind="stable")
    return _Run(ids[order], first_row + order)


class Vectors:
    """Vectors of one width and dtype by id."""

    def __init__(
        self,
        log: _Log,
        frozen: tuple[Rows, ...] = (),
        log_rows: int = 0,
        runs: tuple[_Run, ...] = (),
    ) -> None:
        """The rows are those of `frozen`, one after the other, and then those of the log."""
        self._log = log
        self._frozen = frozen
        self._log_rows = log_rows
        self._runs = runs  # the oldest first
        self._arrays = (*frozen, log.mapped(log_rows))
        self._ends = np.cumsum([len(array) for array in self._arrays])

    @classmethod
    def empty(cls, kept: VectorDtype, n_features: int) -> Vectors:
        """None yet."""
        return cls(_Log(np.dtype(kept), n_features))

    @classmethod
    def of_arrays(cls, ids: Ids, vectors: Rows) -> Vectors:
        """Those of an array, which stays where it is; `ids` ascend and are distinct."""
        follow = len(ids) > 0 and int(ids[-1]) - int(ids[0]) == len(ids) - 1
        run = _Run(range(int(ids[0]), int(ids[-1]) + 1) if follow else ids, range(len(ids)))
        return cls(_Log(vectors.dtype, vectors.shape[1]), (vectors,), 0, (run,))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the vectors."""
        return self._log.dtype

    @property
    def n_features(self) -> int:
        """Numbers of a vector."""
        return self._log.n_features

    @property
    def n_rows(self) -> int:
        """Rows in the files, also those that no id has any more."""
        return int(self._ends[-1])

    @property
    def arrays(self) -> tuple[Rows, ...]:
        """Where the rows are, numbered through all of these."""
        return self._arrays

    def rows_of(self, ids: Ids) -> NDArray[np.int64]:
        """The row of each id, -1 where it has none."""
        rows = np.full(len(ids), -1, dtype=np.int64)
        missing: NDArray[np.int64] | slice = slice(None)
        for run in reversed(self._runs):
            rows[missing] = run.find(ids[missing])
            missing = np.flatnonzero(rows < 0)
            if not len(missing):
                break
        return rows

    def of(self, ids: Ids) -> Rows:
        """The vectors of some ids, (n, n_features); KeyError for the first that has none."""
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
        """What appends rows; one at a time."""
        if self._log.owner == os.getpid():
            return Writer(self._log, self._frozen, self._log_rows, self._runs)
        return Writer(_Log(self.dtype, self.n_features), self._arrays, 0, self._runs)

    def only(self, ids: Ids) -> Vectors:
        """Those of some ids, ascending and distinct, alone in a new file."""
        fresh = Vectors(_Log(self.dtype, self.n_features))
        writer = fresh.writer()
        try:
            for block in blocks_of(self, ids):
                writer.write(block)
        except BaseException:
            fresh.cut()
            raise
        return writer.finish(ids)

    def cut(self) -> None:
        """Give back the space of rows that were written behind these and then given up.

        Only of those that were made last from a file: no others know of rows behind.
        """
        self._log.cut(self._log_rows)


class Writer:
    """Appends rows after those that a `Vectors` knows of. Nothing counts before `finish`."""

    def __init__(
        self, log: _Log, frozen: tuple[Rows, ...], log_rows: int, runs: tuple[_Run, ...]
    ) -> None:
        """Begin after `log_rows` of the log; what others wrote there and gave up is overwritten."""
        self._log = log
        self._frozen = frozen
        self._first = self._end = log_rows
        self._runs = runs

    def write(self, block: Rows) -> None:
        """Append some rows, rounded to the dtype of the file."""
        dtype = self._log.dtype
        with np.errstate(over="ignore"):
            rounded = block.astype(dtype)
        finite = np.isfinite(rounded).all(axis=1)
        if not finite.all():
            row = self._end - self._first + int(np.argmin(finite))
            raise ValueError(
                f"X must fit in {dtype.name}, up to {np.finfo(dtype).max}, see X[{row}]"
            )
        self._log.write(self._end, rounded)
        self._end += len(block)

    def finish(self, ids: Ids | range) -> Vectors:
        """The vectors with those written, one for each id; an id that was there has the new one."""
        if self._end - self._first != len(ids):
            raise ValueError(f"{self._end - self._first} rows were written for {len(ids)} ids")
        runs = list(self._runs)
        if len(ids):
            run = _run_of(ids, sum(len(array) for array in self._frozen) + self._first)
            # Merging neighbours of like size copies each id O(log n) times.
            while runs and (runs[-1].continued_by(run) or len(runs[-1]) <= 2 * len(run)):
                run = runs.pop().merged(run)
            runs.append(run)
        return Vectors(self._log, self._frozen, self._end, tuple(runs))


def blocks_of(vectors: Vectors, ids: Ids) -> Iterator[Rows]:
    """The vectors of some ids, block by block."""
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
