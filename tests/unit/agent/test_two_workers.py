"""Several workers on one store, in one process: each has its own connections and its own broker.

What happens when a worker is killed, stopped or cut off from the store is shown with real processes in
`tests/chaos`; here it is shown what they say to each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import pytest

from farhand.agent.keyed_calls import Waiting
from farhand.agent.ownership import Membership
from farhand.agent.start_run import STOPPED_BY_USER
from farhand.clock import SystemClock
from farhand.core.decide import runs
from farhand.core.event import (
    CallOpened,
    CallTaken,
    RunFinished,
    RunResumed,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Cancelled, Outcome, Success
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted, Conflict, Receipt, Repeated, Result
from farhand.core.run import RunState
from farhand.core.settings import Limits, Settings, Timeouts
from farhand.errors import StoreDown, TooMany
from farhand.eventlog.log import EventLog
from farhand.models.scripted import Ask, Say
from farhand.models.scripted.model import Moment, Script, Step
from farhand.store.base import Append, AppendResult, FoundThread
from farhand.store.postgres import PostgresStore
from farhand.tools.declared import DeclaredTool
from farhand.tools.decorate import tool
from tests.postgres import Cluster
from tests.requirement import requirement
from tests.unit.agent.failing_store import events_of
from tests.unit.agent.hands import open_url, take_photo
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, YES, Stage, comes_true, text_in

OPEN = Ask("open_url", {"url": "https://example.org"})
PHOTO = Ask("take_photo", {"camera": "front"})
QUICK = Settings(timeouts=Timeouts(lease=1.0))
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
        await stage.service.open()
        hired.append(stage)
        return stage

    yield hire
    for stage in hired:
        await stage.service.close()


@requirement("workers:answer-anywhere")
async def test_an_answer_at_another_worker_wakes_the_one_that_holds_the_run(hire: Hire) -> None:
    one, other = await hire([OPEN, "Thanks."], open_url), await hire(["never"], open_url)
    run = await one.say("hi", hold_for=30.0)
    await one.told(run, CallOpened)
    await other.answer(await other.open_call(), PAGE)
    assert text_in(await one.told(run)) == "Thanks."
    assert (await one.stored(run)).fence == 1, "nobody took it from its holder"


async def test_a_worker_remembers_how_to_hold_only_some_runs_that_others_resume(
    hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.agent.worker.MAX_PREFERRED", 2)
    worker = (await hire(["never"])).service.worker
    for number in range(5):
        worker.prefer(f"run_{number}", hold_for=0.0)
    assert list(worker._preferred) == ["run_3", "run_4"]


@requirement("workers:answer-anywhere")
async def test_a_parked_run_continues_at_the_worker_that_got_the_answer(hire: Hire) -> None:
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


@requirement("workers:answer-anywhere")
async def test_of_many_results_at_two_workers_one_wins_and_all_are_told_so(hire: Hire) -> None:
    stages = [await hire([OPEN, "Thanks."], open_url) for _ in range(2)]
    run = await stages[0].say("hi", hold_for=30.0)
    await stages[0].told(run, CallOpened)
    call = await stages[0].open_call()

    async def settle(number: int, view: str) -> Receipt:
        result = Result(call_id=call.call_id, outcome=Success({"viewKey": view}))
        return await stages[number % 2].service.desk.settle(LOCAL, result)

    same = await asyncio.gather(*(settle(number, "same") for number in range(100)))
    assert sorted(type(receipt).__name__ for receipt in same) == ["Accepted"] + ["Repeated"] * 99
    late = await asyncio.gather(*(settle(number, f"view {number}") for number in range(20)))
    assert len({receipt.winner.digest for receipt in late if isinstance(receipt, Conflict)}) == 1
    assert all(isinstance(receipt, Conflict | Repeated) for receipt in late)
    await stages[0].told(run)


@requirement("workers:answer-anywhere")
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


@requirement("workers:answer-anywhere")
async def test_a_reader_at_another_worker_keeps_the_run_held(hire: Hire) -> None:
    one, other = await hire([OPEN, "Thanks."], open_url), await hire(["never"], open_url)
    run = await one.say("hi", hold_for=30.0)
    with other.service.read(run):

        async def is_known() -> bool:
            return one.log.broker.count(run.run_id) > 0

        await comes_true(is_known)


async def test_a_run_is_stopped_at_another_worker_with_all_that_was_said_stored(hire: Hire) -> None:
    one, other = await hire([OPEN, "never"], open_url), await hire(["never"], open_url)
    run = await one.say("hi", hold_for=30.0)
    await one.told(run, CallOpened)
    assert await other.service.stop(LOCAL, THREAD, STOPPED_BY_USER)
    told = await one.told(run)
    assert isinstance(told[-1], RunFinished)
    assert told[-1].state is RunState.STOPPED
    assert await one.outcomes(run) == [Cancelled(STOPPED_BY_USER)]
    await one.idle()
    await one.check()


async def test_a_stop_at_another_worker_cancels_the_tool_where_it_runs(hire: Hire) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def dig() -> str:
        """Dig forever."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    one, other = await hire([Ask("dig", {}), "never"], dig), await hire(["never"])
    run = await one.say("hi")
    await begun.wait()
    assert await other.service.stop(LOCAL, THREAD, STOPPED_BY_USER)
    async with asyncio.timeout(20):
        await ended.wait()
    await one.idle()
    assert await other.outcomes(run) == [Cancelled(STOPPED_BY_USER)]


async def test_what_readers_heard_of_a_run_that_is_stopped_elsewhere_is_in_its_record(hire: Hire) -> None:
    one = await hire([Say("word " * 2_000, delay=0.005)], open_url)
    other = await hire(["never"])
    run = await one.say("hi")
    with one.service.read(run) as reader:
        heard: list[object] = []
        async with asyncio.timeout(20):
            while not any(isinstance(each, TextAdded) for each in heard):
                heard += [entry.event for entry in await reader.next(5.0) or ()]
            assert await other.service.stop(LOCAL, THREAD, STOPPED_BY_USER)
            while not any(isinstance(each, RunFinished) for each in heard):
                heard += [entry.event for entry in await reader.next(5.0) or ()]
    text = "".join(each.text for each in heard if isinstance(each, TextAdded))
    assert text_in(await other.journal(run)) == text


@requirement("streams:takeover")
async def test_words_that_a_worker_cannot_store_are_shown_to_nobody(hire: Hire) -> None:
    speak, begun, thaw = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def halting(moment: Moment) -> AsyncIterator[Step]:
        await speak.wait()
        yield "lost"
        await asyncio.Event().wait()

    async def frozen(appends: Sequence[Append]) -> list[AppendResult]:
        begun.set()
        await thaw.wait()
        raise StoreDown("It was frozen.")

    # with a lease that lasts: one that cannot write cannot renew it either, and is not to be taken over here
    one = await hire(halting, settings=Settings(timeouts=Timeouts(lease=300.0)))
    other = await hire(["never"])
    run = await one.say("hi")
    stored = await one.heard(run, StepStarted)
    append, one.store.append = one.store.append, frozen  # type: ignore[method-assign]
    try:
        with other.service.read(run, stored[-1].end) as reader:
            speak.set()
            await begun.wait()
            assert await other.service.stop(LOCAL, THREAD, STOPPED_BY_USER)
            heard = await reader.next(20.0)
    finally:
        one.store.append = append  # type: ignore[method-assign]
        thaw.set()
    assert heard is not None
    assert text_in([entry.event for entry in heard]) == ""
    await one.idle()
    assert text_in(await other.journal(run)) == ""


@requirement("workers:takeover")
async def test_a_run_of_a_worker_that_cannot_renew_continues_elsewhere_and_the_old_one_changes_nothing(
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
async def test_after_an_outage_a_worker_that_looks_for_its_own_leases_leaves_those_of_others(
    hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All leases may have expired, and the tools of the other workers are still running."""
    started, go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def buy() -> str:
        """Buy something."""
        started.set()
        await go_on.wait()
        return "tea"

    one, other = await hire([Ask("buy", {}), "Thanks."], buy), await hire(["never"], buy)
    run = await one.say("hi")
    await started.wait()
    monkeypatch.setattr(Membership, "trusts_leases", False)
    await _stall(one)

    async def has_expired() -> bool:
        return bool(await other.store.claimable(limit=9))

    await comes_true(has_expired)
    looks: asyncio.Queue[int] = asyncio.Queue()
    claimable = other.store.claimable

    # all arguments are passed on
    async def note(**asked: Any) -> list[FoundThread]:
        found = await claimable(**asked)
        if asked.get("worker"):
            looks.put_nowait(len(found))
        return found

    monkeypatch.setattr(other.store, "claimable", note)
    # the second time, it has dealt with what it found the first time
    for _ in range(2):
        other.log.broker.invalidate_all()
        await asyncio.wait_for(looks.get(), PATIENCE_SEC)
    go_on.set()
    assert text_in(await one.told(run, RunFinished)) == "Thanks."
    assert (await one.stored(run)).fence == 1, "nobody took it over"


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
    with one.log.broker.subscribe(run.run_id, limit=1000) as subscription:
        subscription.items.clear()
        gate.set()
        await one.idle()
        said = [
            entry.event for entries in subscription.items if isinstance(entries, list) for entry in entries
        ]
    assert "sentence" not in text_in(said)
    journal = await other.journal(run)
    assert StepDiscarded(1) in journal
    assert text_in(journal) == "half a All of it."


async def test_a_worker_that_finds_a_run_it_has_just_begun_leaves_it_alone(
    hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks for its own leases while it claims the run: the store has the claim before it knows."""
    go_on = asyncio.Event()

    async def slow(moment: Moment) -> Step:
        await go_on.wait()
        return "Hello."

    worker = await hire(slow)
    run = await worker.say("hi")
    await worker.told(run, StepStarted)
    [own] = await worker.store.claimable(limit=9, worker=worker.service.worker.name)
    looks: asyncio.Queue[None] = asyncio.Queue()
    claimable = worker.store.claimable

    # all arguments are passed on
    async def late(**asked: Any) -> list[FoundThread]:
        if not asked.get("worker"):
            return await claimable(**asked)
        looks.put_nowait(None)
        return [own]

    monkeypatch.setattr(worker.store, "claimable", late)
    worker.log.broker.invalidate_all()
    # it has dealt with the first when it looks for the second time
    for _ in range(2):
        await asyncio.wait_for(looks.get(), PATIENCE_SEC)
    go_on.set()
    await worker.told(run, RunFinished)
    assert (await worker.stored(run)).fence == 1


@requirement("workers:takeover")
async def test_a_worker_that_has_just_started_leaves_expired_leases_alone_for_a_moment(hire: Hire) -> None:
    """Like all others, they may have expired in an outage of the store that it knows nothing of."""
    started, go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def buy() -> str:
        """Buy something."""
        started.set()
        await go_on.wait()
        return "tea"

    one = await hire([Ask("buy", {}), "Thanks."], buy, settings=Settings())
    run = await one.say("hi")
    await started.wait()
    await one.store.renew(one.service.worker.name, one.store.now() - 1.0)
    other = await hire(["never"], buy, settings=Settings())
    for _ in range(2):
        await other.service.worker.sweep()
    go_on.set()
    assert text_in(await one.told(run, RunFinished)) == "Thanks."
    assert (await one.stored(run)).fence == 1, "nobody took it over"


@requirement("runs:drain")
async def test_a_worker_that_has_just_started_takes_over_at_once_what_another_one_handed_over(
    hire: Hire,
) -> None:
    # it would not wait for the end of this test
    slow = Settings(timeouts=Timeouts(lease=600.0))
    started = asyncio.Event()

    async def halting(moment: Moment) -> AsyncIterator[Step]:
        started.set()
        yield "half a "
        await asyncio.Event().wait()

    one = await hire(halting, settings=slow)
    run = await one.say("hi")
    await started.wait()
    await one.service.close()
    other = await hire(["All of it."], settings=slow)
    assert text_in(await other.told(run, RunFinished)).endswith("All of it.")


@requirement("runs:drain")
async def test_a_worker_that_has_just_started_takes_over_at_once_the_calls_of_one_that_has_left(
    hire: Hire,
) -> None:
    # it would not wait for the end of this test
    slow = Settings(timeouts=Timeouts(lease=600.0))
    begun = asyncio.Event()

    @tool(idempotent=True)
    async def dig() -> str:
        """Dig."""
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return "gold"

    one = await hire([], dig, settings=slow)
    assert isinstance(await one.service.call("dig", {}, thread=THREAD, key="k", within=0.0), Waiting)
    await begun.wait()
    await one.service.close()
    other = await hire([], dig, settings=slow)
    async with asyncio.timeout(PATIENCE_SEC):
        call = await other.service.attach("k")
    assert call is not None
    assert call.outcome == Success("gold")


@requirement("runs:drain")
async def test_a_worker_that_stops_hands_its_runs_over_at_once(hire: Hire) -> None:
    slow = Settings(timeouts=Timeouts(lease=600.0))
    begun = asyncio.Event()

    @tool(idempotent=True)
    async def dig() -> str:
        """Dig."""
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return "gold"

    one = await hire([Ask("dig", {}), "never"], dig, settings=slow)
    other = await hire(["Found."], dig)
    run = await one.say("hi")
    await begun.wait()
    await one.service.drain()
    await one.service.close()
    assert text_in(await other.told(run)) == "Found."


async def test_programs_that_ask_at_once_get_no_more_places_than_there_are(hire: Hire) -> None:
    two = Settings(timeouts=QUICK.timeouts, limits=Limits(open_calls_per_thread=2))
    one = await hire([], open_url, settings=two)

    async def ask() -> Outcome | Waiting | None:
        try:
            return await one.service.call("open_url", {"url": "https://example.org"}, thread=THREAD)
        except TooMany:
            return None

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(ask()) for _ in range(5)]

        async def three_are_told() -> bool:
            return sum(task.done() for task in asked) == 3

        await comes_true(three_are_told)
        for call in await one.log.open_calls(LOCAL):
            await one.answer(call, PAGE)
    assert [task.result() for task in asked].count(PAGE) == 2


async def _stall(stage: Stage) -> None:
    """As if the process had been stopped: it renews nothing and sweeps nothing, but its tasks are there."""

    async def never() -> int:
        await asyncio.Event().wait()
        return 0

    stage.service.worker._ownership.renew = never  # type: ignore[method-assign,assignment]
    stage.service.worker.sweep = never  # type: ignore[method-assign]


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

    taken_over = False
    one, other = await hire([Ask("look_up", {"subject": "x"}), "Thanks."], look_up), await hire(["never"])
    append = one.store.append

    async def append_and_lose(appends: Sequence[Append]) -> list[AppendResult]:
        """As if the process had been stopped for longer than its lease when its calls were stored."""
        nonlocal taken_over
        done = await append(appends)
        if any(isinstance(event, CallOpened) for each in appends for event in events_of(each)):
            await _stop_for_a_lease(one)
            taken_over = await _take_over(EventLog(other.store))
        return done

    monkeypatch.setattr(one.store, "append", append_and_lose)
    await one.say("look it up")
    await one.idle()
    assert taken_over
    assert begun == []


async def _stop_for_a_lease(stage: Stage) -> None:
    """As if the process had been stopped for longer than its lease, and had renewed it since."""
    ownership = stage.service.worker._ownership
    ownership._sure_until = asyncio.get_running_loop().time()
    await ownership.renew()


@requirement("workers:takeover")
@pytest.mark.parametrize("needs_approval", [False, True])
async def test_a_direct_call_that_ended_elsewhere_while_its_worker_was_stopped_is_not_begun(
    hire: Hire, monkeypatch: pytest.MonkeyPatch, needs_approval: bool
) -> None:
    begun: list[str] = []

    @tool(idempotent=True, needs_approval=needs_approval)
    def look_up(subject: str) -> str:
        """Look something up.

        Args:
            subject: What.
        """
        begun.append(subject)
        return "found"

    one, other = await hire(["never"], look_up), await hire(["never"], look_up)
    append, taken = one.store.append, CallTaken if needs_approval else CallOpened

    async def append_and_lose(appends: Sequence[Append]) -> list[AppendResult]:
        done = await append(appends)
        if any(isinstance(event, taken) for each in appends for event in events_of(each)):
            monkeypatch.setattr(one.store, "append", append)
            await _finish_elsewhere(other, look_up)
            await _stop_for_a_lease(one)
        return done

    monkeypatch.setattr(one.store, "append", append_and_lose)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(one.service.call("look_up", {"subject": "x"}, thread=THREAD, key="k"))
        if needs_approval:
            await comes_true(lambda: _is_asked(one))
            assert await one.decide(await one.open_call(), YES) == Accepted()
    assert asked.result() == Success("found elsewhere")
    await one.service.worker.direct.drain(30.0)
    assert begun == []


async def _is_asked(stage: Stage) -> bool:
    return bool(await stage.log.open_calls(LOCAL, THREAD))


async def _finish_elsewhere(stage: Stage, declared: DeclaredTool[..., object]) -> None:
    """Another worker finds it in flight, runs it again and stores its outcome."""
    call = await stage.open_call()
    taken = await stage.service.desk.start_direct(call, declared.tool, stage.service.worker.name)
    assert taken is not None
    assert await stage.service.desk.finish(taken, Success("found elsewhere")) == Accepted()


async def _take_over(eventlog: EventLog) -> bool:
    """By a worker that does not continue with it."""
    run = await eventlog.last_run(LOCAL, THREAD)
    assert run is not None
    fence = await eventlog.decide(
        LOCAL,
        THREAD,
        lambda thread, now: runs.claim(
            thread, run.run_id, run.fence, lambda call: True, now=now, timeouts=QUICK.timeouts
        ),
    )
    return fence == 2


@requirement("calls:yes-acted-on")
async def test_an_approved_tool_runs_at_the_worker_that_got_the_approval(hire: Hire) -> None:
    deleted: list[str] = []
    delete_file = _deletion(deleted)
    asks = [Ask("delete_file", {"path": "a.txt"}), OPEN]
    one = await hire([asks, "never"], delete_file, open_url)
    other = await hire(["Thanks."], delete_file, open_url)
    run = await one.say("delete")
    await one.told(run)
    assert await other.decide(await other.open_call("delete_file"), YES) == Accepted()

    async def is_done() -> bool:
        now = await other.stored(run)
        return deleted == ["a.txt"] and now.parked and now.waits

    await comes_true(is_done)
    await other.answer(await other.open_call("open_url"), PAGE)
    assert text_in(await other.told(run, RunFinished)) == "Thanks."
    assert deleted == ["a.txt"]
    assert (await other.stored(run)).fence == 3, "claimed for the tool, and for the answer"


@requirement("calls:yes-acted-on")
async def test_an_approved_tool_runs_at_the_worker_that_holds_the_run(hire: Hire) -> None:
    deleted: list[str] = []
    delete_file = _deletion(deleted)
    asks = [Ask("delete_file", {"path": "a.txt"}), OPEN]
    one = await hire([asks, "Thanks."], delete_file, open_url)
    other = await hire(["never"], delete_file, open_url)
    run = await one.say("delete", hold_for=30.0)
    await one.told(run, StepFinished)
    assert await other.decide(await other.open_call("delete_file"), YES) == Accepted()

    async def is_done() -> bool:
        return deleted == ["a.txt"] and (await other.stored(run)).waits

    await comes_true(is_done)
    await other.answer(await other.open_call("open_url"), PAGE)
    assert text_in(await one.told(run, RunFinished)) == "Thanks."
    assert (deleted, (await one.stored(run)).fence) == (["a.txt"], 1)


def _deletion(deleted: list[str]) -> DeclaredTool[[str], str]:
    @tool(needs_approval=True)
    def delete_file(path: str) -> str:
        """Delete a file.

        Args:
            path: Which.
        """
        deleted.append(path)
        return f"deleted {path}"

    return delete_file


@requirement("workers:takeover")
async def test_a_run_whose_step_and_then_whose_claim_were_not_stored_continues_at_its_worker(
    hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await hire(lambda moment: "Hello."), await hire(["never"])
    failures = [StepFinished, RunResumed]
    store = one.store.append

    async def append(appends: Sequence[Append]) -> list[AppendResult]:
        events = [event for each in appends for event in events_of(each)]
        if failures and any(isinstance(event, failures[0]) for event in events):
            failures.pop(0)
            raise StoreDown("The store could not write; nothing of this was stored.")
        return await store(appends)

    monkeypatch.setattr(one.store, "append", append)
    run = await one.say("hi")

    async def is_done() -> bool:
        return (await other.stored(run)).state is RunState.DONE

    await comes_true(is_done)
    assert failures == []
