"""A held run is a record: it has no task until there is something to do, and every request finds it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import inf

import pytest

from farhand.agent.park import Hold
from farhand.agent.start_run import STOPPED_BY_USER
from farhand.core.decide import runs
from farhand.core.event import CallOpened, CallSettled, RunFinished, RunParked, StepFinished
from farhand.core.outcome import Cancelled, Success
from farhand.core.principal import LOCAL
from farhand.core.run import Run, RunState
from farhand.core.settings import Settings, Timeouts
from farhand.eventlog.log import EventLog
from farhand.eventlog.pubsub import freed_topic
from farhand.models.scripted import Ask, Moment, Step
from farhand.store.base import Append, AppendResult
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add, ask_text, open_url
from tests.unit.agent.stage import THREAD, Stage, comes_true, kinds, text_in
from tests.unit.eventlog.shared_store import SharedStore

OPEN = Ask("open_url", {"url": "https://example.org"})
VIEW = Success({"viewKey": "v1"})


async def test_a_held_run_has_no_task_and_continues_when_it_is_answered(stage: MakeStage) -> None:
    on = await stage([OPEN, OPEN, "Thanks."], open_url)
    run = await _held(on)
    after = await on.position(run)
    await on.answer(await on.open_call(), VIEW)
    await on.told(run, StepFinished, after=after)
    await _comes_to_rest(on, run)
    await on.answer(await on.open_call(), VIEW)
    events = await on.told(run)
    assert text_in(events) == "Thanks."
    assert not {"RunParked", "RunResumed"} & set(kinds(events))
    await on.idle()


@requirement("runs:hold")
async def test_a_held_run_continues_though_its_beginning_took_long_to_be_stored(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = await stage([OPEN, "Thanks."], open_url)
    append, look, has_looked = on.store.append, Hold.begin_look, asyncio.Event()

    async def append_late(appends: Sequence[Append]) -> list[AppendResult]:
        await has_looked.wait()
        return await append(appends)

    def note_look(hold: Hold) -> bool:
        if hold.listens:
            has_looked.set()
        return look(hold)

    monkeypatch.setattr(on.store, "append", append_late)
    monkeypatch.setattr(Hold, "begin_look", note_look)
    # else it would trust for half a second what it knows
    monkeypatch.setattr("farhand.calls.wait.JUST_STORED_SEC", 0.0)
    saying = asyncio.create_task(on.say("open", hold_for=60))
    run = await saying
    await _comes_to_rest(on, run)
    await on.answer(await on.open_call(), VIEW)
    assert text_in(await on.told(run)) == "Thanks."


@requirement("workers:takeover")
async def test_a_held_run_whose_lease_may_have_expired_is_confirmed_by_the_store_before_it_continues(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # else the store would be asked after a silence, or when the run is parked
    monkeypatch.setattr("farhand.calls.wait.JUST_STORED_SEC", 600.0)
    settings = Settings(timeouts=Timeouts(unread_for=600.0))
    on = Stage(SharedStore(clock), clock, [OPEN, "never"], open_url, settings=settings)
    on.log.broker.recheck = 600.0
    await on.service.open()
    run = await _held(on)
    # by a worker of which nothing is heard here
    await EventLog(on.store).decide(LOCAL, THREAD, lambda thread, now: runs.stop(thread, run.run_id, "stop"))
    on.log.broker.publish(freed_topic(run.run_id), None)
    await _comes_to_rest(on, run)
    assert run.run_id in on.service.worker._active, "no other worker can have it before its lease expires"
    on.service.worker._ownership._sure_since = inf
    on.log.broker.publish(freed_topic(run.run_id), None)
    await on.idle()
    assert len(on.model.prompts) == 1
    await on.service.close()


@requirement("runs:recovery")
async def test_a_run_that_its_only_worker_dropped_by_mistake_is_picked_up_by_the_next_sweep(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = await stage([OPEN, "Thanks."], open_url)
    run = await _held(on)
    with monkeypatch.context() as mistaken:
        mistaken.setattr("farhand.agent.loop._seen", lambda *_: None)
        on.log.broker.publish(freed_topic(run.run_id), None)
        await on.idle()
    await on.service.worker.sweep()
    await _comes_to_rest(on, run)
    await on.answer(await on.open_call(), VIEW)
    assert text_in(await on.told(run)).endswith("Thanks.")


async def test_one_of_two_answers_gives_a_held_run_nothing_to_do(stage: MakeStage) -> None:
    on = await stage([[OPEN, Ask("ask_text", {"question": "?"})], _tell], open_url, ask_text)
    run = await _held(on)
    await on.answer(await on.open_call("ask_text"), Success("yes"))
    assert not on.service.worker._active._tasks
    await on.answer(await on.open_call("open_url"), VIEW)
    assert text_in(await on.told(run)) == "{'viewKey': 'v1'} yes"


@requirement("runs:hold")
async def test_a_held_run_with_a_near_tool_in_its_step_hands_all_results_to_the_model(
    stage: MakeStage,
) -> None:
    on = await stage([[OPEN, Ask("add", {"a": 1, "b": 2})], _tell], open_url, add)
    run = await on.say("both", hold_for=60)
    await on.told(run, CallSettled)
    await _comes_to_rest(on, run)
    await on.answer(await on.open_call(), VIEW)
    assert text_in(await on.told(run)) == "{'viewKey': 'v1'} 3"


@requirement("runs:stop")
async def test_a_held_run_is_stopped_like_any_other(stage: MakeStage) -> None:
    on = await stage([OPEN, "never"], open_url)
    run = await _held(on)
    assert await on.service.stop(LOCAL, THREAD, STOPPED_BY_USER)
    assert (await on.told(run))[-1] == RunFinished(RunState.STOPPED, STOPPED_BY_USER, delivered=True)
    assert await on.outcomes(run) == [Cancelled(STOPPED_BY_USER)]
    _check_forgotten(on, run)


@requirement("runs:stop")
async def test_a_run_that_is_let_go_before_it_could_continue_is_forgotten(stage: MakeStage) -> None:
    on = await stage([OPEN, "never"], open_url)
    run = await _held(on)
    works = on.service.worker._active
    on.log.broker.publish(freed_topic(run.run_id), None)
    assert run.run_id in works._tasks, "woken, and not at work yet"
    works.let_go(run.run_id)
    _check_forgotten(on, run)


@requirement("runs:drain")
async def test_a_server_that_is_about_to_stop_parks_what_is_held(stage: MakeStage) -> None:
    on = await stage([OPEN, "never"], open_url)
    run = await _held(on)
    await on.service.drain(20.0)
    assert (await on.stored(run)).parked
    assert isinstance((await on.journal(run))[-1], RunParked)
    _check_forgotten(on, run)


@requirement("runs:drain")
async def test_a_server_that_stops_at_once_leaves_a_held_run_as_a_crash_would(stage: MakeStage) -> None:
    on = await stage([OPEN, "Thanks."], open_url)
    run = await _held(on)
    on.service.worker.stop()
    assert on.service._serving is not None
    await on.service._serving
    stored = await on.stored(run)
    assert (stored.waits, stored.parked) == (True, False)
    await on.answer(await on.open_call(), VIEW)
    _check_forgotten(on, run)


@requirement("runs:hold")
async def test_a_run_that_nobody_reads_any_more_parks_and_its_record_is_gone(stage: MakeStage) -> None:
    on = await stage([OPEN, "never"], open_url, settings=Settings(timeouts=Timeouts(unread_for=0.05)))
    run = await on.say("open it", hold_for=600)
    await on.idle()
    assert (await on.stored(run)).parked
    _check_forgotten(on, run)


@requirement("runs:hold")
@pytest.mark.parametrize("shaken", [False, True])
async def test_a_held_run_looks_at_the_record_if_it_may_have_missed_something(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch, *, shaken: bool
) -> None:
    on = await stage([OPEN, "Thanks."], open_url)
    on.log.broker.recheck = 60.0 if shaken else 0.05
    run = await _held(on)
    with monkeypatch.context() as deaf:
        deaf.setattr(on.log.broker, "publish", lambda topic, item: None)
        await on.answer(await on.open_call(), VIEW)
    if shaken:
        on.log.broker.invalidate(freed_topic(run.run_id))
    assert text_in(await on.told(run)) == "Thanks."


async def _held(on: Stage) -> Run:
    run = await on.say("open it", hold_for=60)
    await on.told(run, CallOpened)
    await _comes_to_rest(on, run)
    return run


async def _comes_to_rest(on: Stage, run: Run) -> None:
    async def is_held() -> bool:
        works = on.service.worker._active
        return run.run_id in works and not works._tasks and on.log.broker.has(freed_topic(run.run_id))

    await comes_true(is_held)


def _check_forgotten(on: Stage, run: Run) -> None:
    assert run.run_id not in on.service.worker._active
    assert not on.service.worker._active._tasks
    assert not on.log.broker.has(freed_topic(run.run_id))


def _tell(moment: Moment) -> Step:
    return " ".join(str(each.output) if each.kind == "success" else each.error for each in moment.last)
