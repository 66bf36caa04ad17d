"""Calls: one HTTP request, its checks, its body, and the reply to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar
from urllib.parse import parse_qsl

import msgspec
import orjson

from bitweigh.server.keys import Key
from bitweigh.server.problems import PROBLEM_JSON, Problem

__all__ = ["ARROW", "Call", "Receive", "Reply", "Send", "json_reply", "problem_reply"]

Scopes = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AnyStruct = TypeVar("AnyStruct")

JSON = b"application/json"
ARROW = b"application/vnd.apache.arrow.stream"
_MAX_PARAMETERS = 16
# Of all bodies together that are being received.
MAX_HELD_BYTES = 256 << 20
# Bytes a second that a long body must have on average.
_SLOWEST = 16_384
# What is read of the body of a request that was refused before it was read.
_DISCARD_BYTES, _DISCARD_SECONDS = 1 << 20, 0.5
# Bytes of a body whose length is not announced.
_MAX_UNANNOUNCED = 8 << 20
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


@dataclass(slots=True)
class Reply:
    """What is sent back."""

    status: int
    body: bytes
    content_type: bytes = JSON
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    stream: AsyncIterator[bytes] | None = None
    """The rest of a long body."""


def json_reply(content: object, status: int = 200) -> Reply:
    """A reply with JSON; floats are written with the fewest digits that give them back."""
    return Reply(status, orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY))


def problem_reply(problem: Problem) -> Reply:
    """A reply that says what is wrong."""
    headers = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
    return Reply(problem.status, orjson.dumps(problem.body()), PROBLEM_JSON, headers)


class Call:
    """One request, while it is answered."""

    __slots__ = (
        "_receive",
        "_scope",
        "_unread",
        "collection",
        "headers",
        "key",
        "log",
        "method",
        "path",
        "path_params",
        "route",
        "started",
    )

    held_bytes: ClassVar[int] = 0
    """Of all bodies that have arrived in part."""

    def __init__(self, scope: Scopes, receive: Receive) -> None:
        """Take what ASGI gives."""
        self._scope = scope
        self._receive = receive
        self.started = time.perf_counter()
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        announced = self.headers.get(b"content-length", b"0")
        self._unread = announced != b"0" or b"transfer-encoding" in self.headers
        self.path_params: dict[str, str] = {}
        self.route = "unknown"
        self.key: Key | None = None
        self.collection: str | None = None
        self.log: dict[str, Any] = {}

    @property
    def client(self) -> str:
        """The address that the request came from."""
        client = self._scope.get("client")
        return client[0] if client else ""

    def query(self, *known: str) -> dict[str, str]:
        """The parameters after the question mark; Problem 422 for others than `known`."""
        text: str = self._scope["query_string"].decode("latin-1")
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
        except ValueError as error:
            raise _wrong_parameter(str(error)) from None
        found: dict[str, str] = {}
        for name, value in pairs:
            if name not in (*known, "ids"):
                raise _wrong_parameter(
                    f"parameters are {', '.join(known)} and ids, not {name!r:.60}"
                )
            if name in found:
                raise _wrong_parameter(f"parameter {name!r} is there twice")
            found[name] = value
        if found.get("ids", "string") != "string":
            raise _wrong_parameter(f"ids must be 'string', got {found['ids']!r:.60}")
        return found

    @property
    def ids_as_strings(self) -> bool:
        """Whether ids are to be strings, which JavaScript does not round."""
        text: bytes = self._scope["query_string"]
        return bool(text) and b"ids=string" in text.split(b"&")

    @property
    def content_type(self) -> bytes:
        """The media type of the body, without parameters."""
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()

    async def chunks(self, limit: int, seconds: float) -> AsyncIterator[bytes | bytearray]:
        """The body in pieces; Problem 413 or 408 if it is too long or comes too slowly.

        It may take `seconds`, and longer while `_SLOWEST` bytes a second arrive.
        """
        self._check_announced(limit)
        start = time.monotonic()
        size = 0
        while True:
            left = start + seconds + size / _SLOWEST - time.monotonic()
            piece, more = await self._piece(left, seconds)
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            if piece:
                yield piece
            if not more:
                return

    async def body(self, limit: int, seconds: float) -> bytes | bytearray:
        """The whole body, which must arrive within so many seconds.

        Without a length only a short one is taken: nobody knows when it ends.
        """
        if b"content-length" not in self.headers:
            limit = min(limit, _MAX_UNANNOUNCED)
        self._check_announced(limit)
        end = time.monotonic() + seconds
        whole, more = await self._piece(seconds, seconds)
        if more:
            # One block that goes back to the system, and not many pieces that stay in the heap.
            whole = bytearray(whole)
        Call.held_bytes += len(whole)
        try:
            while more:
                _check_size(len(whole), limit)
                piece, more = await self._piece(end - time.monotonic(), seconds)
                whole += piece
                Call.held_bytes += len(piece)
            _check_size(len(whole), limit)
        finally:
            Call.held_bytes -= len(whole)
        return whole

    def _check_announced(self, limit: int) -> None:
        announced = self.headers.get(b"content-length")
        if announced is not None and (not announced.isdigit() or int(announced[:20]) > limit):
            raise _too_large(limit)

    async def _piece(self, left: float, allowed: float) -> tuple[bytes | bytearray, bool]:
        """The next piece of the body, and whether there are more; Problem 408 or 400."""
        if self._has_arrived():
            message = await self._receive()
        else:
            try:
                async with asyncio.timeout(left):
                    message = await self._receive()
            except TimeoutError:
                raise _too_slow(allowed) from None
        if message["type"] == "http.disconnect":
            raise Problem(400, "cut-off", "the body ended early")
        self._unread = message.get("more_body", False)
        return message.get("body", b""), self._unread

    def _has_arrived(self) -> bool:
        """Whether uvicorn has the next piece already, so that no timer is needed.

        Other servers do not say; the answer is no then.
        """
        arrived = getattr(getattr(self._receive, "__self__", None), "message_event", None)
        return isinstance(arrived, asyncio.Event) and arrived.is_set()

    async def discard(self) -> bool:
        """Read what is left of a short body; return whether nothing is left of it.

        A connection that is closed while bytes wait to be read may lose the reply.
        """
        if not self._unread or self.headers.get(b"expect"):
            return not self._unread
        read = 0
        end = time.monotonic() + _DISCARD_SECONDS
        try:
            while self._unread and read < _DISCARD_BYTES:
                piece, _ = await self._piece(end - time.monotonic(), _DISCARD_SECONDS)
                read += len(piece)
        except Problem:
            return False
        return not self._unread

    async def json(self, kind: type[AnyStruct], limit: int, seconds: float) -> AnyStruct:
        """The body as a struct; Problem 415, 400 or 422 if it is none."""
        if self.content_type != JSON:
            raise Problem(
                415,
                "content-type",
                "content-type must be application/json, got "
                f"{self.content_type.decode('latin-1')!r:.100}",
            )
        return decoded(await self.body(limit, seconds), kind)


def decoded(body: bytes | bytearray, kind: type[AnyStruct]) -> AnyStruct:
    """A struct from JSON; Problem 400 if it is no JSON, 422 if it is something else."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        found: AnyStruct = decoder.decode(body)
        return found
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid-body", str(error)) from None
    except msgspec.DecodeError as error:
        raise Problem(400, "invalid-json", str(error)) from None
    except RecursionError:
        raise Problem(400, "invalid-json", "JSON is nested too deep") from None
    except UnicodeDecodeError as error:
        raise Problem(400, "invalid-json", f"JSON must be UTF-8: {error.reason}") from None


def _wrong_parameter(detail: str) -> Problem:
    return Problem(422, "invalid-parameter", detail)


def _check_size(size: int, limit: int) -> None:
    """Problem 413 or 503 if a body, or all of them together, are too long."""
    if size > limit:
        raise _too_large(limit)
    if Call.held_bytes > MAX_HELD_BYTES:
        raise Problem(
            503,
            "too-many-bodies",
            "too many long bodies arrive at the same time",
            headers={"retry-after": "1"},
        )


def _too_large(limit: int) -> Problem:
    return Problem(413, "body-too-large", f"bodies must have at most {limit} bytes")


def _too_slow(seconds: float) -> Problem:
    return Problem(408, "too-slow", f"the body must arrive within {seconds:g} seconds")
