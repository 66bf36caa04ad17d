"""The ASGI application: who may ask, which route answers, what is counted and logged."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.routing import Match, Route

from bitweigh.server import collection_routes, item_routes, search_routes
from bitweigh.server.access_log import AccessLog
from bitweigh.server.calls import Call, Receive, Reply, Scopes, Send, problem_reply
from bitweigh.server.keys import Scope
from bitweigh.server.page_files import page_reply
from bitweigh.server.problems import Problem
from bitweigh.server.rates import Rates
from bitweigh.server.service import Service

__all__ = ["ROUTES", "App", "RouteOf"]

_logger = logging.getLogger("bitweigh.server")


class RouteOf(NamedTuple):
    """What answers a method and a path, and the scope that it needs."""

    method: str
    path: str
    answer: Callable[..., Awaitable[Reply]]
    scope: Scope | None
    """None if no key is needed."""
    of_collection: bool = True
    """Whether `answer` takes the collection that the path names."""
    of_cluster: bool = False
    """Whether that may be a cluster."""


_C = "/v1/collections/{c}"
ROUTES = [
    RouteOf("GET", "/livez", collection_routes.live, None, False),
    RouteOf("GET", "/readyz", collection_routes.ready, None, False),
    RouteOf("GET", "/metrics", collection_routes.metrics, "read", False),
    RouteOf("GET", "/openapi.json", collection_routes.openapi, "read", False),
    RouteOf("GET", "/v1", collection_routes.about, "read", False),
    RouteOf("GET", "/v1/collections", collection_routes.list_collections, "read", False),
    RouteOf("GET", "/v1/cluster", collection_routes.clusters, "read", False),
    RouteOf("PUT", _C, collection_routes.create, "admin", False),
    RouteOf("GET", _C, collection_routes.describe, "read", of_cluster=True),
    RouteOf("DELETE", _C, collection_routes.delete, "admin"),
    RouteOf("POST", f"{_C}/fit", collection_routes.fit, "write"),
    RouteOf("PUT", f"{_C}/items", item_routes.upsert, "write"),
    RouteOf("GET", f"{_C}/items", item_routes.page, "read"),
    RouteOf("POST", f"{_C}/items/remove", item_routes.remove, "write"),
    RouteOf("POST", f"{_C}/items/get", item_routes.get_items, "read"),
    RouteOf("GET", f"{_C}/items/{{id}}", item_routes.get_one, "read"),
    RouteOf("POST", f"{_C}/search", search_routes.search, "read", of_cluster=True),
    RouteOf("POST", f"{_C}/range", search_routes.range_search, "read", of_cluster=True),
    RouteOf("POST", f"{_C}/explain", search_routes.explain, "read", of_cluster=True),
    RouteOf("POST", f"{_C}/import", item_routes.import_items, "write"),
    RouteOf("GET", "/v1/jobs", collection_routes.jobs, "read", False),
    RouteOf("GET", "/v1/jobs/{j}", collection_routes.job, "read", False),
    RouteOf("DELETE", "/v1/jobs/{j}", collection_routes.job, "read", False),
    RouteOf("POST", f"{_C}/snapshots", collection_routes.snapshot, "admin"),
    RouteOf("GET", f"{_C}/snapshots", collection_routes.snapshots_of, "admin"),
    RouteOf("GET", f"{_C}/snapshots/{{s}}", collection_routes.download_snapshot, "admin"),
    RouteOf("DELETE", f"{_C}/snapshots/{{s}}", collection_routes.remove_snapshot, "admin"),
    RouteOf("POST", f"{_C}/restore", collection_routes.restore_snapshot, "admin", False),
]
# Scopes whose routes change something, unless they are for GET.
_CHANGING = ("write", "admin")
# Routes that a key of one collection may use, though they are not of a collection.
_FOR_ANY_KEY = {
    "/v1",
    "/v1/cluster",
    "/v1/collections",
    "/v1/jobs",
    "/v1/jobs/{j}",
    "/openapi.json",
}


def _nowhere() -> None:
    """Starlette wants an endpoint; only its matching of paths is used."""


class App:
    """The application of one service."""

    def __init__(self, service: Service, log: AccessLog | None = None) -> None:
        """Prepare the routes."""
        self.service = service
        self._log = log
        self._routes = [
            (Route(route.path, _nowhere, methods=[route.method]), route) for route in ROUTES
        ]
        self._hosts = {host.lower() for host in service.settings.hosts}
        self._rates = Rates(service.limits.rate)
        self._of_collection = {
            (route.method, rest): route
            for route in ROUTES
            if (rest := route.path.removeprefix(f"{_C}/")) != route.path and "{" not in rest
        }

    async def __call__(self, scope: Scopes, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        call = Call(scope, receive)
        try:
            reply = await self._answered(call, scope)
        except Problem as problem:
            reply = problem_reply(problem)
        except Exception:
            _logger.exception("%s %s failed", call.method, call.path)
            reply = problem_reply(Problem(500, "internal", "internal error; the log has more"))
        if not await call.discard() or self.service.closes_connections:
            # The rest of the body may never come, or come byte by byte.
            reply.headers.append((b"connection", b"close"))
        await _send(reply, send, head=call.method == "HEAD")
        self._count(call, reply.status)

    async def _answered(self, call: Call, scope: Scopes) -> Reply:
        self._check_source(call)
        if call.method in ("GET", "HEAD"):
            page = page_reply(call.path, call.headers)
            if page is not None:
                call.route = "GET /page"
                return page
        route = self._route(call, scope)
        call.route = f"{route.method} {route.path}"
        call.collection = call.path_params.get("c")
        self._check_key(call, route)
        changes = route.scope in _CHANGING and call.method != "GET"
        if self.service.settings.read_only and changes:
            raise Problem(403, "read-only", "this server is read-only")
        if call.collection in self.service.clusters and not route.of_cluster:
            raise _refused_by_cluster(call.collection, changes=changes)
        if route.of_collection:
            assert call.collection is not None
            collection = self.service[call.collection]
            try:
                return await route.answer(self.service, call, collection)
            except Problem:
                raise
            except Exception:
                # Raises Problem 404 if it was deleted meanwhile.
                if self.service[call.collection] is not collection:
                    raise Problem(
                        503, "replaced", "the collection was replaced", headers={"retry-after": "1"}
                    ) from None
                raise
        return await route.answer(self.service, call)

    def _route(self, call: Call, scope: Scopes) -> RouteOf:
        # Paths that name only a collection are looked up, which nearly all requests have.
        parts = call.path.split("/", 4)
        if len(parts) == 5 and parts[3] and parts[1:3] == ["v1", "collections"]:
            known = self._of_collection.get((call.method, parts[4]))
            if known is not None:
                call.path_params = {"c": parts[3]}
                return known
        allowed = []
        for matching, route in self._routes:
            match, found = matching.matches(scope)
            if match is Match.FULL:
                call.path_params = found["path_params"]
                return route
            if match is Match.PARTIAL:
                allowed.append(route.method)
        if allowed:
            raise Problem(
                405,
                "method",
                f"{call.method} is not for this path, but {', '.join(allowed)}",
                headers={"allow": ", ".join(allowed)},
            )
        raise Problem(404, "no-such-path", f"there is nothing at {call.path!r:.100}")

    def _check_source(self, call: Call) -> None:
        """Refuse requests that a foreign web page makes, also by a name that leads here."""
        if "*" in self._hosts:
            return
        host = call.headers.get(b"host", b"").decode("latin-1").lower()
        if _without_port(host) not in self._hosts:
            raise Problem(421, "host", f"this server has no host {host!r:.100}")
        origin = call.headers.get(b"origin")
        if origin is not None:
            _, _, from_host = origin.decode("latin-1").lower().partition("://")
            if from_host != host:
                raise Problem(403, "origin", "pages of other origins may not ask this server")

    def _check_key(self, call: Call, route: RouteOf) -> None:
        service = self.service
        settings = service.settings
        if not settings.auth or (settings.open_without_keys and not service.store.keys.had_any):
            return
        given = call.headers.get(b"authorization", b"").decode("latin-1")
        if given:
            kind, _, secret = given.partition(" ")
            call.key = service.store.keys.find(secret) if kind.lower() == "bearer" else None
        if route.scope is None:
            return
        if call.key is None:
            raise Problem(
                401,
                "no-key",
                "a valid key is needed: Authorization: Bearer KEY",
                headers={"www-authenticate": "Bearer"},
            )
        if route.path in _FOR_ANY_KEY:
            allowed = True
        else:
            allowed = call.key.allows(route.scope, call.collection)
        if not allowed:
            raise Problem(403, "not-allowed", f"the key has no {route.scope} access here")
        self._rates.take(call.key.name)

    def _count(self, call: Call, status: int) -> None:
        seconds = time.perf_counter() - call.started
        self.service.metrics.request(call.route, status, seconds)
        if self._log is not None:
            self._log.write(
                {
                    "time": round(time.time(), 3),
                    "route": call.route,
                    "collection": call.collection,
                    "status": status,
                    "us": int(1e6 * seconds),
                    "client": call.client,
                    "key": None if call.key is None else call.key.name,
                    **call.log,
                }
            )

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return


def _refused_by_cluster(name: str, *, changes: bool) -> Problem:
    if changes:
        return Problem(403, "read-only", f"{name!r} is a cluster, which this server only reads")
    return Problem(409, "cluster", f"{name!r} is a cluster, which can only be searched here")


async def _send(reply: Reply, send: Send, *, head: bool) -> None:
    headers: list[tuple[bytes, bytes]] = [(b"content-type", reply.content_type), *_SAFE]
    if reply.stream is None:
        headers.append((b"content-length", str(len(reply.body)).encode()))
    headers.extend(reply.headers)
    start: dict[str, Any] = {"type": "http.response.start", "status": reply.status}
    await send({**start, "headers": headers})
    if reply.stream is not None and not head:
        async for piece in reply.stream:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    body = b"" if head else reply.body
    await send({"type": "http.response.body", "body": body, "more_body": False})


_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


def _without_port(host: str) -> str:
    """A host without its port: "localhost:8420" -> "localhost", "[::1]:8420" -> "[::1]"."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
