"""Rows a second of bulk writes: Arrow bodies made, parsed by the server, and written and indexed.

``python -m benchmarks.server_bulk`` prints a line for each kind of rows. There is no HTTP in it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from bitweigh.client.bulk import batches
from bitweigh.server.bulk import arrow_items
from bitweigh.server.changes import Upsert
from bitweigh.server.collection import Collection
from bitweigh.server.definition import Definition
from bitweigh.server.settings import Limits, Settings

N, DIM = 50_000, 256


def main() -> None:
    """Measure vectors, codes, and codes with payloads."""
    vectors = np.random.default_rng(0).standard_normal((N, DIM)).astype(np.float32)
    codes = np.packbits(vectors > 0, axis=1)
    payloads = [{"number": number, "lang": "de"} for number in range(N)]
    ids = np.arange(N)
    for name, rows, given in (
        ("float32 vectors", vectors, None),
        ("codes", codes, None),
        ("codes and payloads", codes, payloads),
    ):
        with tempfile.TemporaryDirectory() as folder:
            definition = Definition(kind="embeddings", dim=DIM)
            collection = Collection.create(Path(folder) / "rows", definition, Settings())
            times = [time.perf_counter()]
            bodies = [batch.body for batch in batches(rows, ids, None, given)]
            times.append(time.perf_counter())
            items = [arrow_items(body, collection.contents, Limits()) for body in bodies]
            times.append(time.perf_counter())
            for batch in items:
                collection.written(Upsert(batch))
            times.append(time.perf_counter())
            collection.abandon()
        made, parsed, written = (f"{N / seconds:,.0f}" for seconds in np.diff(times))
        print(f"{name}: {made} made, {parsed} parsed, {written} written a second")


if __name__ == "__main__":
    main()
