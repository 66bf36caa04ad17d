"""Kills of a server while clients write to it: what was acknowledged is there afterwards.

Each round starts the server on the folder that the last kill left, compares its answers with the
record, has clients write for a random time, and kills it. Then a copy of the folder is opened, and
every item is compared with what its client was told.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.server.processes import Connection, ServerProcess
from benchmarks.server.stored import Stored, read_stored
from benchmarks.server.writing import COLLECTION, FIRST_KEY_ID, N_BITS, WritingClient
from bitweigh import reference

__all__ = ["OPTIONS", "Round", "ask", "create_collection", "kill_rounds", "settle_all", "write_for"]

# Checkpoints and builds as often as they can be.
OPTIONS = ("--checkpoint-seconds", "0.1", "--build-seconds", "0.1", "--build-rows", "200")


class Round(NamedTuple):
    """What a kill has left."""

    seconds: float
    """From when clients began to write until the kill."""
    start_seconds: float
    acknowledged: Counter[str]
    """Changes by kind."""
    under_way: int
    """Changes that were neither acknowledged nor refused."""
    items: int
    replayed: int
    seq: int
    wrong: list[str]
    """Acknowledged changes that are lost, changes that nobody made, index against record."""


def kill_rounds(
    folder: Path,
    rounds: int,
    *,
    clients: int = 8,
    seed: int = 0,
    longest: float = 1.0,
    options: Sequence[str] = OPTIONS,
    least: int = 0,
) -> Iterator[Round]:
    """Start, write, kill and compare, so many times.

    A kill comes at a random moment, but not before `least` changes are acknowledged.
    """
    chance = random.Random(seed)
    data = folder / "data"
    writers = [WritingClient(number, chance.randrange(1 << 30)) for number in range(clients)]
    before: Stored | None = None
    for _ in range(rounds):
        server = ServerProcess(data, folder / "log", *options)
        wrong = _create_or_ask(server, before)
        seconds = chance.uniform(0.02, longest)
        write_for(server, writers, seconds, then=server.kill, least=least)
        found = read_stored(data, folder / "copy")
        under_way = sum(bool(writer.under_way) for writer in writers)
        last_seq = max(writer.last_seq for writer in writers)
        wrong += found.wrong + settle_all(writers, found)
        if found.seq < last_seq:
            wrong.append(f"the record ends at {found.seq}, acknowledged was {last_seq}")
        counts: Counter[str] = Counter()
        for writer in writers:
            counts += writer.acknowledged
            if writer.refused:
                wrong.append(f"client {writer.number} was refused: {dict(writer.refused)}")
            writer.acknowledged.clear()
            writer.refused.clear()
        before = found
        yield Round(
            seconds,
            server.start_seconds,
            counts,
            under_way,
            len(found.items),
            found.replayed,
            found.seq,
            wrong,
        )


def create_collection(server: ServerProcess) -> None:
    """Create the collection, and an item whose id keeps those of keys apart."""
    definition = {"kind": "codes", "n_bits": N_BITS}
    status, _ = server.ask("PUT", f"/v1/collections/{COLLECTION}", definition)
    assert status == 201, status
    items = [{"id": FIRST_KEY_ID - 1, "code": "AAAAAAAAAAA="}]
    status, _ = server.ask("PUT", f"/v1/collections/{COLLECTION}/items", {"items": items})
    assert status == 200, status


def _create_or_ask(server: ServerProcess, stored: Stored | None) -> list[str]:
    if stored is None:
        create_collection(server)
        return []
    return ask(server, stored)


def ask(server: ServerProcess, stored: Stored) -> list[str]:
    """Compare answers of a server with the reference over what is stored."""
    wrong = []
    ids = np.array(list(stored.codes), np.int64)
    codes = np.frombuffer(b"".join(stored.codes.values()), np.uint8).reshape(len(ids), -1)
    for seed in range(3):
        costs = np.random.default_rng(seed).random((N_BITS, 2))
        body = {"costs": costs.tolist(), "k": 10}
        status, answer = server.ask("POST", f"/v1/collections/{COLLECTION}/search", body)
        expected = reference.search(codes, costs, 10, ids=ids)
        if status != 200 or answer["seq"] != stored.seq:
            wrong.append(f"after a start: {status}, {answer}")
        elif [hit["id"] for hit in answer["hits"]] != [id_ for id_ in expected.ids if id_ >= 0]:
            wrong.append("after a start a search does not find what the reference finds")
    return wrong


def write_for(
    server: ServerProcess,
    writers: list[WritingClient],
    seconds: float,
    then: Callable[[], object] | None = None,
    least: int = 0,
) -> list[Connection]:
    """Have clients write for a time; call `then` while they still do. Return their connections.

    `then` is not called before `least` changes are acknowledged.
    """
    end = time.monotonic() + (seconds if then is None else 60.0)
    connections = [server.connect() for _ in writers]
    threads = [
        threading.Thread(target=writer.run, args=(connection, end))
        for writer, connection in zip(writers, connections, strict=True)
    ]
    for thread in threads:
        thread.start()
    if then is not None:
        time.sleep(seconds)
        while sum(writer.acknowledged.total() for writer in writers) < least:
            if time.monotonic() > end:
                break
            time.sleep(0.01)
        then()
    for thread in threads:
        thread.join()
    return connections


def settle_all(writers: list[WritingClient], stored: Stored) -> list[str]:
    """Compare what is stored with what all clients were told; return what is wrong."""
    left = dict(stored.items)
    left.pop(FIRST_KEY_ID - 1, None)
    wrong = [complaint for writer in writers for complaint in writer.complaints]
    for writer in writers:
        own = {name: state for name, state in left.items() if writer.owns(name)}
        wrong.append(writer.settle(own))
        for name in own:
            del left[name]
    if left:
        wrong.append(f"{len(left)} items that nobody wrote, e.g. {list(left)[:3]}")
    return [one for one in wrong if one]
