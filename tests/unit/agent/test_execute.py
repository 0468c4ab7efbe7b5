"""Running server tools: while they only ask, their run waits, and its responses end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from farhand.agent.active_runs import LOOK_SEC
from farhand.agent.execute import StepTools
from farhand.agent.park import Hold
from farhand.core.call import Phase
from farhand.core.decide import runs
from farhand.core.decide.runs import MOVED_ON
from farhand.core.event import CallOpened, RunFinished, RunParked
from farhand.core.outcome import Cancelled, Success, TimedOut
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted
from farhand.core.run import Run, RunState
from farhand.core.settings import Limits, Settings, Timeouts
from farhand.core.thread import Text, UserMessage
from farhand.eventlog.pubsub import Subscription
from farhand.models.scripted import Ask, Moment, Step
from farhand.store.base import Append, AppendResult
from farhand.testing import FakeClock
from farhand.tools.context import ask
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.failing_store import events_of
from tests.unit.agent.hands import ask_text, open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, YES, Stage, comes_true, kinds, text_in
from tests.unit.agent.test_two_workers import Hire, hire

__all__ = ["hire"]
"""The fixture, for this file, too."""

ENDED: list[str] = []
OPEN = Ask("open_url", {"url": "https://example.org"})
NEVER_SEC = 3600.0
"""As a time for the broker to check again: only what is published counts."""


@tool(timeout_sec=2)
async def ask_once() -> str:
    """Ask a question."""
    try:
        return f"told {await ask('ask_text', {'question': 'first?'}, timeout_sec=600)}"
    except asyncio.CancelledError:
        ENDED.append("cancelled")
        raise


@tool
async def ask_twice() -> str:
    """Ask two questions."""
    first = await ask("ask_text", {"question": "first?"}, timeout_sec=600)
    return f"{first} and {await ask('ask_text', {'question': 'second?'}, timeout_sec=600)}"


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


@requirement("calls:deadline")
async def test_a_tool_whose_deadline_passed_while_its_process_was_stopped_is_not_begun(
    stage: MakeStage, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    @tool(timeout_sec=5)
    def send(text: str) -> None:
        """Send something.

        Args:
            text: What.
        """
        begun.append(text)

    on = await stage([Ask("send", {"text": "hello"}), "Done."], send)
    append = on.store.append

    async def append_and_stop(appends: Sequence[Append]) -> list[AppendResult]:
        """As if the process had been stopped right after its call was stored."""
        done = await append(appends)
        if any(isinstance(event, CallOpened) for each in appends for event in events_of(each)):
            clock.advance(7.0)
        return done

    monkeypatch.setattr(on.store, "append", append_and_stop)
    # only the tool itself finds out that it is late
    monkeypatch.setattr(on.log, "expect", lambda call: None)
    run = await on.say("go")
    assert text_in(await on.told(run, RunFinished)) == "Done."
    assert await on.outcomes(run) == [TimedOut(5.0)]
    assert begun == []


async def _answer(on: Stage, text: str) -> None:
    await on.answer(await on.open_call("ask_text"), Success(text))


@requirement("hands:question-gives-way")
async def test_a_run_whose_tool_asks_ends_its_response_and_continues_with_each_answer(
    stage: MakeStage,
) -> None:
    on = await stage([Ask("ask_twice"), "Done."], ask_twice, ask_text)
    run = await on.say("go")
    for text, question in (("one", "first?"), ("two", "second?")):
        await comes_true(lambda asked=question: _asks(on, asked))  # type: ignore[misc]
        await comes_true(lambda: _rests(on, run))
        now = await on.stored(run)
        assert (now.state, now.parked) == (RunState.WAITING, False)
        await _answer(on, text)
    assert text_in(await on.told(run, RunFinished)) == "Done."
    assert (await on.outcomes(run))[0] == Success("one and two")
    assert kinds(await on.journal(run)).count("RunParked") == 2
    assert "RunResumed" not in kinds(await on.journal(run)), "its worker kept it"


async def _asks(on: Stage, question: str) -> bool:
    calls = await on.log.open_calls(LOCAL, THREAD)
    return any(call.input.get("question") == question for call in calls)


async def _rests(on: Stage, run: Run) -> bool:
    return (await on.stored(run)).rests


async def test_a_run_that_is_held_keeps_its_response_while_somebody_reads_and_then_ends_it(
    stage: MakeStage,
) -> None:
    held = Settings(timeouts=Timeouts(hold_for=60.0, unread_for=0.3))
    on = await stage([Ask("ask_once"), "Done."], ask_once, ask_text, settings=held)
    run = await on.say("go", hold_for=60.0)
    with on.service.read(run) as reader:
        await comes_true(lambda: _asks(on, "first?"))
        heard = kinds([entry.event for entry in await reader.next(20.0) or ()])
        assert "RunParked" not in heard
        assert not (await on.stored(run)).rests
    # nobody reads any more
    await comes_true(lambda: _rests(on, run))
    await _answer(on, "yes")
    assert text_in(await on.told(run, RunFinished)) == "Done."


async def test_each_question_of_a_run_that_is_held_is_held_for_its_whole_time(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = await stage([Ask("ask_twice"), "Done."], ask_twice, ask_text)
    begun: list[float] = []
    begin = Hold.begin

    def note(self: Hold, *, at_least: float = 0.0) -> None:
        begun.append(at_least)
        begin(self, at_least=at_least)

    monkeypatch.setattr(Hold, "begin", note)
    run = await on.say("go", hold_for=60.0)
    with on.service.read(run):
        for times, question in enumerate(("first?", "second?"), start=1):
            await comes_true(lambda asked=question: _asks(on, asked))  # type: ignore[misc]

            async def is_held(wanted: int = times) -> bool:
                return len(begun) == wanted

            await comes_true(is_held)
            await _answer(on, "yes")
        await on.told(run, RunFinished)


async def test_a_tool_beside_one_that_asks_keeps_the_response_open_until_it_ends(stage: MakeStage) -> None:
    may_end = asyncio.Event()

    @tool
    async def dig() -> str:
        """Dig."""
        await may_end.wait()
        return "dug"

    on = await stage([[Ask("ask_once"), Ask("dig")], "Done."], ask_once, dig, ask_text)
    on.log.broker.recheck = NEVER_SEC
    run = await on.say("go")
    await comes_true(lambda: _asks(on, "first?"))
    assert (await on.stored(run)).state is RunState.RUNNING
    may_end.set()
    assert (await on.told(run, RunParked))[-1] == RunParked(is_kept=True)
    assert (await on.outcomes(run))[1] == Success("dug")
    await _answer(on, "yes")
    await on.told(run, RunFinished)


@requirement("hands:question-gives-way")
async def test_a_tool_that_is_approved_while_another_one_asks_starts_at_once(stage: MakeStage) -> None:
    on = await stage([[Ask("ask_once"), Ask("pay")], "Done."], ask_once, pay, ask_text)
    run = await on.say("go")
    await on.told(run, RunParked)
    assert await on.decide(await on.open_call("pay"), YES) == Accepted()

    async def is_paid() -> bool:
        return Success("paid") in await on.outcomes(run)

    await comes_true(is_paid)
    assert (await on.stored(run)).state is RunState.WAITING
    await _answer(on, "yes")
    assert text_in(await on.told(run, RunFinished)) == "Done."


async def test_a_tool_that_is_approved_while_another_one_works_starts_at_once(stage: MakeStage) -> None:
    may_end = asyncio.Event()

    @tool
    async def dig() -> str:
        """Dig."""
        await may_end.wait()
        return "dug"

    # the page's call keeps the run from being free
    on = await stage([[Ask("dig"), Ask("pay"), OPEN], "Done."], dig, pay, open_url)
    on.log.broker.recheck = NEVER_SEC
    run = await on.say("go")
    await comes_true(lambda: _is_at_work(on, "dig"))
    assert await on.decide(await on.open_call("pay"), YES) == Accepted()

    async def is_paid() -> bool:
        return Success("paid") in await on.outcomes(run)

    await comes_true(is_paid)
    may_end.set()
    await _show_page(on)
    assert text_in(await on.told(run, RunFinished)) == "Done."


async def _show_page(on: Stage) -> None:
    await on.answer(await on.open_call("open_url"), Success({"viewKey": "v"}))


async def _is_at_work(on: Stage, name: str) -> bool:
    calls = await on.log.open_calls(LOCAL, THREAD)
    return any(call.tool == name and call.phase is Phase.TAKEN for call in calls)


async def test_a_run_counts_among_the_active_ones_as_soon_as_its_tool_has_the_answer(
    stage: MakeStage,
) -> None:
    may_end = asyncio.Event()

    @tool
    async def ask_then_dig() -> str:
        """Ask, then dig."""
        told = await ask("ask_text", {"question": "first?"}, timeout_sec=600)
        await may_end.wait()
        return f"dug {told}"

    # as above
    on = await stage([[Ask("ask_then_dig"), OPEN], "Done."], ask_then_dig, ask_text, open_url)
    on.log.broker.recheck = NEVER_SEC
    run = await on.say("go")
    await on.told(run, RunParked)
    quotas = on.service.context.quotas
    assert not quotas.at_work
    await _answer(on, "here")

    async def is_counted() -> bool:
        return bool(quotas.at_work)

    await comes_true(is_counted)
    may_end.set()
    await _show_page(on)
    await on.told(run, RunFinished)


async def test_what_is_left_for_a_page_when_the_tool_has_its_answer_parks_the_run(stage: MakeStage) -> None:
    on = await stage([[Ask("ask_once"), OPEN], "Done."], ask_once, open_url, ask_text)
    run = await on.say("go")
    await on.told(run, RunParked)
    await _answer(on, "yes")

    await on.idle()
    assert (await on.stored(run)).parked
    await on.answer(await on.open_call("open_url"), Success({"viewKey": "v"}))
    assert text_in(await on.told(run, RunFinished)) == "Done."


@requirement("hands:question-gives-way")
async def test_a_new_message_cancels_the_tool_where_it_runs(stage: MakeStage) -> None:
    ENDED.clear()
    on = await stage([Ask("ask_once"), "Next."], ask_once, ask_text)
    run = await on.say("go")
    await on.told(run, RunParked)
    following = await on.say("never mind")
    assert text_in(await on.told(following)) == "Next."
    assert await on.outcomes(run) == [Cancelled(MOVED_ON)] * 2
    await on.idle()
    assert ENDED == ["cancelled"]


async def test_a_run_whose_tool_asks_does_not_count_among_the_active_ones(stage: MakeStage) -> None:
    few = Settings(limits=Limits(running_per_principal=1))
    on = await stage(_asks_first, ask_once, ask_text, settings=few)
    run = await on.say("go")
    await on.told(run, RunParked)
    other = UserMessage("m9", (Text("hello"),))
    started = await on.service.start(LOCAL, "t2", other, hold_for=0.0)
    assert text_in(await on.told(started.run, RunFinished)) == "hello"
    await _answer(on, "yes")
    await on.told(run, RunFinished)
    await on.idle()
    assert not on.service.context.quotas.at_work


def _asks_first(moment: Moment) -> Step:
    return Ask("ask_once") if moment.text == "go" and not moment.results else moment.text


async def test_a_claim_that_is_lost_while_a_tool_asks_ends_the_tool_here(stage: MakeStage) -> None:
    ENDED.clear()
    on = await stage([Ask("ask_once"), "never"], ask_once, ask_text)
    run = await on.say("go")
    await on.told(run, RunParked)
    await _lose(on, run)
    async with asyncio.timeout(20):
        while not ENDED:  # noqa: ASYNC110  # the tool is all that tells
            await asyncio.sleep(0.01)
    await on.service.stop(LOCAL, THREAD, "enough")


@requirement("workers:takeover")
async def test_what_a_tool_brings_after_its_run_was_taken_over_does_not_count(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = asyncio.Event()
    has_news = StepTools._has_news

    async def overhears_all(self: StepTools, news: Subscription) -> bool:
        await has_news(self, news)
        return False

    monkeypatch.setattr(StepTools, "_has_news", overhears_all)

    @tool(idempotent=True)
    async def dig() -> str:
        """Dig."""
        await may_end.wait()
        return "dug"

    on = await stage([Ask("dig"), "never"], dig)
    run = await on.say("go")
    await comes_true(lambda: _is_at_work(on, "dig"))
    await _lose(on, run)
    may_end.set()
    await on.idle()
    assert await on.outcomes(run) == [None], "the worker that has it now runs the tool again"
    await on.service.stop(LOCAL, THREAD, "enough")


async def _lose(on: Stage, run: Run) -> None:
    """As if another worker had taken it over, and nobody had told this one."""
    on.log.on_run = lambda run, is_own: None
    await on.log.decide(
        LOCAL,
        THREAD,
        lambda thread, now: runs.claim(
            thread, run.run_id, 1, lambda call: True, now=now, timeouts=Timeouts()
        ),
    )


@requirement("hands:question-gives-way")
@requirement("workers:answer-anywhere")
async def test_a_question_is_answered_at_another_worker_and_the_tool_continues_where_it_is(
    hire: Hire,
) -> None:
    one, other = await hire([Ask("ask_twice"), "Done."], ask_twice, ask_text), await hire(["never"], ask_text)
    run = await one.say("go")
    assert (await other.told(run, RunParked))[-1] == RunParked(is_kept=True)
    await _answer(other, "one")
    await comes_true(lambda: _asks(other, "second?"))
    await _answer(other, "two")
    assert text_in(await other.told(run, RunFinished)) == "Done."
    assert (await other.outcomes(run))[0] == Success("one and two")
    assert (await other.stored(run)).fence == 1, "nobody took it from its worker"


@requirement("hands:question-gives-way")
async def test_a_new_message_at_another_worker_cancels_the_tool_where_it_runs(hire: Hire) -> None:
    ENDED.clear()
    one, other = await hire([Ask("ask_once"), "never"], ask_once, ask_text), await hire(["Next."], ask_text)
    run = await one.say("go")
    await other.told(run, RunParked)
    following = await other.say("never mind")
    assert text_in(await other.told(following)) == "Next."
    await one.idle()
    assert ENDED == ["cancelled"]
    assert await other.outcomes(run) == [Cancelled(MOVED_ON)] * 2


@requirement("hands:question-gives-way")
@pytest.mark.parametrize("hold_for", [0.0, 60.0], ids=["parks", "is held"])
async def test_a_run_whose_tool_only_asks_does_not_hold_up_a_stop(stage: MakeStage, hold_for: float) -> None:
    on = await stage([Ask("ask_once"), "Done."], ask_once, ask_text)
    run = await on.say("go", hold_for=hold_for)
    await comes_true(lambda: _asks(on, "first?"))
    async with asyncio.timeout(PATIENCE_SEC):
        await on.service.drain(NEVER_SEC)
    assert (await on.stored(run)).rests, "its responses have ended"


@requirement("hands:question-gives-way")
async def test_a_tool_that_was_answered_while_its_run_rested_is_waited_for_at_a_stop(
    stage: MakeStage,
) -> None:
    may_end = asyncio.Event()
    at_work = asyncio.Event()

    @tool
    async def ask_then_work() -> str:
        """Ask, then work."""
        told = await ask("ask_text", {"question": "first?"}, timeout_sec=600)
        at_work.set()
        await may_end.wait()
        return f"worked on {told}"

    on = await stage([Ask("ask_then_work"), "Done."], ask_then_work, ask_text)
    run = await on.say("go")
    await comes_true(lambda: _rests(on, run))
    await _answer(on, "it")
    async with asyncio.timeout(PATIENCE_SEC), asyncio.TaskGroup() as group:
        await at_work.wait()
        draining = group.create_task(on.service.drain(NEVER_SEC))
        await _looks(draining)
        may_end.set()
    assert (await on.outcomes(run))[0] == Success("worked on it")
    assert (await on.stored(run)).state is RunState.DONE


@requirement("hands:question-gives-way")
async def test_a_run_that_works_beside_one_that_asks_is_waited_for_at_a_stop(stage: MakeStage) -> None:
    may_end = asyncio.Event()

    @tool
    async def work() -> str:
        """Work."""
        await may_end.wait()
        return "worked"

    on = await stage(_asks_or_works, ask_once, ask_text, work)
    asking = await on.say("ask")
    await comes_true(lambda: _asks(on, "first?"))
    message = UserMessage("m2", (Text("work"),))
    working = (await on.service.start(LOCAL, "t2", message, hold_for=0.0)).run
    async with asyncio.timeout(PATIENCE_SEC), asyncio.TaskGroup() as group:
        draining = group.create_task(on.service.drain(NEVER_SEC))
        await comes_true(lambda: _rests(on, asking))
        await _looks(draining)
        may_end.set()
    ended = await on.log.last_run(LOCAL, "t2")
    assert ended is not None
    assert (ended.run_id, ended.state) == (working.run_id, RunState.DONE)


@requirement("hands:question-gives-way")
async def test_a_run_that_was_stopped_while_its_tool_asked_does_not_hold_up_a_stop(stage: MakeStage) -> None:
    on = await stage([Ask("ask_once"), "never"], ask_once, ask_text)
    run = await on.say("go")
    await comes_true(lambda: _rests(on, run))
    await on.service.stop(LOCAL, THREAD, "enough")
    await on.idle()
    async with asyncio.timeout(PATIENCE_SEC):
        await on.service.drain(NEVER_SEC)
    assert not on.service.context.quotas.at_work


def _asks_or_works(moment: Moment) -> Step:
    if moment.results:
        return "Done."
    return Ask("work") if moment.text == "work" else Ask("ask_once")


async def _looks(draining: asyncio.Task[None]) -> None:
    """Lets it look several times whether something still works; it continues waiting."""
    await asyncio.wait([draining], timeout=3 * LOOK_SEC)
    assert not draining.done()


@requirement("hands:question-gives-way")
async def test_a_direct_call_whose_tool_only_asks_does_not_hold_up_a_stop(stage: MakeStage) -> None:
    on = await stage([], ask_once, ask_text)
    await on.service.call("ask_once", {}, thread=THREAD, key="k", within=0.0)
    await comes_true(lambda: _asks(on, "first?"))
    async with asyncio.timeout(PATIENCE_SEC):
        await on.service.drain(NEVER_SEC)
    call = await on.service.keyed_call("k")
    assert call is not None
    assert call.outcome is None
