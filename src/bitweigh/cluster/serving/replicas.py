"""One question to one of several holders that have the same shards.

The holder that is idle and not suspect is asked first. If it has not answered after a while, or
fails, another is asked as well, and the first answer counts. Hedges, questions asked twice only
because an answer is slow, are limited to a share of all questions, so that a slow cluster is not
asked for twice the work. A holder that does not even answer a ping is lost, and asking another one
instead of it is no hedge.

Everything here runs in one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from bitweigh.cluster.errors import VersionGoneError

__all__ = ["HolderGroup", "HolderLostError", "Patience", "Replica"]


class HolderLostError(RuntimeError):
    """A holder cannot be reached, or no holder of a group can."""


class Replica(Protocol):
    """A holder somewhere."""

    name: str

    def call(self, method: str, *arguments: Any) -> Future[Any]:  # noqa: ANN401
        """Call a method of the holder; HolderLostError if it cannot be reached."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for holders, in seconds."""

    hedge_after: float = 0.05
    """For an answer, before another holder is asked as well."""
    ping: float = 0.1
    """For the answer to a ping, before a holder counts as lost."""
    lost: float = 1.5
    """For any holder of a group to come back, before the question fails."""
    retry: float = 0.05
    """Between two attempts to reach lost holders."""
    hedge_share: float = 0.05
    """The most hedges for each question."""
    hedge_burst: float = 10.0
    """The most hedges that may be saved up."""


class _Known:
    """A holder, and what is known about it."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.in_flight = 0
        self.suspect = False


class HolderGroup:
    """The holders of the same shards."""

    def __init__(self, replicas: Sequence[Replica], patience: Patience) -> None:
        """Start without a suspicion."""
        self._known = [_Known(replica) for replica in replicas]
        self._patience = patience
        self._tokens = patience.hedge_burst
        self._background: set[asyncio.Task[None]] = set()
        self.questions = 0
        self.hedges = 0
        """Questions that were asked twice because an answer was slow."""
        self.failovers = 0
        """Questions that were asked again because a holder was lost."""

    def status(self) -> list[tuple[str, str]]:
        """The name of each holder, and "open" or "suspect"."""
        return [
            (known.replica.name, "suspect" if known.suspect else "open") for known in self._known
        ]

    async def ask(self, method: str, *arguments: Any) -> Any:  # noqa: ANN401 what the holder returns
        """The answer of one of the holders.

        Raises what the holder raised, or HolderLostError if none can be reached.
        """
        self.questions += 1
        patience = self._patience
        self._tokens = min(patience.hedge_burst, self._tokens + patience.hedge_share)
        give_up = time.monotonic() + patience.lost
        gone: VersionGoneError | None = None
        reason = "it has no holder"
        while True:
            try:
                return await self._ask_all(method, arguments)
            except VersionGoneError as error:
                gone = error
            except HolderLostError as error:
                reason = str(error)
            if gone is not None:
                raise gone
            if time.monotonic() + patience.retry > give_up:
                raise HolderLostError(reason)
            await asyncio.sleep(patience.retry)

    async def _ask_all(self, method: str, arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401
        """Ask one holder after the other until one answers."""
        left = sorted(self._known, key=lambda known: (known.suspect, known.in_flight))
        running: dict[asyncio.Future[Any], _Known] = {}
        gone: VersionGoneError | None = None
        reason = "it has no holder"
        try:
            while left or running:
                if not running:
                    known = left.pop(0)
                    running[self._start(known, method, arguments)] = known
                wait = self._patience.hedge_after if left else self._patience.ping
                done, _ = await asyncio.wait(
                    running, timeout=wait, return_when=asyncio.FIRST_COMPLETED
                )
                for future in done:
                    known = running.pop(future)
                    try:
                        answer = future.result()
                    except VersionGoneError as error:
                        gone = error
                    except HolderLostError as error:
                        reason = f"{known.replica.name}: {error}"
                        self._suspect(known)
                        self.failovers += 1
                    else:
                        return answer
                if not done:
                    for known in running.values():
                        self._suspect(known)
                    hedges = bool(left) and self._may_hedge()
                    lost = [] if hedges else await self._lost(running)
                    for future in lost:
                        _ignore(future)
                        reason = f"{running.pop(future).replica.name} does not answer"
                    if left and (hedges or lost):
                        self.hedges += hedges
                        self.failovers += not hedges
                        known = left.pop(0)
                        running[self._start(known, method, arguments)] = known
        finally:
            for future in running:
                _ignore(future)
        # One holder that has closed the version already is no reason to begin again; all are.
        raise gone or HolderLostError(reason)

    def _start(self, known: _Known, method: str, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        known.in_flight += 1
        future = asyncio.wrap_future(known.replica.call(method, *arguments))

        def ended(_: object) -> None:
            known.in_flight -= 1

        future.add_done_callback(ended)
        return future

    async def _lost(self, running: dict[asyncio.Future[Any], _Known]) -> list[asyncio.Future[Any]]:
        """The questions whose holders do not answer a ping; none if an answer comes first."""
        pings = {
            asyncio.wrap_future(known.replica.call("ping")): future
            for future, known in running.items()
        }
        for ping in pings:
            _ignore(ping)
        all_pings = asyncio.ensure_future(asyncio.wait(pings, timeout=self._patience.ping))
        await asyncio.wait([all_pings, *running], return_when=asyncio.FIRST_COMPLETED)
        all_pings.cancel()
        if any(future.done() for future in running):
            return []
        return [
            future
            for ping, future in pings.items()
            if not ping.done() or ping.exception() is not None
        ]

    def _may_hedge(self) -> bool:
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _suspect(self, known: _Known) -> None:
        """Do not ask a holder first any more, until it answers a ping."""
        if known.suspect:
            return
        known.suspect = True
        self._in_background(self._trust_again(known))

    async def _trust_again(self, known: _Known) -> None:
        while known.suspect:
            ping = asyncio.wrap_future(known.replica.call("ping"))
            try:
                await asyncio.wait_for(asyncio.shield(ping), 1.0)
                known.suspect = False
            except (TimeoutError, HolderLostError):
                _ignore(ping)
                await asyncio.sleep(self._patience.retry)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def close(self) -> None:
        """Stop asking suspects."""
        for task in self._background:
            task.cancel()


def _ignore(future: asyncio.Future[Any]) -> None:
    """Let an answer that nobody waits for come and go."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
