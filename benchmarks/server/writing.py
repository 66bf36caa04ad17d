"""Clients that write, each items of its own, and remember what they were told.

A client has one request under way at a time. So at any moment its items are as the last
acknowledged change left them or, all at once, as the change under way leaves them.
"""

from __future__ import annotations

import base64
import http.client
import io
import random
import time
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.server.processes import PARQUET, Connection

__all__ = ["COLLECTION", "FIRST_KEY_ID", "N_BITS", "WritingClient"]

COLLECTION, N_BITS = "items", 64
ITEMS_PER_CLIENT = 150
# Ids that the server gives to keys begin here.
FIRST_KEY_ID = 1_000_000
_PATH = f"/v1/collections/{COLLECTION}"

Name = int | str
State = tuple[bytes, int] | None
"""Code and version of an item; None if it is not there."""


class WritingClient:
    """Writes until it is told to stop or the connection breaks."""

    def __init__(self, number: int, seed: int) -> None:
        """Own items of this number, by key if it is the last of eight, else by id."""
        self.number = number
        self.by_key = number % 8 == 7
        self._random = random.Random(seed)
        names = range(number * ITEMS_PER_CLIENT, (number + 1) * ITEMS_PER_CLIENT)
        self._names: list[Name] = [f"key {name}" if self.by_key else name for name in names]
        self.items: dict[Name, tuple[bytes, int]] = {}
        """As of the last acknowledged change."""
        self.under_way: dict[Name, State] = {}
        """What the change under way makes of items."""
        self.last_seq = 0
        self.acknowledged: Counter[str] = Counter()
        self.refused: Counter[int] = Counter()
        self.complaints: list[str] = []
        """Answers that cannot be right."""
        self._version = 0

    def run(self, connection: Connection, end: float) -> None:
        """Write until a time or until the server is gone."""
        changes = [self._upsert] * 5 + [self._remove] * 2 + [self._remove_matching, self._import]
        try:
            while time.monotonic() < end:
                self._random.choice(changes)(connection)
        except (OSError, http.client.HTTPException):
            pass
        except AssertionError as error:
            self.complaints.append(f"client {self.number}: {error}")
        finally:
            connection.close()

    def settle(self, found: dict[Name, tuple[bytes, int]]) -> str:
        """Compare with what is stored; go on from there. Return what is wrong, or nothing."""
        new = {**self.items, **self.under_way}
        after = {name: state for name, state in new.items() if state is not None}
        expected, before = found, self.items
        self.items, self.under_way = dict(found), {}
        if expected in (before, after):
            return ""
        wrong = [
            name
            for name in expected.keys() | before.keys()
            if expected.get(name) not in (before.get(name), after.get(name))
        ]
        return f"client {self.number}: {len(wrong)} items wrong, e.g. {wrong[:3]}; or half a change"

    def owns(self, name: Name) -> bool:
        """Whether an item can only be from this client."""
        return name in self._names

    def _some_names(self, most: int) -> list[Name]:
        return self._random.sample(self._names, self._random.randint(1, most))

    def _new_states(self, most: int) -> dict[Name, State]:
        self._version += 1
        return {
            name: (self._random.randbytes(N_BITS // 8), self._version)
            for name in self._some_names(most)
        }

    def _upsert(self, connection: Connection) -> None:
        self.under_way = self._new_states(20)
        named = "key" if self.by_key else "id"
        items = [
            {
                named: name,
                "code": base64.b64encode(state[0]).decode(),
                "payload": {"client": self.number, "version": state[1]},
            }
            for name, state in self.under_way.items()
            if state is not None
        ]
        self._ended("upsert", *connection.ask("PUT", f"{_PATH}/items", {"items": items}))

    def _remove(self, connection: Connection) -> None:
        names = self._some_names(8)
        self.under_way = dict.fromkeys(names)
        body = {"keys" if self.by_key else "ids": names}
        self._ended("remove", *connection.ask("POST", f"{_PATH}/items/remove", body))

    def _remove_matching(self, connection: Connection) -> None:
        before = self._version - self._random.randint(3, 20)
        self.under_way = {
            name: None for name, (_, version) in self.items.items() if version < before
        }
        body = {"filter": {"client": self.number, "version": {"lt": before}}}
        self._ended("remove matching", *connection.ask("POST", f"{_PATH}/items/remove", body))

    def _import(self, connection: Connection) -> None:
        self.under_way = self._new_states(60)
        states = [state for state in self.under_way.values() if state is not None]
        table = pa.table(
            {
                "key" if self.by_key else "id": list(self.under_way),
                "code": pa.array([code for code, _ in states], pa.binary()),
                "client": [self.number] * len(states),
                "version": [version for _, version in states],
            }
        )
        file = io.BytesIO()
        pq.write_table(table, file)
        status, job = connection.ask("POST", f"{_PATH}/import", file.getvalue(), PARQUET)
        while status in (200, 202) and job["state"] == "running":
            time.sleep(0.01)
            status, job = connection.ask("GET", f"/v1/jobs/{job['id']}")
        if status not in (200, 202):
            self._ended("import", status, {})
            return
        if job["state"] != "done":
            # Stopped by the server, or no room: it was written, or it was not.
            raise ConnectionAbortedError(f"the import ended as {job['state']}: {job['detail']}")
        # A job may end before the answer that says it has begun: that one has status 202, too.
        assert job["written"] == len(states), job
        self._ended("import", 200, {})

    def _ended(self, kind: str, status: int, answer: dict[str, int]) -> None:
        if status != 200:
            # Refused: nothing of it may be there.
            self.under_way = {}
            self.refused[status] += 1
            time.sleep(0.01)
            return
        for name, state in self.under_way.items():
            if state is None:
                self.items.pop(name, None)
            else:
                self.items[name] = state
        self.under_way = {}
        self.acknowledged[kind] += 1
        seq = answer.get("seq", self.last_seq)
        if seq < self.last_seq:
            raise AssertionError(f"change {seq} was acknowledged after {self.last_seq}")
        self.last_seq = seq
