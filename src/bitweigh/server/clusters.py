"""Clusters behind the server: collections whose shards are elsewhere, and which are only read.

A `ClusterCollection` has of a `Collection` what is asked of both: its name, definition, count and
last change, and the answers to searches. Where a cluster has nothing to give (keys, payloads,
items, changes), the request is refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from bitweigh import cluster
from bitweigh import costs as make_costs
from bitweigh.cluster import Cluster, Missing, PartialResult, Patience, Shards, Version
from bitweigh.server.asking import (
    Asked,
    AskedRange,
    Found,
    Prepared,
    hits_of,
    is_exact,
    stacked,
    time_left,
)
from bitweigh.server.contents import Contents
from bitweigh.server.definition import Definition, check_name
from bitweigh.server.explaining import AskedWhy, bits_of, found_hits
from bitweigh.server.kinds import kind_of
from bitweigh.server.problems import Problem

__all__ = ["AnyShards", "ClusterCollection", "ClusterSource", "opened_clusters"]

AnyShards: TypeAlias = Shards | Cluster
ClusterSource: TypeAlias = str | os.PathLike[str] | AnyShards
"""Shards, or where they are: a folder, the URL of an object store, or "ray:NAME"."""

_ON_RAY = "ray:"
# Holders that are lost are waited for less long than searches may take by default, so that these
# are told which shards are missing, and not that they took too long.
_PATIENCE = Patience(lost=0.5)
# Searches of a cluster that are waited for at the same time.
_THREADS = 16


class ClusterCollection:
    """Shards under the name of a collection. For any thread."""

    def __init__(self, name: str, source: ClusterSource) -> None:
        """Take the shards, or open them; those opened here are closed by `close`."""
        self.name = name
        self.url: str | None = None
        self._given = isinstance(source, Shards | Cluster)
        if isinstance(source, Shards | Cluster):
            self._shards: AnyShards = source
        else:
            self.url = os.fspath(source)
            self._shards = _opened(self.url)
        if self._shards.version is None:
            raise ValueError(f"cluster {name!r} must be of a version that is stored")
        self._known = _made_from(self.version), kind_of(_definition_of(self._shards))
        self.pool = ThreadPoolExecutor(_THREADS, f"cluster {name}")
        """Its own, so that other collections do not wait for holders that hang."""

    @property
    def version(self) -> Version:
        """The version that new searches are answered by."""
        version = self._shards.version
        assert version is not None
        return version

    @property
    def seq(self) -> int:
        """The number of that version."""
        return self.version.number

    @property
    def contents(self) -> Contents:
        """What rows are; a version that was built anew may have others."""
        made_from, contents = self._known
        now = _made_from(self.version)
        if now != made_from:
            contents = kind_of(_definition_of(self._shards))
            self._known = now, contents
        return contents

    @property
    def definition(self) -> Definition:
        """The definition that a collection like this would have."""
        return self.contents.definition

    def count(self) -> int:
        """Rows of all shards."""
        return self.version.rows

    def ids_of(self, keys: Sequence[str]) -> dict[str, int]:
        """Raise Problem 409: rows have no keys."""
        raise _has_no("keys", f"got key {keys[0]!r:.100}")

    def described(self) -> dict[str, Any]:
        """What ``GET /v1/collections/{c}`` says."""
        return {
            "name": self.name,
            "definition": msgspec.to_builtins(self.definition),
            "items": self.count(),
            "seq": self.seq,
            "fitted": True,
            "ready": True,
            "n_bits": self.version.n_bits,
            "read_only": True,
            "cluster": self.status(),
        }

    def status(self) -> dict[str, Any]:
        """Version and shards; if others hold them, the holders as this process sees them."""
        version = self.version
        facts: dict[str, Any] = {
            "name": self.name,
            "url": self.url,
            "version": version.number,
            "rows": version.rows,
            "shards": [
                {"shard": number, "rows": shard.rows, "bytes": shard.n_bytes}
                for number, shard in enumerate(version.shards)
            ],
        }
        if isinstance(self._shards, Cluster):
            status = self._shards.status()
            n_groups = len(status.holders)
            facts["groups"] = [
                {
                    "shards": list(range(number, len(version.shards), n_groups)),
                    "replicas": len(group),
                    "holders": [name for name, _ in group],
                    "suspects": [name for name, state in group if state == "suspect"],
                }
                for number, group in enumerate(status.holders)
            ]
            for name in ("queued", "answered", "batches", "hedges", "failovers", "second_rounds"):
                facts[name] = getattr(status, name)
        return facts

    def search(self, asked: Asked, threads: int | None) -> Found:
        """Answer a search, all of its queries by one version."""
        _refuse_payloads(asked)
        return self._shards._by_one_version(lambda shards: self._searched(shards, asked, threads))

    def _searched(self, shards: AnyShards, asked: Asked, threads: int | None) -> Found:
        contents = self.contents
        start = time.perf_counter_ns()
        hits: list[list[dict[str, Any]]] = [[] for _ in asked.queries]
        missing: set[Missing] = set()
        for form in dict.fromkeys(query.form for query in asked.queries):
            places = [place for place, query in enumerate(asked.queries) if query.form == form]
            queries = [asked.queries[place] for place in places]
            found = _nearest(shards, contents, queries, asked, threads)
            missing.update(found.missing)
            for place, distances, ids in zip(places, found.distances, found.ids, strict=True):
                hits[place] = hits_of(distances.tolist(), ids.tolist(), False, None)
        engine_us = (time.perf_counter_ns() - start) // 1000
        exact = not missing and all(is_exact(contents, query) for query in asked.queries)
        seq = _number(shards)
        return Found(hits, exact, seq, engine_us, plan="shards", missing=tuple(sorted(missing)))

    def within(self, asked: AskedRange, threads: int | None) -> Found:
        """Answer a range search."""
        _refuse_payloads(asked)
        return self._shards._by_one_version(lambda shards: self._ranged(shards, asked, threads))

    def _ranged(self, shards: AnyShards, asked: AskedRange, threads: int | None) -> Found:
        contents = self.contents
        start = time.perf_counter_ns()
        found = shards.range_search(
            _costs_of(shards, contents, asked.query),
            asked.radius,
            limit=asked.limit,
            threads=threads,
            timeout=time_left(asked.deadline),
        )
        engine_us = (time.perf_counter_ns() - start) // 1000
        hits = hits_of(found.distances.tolist(), found.ids.tolist(), False, None)
        return Found([hits], is_exact(contents, asked.query), _number(shards), engine_us)

    def explained(self, asked: AskedWhy) -> dict[str, Any]:
        """What the bits of its hits pay; no histogram, for which all distances would be sent."""
        _refuse_payloads(asked)
        return self._shards._by_one_version(lambda shards: self._explained(shards, asked))

    def _explained(self, shards: AnyShards, asked: AskedWhy) -> dict[str, Any]:
        contents = self.contents
        version = shards.version
        assert version is not None
        costs = _costs_of(shards, contents, asked.query)
        k = asked.k_searched(version.rows)
        found = shards.search(costs, k, timeout=time_left(asked.deadline))
        distances, ids = found_hits(asked, found)
        time_left(asked.deadline)
        bits = bits_of(shards, costs, [*ids, *asked.others])
        time_left(asked.deadline)
        where = "by their holders" if isinstance(shards, Cluster) else "in this process"
        return {
            "plan": {
                "plan": "shards",
                "reason": f"each of {len(version.shards)} shards is searched {where}, and "
                "their nearest are merged",
            },
            "hits": hits_of(distances, ids, False, None),
            "costs": np.ascontiguousarray(costs, np.float64),
            "bits": bits,
            "histogram": None,
            "seq": version.number,
            "exact": is_exact(contents, asked.query),
        }

    def close(self) -> None:
        """End its threads, and disconnect from holders."""
        self.pool.shutdown()
        if isinstance(self._shards, Cluster) and not self._given:
            self._shards.close()


def opened_clusters(
    sources: Mapping[str, ClusterSource], taken: Sequence[str]
) -> dict[str, ClusterCollection]:
    """The clusters of all names; ValueError for a wrong name, or one of a collection."""
    opened: dict[str, ClusterCollection] = {}
    try:
        for name, source in sources.items():
            try:
                check_name(name)
            except Problem as problem:
                raise ValueError(problem.detail) from None
            if name in taken:
                raise ValueError(f"cluster {name!r}: there is a collection of that name")
            opened[name] = ClusterCollection(name, source)
    except BaseException:
        for one in opened.values():
            one.close()
        raise
    return opened


def _opened(url: str) -> AnyShards:
    if url.startswith(_ON_RAY):
        return cluster.connect(url.removeprefix(_ON_RAY), address="auto", patience=_PATIENCE)
    return cluster.open(url)


def _made_from(version: Version) -> tuple[str | None, int, str]:
    """What the definition of a cluster follows from."""
    return version.template, version.n_bits, version.bitorder


def _definition_of(shards: AnyShards) -> Definition:
    version = shards.version
    assert version is not None
    if version.kind == "codes":
        return Definition(kind="codes", n_bits=version.n_bits, bitorder=version.bitorder)
    if version.kind == "embeddings":
        rescore = shards.embeddings.rescore
        return Definition(kind="embeddings", dim=version.n_bits, rescore=rescore)
    vectors = shards.vectors
    return Definition(
        kind="vectors",
        dim=vectors.n_features,
        n_bits=version.n_bits,
        metric=vectors.metric,
        rerank=vectors.rerank,
    )


def _number(shards: AnyShards) -> int:
    assert shards.version is not None
    return shards.version.number


def _nearest(
    shards: AnyShards,
    contents: Contents,
    queries: Sequence[Prepared],
    asked: Asked,
    threads: int | None,
) -> PartialResult:
    """The nearest rows of queries of one form, (nq, k), and the shards that are missing."""
    options: dict[str, Any] = {"threads": threads, "timeout": time_left(asked.deadline)}
    if asked.rerank_from is not None:
        options[contents.rerank_option] = asked.rerank_from
    kind, form = contents.definition.kind, queries[0].form
    if form == "id":
        parts = [_by_id(shards, kind, query, asked.k, options) for query in queries]
        return _whole(
            np.concatenate([distances for distances, _ in parts]),
            np.concatenate([ids for _, ids in parts]),
        )
    if form == "vector" and contents.reranks and kind == "embeddings":
        scores, ids = shards.embeddings.search(stacked(queries), asked.k, **options)
        return _whole(-scores, ids)
    if form == "vector" and kind == "vectors":
        options["partial"] = asked.partial
        return _whole(*shards.vectors.search(stacked(queries), asked.k, **options))
    costs = stacked(queries) if form == "costs" else make_costs.inner_product(stacked(queries))
    options["method"] = asked.method
    if asked.partial and isinstance(shards, Cluster):
        return shards.search(costs, asked.k, partial=True, **options)
    return _whole(*shards.search(costs, asked.k, **options))


def _by_id(
    shards: AnyShards, kind: str, query: Prepared, k: int, options: dict[str, Any]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The rows most like one of them, (1, k), without itself."""
    if kind == "codes" or query.weights is not None:
        return shards.search_by_id([query.value], k, weights=query.weights, **options)
    if kind == "vectors":
        return shards.vectors.search_by_id([query.value], k, **options)
    scores, ids = shards.embeddings.search_by_id([query.value], k, **options)
    return -scores, ids


def _whole(
    distances: NDArray[np.float64],
    ids: NDArray[np.int64],
    complete: bool = True,
    missing: tuple[Missing, ...] = (),
) -> PartialResult:
    """An answer that may say what is missing; one that cannot has everything."""
    return PartialResult(distances, ids, complete, missing)


def _costs_of(shards: AnyShards, contents: Contents, query: Prepared) -> NDArray[Any]:
    """The costs that a query is searched by."""
    if query.form == "costs":
        costs: NDArray[Any] = query.value
        return costs
    if query.form == "vector":
        if contents.definition.kind == "vectors":
            return shards.vectors.costs(query.value)
        return make_costs.inner_product(query.value)
    return contents.costs_of_item(_rows_of(shards, contents), shards, query.value, query.weights)


def _rows_of(shards: AnyShards, contents: Contents) -> Any:  # noqa: ANN401
    """The shards as the index of their kind: of codes, embeddings or vectors."""
    kind = contents.definition.kind
    return shards if kind == "codes" else getattr(shards, kind)


def _refuse_payloads(asked: Asked | AskedRange | AskedWhy) -> None:
    if asked.condition is not None or asked.payload is not False:
        raise _has_no("payloads", "leave filter and payload out")


def _has_no(what: str, more: str) -> Problem:
    return Problem(
        409, "cluster", f"the collection is a cluster, whose rows have no {what}: {more}"
    )
