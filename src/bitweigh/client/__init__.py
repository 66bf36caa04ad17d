"""A client of the server that ``bitweigh serve`` starts: `Client`, and `AsyncClient` with await.

Both have the methods, the arrays and the errors of the library. They need httpx and pyarrow:
``pip install 'bitweigh[client]'``.
"""

from __future__ import annotations

from bitweigh._optional import optional

for _package in ("httpx", "pyarrow"):
    optional(_package, "client")

from bitweigh.client.answers import (  # noqa: E402 after the check that it can be imported
    CollectionFacts,
    Hits,
    ImportReport,
    Item,
    MissingShard,
    RangeHits,
    RowError,
    Snapshot,
    Written,
)
from bitweigh.client.asynchronous import AsyncClient, AsyncCollection  # noqa: E402
from bitweigh.client.errors import (  # noqa: E402
    ConflictError,
    DiskFullError,
    ServerError,
    UnavailableError,
)
from bitweigh.client.synchronous import Client, Collection  # noqa: E402

__all__ = [
    "AsyncClient",
    "AsyncCollection",
    "Client",
    "Collection",
    "CollectionFacts",
    "ConflictError",
    "DiskFullError",
    "Hits",
    "ImportReport",
    "Item",
    "MissingShard",
    "RangeHits",
    "RowError",
    "ServerError",
    "Snapshot",
    "UnavailableError",
    "Written",
]
