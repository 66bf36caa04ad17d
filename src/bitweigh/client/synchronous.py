"""`Client` and `Collection`: the API for programs without an event loop."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

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

__all__ = ["Client", "Collection"]

Result = TypeVar("Result")


class Client:
    """A server, by its address. For any number of threads.

    Calls that find no connection, or are answered by 429 or 503, are tried again, since every call
    may be repeated: items have ids or keys.

    Parameters
    ----------
    url : str
        The address, ``"http://127.0.0.1:8420"``.
    key : str, optional
        A key, as ``bitweigh serve keys add`` shows it.
    timeout : float
        Seconds that a call may take, its repetitions included; imports, snapshots and `fit` take
        as long as they take. It is also the deadline that searches have in the server.
    retries : int
        How often a call is tried again.
    http : httpx.Client, optional
        For certificates, proxies and whatever else httpx offers; closed by whoever made it.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.client import Client
    >>> client = Client("http://127.0.0.1:8420")
    >>> texts = client.create("texts", kind="embeddings", dim=4)
    >>> texts.add(np.array([[1, 1, -1, -1], [-1, 1, 1, -1]], np.float32), ids=[7, 8]).n_items
    2
    >>> distances, ids = texts.search(np.array([0.5, 0.1, -0.5, 0.2], np.float32), k=2)
    >>> ids
    array([7, 8])
    >>> client.delete("texts")
    >>> client.close()

    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 3,
        http: httpx.Client | None = None,
    ) -> None:
        """Connect at the first call."""
        self._url = url_of(url)
        self._key = key
        self._policy = checked_policy(timeout, retries)
        self._calls = Calls(self._policy)
        self._is_own = http is None
        self._http = httpx.Client() if http is None else http

    def __repr__(self) -> str:
        """The address; never the key."""
        return f"Client({self._url!r})"

    def __enter__(self) -> Self:
        """Be closed at the end of a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._is_own:
            self._http.close()

    def __getitem__(self, name: str) -> Collection:
        """A collection; whether it is there is seen at its first call."""
        return Collection(self, name)

    def info(self) -> dict[str, Any]:
        """Version, kernel and limits of the server."""
        return self._do(self._calls.about())

    def collections(self) -> list[CollectionFacts]:
        """All collections that the key may read, by name."""
        return self._do(self._calls.collections())

    def create(
        self,
        name: str,
        *,
        kind: Kind,
        **options: Unpack[Options],
    ) -> Collection:
        """Create a collection, unless there is one with this definition.

        Parameters
        ----------
        name : str
            1 to 64 characters of a-z, 0-9, _ and -.
        kind : "codes", "embeddings" or "vectors"
            As `bitweigh.Index`, `bitweigh.BinaryEmbeddings` and `bitweigh.VectorIndex`, which say
            what the options mean.
        **options
            "codes" needs ``n_bits``, the others ``dim``. ``fit_after``, of kind "vectors": how many
            there must be before the hasher is fitted by itself. ``indexes``: payload fields that
            filters should find quickly. docs/rest.md lists all.

        Raises
        ------
        ConflictError
            If there is a collection of this name with another definition.

        """
        self._do(CollectionCalls(self._policy, name).create(kind, options))
        return self[name]

    def delete(self, name: str) -> None:
        """Delete a collection for good; KeyError if there is none."""
        self._do(CollectionCalls(self._policy, name).delete())

    def restore(
        self,
        name: str,
        path: str | os.PathLike[str] | None = None,
        *,
        snapshot: str | None = None,
    ) -> Collection:
        """Put what a snapshot has in the place of a collection, or of none.

        `path` is a file that `Collection.download_snapshot` wrote; `snapshot` is the name of one
        that the server keeps.
        """
        self._do(CollectionCalls(self._policy, name).restore(path, snapshot))
        return self[name]

    def _do(self, steps: Steps[Result]) -> Result:
        try:
            step = next(steps)
            while True:
                try:
                    came = self._perform(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(came)
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            steps.close()

    def _perform(self, step: Send | Pause) -> Response | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        request, options = (
            step.request,
            options_of(step.request, self._url, self._key, step.seconds),
        )
        body = request.body
        content = body if body is None or is_small(body) else _pieces(body)
        with self._http.stream(content=content, **options) as response:
            if request.save_to is not None and response.status_code < 400:
                with whole_file(request.save_to) as file:
                    for piece in response.iter_bytes(PIECE):
                        file.write(piece)
                return Response(response.status_code, response.headers, b"")
            return Response(response.status_code, response.headers, response.read())


def _pieces(body: bytes | Path) -> Iterator[bytes]:
    with body.open("rb") if isinstance(body, Path) else io.BytesIO(body) as file:
        while piece := file.read(PIECE):
            yield piece


class Collection:
    """A collection of a server; made by `Client.create` and ``client[name]``.

    Methods raise `KeyError` if there is no such collection or item, `ValueError` and `TypeError`
    with the server's message for arguments that it refuses, `PermissionError` if the key is wrong
    or may not do this, `bitweigh.errors.OverloadedError`, `UnavailableError`, `DiskFullError` and
    `ConflictError`.
    """

    def __init__(self, client: Client, name: str) -> None:
        """Use `Client.create` or ``client[name]``."""
        self._client = client
        self.name = name
        self._calls = CollectionCalls(client._policy, name)

    def __repr__(self) -> str:
        """The name, and where it is."""
        return f"{self._client!r}[{self.name!r}]"

    def info(self) -> dict[str, Any]:
        """Definition, number of items, last change, checkpoint and memory, as the server says."""
        return self._client._do(self._calls.info())

    def count(self) -> int:
        """The number of items."""
        return int(self.info()["items"])

    def fit(self) -> int:
        """Fit the hasher of kind "vectors" to all vectors; return how many there are."""
        return self._client._do(self._calls.fit())

    def add(
        self,
        values: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        keys: Sequence[str] | None = None,
        payloads: Sequence[Mapping[str, Any] | None] | None = None,
        progress: bool | None = False,
    ) -> Written:
        """Write items, over those that have their ids or keys; each batch is on the disk or not.

        Parameters
        ----------
        values : (n, dim) numbers or (n, n_bytes) uint8
            Vectors or packed codes.
        ids, keys : (n,) integers, or strings
            One of them. The server gives items with keys ids of its own.
        payloads : list of dict, optional
            What else is known about the items, as JSON has it.
        progress : bool or None
            Whether to show a bar; None for one on terminals only.

        Returns
        -------
        Written
            What was written, and the number of the change.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.client import Client
        >>> with Client("http://127.0.0.1:8420") as client:
        ...     codes = client.create("codes", kind="codes", n_bits=16)
        ...     written = codes.add(np.array([[1, 2], [3, 4]], np.uint8), keys=["a", "b"])
        ...     client.delete("codes")
        >>> written.ids
        array([0, 1])

        """
        return self._client._do(self._calls.add(values, ids, keys, payloads, progress))

    def upsert(self, items: Iterable[Mapping[str, Any]]) -> Written:
        """Write a few items, all or none, each ``{"id": 7, "vector": ..., "payload": {...}}``.

        An item has "id" or "key", "vector" or "code", and perhaps a "payload".
        """
        return self._client._do(self._calls.upsert(items))

    def remove(
        self,
        *,
        ids: ArrayLike | None = None,
        keys: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002 as the library calls it
    ) -> Written:
        """Remove items by ids and keys, or all that meet a filter; those missing are ignored."""
        return self._client._do(self._calls.remove(ids, keys, filter))

    def get(
        self,
        ids: ArrayLike | None = None,
        *,
        keys: Sequence[str] | None = None,
        values: bool = True,
    ) -> list[Item]:
        """Items by ids or keys, in that order; KeyError for the first that is not there."""
        return self._client._do(self._calls.get(ids, keys, values))

    def iterate(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002
        values: bool = False,
        page: int = 1000,
    ) -> Iterator[Item]:
        """All items, or those that meet a filter, in ascending id; a request for each page.

        Pages are read one after the other, and each is of the state at its time.
        """
        after = None
        while True:
            items, after = self._client._do(self._calls.page(after, filter, values, page))
            yield from items
            if after is None:
                return

    def search(
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
        """The items nearest to float queries.

        Parameters
        ----------
        vectors : (dim,) or (nq, dim)
            Queries, as float32.
        k : int
            How many items for each.
        filter : dict, optional
            Conditions that payloads must meet, ``{"lang": "de", "year": {"gte": 2020}}``.
        payload : bool or list of str
            Whether hits have their payload, or which fields of it.
        timeout : float, optional
            Seconds after which the server gives up with `bitweigh.DeadlineError`; at most 30. By
            default that of the client.
        partial : bool
            Of a cluster: whether shards that do not answer may be left out. The answer's `complete`
            is then False, and `missing` names them.
        rerank_from : int, optional
            For collections that keep vectors: how many of the nearest by code are ranked again by
            these, at least k; by default ``max(10 * k, 100)``.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.client import Client
        >>> with Client("http://127.0.0.1:8420") as client:
        ...     cities = client.create("cities", kind="embeddings", dim=3)
        ...     here = [{"name": "Oslo"}, {"name": "Rome"}]
        ...     _ = cities.add([[1.0, 1.0, -1.0], [-1.0, 1.0, 1.0]], ids=[1, 2], payloads=here)
        ...     found = cities.search([0.0, 0.0, 1.0], k=3, payload=True)
        ...     client.delete("cities")
        >>> found.ids, found.distances
        (array([ 2,  1, -1]), array([-1.,  0., inf]))
        >>> found.payloads, found.exact
        ([{'name': 'Rome'}, {'name': 'Oslo'}], True)

        """
        return self._search(
            *vector_queries(vectors), k, filter, payload, timeout, partial, rerank_from
        )

    def search_codes(
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
        """The items nearest to packed codes, (n_bytes,) or (nq, n_bytes) uint8.

        `weights` are what each bit that differs costs, (n_bits,) for all queries or
        (nq, n_bits); 1 by default.
        """
        return self._search(*code_queries(codes, weights), k, filter, payload, timeout, partial)

    def search_costs(
        self,
        costs: ArrayLike,
        k: int = 10,
        *,
        filter: Filter | None = None,  # noqa: A002
        payload: PayloadChoice = False,
        timeout: float | None = None,
        partial: bool = False,
    ) -> Hits:
        """The items nearest by costs of your own, (n_bits, 2) or (nq, n_bits, 2)."""
        return self._search(*cost_queries(costs), k, filter, payload, timeout, partial)

    def search_by_id(
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
        """The items most like items of the collection, by ids or keys, without these."""
        return self._search(
            *item_queries(ids, keys, weights), k, filter, payload, timeout, partial, rerank_from
        )

    def search_text(
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
        """The items nearest to texts; the server needs an embedder."""
        return self._search(*text_queries(texts), k, filter, payload, timeout, partial, rerank_from)

    def _search(
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
        return self._client._do(
            self._calls.search(queries, single, k, where, payload, timeout, partial, rerank_from)
        )

    def range_search(
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
        """All items within a radius of one query, given in any form.

        Raises
        ------
        bitweigh.LimitError
            If there are more than `limit`; the server's own limit is 10,000.

        """
        query = any_query(vector, costs, code, id, text, key)
        return self._client._do(
            self._calls.range_search(query, radius, limit, filter, payload, timeout)
        )

    def explain(
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
        """What a search for one query does: plan, histogram, and what each bit of a hit pays.

        `ids` are items to explain beside the hits, and `bins` is the max number of bins of the
        histogram; 0 is for none, which spares the server the distances of all items.
        """
        query = any_query(vector, costs, code, id, text, key)
        return self._client._do(self._calls.explain(query, k, ids, bins, filter, payload))

    def import_parquet(
        self,
        path: str | os.PathLike[str],
        *,
        id: str | None = None,  # noqa: A002
        key: str | None = None,
        value: str | None = None,
        payload: Sequence[str] | None = None,
        progress: bool | None = None,
    ) -> ImportReport:
        """Send a parquet file, wait until the server has its rows, and report those that failed.

        `id`, `key` and `value` name columns that are not called "id", "key", "vector" or "code";
        `payload` lists those of the payload, by default all others.
        """
        columns = {"id": id, "key": key, "value": value, "payload": payload}
        return self._client._do(self._calls.import_parquet(path, columns, progress))

    def take_snapshot(self) -> Snapshot:
        """Have the server keep a copy of everything in one file."""
        return self._client._do(self._calls.take_snapshot())

    def snapshots(self) -> list[Snapshot]:
        """The snapshots that the server keeps, oldest first."""
        return self._client._do(self._calls.snapshots())

    def download_snapshot(self, name: str, path: str | os.PathLike[str]) -> Path:
        """Save a snapshot as a tar file, which appears when it is whole."""
        return self._client._do(self._calls.download_snapshot(name, path))

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot from the server."""
        self._client._do(self._calls.delete_snapshot(name))
