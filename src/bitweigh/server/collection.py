"""A collection: its record, its index, and the promise that the two agree.

The record is the truth. The index in memory has every change that was acknowledged; the folder
`index` is a checkpoint of it, whose note says which changes it has. A start loads the checkpoint
and applies the changes after it.

Two locks. `_indexing` is held while the index changes, so that a view is never half of a change.
`_committing` is held from before a commit until the index has it, so that a reader of the record
and a view that are taken together are of the same change.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import bitweigh
from bitweigh._disk.writing import sync_folder
from bitweigh.errors import CorruptFileError
from bitweigh.server.changes import Written
from bitweigh.server.contents import AnyIndex, Contents
from bitweigh.server.definition import Definition
from bitweigh.server.kept_filters import KeptFilters
from bitweigh.server.kinds import contents_of
from bitweigh.server.payload_filters import json_path
from bitweigh.server.problems import Problem
from bitweigh.server.record import Reader, Record
from bitweigh.server.settings import Settings
from bitweigh.server.writer import Writer

__all__ = ["Collection", "View"]

_REPLAYED_AT_ONCE = 65_536
_MAX_FIT_ROWS = 100_000
# Rows that must have changed, as a share of all, before the server looks again whether bands pay.
_BUILD_SHARE = 0.1
# Removed rows, as a share of all that are stored, from which the server drops them.
_COMPACT_SHARE = 0.2
_RECORD, _INDEX = "record.sqlite", "index"
_logger = logging.getLogger("bitweigh.server")


@dataclass(frozen=True, slots=True)
class View:
    """The index after a certain change; it never changes."""

    seq: int
    generation: int
    index: AnyIndex
    codes: bitweigh.Index | None
    """None if vectors were never fitted."""


class Collection:
    """One collection that is open. All methods are for any thread."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        """Open the collection in a folder, and bring its index up to date."""
        self.folder = folder
        self.name = folder.name
        self.settings = settings
        self._record = Record(folder / _RECORD, read_only=settings.read_only)
        try:
            self.definition = self._defined()
            self.contents: Contents = contents_of(self.definition)
            self._indexing = threading.Lock()
            self._committing = threading.Lock()
            self._readers: list[Reader] = []
            self._generation = 0
            self._rows_changed = self._rows_built = self._rows_saved = 0
            # From when the index may have half of a change until it is made again.
            self._rebuilding = False
            self._closed = False
            self._must_save = False
            self.replayed = 0
            self._fit_failed_at = 0
            self.filters = KeptFilters()
            self.has_keys = bool(self._record.facts().get("has_keys"))
            self._open_index()
        except BaseException:
            self._record.close()
            raise
        self._view = self._new_view()
        self._rows_changed = self.replayed
        # A checkpoint does not say why rows have no bands, so `build` decides about them again.
        self._rows_built = -self._rows_without_bands(self._index)
        self.checkpoint_seq = self._checkpoint_of_folder
        self.checkpoint_time = time.time()
        self._saving = threading.Lock()
        self.writer = Writer(self.name, self._record, self, settings.limits.waiting)

    def _defined(self) -> Definition:
        try:
            return Definition.from_json(self._record.facts()["definition"])
        except (KeyError, msgspec.MsgspecError) as error:
            raise CorruptFileError(self._record.path, "defines no collection") from error

    @classmethod
    def create(cls, folder: Path, definition: Definition, settings: Settings) -> Collection:
        """Create a collection in a new folder; the folder appears with everything in it."""
        contents_of(definition)
        staged = folder.with_name(f".creating-{folder.name}")
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        record = Record(staged / _RECORD, create=True)
        record.begin()
        record.set_facts(definition=definition.to_json())
        record.index_payload([json_path(field) for field in definition.indexes])
        record.commit(0, 0)
        record.close()
        sync_folder(staged)
        staged.rename(folder)
        sync_folder(folder.parent)
        return cls(folder, settings)

    def _open_index(self) -> None:
        """Load the checkpoint and apply what came after it; without one, all of the record."""
        folder = self.folder / _INDEX
        seq = 0
        self._index: AnyIndex = self.contents.new()
        if folder.exists():
            try:
                self._index = self.contents.load(folder)
                seq = int(self._index.note["seq"])
                if seq > self._record.last_seq:
                    raise ValueError(f"has change {seq}, the record ends at a smaller one")
            except (CorruptFileError, ValueError, KeyError, OSError) as error:
                _logger.warning(
                    "%s: the checkpoint cannot be used (%s): rebuilding from the record",
                    self.name,
                    error,
                )
                seq, self._index = 0, self.contents.new()
                if not self.settings.read_only:
                    shutil.rmtree(folder, ignore_errors=True)
        self._checkpoint_of_folder = seq
        self._seq = self._record.last_seq
        if seq == 0 and self._unfitted(self._index):
            self._fit_if_due()
        else:
            self._replay(self._index, seq)

    def _replay(self, index: AnyIndex, since: int) -> None:
        for batch in self._record.values_since(since, _REPLAYED_AT_ONCE):
            self.replayed += len(batch)
            self._apply(index, dict(batch))

    def _apply(self, index: AnyIndex, values: dict[int, bytes | None]) -> None:
        removed = [id_ for id_, value in values.items() if value is None]
        if removed:
            index.remove(np.array(removed, np.int64), on_missing="ignore")
        kept = {id_: value for id_, value in values.items() if value is not None}
        if kept:
            self.contents.add(index, list(kept.values()), list(kept))

    def commit_and_apply(
        self, commit: Callable[[], None], values: dict[int, bytes | None], seq: int
    ) -> None:
        """Commit a transaction, then bring its values into the index. For the writer alone.

        Raises only if nothing was committed. An index that cannot take a committed change is made
        again from the record; until then nobody can search it.
        """
        with self._committing:
            commit()
            with self._indexing:
                try:
                    if not self._rebuilding and not self._unfitted(self._index):
                        self._apply(self._index, values)
                except Exception:
                    _logger.exception("%s: a change could not be applied: rebuilding", self.name)
                    self._rebuilding = True
                self._seq = seq
                self._rows_changed += len(values)
        try:
            if self._rebuilding:
                self._rebuild(fit=False)
            elif self._unfitted(self._index):
                self._fit_if_due()
        except Exception:
            _logger.exception("%s: the index could not be made again", self.name)

    def mend(self) -> None:
        """Make the index again from the record if it does not agree with it."""
        if self._rebuilding:
            self.writer.do(lambda: self._rebuild(fit=False) if self._rebuilding else None)

    def _fit_if_due(self) -> None:
        """Fit once there are enough vectors; if these cannot be fitted, wait for twice as many."""
        count = self._record.count()
        if count < max(self.definition.fit_after, 2 * self._fit_failed_at):
            return
        try:
            self._rebuild(fit=True)
        except ValueError as error:
            self._fit_failed_at = count
            _logger.warning("%s: %d vectors cannot be fitted: %s", self.name, count, error)

    def _rebuild(self, *, fit: bool) -> None:
        """Make the index again from the record. For the writer's thread alone."""
        index = self._rebuilt(fit=fit)
        if not fit:
            # What is in the folder may not agree with the record either.
            shutil.rmtree(self.folder / _INDEX, ignore_errors=True)
            self.checkpoint_seq = 0
        with self._indexing:
            self._index = index
            self._seq = self._record.last_seq
            self._generation += 1
            self._must_save = True
            self._rebuilding = False

    def _rebuilt(self, *, fit: bool) -> AnyIndex:
        index = self.contents.new()
        if isinstance(index, bitweigh.VectorIndex):
            if not fit and isinstance(self._index, bitweigh.VectorIndex):
                if self._unfitted(self._index):
                    return index
                index = self._index.copy()
                index.reset()
            else:
                index.fit(self._sample())
        self._replay(index, 0)
        return index

    def _sample(self) -> np.ndarray[Any, Any]:
        """Vectors to learn from, the same ones for the same record."""
        ids = np.fromiter(self._record.matching("1", ()), np.int64)
        if len(ids) > _MAX_FIT_ROWS:
            generator = np.random.default_rng(self.definition.seed)
            ids = np.sort(generator.choice(ids, _MAX_FIT_ROWS, replace=False))
        rows = self._record.items(ids.tolist())
        values = [row.value for row in rows.values() if row.value is not None]
        return self.contents.array_of(values)

    def fit(self) -> int:
        """Fit hasher and weigher to the vectors that there are; return their number."""
        if self.definition.kind != "vectors":
            raise Problem(409, "nothing-to-fit", "only collections of kind 'vectors' are fitted")

        def run() -> int:
            count = self._record.count()
            if count < 2:
                raise Problem(409, "too-few-vectors", f"fit needs vectors, there are {count}")
            try:
                self._rebuild(fit=True)
            except ValueError as error:
                raise Problem(409, "not-fitted", str(error)) from error
            return count

        count = int(self.writer.do(run))
        self.checkpoint()  # what was learned is only in the index
        return count

    @staticmethod
    def _unfitted(index: AnyIndex) -> bool:
        return isinstance(index, bitweigh.VectorIndex) and index._state is None

    @property
    def ready(self) -> bool:
        """Whether it can be searched."""
        return not self._rebuilding

    @property
    def fitted(self) -> bool:
        """Whether vectors can be hashed."""
        return not self._unfitted(self._index)

    @property
    def seq(self) -> int:
        """The last change that searches see."""
        return self._seq

    @property
    def generation(self) -> int:
        """Counts changes of the index that are not changes of items, such as new bands."""
        return self._generation

    def view(self) -> View:
        """The index as of the newest change."""
        view = self._view
        if self._rebuilding:
            raise self._unavailable()
        if view.seq != self._seq or view.generation != self._generation:
            with self._indexing:
                if self._rebuilding:
                    raise self._unavailable()
                view = self._view = self._new_view()
        return view

    def _unavailable(self) -> Problem:
        return Problem(
            503,
            "rebuilding",
            f"collection {self.name!r} is being rebuilt from its record",
            headers={"retry-after": "3"},
        )

    def _new_view(self) -> View:
        index = self._index.copy()
        codes = None if self._unfitted(index) else self.contents.codes_index(index)
        return View(self._seq, self._generation, index, codes)

    def searchable(self, view: View | None = None) -> View:
        """A view, by default of now; raises Problem 409 if vectors had not been fitted in it."""
        view = self.view() if view is None else view
        if view.codes is None:
            raise Problem(
                409,
                "not-fitted",
                f"collection {self.name!r} has no fitted hasher yet: add at least "
                f"{self.definition.fit_after} vectors, or POST /v1/collections/{self.name}/fit",
            )
        return view

    def ids_of(self, keys: Sequence[str]) -> dict[str, int]:
        """The ids of those keys that there are."""
        with self.reading() as reader:
            return reader.ids_of(keys)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """A connection that reads the newest state of the record."""
        if self._closed:
            raise Problem(503, "stopping", f"collection {self.name!r} is being closed")
        try:
            reader = self._readers.pop()
        except IndexError:
            reader = self._record.reader()
        try:
            yield reader
        finally:
            reader.unpin()
            self._readers.append(reader)
            if self._closed:
                self._close_readers()

    @contextmanager
    def pinned(self) -> Iterator[tuple[Reader, View]]:
        """A reader and a view of the same change."""
        with self.reading() as reader:
            with self._committing:
                seq = reader.pin()
                view = self.view()
            if view.seq != seq:
                raise RuntimeError(f"record {seq} and index {view.seq} do not agree")
            yield reader, view

    def count(self) -> int:
        """The number of items."""
        if self.fitted:
            return len(self._index)
        with self.reading() as reader:
            return reader.count()

    def memory(self) -> bitweigh.Memory | None:
        """Bytes of the index, by purpose; None if vectors were never fitted."""
        return self._index.memory() if self.fitted else None

    def note_keys(self) -> None:
        """Remember that some items have keys, so that answers look for them."""
        if not self.has_keys:

            def run() -> None:
                with self._record.transaction():
                    self._record.set_facts(has_keys=1)
                self.has_keys = True

            self.writer.do(run)

    @property
    def changes_since_checkpoint(self) -> int:
        """Changes of items that a start would have to apply again."""
        return self._rows_changed - self._rows_saved

    @property
    def must_save(self) -> bool:
        """Whether a checkpoint should not wait: the index was made anew, or a save failed."""
        return self._must_save

    def checkpoint(self) -> int:
        """Save the index with the number of its last change; return that number."""
        with self._saving:
            with self._indexing:
                if self._rebuilding or self._closed:
                    return self.checkpoint_seq
                seq, index, changed = self._seq, self._index.copy(), self._rows_changed
                must_save, self._must_save = self._must_save, False
            if self._unfitted(index):
                return 0
            if not must_save and seq == self.checkpoint_seq and (self.folder / _INDEX).exists():
                return seq
            try:
                index.save(self.folder / _INDEX, note={"seq": seq})
            except BaseException:
                self._must_save = must_save
                raise
            self.checkpoint_seq, self.checkpoint_time = seq, time.time()
            self._rows_saved = changed

            def forget() -> None:
                with self._record.transaction():
                    self._record.forget_removed(seq)

            self.writer.do(forget)
            return seq

    def copy_to(self, folder: Path) -> int:
        """Copy the record and a checkpoint into a folder; return the last change they have."""
        self.checkpoint()
        # A checkpoint in between would let the record forget removals that the copy lacks.
        with self._saving:
            if (self.folder / _INDEX).is_dir():
                shutil.copytree(self.folder / _INDEX, folder / _INDEX)
            copying = sqlite3.connect(f"{self._record.path.absolute().as_uri()}?mode=ro", uri=True)
            try:
                copying.execute("VACUUM INTO ?", (str(folder / _RECORD),))
            finally:
                copying.close()
        copied = Reader(folder / _RECORD)
        try:
            return copied.seq()
        finally:
            copied.close()

    def build(self) -> bool:
        """Build bands if enough has changed; return whether it did."""
        changed = self._rows_changed - self._rows_built
        rows = len(self._index) if self.fitted else 0
        if not self.fitted or changed < max(self.settings.build_rows, _BUILD_SHARE * rows):
            return False
        self._rows_built = self._rows_changed
        index = self._index
        without = self._rows_without_bands(index)
        index.build()
        with self._indexing:
            self._generation += 1
            # The checkpoint may have the same changes, but not the bands.
            self._must_save |= self._rows_without_bands(index) < without
        return True

    def compact(self) -> bool:
        """Drop removed rows from the index if there are many; return whether it did.

        Items may change meanwhile. Bands are decided anew, as `build` would.
        """
        if not self.fitted:
            return False
        index = self._index
        removed = self._removed_rows(index)
        stored = len(index) + removed
        if removed < max(1, self.settings.compact_rows, _COMPACT_SHARE * stored):
            return False
        changed = self._rows_changed
        index.compact()
        with self._indexing:
            self._rows_built = changed
            self._generation += 1
            # The checkpoint has the same changes, but the removed rows too.
            self._must_save = True
        return True

    def _removed_rows(self, index: AnyIndex) -> int:
        """Rows that an index keeps of items which were removed or replaced."""
        return sum(part.removed_rows for part in self.contents.codes_index(index)._state.parts())

    def _rows_without_bands(self, index: AnyIndex) -> int:
        """Rows that every search scans."""
        if self._unfitted(index):
            return 0
        parts = self.contents.codes_index(index)._state.parts()
        return sum(len(part) for part in parts if not part.segment.bands)

    def close(self) -> None:
        """Write what waits, save, and close all files."""
        self.writer.do(lambda: None)
        if not self.settings.read_only:
            try:
                self.checkpoint()
            except Exception:
                # The record has everything: the next start applies it again.
                _logger.exception("%s: the last checkpoint failed", self.name)
        self.abandon()

    def abandon(self) -> None:
        """Write what waits and close all files, without a checkpoint."""
        # Not while a checkpoint is being saved: the folder may get another owner after this.
        with self._saving:
            self._closed = True
            self.writer.close()
            self._close_readers()
            self._record.close()

    def _close_readers(self) -> None:
        with suppress(IndexError):
            while True:
                self._readers.pop().close()

    def written(self, change: Any) -> Written:  # noqa: ANN401
        """Write a change, and wait for it."""
        return self.writer.write(change)
