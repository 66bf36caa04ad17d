"""The record: what a collection must not lose, in an SQLite file.

Every item is a row of `items`: its id, the number of the change that wrote it last (`seq`), the
caller's string key if it has one, its code or vector, and its payload. A removed item stays as a
row without value until a checkpoint of the index has the removal, so that the changes since any
checkpoint are the rows with a larger `seq`.

SQLite before 3.51.3 may damage a file in WAL mode if two connections write or checkpoint at the
same time. So there is exactly one connection that writes, `Record`'s own; `Reader` opens the file
read-only.

A damaged record is never repaired or replaced: opening it raises CorruptFileError, which names the
file, and a server with such a collection does not start.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bitweigh.errors import CorruptFileError, DeadlineError
from bitweigh.server.payload_filters import literal

__all__ = ["Reader", "Record", "Row", "Stored"]

_SCHEMA = """
CREATE TABLE items(
    id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, key TEXT UNIQUE, value BLOB, payload TEXT
);
CREATE INDEX items_by_seq ON items(seq);
CREATE TABLE facts(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO facts VALUES ('format', 1), ('seq', 0), ('next_id', 0);
"""
FORMAT = 1
_UPSERT = """
INSERT INTO items(id, seq, key, value, payload) VALUES (?, ?, ?, ?, ?)
ON CONFLICT(id) DO UPDATE SET seq = excluded.seq, value = excluded.value,
    payload = excluded.payload, key = coalesce(excluded.key, key)
"""
_REMOVE = "UPDATE items SET seq = ?, value = NULL, payload = NULL WHERE id = ?"
# Below SQLite's limit of variables in a statement, also in old versions.
_AT_ONCE = 500
# Of SQLite's virtual machine, between two looks at the clock: some hundred rows of a filter.
_STEPS_UNTIL_LOOK = 2_000


class Row(NamedTuple):
    """An item as it is written."""

    id: int
    key: str | None
    value: bytes
    payload: str | None


class Stored(NamedTuple):
    """An item as it is read; value and payload are None if it was removed."""

    id: int
    seq: int
    key: str | None
    value: bytes | None
    payload: str | None


class _Reading:
    """Questions that can be asked of any connection."""

    _connection: sqlite3.Connection

    def facts(self) -> dict[str, Any]:
        """All facts by name."""
        return dict(self._connection.execute("SELECT name, value FROM facts"))

    def seq(self) -> int:
        """The number of the last change that was committed."""
        return int(self._one("SELECT value FROM facts WHERE name = 'seq'"))

    def count(self) -> int:
        """The number of items; counts rows, which takes a while if there are many."""
        return int(self._one("SELECT count(*) FROM items WHERE value IS NOT NULL"))

    def _one(self, query: str, given: Sequence[object] = ()) -> Any:  # noqa: ANN401
        return self._connection.execute(query, given).fetchone()[0]

    def items(self, ids: Sequence[int]) -> dict[int, Stored]:
        """Items by id, removed ones too; ids that were never used are not there."""
        found: dict[int, Stored] = {}
        for first in range(0, len(ids), _AT_ONCE):
            part = ids[first : first + _AT_ONCE]
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(
                f"SELECT id, seq, key, value, payload FROM items WHERE id IN ({marks})", part
            )
            found.update((row[0], Stored(*row)) for row in rows)
        return found

    def payloads(self, ids: Sequence[int]) -> dict[int, tuple[int, str | None, str | None]]:
        """Seq, key and payload of items by id; those that were removed are not there."""
        found: dict[int, tuple[int, str | None, str | None]] = {}
        for first in range(0, len(ids), _AT_ONCE):
            part = ids[first : first + _AT_ONCE]
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(
                "SELECT id, seq, key, payload FROM items "
                f"WHERE id IN ({marks}) AND value IS NOT NULL",
                part,
            )
            found.update((row[0], row[1:]) for row in rows)
        return found

    def ids_of(self, keys: Sequence[str]) -> dict[str, int]:
        """The ids of string keys, also of those whose items were removed."""
        found: dict[str, int] = {}
        for first in range(0, len(keys), _AT_ONCE):
            part = keys[first : first + _AT_ONCE]
            marks = ",".join("?" * len(part))
            found.update(
                self._connection.execute(f"SELECT key, id FROM items WHERE key IN ({marks})", part)
            )
        return found

    def matching(self, condition: str, given: Sequence[object]) -> Iterator[int]:
        """Ids of the items that meet a condition, ascending or not."""
        rows = self._connection.execute(
            f"SELECT id FROM items WHERE value IS NOT NULL AND ({condition})", given
        )
        return (row[0] for row in rows)

    def page(
        self, after: int, limit: int, condition: str = "1", given: Sequence[object] = ()
    ) -> list[Stored]:
        """The first items with a larger id, in ascending order."""
        rows = self._connection.execute(
            "SELECT id, seq, key, value, payload FROM items "
            f"WHERE id > ? AND value IS NOT NULL AND ({condition}) ORDER BY id LIMIT ?",
            (after, *given, limit),
        )
        return [Stored(*row) for row in rows]

    def values_since(self, seq: int, at_once: int) -> Iterator[list[tuple[int, bytes | None]]]:
        """Ids and values of the items that changed after a number, or all, in batches."""
        rows = self._connection.cursor()
        if seq > 0:
            rows.execute("SELECT id, value FROM items WHERE seq > ?", (seq,))
        else:
            rows.execute("SELECT id, value FROM items WHERE value IS NOT NULL")
        while batch := rows.fetchmany(at_once):
            yield batch


class Record(_Reading):
    """The one connection that writes. Not for several threads at once."""

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        """Open the file, or create it; with `read_only` nothing is written, not even by SQLite."""
        if not create and not path.is_file():
            raise CorruptFileError(path, "is missing")
        self.path = path
        self._for_readers = _without_writing(path) if read_only else "mode=ro"
        try:
            self._connection = _connected(path, self._for_readers if read_only else "mode=rwc")
        except sqlite3.OperationalError as error:
            raise OSError(f"{path}: SQLite cannot open it: {error}") from error
        try:
            if not create:
                self._check()  # before anything is written into what may be no record
            self._set_up(create, read_only)
            facts = self.facts()
        except sqlite3.DatabaseError as error:
            self._connection.close()
            if isinstance(error, sqlite3.OperationalError) and not _names_damage(error):
                raise OSError(f"{path}: SQLite cannot open it: {error}") from error
            raise CorruptFileError(path, f"SQLite cannot read it: {error}") from error
        except BaseException:
            self._connection.close()
            raise
        self.last_seq: int = facts["seq"]
        self.next_id: int = facts["next_id"]

    def _set_up(self, create: bool, read_only: bool) -> None:
        run = self._connection.execute
        run("PRAGMA temp_store = MEMORY")
        run("PRAGMA cache_size = -65536")
        if not read_only:
            run("PRAGMA journal_mode = WAL")
            run("PRAGMA synchronous = FULL")
        if create:
            self._connection.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}COMMIT;")

    def _check(self) -> None:
        found = self._one("PRAGMA quick_check(1)")
        if found != "ok":
            raise CorruptFileError(self.path, f"SQLite found damage: {found}")
        if self.facts().get("format") != FORMAT:
            raise CorruptFileError(self.path, f"is not a record of format {FORMAT}")
        for name in ("seq", "next_id"):
            found = self.facts().get(name)
            if not isinstance(found, int) or found < 0:
                raise CorruptFileError(self.path, f"{name} must be a number, got {found!r:.60}")

    def reader(self) -> Reader:
        """A connection that only reads, for another thread."""
        return Reader(self.path, self._for_readers)

    def begin(self) -> None:
        """Begin a transaction."""
        self._connection.execute("BEGIN IMMEDIATE")

    def upsert(self, seq: int, rows: Iterable[Row]) -> None:
        """Write items within a transaction, over those that have their ids."""
        self._connection.executemany(
            _UPSERT, ((row.id, seq, row.key, row.value, row.payload) for row in rows)
        )

    def remove(self, seq: int, ids: Iterable[int]) -> None:
        """Remove items within a transaction."""
        self._connection.executemany(_REMOVE, ((seq, id_) for id_ in ids))

    def set_facts(self, **facts: object) -> None:
        """Set facts within a transaction."""
        self._connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def commit(self, seq: int, next_id: int) -> None:
        """End the transaction. What it wrote is on the disk when this returns."""
        self.set_facts(seq=seq, next_id=next_id)
        self._connection.execute("COMMIT")
        self.last_seq, self.next_id = seq, next_id

    def rollback(self) -> None:
        """Give the transaction up, if there is one."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that changes no item, for the time of a block."""
        self.begin()
        try:
            yield
            self.commit(self.last_seq, self.next_id)
        except BaseException:
            self.rollback()
            raise

    def forget_removed(self, up_to_seq: int) -> None:
        """Delete the rows of removed items whose removal is in the checkpoint, in a transaction."""
        self._connection.execute(
            "DELETE FROM items WHERE seq <= ? AND value IS NULL AND key IS NULL", (up_to_seq,)
        )

    def index_payload(self, paths: Sequence[str]) -> None:
        """Create indexes of payload fields, by their JSON paths, and drop all others."""
        wanted = {f"payload:{path}": path for path in paths}
        rows = self._connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'payload:%'"
        )
        there = {row[0] for row in rows}
        for name in there - wanted.keys():
            self._connection.execute(f"DROP INDEX {_quoted(name)}")
        for name in sorted(wanted.keys() - there):
            self._connection.execute(
                f"CREATE INDEX {_quoted(name)} ON "
                f"items(json_extract(payload, {literal(wanted[name])}))"
            )

    def close(self) -> None:
        """Close the connection; SQLite then empties the log."""
        self._connection.close()


class Reader(_Reading):
    """A connection that only reads; for one thread at a time."""

    def __init__(self, path: Path, options: str = "mode=ro") -> None:
        """Open the file of a `Record` that is open; `options` are those of SQLite's URIs."""
        self._connection = _connected(path, options)
        self._connection.execute("PRAGMA query_only = 1")

    def pin(self) -> int:
        """Begin to read the record as it is now, until `unpin`; return its seq."""
        self._connection.execute("BEGIN")
        return self.seq()

    def unpin(self) -> None:
        """Read the newest state again."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """End what is read in a block with DeadlineError at a time, by time.monotonic()."""
        begin = time.monotonic()
        self._connection.set_progress_handler(
            lambda: time.monotonic() > deadline, _STEPS_UNTIL_LOOK
        )
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise DeadlineError(deadline - begin, time.monotonic() - deadline) from error
        finally:
            # The connection is used again, by requests with other deadlines or none.
            self._connection.set_progress_handler(None, 0)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _connected(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )


def _without_writing(path: Path) -> str:
    """The options of a URI with which SQLite reads a record and creates no file beside it."""
    log, shared = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if not log.exists() or log.stat().st_size == 0:
        return "immutable=1"
    if shared.exists():
        return "mode=ro&readonly_shm=1"
    raise OSError(
        f"{path}: its log has changes that only a server which may write can bring in: "
        "start once without --read-only"
    )


def _names_damage(error: sqlite3.OperationalError) -> bool:
    """Whether SQLite blames the content of the file, and not the disk or its rights."""
    return "no such" in str(error) or "malformed" in str(error)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
