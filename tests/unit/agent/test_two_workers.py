"""Several workers on one store, in one process: each has its own connections and its own hub.

What happens when a worker is killed, stopped or cut off from the store is shown with real processes in
`tests/chaos`; here it is shown what they say to each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeAlias

import pytest

from farhand.agent.endings import STOPPED_BY_USER
from farhand.clock import SystemClock
from farhand.core.event import (
    CallOpened,
    Position,
    RunFinished,
    RunResumed,
    StepDiscarded,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Cancelled, Outcome, Success
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted, Conflict, Receipt, Repeated, Result
from farhand.core.run import RunState
from farhand.core.settings import Limits, Patience, Settings
from farhand.errors import StoreDown, TooMany
from farhand.models.scripted import Ask, Say
from farhand.models.scripted.model import Script
from farhand.models.scripted.moment import Moment
from farhand.models.scripted.step import Step
from farhand.store.base import ClaimRun, Commit, Committed, InsertCall, Write
from farhand.store.postgres import PostgresStore
from farhand.tools.decorate import tool
from tests.postgres import Cluster
from tests.requirement import requirement
from tests.unit.agent.hands import open_url, take_photo
from tests.unit.agent.stage import THREAD, YES, Stage, comes_true, text_in

OPEN = Ask("open_url", {"url": "https://example.org"})
PHOTO = Ask("take_photo", {"camera": "front"})
QUICK = Settings(patience=Patience(lease=1.0))
PAGE = Success({"viewKey": "v"})

Hire: TypeAlias = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def hire(cluster: Cluster) -> AsyncIterator[Hire]:
    """`await hire(script, *tools)`: one more worker on the same store."""
    address = cluster.address()
    hired: list[Stage] = []

    async def hire(
        script: Script | Sequence[Step | Script], *tools: object, settings: Settings = QUICK
    ) -> Stage:
        store = await PostgresStore.open(address)
        stage = Stage(store, SystemClock(), script, *tools, settings=settings)
        await stage.farhand.open()
        hired.append(stage)
        return stage

    yield hire
    for stage in hired:
        await stage.farhand.close()


@requirement("workers:answer-anywhere")
async def test_an_answer_at_another_worker_wakes_the_one_that_holds_the_run(hire: Hire) -> None:
    one, other = await hire([OPEN, "Thanks."], open_url), await hire(["never"], open_url)
    run = await one.say("hi", hold_for=30.0)
    await one.told(run, CallOpened)
    await other.answer(await other.open_call(), PAGE)
    assert text_in(await one.told(run)) == "Thanks."
    assert (await one.stored(run)).fence == 1, "nobody took it from its holder"


@requirement("workers:answer-anywhere")
async def test_a_parked_run_goes_on_at_the_worker_that_got_the_answer(hire: Hire) -> None:
    one, other = await hire([OPEN, "never"], open_url), await hire(["Thanks."], open_url)
    run = await one.say("hi")
    await one.told(run)
    after = await one.position(run)
    await other.answer(await other.open_call(), PAGE)
    assert text_in(await one.told(run, RunFinished, after=after)) == "Thanks."


@requirement("workers:answer-anywhere")
async def test_an_approval_at_another_worker_wakes_the_one_that_holds_the_run(hire: Hire) -> None:
    one, other = await hire([PHOTO, "Nice."], take_photo), await hire(["never"], take_photo)
    run = await one.say("hi", hold_for=30.0)
    await one.told(run, CallOpened)
    call = await other.open_call()
    assert await other.decide(call, YES) == Accepted()
    await other.answer(call, Success("photo"))
    assert text_in(await one.told(run)) == "Nice."


@requirement("workers:one-winner")
async def test_of_many_results_at_two_workers_one_wins_and_all_are_told_so(hire: Hire) -> None:
    stages = [await hire([OPEN, "Thanks."], open_url) for _ in range(2)]
    run = await stages[0].say("hi", hold_for=30.0)
    await stages[0].told(run, CallOpened)
    call = await stages[0].open_call()

    async def settle(number: int, view: str) -> Receipt:
        result = Result(call_id=call.call_id, outcome=Success({"viewKey": view}))
        return await stages[number % 2].farhand.desk.settle(LOCAL, result)

    same = await asyncio.gather(*(settle(number, "same") for number in range(100)))
    assert sorted(type(receipt).__name__ for receipt in same) == ["Accepted"] + ["Repeated"] * 99
    late = await asyncio.gather(*(settle(number, f"view {number}") for number in range(20)))
    assert len({receipt.winner.digest for receipt in late if isinstance(receipt, Conflict)}) == 1
    assert all(isinstance(receipt, Conflict | Repeated) for receipt in late)
    await stages[0].told(run)


@requirement("workers:read-anywhere")
async def test_a_run_is_read_at_another_worker_while_it_speaks(hire: Hire) -> None:
    told = asyncio.Event()

    @tool
    async def wait_for_reader() -> str:
        """Wait."""
        await told.wait()
        return "ok"

    one = await hire([Ask("wait_for_reader", {}), "A long answer."], wait_for_reader)
    other = await hire(["never"])
    run = await one.say("hi")
    await other.told(run, CallOpened)
    told.set()
    assert text_in(await other.told(run)) == "A long answer."


@requirement("workers:read-anywhere")
async def test_a_reader_at_another_worker_keeps_the_run_held(hire: Hire) -> None:
    one, other = await hire([OPEN, "Thanks."], open_url), await hire(["never"], open_url)
    run = await one.say("hi", hold_for=30.0)
    with other.farhand.read(run):

        async def is_known() -> bool:
            return one.store.hub.watched(run.run_id) > 0

        await comes_true(is_known)


@requirement("workers:stop-anywhere")
async def test_a_run_is_stopped_at_another_worker_with_all_that_was_said_stored(hire: Hire) -> None:
    one, other = await hire([OPEN, "never"], open_url), await hire(["never"], open_url)
    run = await one.say("hi", hold_for=30.0)
    await one.told(run, CallOpened)
    assert await other.farhand.stop(LOCAL, THREAD, STOPPED_BY_USER)
    told = await one.told(run)
    assert isinstance(told[-1], RunFinished)
    assert told[-1].state is RunState.STOPPED
    assert await one.outcomes(run) == [Cancelled(STOPPED_BY_USER)]
    await one.idle()
    await one.check()


@requirement("workers:stop-anywhere")
async def test_what_readers_heard_of_a_run_that_is_stopped_elsewhere_is_in_its_record(hire: Hire) -> None:
    one = await hire([Say("word " * 2_000, delay=0.005)], open_url)
    other = await hire(["never"])
    run = await one.say("hi")
    with one.farhand.read(run) as reader:
        heard: list[object] = []
        async with asyncio.timeout(20):
            while not any(isinstance(each, TextAdded) for each in heard):
                heard += [entry.event for entry in await reader.next(5.0) or ()]
            assert await other.farhand.stop(LOCAL, THREAD, STOPPED_BY_USER)
            while not any(isinstance(each, RunFinished) for each in heard):
                heard += [entry.event for entry in await reader.next(5.0) or ()]
    text = "".join(each.text for each in heard if isinstance(each, TextAdded))
    assert text_in(await other.journal(run)) == text


@requirement("streams:takeover")
async def test_who_heard_words_that_were_lost_with_a_stopped_run_is_told_of_the_gap(hire: Hire) -> None:
    speak, thaw = asyncio.Event(), asyncio.Event()

    async def halting(moment: Moment) -> AsyncIterator[Step]:
        await speak.wait()
        yield "lost"
        await asyncio.Event().wait()

    async def frozen(*writes: object) -> Commit:
        await thaw.wait()
        raise StoreDown("It was frozen.")

    # with a lease that lasts: one that cannot write cannot renew it either, and is not to be taken over here
    one = await hire(halting, settings=Settings(patience=Patience(lease=300.0)))
    other = await hire(["never"])
    run = await one.say("hi")
    stored = await one.heard(run, StepStarted)

    async def is_stored() -> bool:
        return (await other.stored(run)).last_seq == stored[-1].seq

    await comes_true(is_stored)
    commit, one.store.commit = one.store.commit, frozen  # type: ignore[method-assign]
    try:
        with one.farhand.read(run, stored[-1].end) as reader:
            speak.set()
            heard = await reader.next(20.0)
        assert heard
        assert await other.farhand.stop(LOCAL, THREAD, STOPPED_BY_USER)
        assert await other.farhand.knows(run, stored[-1].end), "this much was stored"
        for lost in (heard[-1].end, Position(heard[-1].seq)):
            assert not await other.farhand.knows(run, lost)
    finally:
        one.store.commit = commit  # type: ignore[method-assign]
        thaw.set()
    await one.idle()
    assert text_in(await other.journal(run)) == ""


@requirement("workers:takeover")
async def test_a_run_of_a_worker_that_cannot_renew_goes_on_elsewhere_and_the_old_one_changes_nothing(
    hire: Hire,
) -> None:
    one, other = await hire([OPEN, "from the old one"], open_url), await hire(["from the new one"], open_url)
    run = await one.say("hi", hold_for=30.0)
    await one.told(run, CallOpened)
    await _stall(one)

    async def is_taken() -> bool:
        return (await other.stored(run)).fence == 2

    await comes_true(is_taken)
    await other.answer(await other.open_call(), PAGE)
    assert text_in(await other.told(run)) == "from the new one"
    await one.idle()
    assert any(isinstance(event, RunResumed) for event in await other.journal(run))
    await other.check()


@requirement("workers:takeover")
async def test_a_worker_that_lost_its_run_in_mid_word_tells_nobody_the_rest(hire: Hire) -> None:
    gate = asyncio.Event()

    async def halting(moment: Moment) -> AsyncIterator[Step]:
        yield "half a "
        await gate.wait()
        yield "sentence"

    one = await hire(halting)
    run = await one.say("hi")
    await one.told(run, TextAdded)
    await _stall(one)
    other = await hire(["All of it."])
    assert text_in(await other.told(run, RunFinished)).endswith("All of it.")
    with one.store.hub.watch(run.run_id, limit=1000) as watch:
        watch.news.clear()
        gate.set()
        await one.idle()
        said = [entry.event for entries in watch.news if isinstance(entries, list) for entry in entries]
    assert "sentence" not in text_in(said)
    journal = await other.journal(run)
    assert StepDiscarded(1) in journal
    assert text_in(journal) == "half a All of it."


@requirement("workers:hand-over")
async def test_a_worker_that_stops_hands_its_runs_over_at_once(hire: Hire) -> None:
    slow = Settings(patience=Patience(lease=600.0))
    begun = asyncio.Event()

    @tool(idempotent=True)
    async def dig() -> str:
        """Dig."""
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return "gold"

    one = await hire([Ask("dig", {}), "never"], dig)
    one.farhand.worker._leases.seconds = slow.patience.lease
    other = await hire(["Found."], dig)
    run = await one.say("hi")
    await begun.wait()
    await one.farhand.drain()
    await one.farhand.close()
    assert text_in(await other.told(run)) == "Found."


@requirement("calls:room")
async def test_programs_that_ask_at_once_get_no_more_places_than_there_are(hire: Hire) -> None:
    one = await hire([], open_url)
    one.farhand.kit.room._limits = Limits(open_calls_per_thread=2)

    async def ask() -> Outcome | None:
        try:
            return await one.farhand.call("open_url", {"url": "https://example.org"}, thread=THREAD)
        except TooMany:
            return None

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(ask()) for _ in range(5)]

        async def three_are_told() -> bool:
            return sum(task.done() for task in asked) == 3

        await comes_true(three_are_told)
        for call in await one.store.open_calls(LOCAL):
            await one.answer(call, PAGE)
    assert [task.result() for task in asked].count(PAGE) == 2


async def _stall(stage: Stage) -> None:
    """As if the process had been stopped: it renews nothing and sweeps nothing, but its tasks are there."""

    async def never() -> list[str]:
        await asyncio.Event().wait()
        return []

    stage.farhand.worker._leases.renew = never  # type: ignore[method-assign]
    stage.farhand.worker.sweep = never  # type: ignore[method-assign,assignment]


@requirement("workers:stopped-before-a-tool")
async def test_a_worker_that_was_stopped_right_before_its_tool_does_not_begin_it_after_a_takeover(
    hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    @tool(idempotent=True)
    def look_up(subject: str) -> str:
        """Look something up.

        Args:
            subject: What.
        """
        begun.append(subject)
        return "found"

    one, other = await hire([Ask("look_up", {"subject": "x"}), "Thanks."], look_up), await hire(["never"])
    commit, taken_over = one.store.commit, False

    async def commit_and_lose(*writes: Write) -> Commit:
        """As if the process had been stopped for longer than its lease when its calls were stored."""
        nonlocal taken_over
        done = await commit(*writes)
        opened = [write.call.run_id for write in writes if isinstance(write, InsertCall)]
        if opened and opened[0] is not None:
            claim = await other.store.commit(ClaimRun(opened[0], 1e6, by_force=True))
            taken_over = isinstance(claim, Committed)
        return done

    monkeypatch.setattr(one.store, "commit", commit_and_lose)
    monkeypatch.setattr(one.farhand.worker, "_is_sure", lambda run, now: not taken_over)
    await one.say("look it up")
    await one.idle()
    assert taken_over
    assert begun == []
