"""Every call of the API as steps, for both kinds of clients: requests made, answers parsed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike

from bitweigh._progress import ProgressBar
from bitweigh.client.answers import (
    CollectionFacts,
    Hits,
    ImportReport,
    Item,
    RangeHits,
    RowError,
    Snapshot,
    Written,
    item_of,
)
from bitweigh.client.bulk import ARROW, batches, item_json
from bitweigh.client.exchange import Pause, Policy, Request, Steps, answered
from bitweigh.client.queries import Query, id_list
from bitweigh.typing import BitOrder, Metric

__all__ = ["Calls", "CollectionCalls", "Filter", "Kind", "Options", "PayloadChoice"]

Filter: TypeAlias = Mapping[str, Any]
"""Conditions on payloads: ``{"lang": "de", "year": {"gte": 2020}}``."""
Kind: TypeAlias = Literal["codes", "embeddings", "vectors"]
PayloadChoice: TypeAlias = bool | Sequence[str]
"""Whether hits have their payload, or which fields of it."""


class Options(TypedDict, total=False):
    """Options of a collection besides its kind; those left out have the server's defaults."""

    n_bits: int
    dim: int
    bitorder: BitOrder
    rescore: Literal["float16", "float32"]
    hasher: str
    weigher: str
    metric: Metric
    rerank: Literal["float16", "float32"]
    seed: int
    fit_after: int
    bands: int
    band_bits: int
    memory_limit: int
    indexes: Sequence[str]


# The server's limits of queries in a request, of items in a page, and of milliseconds.
_MAX_QUERIES, _MAX_PAGE, _MAX_MS = 1_024, 1_000, 30_000
# Numbers in a request: each takes some twenty characters, and bodies may have 32 MiB.
_MAX_NUMBERS = 1_000_000
_POLL_SECONDS = (0.02, 0.5)


def _json(content: object) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class Calls:
    """Calls that are not of one collection."""

    def __init__(self, policy: Policy) -> None:
        """Keep how long and how often to try."""
        self._policy = policy

    def ask(self, method: str, path: str, content: object = None, **more: Any) -> Steps[Any]:  # noqa: ANN401
        """Send a request with JSON; gives the JSON of the answer."""
        if content is not None:
            more["body"] = _json(content)
        return answered(Request(method=method, path=path, **more), self._policy)

    def about(self) -> Steps[dict[str, Any]]:
        """What the server is."""
        found: dict[str, Any] = yield from self.ask("GET", "/v1")
        return found

    def collections(self) -> Steps[list[CollectionFacts]]:
        """All collections that the key may read."""
        found = yield from self.ask("GET", "/v1/collections")
        return [CollectionFacts(**one) for one in found["collections"]]


class CollectionCalls(Calls):
    """Calls of one collection."""

    def __init__(self, policy: Policy, name: str) -> None:
        """Keep the name."""
        super().__init__(policy)
        self._path = f"/v1/collections/{quote(name, safe='')}"

    def _ask(self, method: str, path: str, content: object = None, **more: Any) -> Steps[Any]:  # noqa: ANN401
        return self.ask(method, self._path + path, content, **more)

    def create(self, kind: Kind, options: Options) -> Steps[None]:
        """Create it."""
        yield from self._ask("PUT", "", {"kind": kind, **options})

    def delete(self) -> Steps[None]:
        """Delete it."""
        yield from self._ask("DELETE", "")

    def info(self) -> Steps[dict[str, Any]]:
        """What the server says about it."""
        found: dict[str, Any] = yield from self._ask("GET", "")
        return found

    def fit(self) -> Steps[int]:
        """Fit it; gives the number of vectors."""
        found = yield from self._ask("POST", "/fit", is_long=True)
        return int(found["vectors"])

    def add(
        self,
        values: ArrayLike,
        ids: ArrayLike | None,
        keys: Sequence[str] | None,
        payloads: Sequence[Mapping[str, Any] | None] | None,
        progress: bool | None,
    ) -> Steps[Written]:
        """Write items in batches."""
        bodies = batches(values, ids, keys, payloads)
        seq, count, known = 0, 0, []
        with ProgressBar("adding", len(np.asarray(values)), unit="items", shown=progress) as bar:
            for batch in bodies:
                found = yield from self._ask("PUT", "/items", body=batch.body, content_type=ARROW)
                seq, count = found["seq"], count + found["count"]
                known += found.get("ids", [])
                bar.advance(batch.rows)
        if not count:
            seq = (yield from self.info())["seq"]
        return Written(seq, count, np.array(known, np.int64))

    def upsert(self, items: Iterable[Mapping[str, Any]]) -> Steps[Written]:
        """Write items, all or none."""
        given = [item_json(item) for item in items]
        found = yield from self._ask("PUT", "/items", {"items": given})
        return _written(found)

    def remove(
        self, ids: ArrayLike | None, keys: Sequence[str] | None, where: Filter | None
    ) -> Steps[Written]:
        """Remove items."""
        wanted: dict[str, Any] = {}
        if ids is not None:
            wanted["ids"] = id_list(ids)
        if keys is not None:
            wanted["keys"] = list(keys)
        if where is not None:
            wanted["filter"] = where
        return _written((yield from self._ask("POST", "/items/remove", wanted)))

    def get(
        self, ids: ArrayLike | None, keys: Sequence[str] | None, values: bool
    ) -> Steps[list[Item]]:
        """Items in the order asked for; KeyError if one is missing."""
        if (ids is None) == (keys is None):
            raise ValueError("give either ids or keys")
        name = "keys" if ids is None else "ids"
        wanted: list[Any] = list(keys or ()) if ids is None else id_list(ids)
        found: dict[Any, Item] = {}
        for first in range(0, len(wanted), _MAX_PAGE):
            part = {name: wanted[first : first + _MAX_PAGE], "values": values}
            answer = yield from self._ask("POST", "/items/get", part)
            for item in map(item_of, answer["items"]):
                found[item.key if ids is None else item.id] = item
            if answer["missing"]:
                raise KeyError(answer["missing"][0])
        return [found[one] for one in wanted]

    def page(
        self, after: int | None, where: Filter | None, values: bool, limit: int
    ) -> Steps[tuple[list[Item], int | None]]:
        """Items after an id, and the id that the next page comes after, if there is one."""
        params = {"limit": str(limit), "values": "true" if values else "false"}
        if after is not None:
            params["after"] = str(after)
        if where is not None:
            params["filter"] = _json(where).decode()
        found = yield from self._ask("GET", "/items", params=params)
        return [item_of(item) for item in found["items"]], found["next"]

    def search(
        self,
        queries: Sequence[Query],
        single: bool,
        k: int,
        where: Filter | None,
        payload: PayloadChoice,
        timeout: float | None,
        partial: bool,
        rerank_from: int | None = None,
    ) -> Steps[Hits]:
        """Search, with as many queries in a request as the server takes."""
        common: dict[str, Any] = {"k": _integer(k, "k"), **self._common(where, payload, timeout)}
        if partial:
            common["partial"] = True
        if rerank_from is not None:
            common["rerank_from"] = _integer(rerank_from, "rerank_from")
        seconds = self._policy.timeout if timeout is None else timeout
        answers = []
        at_once = _at_once(queries)
        for first in range(0, len(queries), at_once):
            asked = {**common, "queries": queries[first : first + at_once]}
            answers.append(
                (yield from self._ask("POST", "/search", asked, seconds=seconds, is_search=True))
            )
        return Hits.of(answers, k, single=single)

    def range_search(
        self,
        query: Query,
        radius: float,
        limit: int | None,
        where: Filter | None,
        payload: PayloadChoice,
        timeout: float | None,
    ) -> Steps[RangeHits]:
        """All items within a radius."""
        asked = {**query, "radius": float(radius), **self._common(where, payload, timeout)}
        if limit is not None:
            asked["limit"] = _integer(limit, "limit")
        seconds = self._policy.timeout if timeout is None else timeout
        found = yield from self._ask("POST", "/range", asked, seconds=seconds, is_search=True)
        return RangeHits.of(found)

    def explain(
        self,
        query: Query,
        k: int,
        ids: ArrayLike | None,
        bins: int,
        where: Filter | None,
        payload: PayloadChoice,
    ) -> Steps[dict[str, Any]]:
        """What a search does, with arrays in the place of lists."""
        counts = {"k": _integer(k, "k"), "bins": _integer(bins, "bins")}
        asked = {**query, **counts, **self._common(where, payload, None)}
        if ids is not None:
            asked["ids"] = id_list(ids)
        found: dict[str, Any] = yield from self._ask("POST", "/explain", asked)
        found["costs"] = np.array(found["costs"], np.float64)
        for item in found["bits"].values():
            item["pays"] = np.array(item["pays"], np.float64)
        found["bits"] = {int(id_): item for id_, item in found["bits"].items()}
        return found

    def _common(
        self, where: Filter | None, payload: PayloadChoice, timeout: float | None
    ) -> dict[str, Any]:
        seconds = self._policy.timeout if timeout is None else timeout
        if not seconds > 0:
            raise ValueError(f"timeout must be more than 0 seconds, got {seconds}")
        asked: dict[str, Any] = {"timeout_ms": min(_MAX_MS, max(1, round(1000 * seconds)))}
        if where is not None:
            asked["filter"] = where
        if payload is not False:
            asked["payload"] = payload if isinstance(payload, bool) else list(payload)
        return asked

    def import_parquet(
        self,
        path: str | os.PathLike[str],
        columns: Mapping[str, str | Sequence[str] | None],
        progress: bool | None,
    ) -> Steps[ImportReport]:
        """Send a file, then ask how far it is until it is imported."""
        params = {
            name: given if isinstance(given, str) else ",".join(given)
            for name, given in columns.items()
            if given is not None
        }
        job = yield from self._ask(
            "POST",
            "/import",
            params=params,
            body=_file(path),
            content_type="application/vnd.apache.parquet",
            is_long=True,
        )
        total, done, wait = None, 0, _POLL_SECONDS[0]
        while job["state"] == "running" and not job["rows"]:
            yield Pause(wait)
            job = yield from self.ask("GET", f"/v1/jobs/{job['id']}")
        total = job["rows"]
        with ProgressBar("importing", total, unit="rows", shown=progress) as bar:
            while True:
                bar.advance(job["done"] - done)
                done = job["done"]
                if job["state"] != "running":
                    break
                yield Pause(wait)
                wait = min(2 * wait, _POLL_SECONDS[1])
                job = yield from self.ask("GET", f"/v1/jobs/{job['id']}")
        if job["state"] == "failed":
            raise ValueError(f"{os.fspath(path)}: {job['detail']}")
        errors = [RowError(**error) for error in job["errors"]]
        return ImportReport(
            job["rows"], job["written"], job["failed"], errors, job["seconds"], job["state"]
        )

    def take_snapshot(self) -> Steps[Snapshot]:
        """Take a snapshot, which the server keeps."""
        return Snapshot(**(yield from self._ask("POST", "/snapshots", is_long=True)))

    def snapshots(self) -> Steps[list[Snapshot]]:
        """All that the server keeps, oldest first."""
        found = yield from self._ask("GET", "/snapshots")
        return [Snapshot(**one) for one in found["snapshots"]]

    def delete_snapshot(self, name: str) -> Steps[None]:
        """Delete one."""
        yield from self._ask("DELETE", f"/snapshots/{quote(name, safe='')}")

    def download_snapshot(self, name: str, path: str | os.PathLike[str]) -> Steps[Path]:
        """Save one; the file appears when it is whole."""
        target = Path(path)
        yield from self._ask(
            "GET", f"/snapshots/{quote(name, safe='')}", save_to=target, is_long=True
        )
        return target

    def restore(self, path: str | os.PathLike[str] | None, snapshot: str | None) -> Steps[None]:
        """Put a snapshot, by its file or by its name on the server, in the place of all items."""
        if (path is None) == (snapshot is None):
            raise ValueError("give either a path or the name of a snapshot")
        if path is None:
            yield from self._ask("POST", "/restore", {"snapshot": snapshot}, is_long=True)
        else:
            yield from self._ask(
                "POST",
                "/restore",
                body=_file(path),
                content_type="application/x-tar",
                is_long=True,
            )


def _at_once(queries: Sequence[Query]) -> int:
    """How many queries go into one request."""
    numbers = max((_size(query) for query in queries[:1]), default=1)
    return max(1, min(_MAX_QUERIES, _MAX_NUMBERS // numbers))


def _size(query: Query) -> int:
    lengths = [len(given) for given in query.values() if isinstance(given, list | str)]
    return 1 + sum(lengths) * (2 if "costs" in query else 1)


def _integer(given: int, name: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {given!r}")
    return int(given)


def _written(found: Mapping[str, Any]) -> Written:
    return Written(found["seq"], found["count"], np.array(found.get("ids", []), np.int64))


def _file(path: str | os.PathLike[str]) -> Path:
    found = Path(path)
    if not found.is_file():
        raise FileNotFoundError(f"{found}: there is no such file")
    return found
