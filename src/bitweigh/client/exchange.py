"""Requests and answers without a transport: tries, pauses between them, and errors.

Whatever takes more than one request is a generator of steps: it yields a `Send` or a `Pause`, and a
client, synchronous or not, does that and sends back what came of it. So both kinds of clients
share everything but the waiting.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import httpx

from bitweigh.client.errors import ConflictError, DiskFullError, ServerError, UnavailableError
from bitweigh.errors import DeadlineError, LimitError, OverloadedError

__all__ = ["JSON", "Pause", "Policy", "Request", "Response", "Send", "Steps", "answered"]

JSON = "application/json"
# Before the second try; doubled before each further one.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
# Seconds for the server's own word that a search took too long.
_GRACE = 0.5
_TRIED_AGAIN = (429, 502, 503)
_PROBLEM = "urn:bitweigh:problem:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. All are idempotent: items have ids or keys."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Path | None = None
    """A path is that of a file to send."""
    content_type: str = JSON
    save_to: Path | None = None
    """Where the body of the answer goes."""
    seconds: float | None = None
    """How long it may take, tries included; by default as long as the client waits."""
    is_long: bool = False
    """Whether it may take any time."""
    is_search: bool = False
    """Whether the server knows the deadline too."""


class Response(NamedTuple):
    """An answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Send(NamedTuple):
    """A step: send a request once; gives a `Response` or raises what httpx raises."""

    request: Request
    seconds: float | None


class Pause(NamedTuple):
    """A step: wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Policy:
    """How long a client waits, and how often it tries again."""

    timeout: float
    retries: int


Result = TypeVar("Result")
Steps: TypeAlias = Generator[Send | Pause, Any, Result]


def answered(request: Request, policy: Policy) -> Steps[Any]:
    """Send a request until it is answered; gives the JSON of the answer.

    Connections that fail, 429 and 503 are tried again, after what Retry-After asks for. A pause
    that would end after the deadline is not begun.
    """
    seconds = policy.timeout if request.seconds is None else request.seconds
    deadline = math.inf if request.is_long else time.monotonic() + seconds
    tries = 0
    while True:
        tries += 1
        left = max(0.001, deadline - time.monotonic()) + _GRACE * request.is_search
        try:
            response = yield Send(request, None if request.is_long else left)
        except httpx.TimeoutException as error:
            if request.is_search:
                raise DeadlineError(seconds, 0.0) from error
            raise TimeoutError(f"the server has not answered within {seconds:g} seconds") from error
        except httpx.TransportError as error:
            failure: Exception = UnavailableError(f"the server cannot be reached: {error}")
            failure.__cause__ = error
        else:
            if response.status < 400:
                return json.loads(response.body) if response.body else None
            if tries > 1 and request.method == "DELETE" and response.status == 404:
                return None  # an earlier try has deleted it
            failure = _error_of(response, seconds)
            if response.status not in _TRIED_AGAIN:
                raise failure
        pause = _pause(tries, getattr(failure, "retry_after", None))
        if tries > policy.retries or time.monotonic() + pause > deadline:
            raise failure
        yield Pause(pause)


def _pause(tries: int, asked_for: float | None) -> float:
    """Seconds before the next try; random, so that callers do not come back together."""
    pause: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (tries - 1)) * random.uniform(0.5, 1)
    return pause if asked_for is None else asked_for + pause


def _error_of(response: Response, seconds: float) -> Exception:
    """What an answer raises; its message is the server's."""
    try:
        problem = json.loads(response.body)
        name = problem["type"].removeprefix(_PROBLEM)
        detail = str(problem["detail"])
    except (ValueError, KeyError, TypeError, AttributeError):
        # Not from bitweigh: a proxy, or another server.
        problem, name = {}, ""
        detail = response.body[:200].decode(errors="replace").strip() or "no reason was given"
    if name == "too-many-hits" and "limit" in problem:
        what = detail.partition(f"limit={problem['limit']} ")[2]
        return LimitError(problem["query"], problem["limit"], what)
    if response.status == 504:
        return DeadlineError(seconds, 0.0)
    after = _retry_after(response)
    if response.status == 429:
        return OverloadedError(1.0 if after is None else after, detail)
    if response.status in (502, 503):
        return UnavailableError(detail, after)
    make = _ERRORS.get(response.status)
    return ServerError(response.status, detail) if make is None else make(detail)


_ERRORS: dict[int, Callable[[str], Exception]] = {
    400: ValueError,
    401: PermissionError,
    403: PermissionError,
    404: KeyError,
    408: TimeoutError,
    409: ConflictError,
    413: ValueError,
    415: TypeError,
    422: ValueError,
    507: DiskFullError,
}


def _retry_after(response: Response) -> float | None:
    """Seconds; None if the header has none, or a date."""
    given = response.headers.get("retry-after", "")
    try:
        return max(0.0, float(given))
    except ValueError:
        return None
