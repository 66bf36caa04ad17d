"""One question to one of several holders: who is asked, when another is, and who is trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import pytest

from bitweigh.cluster.errors import VersionGoneError
from bitweigh.cluster.serving.replicas import HolderGroup, HolderLostError, Patience

PATIENCE = Patience(hedge_after=0.02, ping=0.02, lost=0.1, retry=0.01)


class Scripted:
    """A holder whose answers a test gives."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[Future[Any]] = []
        self.arguments: list[tuple[Any, ...]] = []
        self.pings = 0
        self.alive = True
        self.answer: Any = None
        """What is answered at once; None to wait for the test."""

    def call(self, method: str, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if method == "ping":
            self.pings += 1
            if self.alive:
                future.set_result(0)
            return future
        self.asked.append(future)
        self.arguments.append(arguments)
        if isinstance(self.answer, Exception):
            future.set_exception(self.answer)
        elif self.answer is not None:
            future.set_result(self.answer)
        return future


def group_of(count: int, **patience: Any) -> tuple[HolderGroup, list[Scripted]]:
    holders = [Scripted(f"holder-{number}") for number in range(count)]
    given = {name: getattr(PATIENCE, name) for name in ("hedge_after", "ping", "lost", "retry")}
    return HolderGroup(holders, Patience(**{**given, **patience})), holders


def run(group: HolderGroup, work: Callable[[], Awaitable[Any]]) -> Any:
    async def closed_in_the_end() -> Any:
        try:
            return await work()
        finally:
            group.close()
            await asyncio.sleep(0)

    return asyncio.run(closed_in_the_end())


def test_the_holder_with_the_fewest_questions_under_way_is_asked() -> None:
    group, (first, second) = group_of(2, hedge_after=5.0)

    async def work() -> None:
        slow = asyncio.create_task(group.ask("search"))
        await asyncio.sleep(0)
        assert len(first.asked) == 1
        second.answer = "quick"
        for _ in range(3):
            assert await group.ask("search") == "quick"
        assert (len(first.asked), len(second.asked)) == (1, 3)
        first.asked[0].set_result("slow")
        assert await slow == "slow"
        first.answer = "idle again"
        assert await group.ask("search") == "idle again"

    run(group, work)


def test_a_hedge_is_the_same_question_and_the_first_answer_counts() -> None:
    group, (first, second) = group_of(2)

    async def work() -> None:
        second.answer = "second"
        assert await group.ask("search", 7, (1, 2)) == "second"
        assert first.arguments == second.arguments == [(7, (1, 2))]
        assert (group.hedges, group.failovers) == (1, 0)
        first.asked[0].set_result("too late")

    run(group, work)


def test_hedges_have_a_budget_that_questions_earn_back() -> None:
    group, (first, second) = group_of(2, hedge_burst=1.0, hedge_share=0.5)

    async def ask(hedged: bool) -> None:
        first.answer = second.answer = None
        task = asyncio.create_task(group.ask("search"))
        await asyncio.sleep(0.05)
        waiting = [each for holder in (first, second) for each in holder.asked if not each.done()]
        assert len(waiting) == 1 + hedged
        for each in waiting:
            each.set_result("answer")
        await task

    async def work() -> None:
        await ask(hedged=True)  # the budget is spent
        await ask(hedged=False)  # half of a hedge is earned
        await ask(hedged=True)  # and the other half
        await ask(hedged=False)
        assert group.hedges == 2

    run(group, work)


def test_a_slow_holder_that_answers_pings_is_waited_for() -> None:
    group, (only,) = group_of(1)

    async def work() -> None:
        task = asyncio.create_task(group.ask("search"))
        await asyncio.sleep(0.2)
        assert only.pings > 0
        only.asked[0].set_result("at last")
        assert await task == "at last"
        assert len(only.asked) == 1

    run(group, work)


def test_a_holder_that_answers_no_ping_is_lost_even_without_a_budget() -> None:
    group, (first, second) = group_of(2, hedge_burst=0.0, hedge_share=0.0)

    async def work() -> None:
        first.alive = False
        second.answer = "second"
        assert await group.ask("search") == "second"
        assert (group.hedges, group.failovers) == (0, 1)

    run(group, work)


def test_a_suspect_is_asked_last_until_it_answers_a_ping() -> None:
    group, (first, second) = group_of(2)

    async def work() -> None:
        first.answer, first.alive = HolderLostError("it has died"), False
        second.answer = "second"
        for _ in range(3):
            assert await group.ask("search") == "second"
        assert len(first.asked) == 1
        assert dict(group.status()) == {"holder-0": "suspect", "holder-1": "open"}
        first.answer, first.alive = "first", True
        # A ping that is under way has a second to be answered.
        for _ in range(300):
            if dict(group.status())["holder-0"] == "open":
                break
            await asyncio.sleep(0.01)
        assert await group.ask("search") == "first"

    run(group, work)


def test_a_version_is_gone_only_if_no_holder_has_it() -> None:
    group, (first, second) = group_of(2)

    async def work() -> None:
        first.answer = VersionGoneError(3)
        second.answer = "second"
        assert await group.ask("search") == "second"
        assert group.status()[0] == ("holder-0", "open")
        second.answer = VersionGoneError(3)
        with pytest.raises(VersionGoneError):
            await group.ask("search")

    run(group, work)


def test_an_error_of_the_question_is_raised_and_nobody_else_is_asked() -> None:
    group, (first, second) = group_of(2)

    async def work() -> None:
        first.answer = ValueError("no such method")
        with pytest.raises(ValueError, match="no such method"):
            await group.ask("search")
        assert second.asked == []
        assert group.status()[0] == ("holder-0", "open")

    run(group, work)


def test_lost_holders_are_tried_again_for_a_while() -> None:
    group, holders = group_of(2, lost=0.5)

    async def work() -> None:
        for holder in holders:
            holder.answer = HolderLostError("it restarts")
        task = asyncio.create_task(group.ask("search"))
        await asyncio.sleep(0.1)
        assert all(len(holder.asked) > 1 for holder in holders)
        holders[1].answer = "back"
        assert await task == "back"
        holders[1].answer = HolderLostError("it has died")
        with pytest.raises(HolderLostError, match=r"holder-\d: it"):
            await group.ask("search")

    run(group, work)
