"""`AsyncClient` and `AsyncCollection`: the same API with await."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import anyio
import httpx
from numpy.typing import ArrayLike

from bitweigh.client.answers import (
    CollectionFacts,
    Hits,
    ImportReport,
    Item,
    RangeHits,
    Snapshot,
    Written,
)
from bitweigh.client.calls import Calls, CollectionCalls, Filter, Kind, Options, PayloadChoice
from bitweigh.client.exchange import Pause, Response, Send, Steps
from bitweigh.client.queries import (
    any_query,
    code_queries,
    cost_queries,
    item_queries,
    text_queries,
    vector_queries,
)
from bitweigh.client.transport import (
    PIECE,
    checked_policy,
    is_small,
    options_of,
    url_of,
    whole_file,
)

__all__ = ["AsyncClient", "AsyncCollection"]

Result = TypeVar("Result")


class AsyncClient:
    """As `Client`, for programs with an event loop: methods are awaited. For asyncio and trio.

    Examples
    --------
    >>> import asyncio
    >>> from bitweigh.client import AsyncClient
    >>> async def main():
    ...     async with AsyncClient("http://127.0.0.1:8420") as client:
    ...         texts = await client.create("async-texts", kind="embeddings", dim=2)
    ...         await texts.add([[1.0, -1.0], [-1.0, 1.0]], ids=[0, 1])
    ...         found = await texts.search([0.0, 1.0], k=1)
    ...         await client.delete("async-texts")
    ...         return found.ids
    >>> asyncio.run(main())
    array([1])

    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 3,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """Connect at the first call."""
        self._url = url_of(url)
        self._key = key
        self._policy = checked_policy(timeout, retries)
        self._calls = Calls(self._policy)
        self._is_own = http is None
        self._http = httpx.AsyncClient() if http is None else http

    def __repr__(self) -> str:
        """The address; never the key."""
        return f"AsyncClient({self._url!r})"

    async def __aenter__(self) -> Self:
        """Be closed at the end of a block."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._is_own:
            await self._http.aclose()

    def __getitem__(self, name: str) -> AsyncCollection:
        """A collection; whether it is there is seen at its first call."""
        return AsyncCollection(self, name)

    async def info(self) -> dict[str, Any]:
        """As `Client.info`."""
        return await self._do(self._calls.about())

    async def collections(self) -> list[CollectionFacts]:
        """As `Client.collections`."""
        return await self._do(self._calls.collections())

    async def create(
        self,
        name: str,
        *,
        kind: Kind,
        **options: Unpack[Options],
    ) -> AsyncCollection:
        """As `Client.create`."""
        await self._do(CollectionCalls(self._policy, name).create(kind, options))
        return self[name]

    async def delete(self, name: str) -> None:
        """As `Client.delete`."""
        await self._do(CollectionCalls(self._policy, name).delete())

    async def restore(
        self,
        name: str,
        path: str | os.PathLike[str] | None = None,
        *,
        snapshot: str | None = None,
    ) -> AsyncCollection:
        """As `Client.restore`."""
        await self._do(CollectionCalls(self._policy, name).restore(path, snapshot))
        return self[name]

    async def _do(self, steps: Steps[Result]) -> Result:
        try:
            step = next(steps)
            while True:
                try:
                    came = await self._perform(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(came)
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            steps.close()

    async def _perform(self, step: Send | Pause) -> Response | None:
        if isinstance(step, Pause):
            await anyio.sleep(step.seconds)
            return None
        request = step.request
        options = options_of(request, self._url, self._key, step.seconds)
        body = request.body
        content = body if body is None or is_small(body) else _pieces(body)
        async with self._http.stream(content=content, **options) as response:
            if request.save_to is not None and response.status_code < 400:
                with whole_file(request.save_to) as file:
                    async for piece in response.aiter_bytes(PIECE):
                        await anyio.to_thread.run_sync(file.write, piece)
                return Response(response.status_code, response.headers, b"")
            return Response(response.status_code, response.headers, await response.aread())


async def _pieces(body: bytes | Path) -> AsyncIterator[bytes]:
    if isinstance(body, bytes):
        for first in range(0, len(body), PIECE):
            yield body[first : first + PIECE]
        return
    async with await anyio.open_file(body, "rb") as file:
        while piece := await file.read(PIECE):
            yield piece


class AsyncCollection:
    """A collection of a server; methods are those of `Collection`, awaited."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        """Use `AsyncClient.create` or ``client[name]``."""
        self._client = client
        self.name = name
        self._calls = CollectionCalls(client._policy, name)

    def __repr__(self) -> str:
        """The name, and where it is."""
        return f"{self._client!r}[{self.name!r}]"

    async def info(self) -> dict[str, Any]:
        """As `Collection.info`."""
        return await self._client._do(self._calls.info())

    async def count(self) -> int:
        """As `Collection.count`."""
        return int((await self.info())["items"])

    async def fit(self) -> int:
        """As `Collection.fit`."""
        return await self._client._do(self._calls.fit())

    async def add(
        self,
        values: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        keys: Sequence[str] | None = None,
        payloads: Sequence[Mapping[str, Any] | None] | None = None,
        progress: bool | None = False,
    ) -> Written:
        """As `Collection.add`."""
        return await self._client._do(self._calls.add(values, ids, keys, payloads, progress))

    async def upsert(self, items: Iterable[Mapping[str, Any]]) -> Written:
        """As `Collection.upsert`."""
        return await self._client._do(self._calls.upsert(items))

    async def remove(
        self,
        *,
        ids: ArrayLike | None = None,
        keys: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002 as the library calls it
    ) -> Written:
        """As `Collection.remove`."""
        return await self._client._do(self._calls.remove(ids, keys, filter))

    async def get(
        self,
        ids: ArrayLike | None = None,
        *,
        keys: Sequence[str] | None = None,
        values: bool = True,
    ) -> list[Item]:
        """As `Collection.get`."""
        return await self._client._do(self._calls.get(ids, keys, values))

    async def iterate(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002
        values: bool = False,
        page: int = 1000,
    ) -> AsyncIterator[Item]:
        """As `Collection.iterate`."""
        after = None
        while True:
            items, after = await self._client._do(self._calls.page(after, filter, values, page))
            for item in items:
                yield item
            if after is None:
                return

    async def search(
        self,
        vectors: ArrayLike,
        k: int = 10,
        *,
        filter: Filter | None = None,  # noqa: A002
        payload: PayloadChoice = False,
        timeout: float | None = None,
        partial: bool = False,
        rerank_from: int | None = None,
    ) -> Hits:
        """As `Collection.search`."""
        return await self._search(
            *vector_queries(vectors), k, filter, payload, timeout, partial, rerank_from
        )

    async def search_codes(
        self,
        codes: ArrayLike,
        k: int = 10,
        *,
        weights: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        payload: PayloadChoice = False,
        timeout: float | None = None,
        partial: bool = False,
    ) -> Hits:
        """As `Collection.search_codes`."""
        return await self._search(
            *code_queries(codes, weights), k, filter, payload, timeout, partial
        )

    async def search_costs(
        self,
        costs: ArrayLike,
        k: int = 10,
        *,
        filter: Filter | None = None,  # noqa: A002
        payload: PayloadChoice = False,
        timeout: float | None = None,
        partial: bool = False,
    ) -> Hits:
        """As `Collection.search_costs`."""
        return await self._search(*cost_queries(costs), k, filter, payload, timeout, partial)

    async def search_by_id(
        self,
        ids: ArrayLike | None = None,
        k: int = 10,
        *,
        keys: str | Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        payload: PayloadChoice = False,
        timeout: float | None = None,
        partial: bool = False,
        rerank_from: int | None = None,
    ) -> Hits:
        """As `Collection.search_by_id`."""
        return await self._search(
            *item_queries(ids, keys, weights), k, filter, payload, timeout, partial, rerank_from
        )

    async def search_text(
        self,
        texts: str | Sequence[str],
        k: int = 10,
        *,
        filter: Filter | None = None,  # noqa: A002
        payload: PayloadChoice = False,
        timeout: float | None = None,
        partial: bool = False,
        rerank_from: int | None = None,
    ) -> Hits:
        """As `Collection.search_text`."""
        return await self._search(
            *text_queries(texts), k, filter, payload, timeout, partial, rerank_from
        )

    async def _search(
        self,
        queries: list[dict[str, Any]],
        single: bool,
        k: int,
        where: Filter | None,
        payload: PayloadChoice,
        timeout: float | None,
        partial: bool,
        rerank_from: int | None = None,
    ) -> Hits:
        steps = self._calls.search(
            queries, single, k, where, payload, timeout, partial, rerank_from
        )
        return await self._client._do(steps)

    async def range_search(
        self,
        vector: ArrayLike | None = None,
        *,
        radius: float,
        costs: ArrayLike | None = None,
        code: ArrayLike | None = None,
        id: int | None = None,  # noqa: A002
        key: str | None = None,
        text: str | None = None,
        limit: int | None = None,
        filter: Filter | None = None,  # noqa: A002
        payload: PayloadChoice = False,
        timeout: float | None = None,
    ) -> RangeHits:
        """As `Collection.range_search`."""
        query = any_query(vector, costs, code, id, text, key)
        return await self._client._do(
            self._calls.range_search(query, radius, limit, filter, payload, timeout)
        )

    async def explain(
        self,
        vector: ArrayLike | None = None,
        k: int = 10,
        *,
        costs: ArrayLike | None = None,
        code: ArrayLike | None = None,
        id: int | None = None,  # noqa: A002
        key: str | None = None,
        text: str | None = None,
        ids: ArrayLike | None = None,
        bins: int = 64,
        filter: Filter | None = None,  # noqa: A002
        payload: PayloadChoice = False,
    ) -> dict[str, Any]:
        """As `Collection.explain`."""
        query = any_query(vector, costs, code, id, text, key)
        return await self._client._do(self._calls.explain(query, k, ids, bins, filter, payload))

    async def import_parquet(
        self,
        path: str | os.PathLike[str],
        *,
        id: str | None = None,  # noqa: A002
        key: str | None = None,
        value: str | None = None,
        payload: Sequence[str] | None = None,
        progress: bool | None = None,
    ) -> ImportReport:
        """As `Collection.import_parquet`."""
        columns = {"id": id, "key": key, "value": value, "payload": payload}
        return await self._client._do(self._calls.import_parquet(path, columns, progress))

    async def take_snapshot(self) -> Snapshot:
        """As `Collection.take_snapshot`."""
        return await self._client._do(self._calls.take_snapshot())

    async def snapshots(self) -> list[Snapshot]:
        """As `Collection.snapshots`."""
        return await self._client._do(self._calls.snapshots())

    async def download_snapshot(self, name: str, path: str | os.PathLike[str]) -> Path:
        """As `Collection.download_snapshot`."""
        return await self._client._do(self._calls.download_snapshot(name, path))

    async def delete_snapshot(self, name: str) -> None:
        """As `Collection.delete_snapshot`."""
        await self._client._do(self._calls.delete_snapshot(name))
