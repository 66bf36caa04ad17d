"""Metrics for Prometheus: requests and their times, the engine, queues, checkpoints, bands."""

from __future__ import annotations

import itertools
import time
from bisect import bisect_left
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from bitweigh.server.store import Store

__all__ = ["Metrics"]

_SECONDS = (
    1e-4,
    2.5e-4,
    5e-4,
    1e-3,
    2.5e-3,
    5e-3,
    1e-2,
    2.5e-2,
    5e-2,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
)


class _Times:
    """A histogram for one thread, which takes a microsecond to count; Prometheus's takes five."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(_SECONDS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative counts, as Prometheus wants them."""
        names = [*map(str, _SECONDS), "+Inf"]
        return list(zip(names, itertools.accumulate(self.counts), strict=True))


class Metrics:
    """All metrics of one server, in a registry of its own. Counted by the event loop alone."""

    def __init__(self, store: Store) -> None:
        """Start from 0."""
        self.requests: dict[tuple[str, int], int] = {}
        self.seconds: dict[str, _Times] = {}
        self.engine: dict[str, _Times] = {}
        self.queries: dict[str, int] = {}
        self.rows: dict[str, int] = {}
        self._registry = CollectorRegistry()
        self._registry.register(_Counted(self))
        self._registry.register(_Gauges(store))

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (route, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        times = self.seconds.get(route)
        if times is None:
            times = self.seconds[route] = _Times()
        times.observe(seconds)

    def search(self, collection: str, queries: int, rows: int, engine_seconds: float) -> None:
        """Count a search."""
        times = self.engine.get(collection)
        if times is None:
            times = self.engine[collection] = _Times()
        times.observe(engine_seconds)
        self.queries[collection] = self.queries.get(collection, 0) + queries
        self.rows[collection] = self.rows.get(collection, 0) + rows

    def text(self) -> bytes:
        """All metrics in Prometheus's format."""
        return generate_latest(self._registry)


class _Counted(Collector):
    """What was counted."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Requests, times, queries and rows."""
        counted = self._metrics
        requests = CounterMetricFamily(
            "bitweigh_requests", "Requests that were answered", labels=["route", "status"]
        )
        for (route, status), count in list(counted.requests.items()):
            requests.add_metric([route, str(status)], count)
        yield requests
        for name, text, label, found in (
            ("request", "Seconds from a request to its answer", "route", counted.seconds),
            ("engine", "Seconds of a search without HTTP", "collection", counted.engine),
        ):
            times = HistogramMetricFamily(f"bitweigh_{name}_seconds", text, labels=[label])
            for value, histogram in list(found.items()):
                times.add_metric([value], histogram.buckets(), histogram.total)
            yield times
        for name, text, counts in (
            ("queries", "Queries searched", counted.queries),
            (
                "rows_looked_at",
                "Rows whose codes searches read; not counted where vectors rank again",
                counted.rows,
            ),
        ):
            family = CounterMetricFamily(f"bitweigh_{name}", text, labels=["collection"])
            for collection, count in list(counts.items()):
                family.add_metric([collection], count)
            yield family


class _Gauges(Collector):
    """What is read when somebody asks."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One gauge for each fact, with a value for each collection."""
        facts: dict[str, GaugeMetricFamily] = {
            name: GaugeMetricFamily(f"bitweigh_{name}", text, labels=["collection"])
            for name, text in (
                ("items", "Items"),
                ("seq", "The last change"),
                ("memory_bytes", "Bytes of memory of the index"),
                ("band_bytes", "Bytes of it for bands"),
                ("writes_waiting", "Changes that wait to be written"),
                ("checkpoint_age_seconds", "Seconds since the last checkpoint"),
                ("changes_since_checkpoint", "Changes that a start would apply again"),
                ("ready", "Whether it can be searched"),
                ("disk_full", "Whether the last write failed for want of space"),
            )
        }
        for collection in self._store.collections():
            values = {
                "items": collection.count(),
                "seq": collection.seq,
                "writes_waiting": collection.writer.waiting,
                "checkpoint_age_seconds": time.time() - collection.checkpoint_time,
                "changes_since_checkpoint": collection.changes_since_checkpoint,
                "ready": int(collection.ready),
                "disk_full": int(collection.writer.disk_full),
            }
            memory = collection.memory()
            if memory is not None:
                values["memory_bytes"] = memory.total
                values["band_bytes"] = memory.band_codes + memory.band_rows + memory.directories
            for name, value in values.items():
                facts[name].add_metric([collection.name], value)
        yield from facts.values()
