"""Calls to actors, by a stand-in for Ray: what counts as a lost holder, and what as an error."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from bitweigh import cluster
from bitweigh.cluster import ControlPlaneError
from bitweigh.cluster.serving import on_ray
from bitweigh.cluster.serving.on_ray import _control, _RayDirectory, _RayReplica
from bitweigh.cluster.serving.replicas import HolderLostError


class RayError(Exception):
    """As in Ray: the base of all its errors."""


class RayTaskError(RayError):
    """A method of an actor raised `cause`."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("a traceback\nof many lines")
        self.cause = cause


class ActorDiedError(RayError):
    """As in Ray."""


class ActorUnavailableError(RayError):
    """As in Ray."""


class FakeRay(types.ModuleType):
    """As much of Ray as calls need."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.__version__ = "2.60.0"
        self.exceptions = types.SimpleNamespace(
            RayError=RayError,
            RayTaskError=RayTaskError,
            ActorDiedError=ActorDiedError,
            ActorUnavailableError=ActorUnavailableError,
        )
        self.put_bytes: list[bytes] = []

    def put(self, raw: bytes) -> str:
        self.put_bytes.append(raw)
        return "a reference"

    def get(self, reference: Callable[[], Any], timeout: float) -> Any:
        assert timeout > 0
        return reference()

    def is_initialized(self) -> bool:
        return True

    def get_actor(self, name: str, namespace: str) -> Any:
        raise ValueError(name, namespace)


class Actor:
    """The handle of an actor whose every answer is given."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        if isinstance(self._answer, OSError):
            raise self._answer

        def remote(*_: Any) -> Any:
            future: Future[Any] = Future()
            if isinstance(self._answer, Exception):
                future.set_exception(self._answer)
            else:
                future.set_result(self._answer)
            return types.SimpleNamespace(future=lambda: future)

        return types.SimpleNamespace(remote=remote)


def raised(error: Exception) -> Callable[[], Any]:
    def get() -> Any:
        raise error

    return get


def called(answer: Any) -> Future[Any]:
    return _RayReplica(FakeRay(), "holder", lambda: Actor(answer)).call("search", b"")


def test_an_answer_and_an_error_of_a_holder_are_handed_on() -> None:
    assert called("answer").result(1) == "answer"
    with pytest.raises(KeyError, match="its own error"):
        called(RayTaskError(KeyError("its own error"))).result(1)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ActorDiedError("long"), "its holder has died"),
        (ActorUnavailableError("long"), "its holder is restarting"),
        (RayError("the first line\nand others"), "^the first line$"),
        (OSError("cannot send"), "cannot send"),
    ],
    ids=["died", "restarts", "other", "not sent"],
)
def test_whatever_else_happens_the_holder_is_lost(error: Exception, reason: str) -> None:
    with pytest.raises(HolderLostError, match=reason):
        called(error).result(1)


def test_an_answer_that_nobody_waits_for_any_more_is_dropped() -> None:
    late: Future[Any] = Future()
    replica = _RayReplica(FakeRay(), "holder", lambda: Actor("answer"))
    given: Future[Any] = Future()
    given.set_result("answer")
    late.cancel()
    replica._ended(given, late)
    assert late.cancelled()


def test_a_ping_finds_an_actor_that_was_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "_LOOK_SECONDS", 0.0)
    actors = [Actor(ActorDiedError("gone"))]
    replica = _RayReplica(FakeRay(), "holder", lambda: actors[-1])
    actors.append(Actor("alive"))
    deadline = time.monotonic() + 5
    while True:
        try:
            assert replica.call("ping").result(1) == "alive"
            break
        except HolderLostError:
            assert time.monotonic() < deadline
    assert replica.call("search").result(1) == "alive"


def test_a_call_goes_on_with_the_old_handle_while_actors_cannot_be_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(on_ray, "_LOOK_SECONDS", 0.0)
    found = [Actor("alive")]

    def find() -> Any:
        if not found:
            raise RayError("the control plane does not answer")
        return found.pop()

    replica = _RayReplica(FakeRay(), "holder", find)
    for _ in range(3):
        assert replica.call("ping").result(1) == "alive"
        time.sleep(0.01)


def test_a_keeper_that_does_not_answer_is_told_apart_from_its_errors() -> None:
    ray = FakeRay()
    assert _control(ray, lambda: 5) == 5
    with pytest.raises(ValueError, match="no such version"):
        _control(ray, raised(RayTaskError(ValueError("no such version"))))
    for error in (
        ActorDiedError("it died\nlong"),
        ActorUnavailableError("it died"),
        RayError("it died"),
    ):
        with pytest.raises(ControlPlaneError, match=r"^the keeper does not answer: it died$"):
            _control(ray, raised(error))


def test_large_arguments_are_put_once_and_small_ones_travel_with_the_call() -> None:
    ray = FakeRay()
    directory = _RayDirectory(ray, None)
    assert directory.shared(b"small") == b"small"
    assert directory.shared(b"x" * 200_000) == "a reference"
    assert ray.put_bytes == [b"x" * 200_000]


def test_an_older_ray_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(KeyError, match="no cluster 'wiki'"):
        cluster.connect("wiki")
    for version in ("2.59.1", "2.9.3", "1.99.0"):
        ray.__version__ = version
        with pytest.raises(ImportError, match=r"Ray 2\.60 or later"):
            cluster.connect("wiki")
    for version in ("2.61.0rc1", "3.0.0.dev0"):
        ray.__version__ = version
        with pytest.raises(KeyError):
            cluster.connect("wiki")
