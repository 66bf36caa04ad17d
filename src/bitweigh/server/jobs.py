"""Jobs: imports of parquet files that go on after their request was answered."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

from bitweigh.server.bulk import Columns, RowError, items_of_batch
from bitweigh.server.changes import Upsert
from bitweigh.server.collection import Collection
from bitweigh.server.parquet_process import parquet_batches
from bitweigh.server.problems import Problem
from bitweigh.server.store import Store

__all__ = ["Job", "Jobs"]

_ROWS_AT_ONCE = 2_048
_BYTES_AT_ONCE = 16 << 20
_MAX_KEPT = 100
_MAX_WAITING = 16
_MAX_ERRORS = 100
_logger = logging.getLogger("bitweigh.server")


class Job:
    """One import, and how far it is."""

    def __init__(self, collection: str) -> None:
        """Have done nothing yet."""
        self.id = secrets.token_hex(8)
        self.collection = collection
        self.state = "running"
        self.rows = 0
        self.done = 0
        self.written = 0
        self.failed = 0
        self.errors: list[RowError] = []
        self.detail = ""
        self.started = time.time()
        self.ended = 0.0
        self.cancelled = threading.Event()

    def as_json(self) -> dict[str, Any]:
        """What ``GET /v1/jobs/{id}`` says."""
        seconds = (self.ended or time.time()) - self.started
        return {
            "id": self.id,
            "collection": self.collection,
            "state": self.state,
            "rows": self.rows,
            "done": self.done,
            "written": self.written,
            "failed": self.failed,
            "errors": [error._asdict() for error in self.errors],
            "detail": self.detail,
            "seconds": round(seconds, 3),
        }


class Jobs:
    """All jobs of a server, one at a time; the last ones are remembered until it ends."""

    def __init__(self, store: Store) -> None:
        """Have none."""
        self._store = store
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._one = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closing = False

    def __getitem__(self, job_id: str) -> Job:
        """The job with an id; Problem 404 if there is none."""
        found = self._jobs.get(job_id)
        if found is None:
            raise Problem(404, "no-such-job", f"there is no job {job_id!r:.60}")
        return found

    def listed(self) -> list[Job]:
        """All that are remembered, newest first."""
        return list(reversed(self._jobs.values()))

    def start_import(self, collection: Collection, path: Path, columns: Columns) -> Job:
        """Import a file, which is deleted afterwards."""
        self._threads = [one for one in self._threads if one.is_alive()]
        if len(self._threads) >= _MAX_WAITING:
            raise Problem(
                429,
                "too-many-jobs",
                f"{_MAX_WAITING} imports are waiting already",
                headers={"retry-after": "10"},
            )
        job = Job(collection.name)
        self._jobs[job.id] = job
        while len(self._jobs) > _MAX_KEPT:
            self._jobs.popitem(last=False)
        thread = threading.Thread(
            target=self._run, args=(job, collection, path, columns), name=f"import {job.id}"
        )
        self._threads.append(thread)
        thread.start()
        return job

    def _run(self, job: Job, collection: Collection, path: Path, columns: Columns) -> None:
        try:
            with self._one:
                self._import(job, collection, path, columns)
            job.state = "cancelled" if job.cancelled.is_set() else "done"
        except Problem as problem:
            job.state, job.detail = "failed", problem.detail
        except Exception as error:
            job.state, job.detail = "failed", str(error)
            _logger.warning("import %s failed: %s", job.id, error)
        finally:
            job.ended = time.time()
            path.unlink(missing_ok=True)

    def _import(self, job: Job, collection: Collection, path: Path, columns: Columns) -> None:
        limits = collection.settings.limits
        rows = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // collection.contents.n_bytes))
        with parquet_batches(path, rows) as (job.rows, batches):
            for batch in batches:
                if job.cancelled.is_set() or self._closing:
                    job.cancelled.set()
                    return
                found = items_of_batch(batch, columns, collection.contents, limits, job.done)
                if found.items:
                    if found.items[0].key is not None:
                        collection.note_keys()
                    job.written += collection.written(Upsert(found.items)).n_items
                job.failed += len(found.errors)
                job.errors.extend(found.errors[: _MAX_ERRORS - len(job.errors)])
                job.done += batch.num_rows

    def close(self) -> None:
        """End jobs after the rows that they are writing."""
        self._closing = True
        for thread in self._threads:
            thread.join()
