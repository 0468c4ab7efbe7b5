"""A call with a key: found again, waited for by anyone, reported to the program that made it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from farhand.agent.direct_calls import DirectCall
from farhand.agent.keyed_calls import SettledCall, Waiting
from farhand.core.approval import Answer
from farhand.core.call import ProgramRequest
from farhand.core.decide.direct import claim_report
from farhand.core.outcome import Cancelled, Failure, Success
from farhand.core.principal import LOCAL, Owner
from farhand.core.settings import Limits, Settings
from farhand.errors import Misuse, NameTaken, NoAgent
from farhand.models.base import NoModel
from farhand.testing import FakeClock
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add, ask_text
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, YES, Stage, comes_true
from tests.unit.agent.test_recovery import Machine, asking
from tests.unit.agent.test_two_workers import Hire, hire

__all__ = ["hire"]
"""The fixture, for this file, too."""

QUESTION = {"question": "Which size?"}


class Ledger:
    """What was paid, as a bank would know it."""

    def __init__(self) -> None:
        self.paid: list[int] = []

        @tool(needs_approval=True)
        def pay(amount: int) -> str:
            """Pay.

            Args:
                amount: How much.
            """
            self.paid.append(amount)
            return f"paid {amount}"

        self.pay = pay


@pytest.fixture
async def machine(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Machine]:
    made = Machine(tmp_path, clock)
    yield made
    await made.close()


async def _open(on: Stage) -> bool:
    return bool(await on.log.open_calls(LOCAL, THREAD))


@requirement("hands:key-attaches")
async def test_the_same_key_attaches_to_the_open_call_and_all_get_one_outcome(stage: MakeStage) -> None:
    on = await stage([], ask_text)
    callers = [
        asyncio.create_task(on.service.call("ask_text", QUESTION, thread=THREAD, key="order-7"))
        for _ in range(5)
    ]
    await comes_true(lambda: _open(on))
    await on.answer(await on.open_call(), Success("L"))
    async with asyncio.timeout(PATIENCE_SEC):
        assert await asyncio.gather(*callers) == [Success("L")] * 5
    assert await on.service.call("ask_text", QUESTION, thread=THREAD, key="order-7") == Success("L")


async def test_a_key_belongs_to_one_tool_and_one_input_and_to_one_owner(stage: MakeStage) -> None:
    on = await stage([], add)
    assert await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD, key="sum") == Success(3)
    with pytest.raises(NameTaken, match="This key was used for another call"):
        await on.service.call("add", {"a": 1, "b": 3}, thread=THREAD, key="sum")
    other = Owner("acme", "ben")
    assert await on.service.call("add", {"a": 5, "b": 5}, thread=THREAD, key="sum", owner=other) == Success(
        10
    )


@pytest.mark.parametrize("key", ["", "with space", "x" * 201, "a/b", "ü"])
async def test_a_key_that_is_none_is_refused(stage: MakeStage, key: str) -> None:
    on = await stage([], add)
    with pytest.raises(Misuse, match="A key has 1 to 200"):
        await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD, key=key)


async def test_a_caller_that_is_cancelled_leaves_a_keyed_call_open_and_takes_another_along(
    stage: MakeStage,
) -> None:
    on = await stage([], ask_text)
    keyed = asyncio.create_task(on.service.call("ask_text", QUESTION, thread=THREAD, key="k"))
    await comes_true(lambda: _open(on))
    keyed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keyed
    await on.answer(await on.open_call(), Success("M"))
    assert await on.service.call("ask_text", QUESTION, thread=THREAD, key="k") == Success("M")
    bare = asyncio.create_task(on.service.call("ask_text", QUESTION, thread=THREAD))
    await comes_true(lambda: _open(on))
    bare.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bare
    assert await on.log.open_calls(LOCAL, THREAD) == []


async def test_within_a_time_the_caller_gets_waiting_and_the_call_stays(stage: MakeStage) -> None:
    ledger = Ledger()
    on = await stage([], ledger.pay)
    waiting = await on.service.call("pay", {"amount": 3}, thread=THREAD, key="pay-1", within=0.01)
    call = await on.open_call()
    assert call.approval is not None
    assert waiting == Waiting(call.call_id, call.approval.approval_id, "pay-1")
    attached = asyncio.create_task(on.service.call("pay", {"amount": 3}, thread=THREAD, key="pay-1"))
    await on.decide(call, YES)
    async with asyncio.timeout(PATIENCE_SEC):
        assert await attached == Success("paid 3")
    assert ledger.paid == [3]


async def test_a_call_can_be_cancelled_by_its_key(stage: MakeStage) -> None:
    on = await stage([], ask_text)
    attached = asyncio.create_task(on.service.call("ask_text", QUESTION, thread=THREAD, key="k"))
    await comes_true(lambda: _open(on))
    assert await on.service.cancel("k")
    assert await attached == Cancelled("cancelled by the program")
    assert not await on.service.cancel("k")
    assert not await on.service.cancel("unknown")


async def test_a_bad_input_is_a_failure_and_takes_no_key(stage: MakeStage) -> None:
    on = await stage([], add)
    wrong = await on.service.call("add", {"a": "x", "b": 1}, thread=THREAD, key="sum")
    assert isinstance(wrong, Failure)
    assert await on.service.call("add", {"a": 1, "b": 1}, thread=THREAD, key="sum") == Success(2)


async def test_an_approval_that_nobody_waits_for_runs_the_tool_once_also_after_a_restart(
    machine: Machine,
) -> None:
    ledger = Ledger()
    before = await machine.boot(asking(), ledger.pay)
    await before.service.call("pay", {"amount": 3}, thread=THREAD, key="pay-1", within=0.01)
    after = await machine.boot(asking(), ledger.pay)
    await after.decide(await after.open_call(), YES)
    both = await asyncio.gather(
        *(after.service.call("pay", {"amount": 3}, thread=THREAD, key="pay-1") for _ in range(2))
    )
    assert both == [Success("paid 3")] * 2
    again = await machine.boot(asking(), ledger.pay)
    assert await again.service.call("pay", {"amount": 3}, thread=THREAD, key="pay-1") == Success("paid 3")
    assert ledger.paid == [3]


async def test_a_key_is_kept_when_what_is_old_is_purged(stage: MakeStage, clock: FakeClock) -> None:
    on = await stage([], add)
    await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD, key="sum")
    await on.service.call("add", {"a": 2, "b": 2}, thread=THREAD)
    clock.advance(40 * 86_400)
    await on.log.purge(before=clock.now() - 86_400)
    assert await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD, key="sum") == Success(3)
    with pytest.raises(NameTaken):
        await on.service.call("add", {"a": 9, "b": 9}, thread=THREAD, key="sum")


async def test_the_program_is_told_once_of_each_settled_call_that_it_asked_about(stage: MakeStage) -> None:
    on = await stage([], add, ask_text)
    told: list[SettledCall] = []

    async def note(settled: SettledCall) -> None:
        told.append(settled)

    on.service.on_settled("job-", note)
    await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD, key="job-1")
    await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD, key="other-1")
    await on.service.call("ask_text", QUESTION, thread=THREAD, key="job-2", within=0.01)
    await on.answer(await on.open_call(), Success("L"))

    async def are_both_told() -> bool:
        return len(told) == 2

    await comes_true(are_both_told)
    assert [(each.key, each.outcome) for each in told] == [("job-1", Success(3)), ("job-2", Success("L"))]

    async def are_reported() -> bool:
        return not await on.log.direct_calls()

    await comes_true(are_reported)
    await on.service.worker.direct.sweep()
    assert len(told) == 2


@requirement("hands:told-of-settled-calls")
async def test_of_several_calls_of_a_thread_the_program_is_told_which_one_ends_last(stage: MakeStage) -> None:
    on = await stage([], ask_text)
    told: list[tuple[str, bool]] = []

    async def note(settled: SettledCall) -> None:
        told.append((settled.key, settled.is_last))

    on.service.on_settled("job-", note)
    for key in ("job-1", "other-1", "job-2"):
        await on.service.call("ask_text", QUESTION, thread=THREAD, key=key, within=0.0)
    await on.service.call("ask_text", QUESTION, thread=THREAD, within=0.0)
    for key in ("job-2", "job-1"):
        assert await on.service.cancel(key)

        async def is_told(key: str = key) -> bool:
            return key in [each for each, _ in told]

        await comes_true(is_told)
    assert told == [("job-2", False), ("job-1", True)]


@pytest.mark.slow
async def test_a_program_that_died_while_it_was_told_is_told_again(machine: Machine) -> None:
    before = await machine.boot(asking(), add)
    begun = asyncio.Event()

    async def hang(settled: SettledCall) -> None:
        begun.set()
        await asyncio.Event().wait()

    before.service.on_settled("job-", hang)
    await before.service.call("add", {"a": 1, "b": 2}, thread=THREAD, key="job-1")
    await begun.wait()
    after = await machine.boot(asking(), add)
    told = asyncio.Event()

    async def note(settled: SettledCall) -> None:
        assert settled.outcome == Success(3)
        told.set()

    after.service.on_settled("job-", note)
    async with asyncio.timeout(PATIENCE_SEC):
        await told.wait()


async def test_a_function_that_fails_is_called_again(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.agent.keyed_calls.RETRY_SEC", 0.001)
    on = await stage([], add)
    calls = 0

    async def fail_once(settled: SettledCall) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ValueError("not now")

    on.service.on_settled("job-", fail_once)
    await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD, key="job-1")

    async def is_reported() -> bool:
        return calls == 2 and not await on.log.direct_calls()

    await comes_true(is_reported)


@requirement("hands:told-of-settled-calls")
async def test_a_listener_that_always_fails_holds_up_no_other(stage: MakeStage) -> None:
    on = await stage([], add)
    told: list[str] = []

    async def fail(settled: SettledCall) -> None:
        raise ValueError("never")

    async def note(settled: SettledCall) -> None:
        told.append(settled.key)

    on.service.on_settled("job-", fail)
    on.service.on_settled("job-", note)
    await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD, key="job-1")

    async def is_told() -> bool:
        return told == ["job-1"]

    await comes_true(is_told)
    assert await on.log.direct_calls(), "it is not reported as long as one of them was not told"


async def test_a_listener_that_is_no_async_function_is_called_once(stage: MakeStage) -> None:
    on = await stage([], add)
    told: list[str] = []
    # what a type checker would refuse
    listener: Any = lambda settled: told.append(settled.key)  # noqa: E731
    on.service.on_settled("sum-", listener)
    await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD, key="sum-1")

    async def is_reported() -> bool:
        call = await on.service.keyed_call("sum-1")
        return call is not None and not call.is_unreported

    await comes_true(is_reported)
    assert told == ["sum-1"]


@pytest.mark.parametrize("within", ["3", True, float("nan")])
async def test_a_time_to_wait_that_is_no_number_opens_nothing(stage: MakeStage, within: Any) -> None:
    on = await stage([], ask_text)
    with pytest.raises(Misuse, match="`within` must be a number of seconds"):
        await on.service.call("ask_text", QUESTION, thread=THREAD, key="k", within=within)
    assert await on.service.keyed_call("k") is None


async def test_an_input_that_is_no_object_is_refused_in_words(stage: MakeStage) -> None:
    on = await stage([], ask_text)
    wrong: Any = ["Which size?"]
    with pytest.raises(Misuse, match="The input of a call must be a dict"):
        await on.service.call("ask_text", wrong, thread=THREAD)


async def test_a_call_from_another_event_loop_is_refused_in_words(stage: MakeStage) -> None:
    on = await stage([], add)

    def call_elsewhere() -> object:
        return asyncio.run(on.service.call("add", {"a": 1, "b": 2}, thread=THREAD))

    with pytest.raises(Misuse, match="on a different event loop"):
        await asyncio.to_thread(call_elsewhere)


async def test_without_a_model_nothing_is_answered(stage: MakeStage) -> None:
    on = await stage([], add)
    object.__setattr__(on.service.context, "model", NoModel())
    with pytest.raises(NoAgent, match="tools but no agent"):
        await on.say("hello")


async def test_a_person_may_edit_the_input_and_the_program_asks_again_with_its_own(stage: MakeStage) -> None:
    ledger = Ledger()
    on = await stage([], ledger.pay)
    await on.service.call("pay", {"amount": 5}, thread=THREAD, key="pay-1", within=0.01)
    await on.decide(await on.open_call(), Answer(approved=True, input={"amount": 4}))
    assert await on.service.call("pay", {"amount": 5}, thread=THREAD, key="pay-1") == Success("paid 4")
    with pytest.raises(NameTaken):
        await on.service.call("pay", {"amount": 4}, thread=THREAD, key="pay-1")
    assert ledger.paid == [4]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"thread": ""}, "A thread id has"),
        ({"thread": "a\0"}, "A thread id has"),
        ({"owner": "me"}, "owner must be an Owner"),
        ({"claims": ["x"]}, "claims must be a JSON object"),
        ({"claims": {"x": "y" * 5000}}, "claims must be a JSON object"),
        ({"input": {"a": object()}}, "cannot be encoded as JSON"),
        ({"input": {"a": "x" * 3_000_000}}, "larger than"),
    ],
)
async def test_what_cannot_be_stored_is_refused_before_anything_is(
    stage: MakeStage, wrong: dict[str, object], why: str
) -> None:
    on = await stage([], add)
    arguments = {"input": {"a": 1, "b": 2}, "thread": THREAD, **wrong}
    with pytest.raises(Misuse, match=why):
        await on.service.call("add", **arguments)  # type: ignore[arg-type]
    assert await on.log.threads_of(LOCAL, limit=9) == []


async def test_a_report_whose_claim_was_not_confirmed_is_made_by_the_same_worker(stage: MakeStage) -> None:
    on = await stage([], add)
    told: list[str] = []

    async def note(settled: SettledCall) -> None:
        told.append(settled.key)

    reporter = on.service.worker.direct.reporter
    reporter._listeners.append(("job-", note))
    listeners, reporter._listeners = reporter._listeners, []
    request = ProgramRequest("key=job-1", is_reported=False)
    direct = DirectCall(
        owner=LOCAL,
        thread_id=THREAD,
        tool="add",
        input={"a": 1, "b": 2},
        request=request,
        attach_if_open=True,
    )
    await on.service.execute(direct)
    call = await on.log.get_requested(LOCAL, "key=job-1")
    assert call is not None
    name = on.service.membership.name
    await on.log.decide(LOCAL, THREAD, lambda thread, _: claim_report(thread, call, name))
    reporter._listeners = listeners
    await on.service.worker.direct.sweep()

    async def is_told() -> bool:
        return told == ["job-1"]

    await comes_true(is_told)


# ------------------------------------------------------------------------------------- many that wait

MANY = 1_000
ROOMY = Settings(limits=Limits(open_calls_per_thread=MANY))


@pytest.mark.slow
@requirement("hands:key-attaches")
async def test_a_thousand_open_keyed_calls_cost_rows_and_nothing_else(stage: MakeStage) -> None:
    on = await stage([], ask_text, settings=ROOMY)
    await _cost_rows_only(on, on)


@requirement("hands:key-attaches")
async def test_a_thousand_open_keyed_calls_cost_rows_alone_at_two_workers(hire: Hire) -> None:
    one, other = await hire([], ask_text, settings=ROOMY), await hire([], ask_text, settings=ROOMY)
    await _cost_rows_only(one, other)


async def _cost_rows_only(one: Stage, other: Stage) -> None:
    """Opened at one worker, attached to and answered at the other."""
    await one.service.call("ask_text", QUESTION, thread="first", within=0.001)
    await one.log.flush()
    tasks, topics = len(asyncio.all_tasks()), len(one.log.broker.subscribers)
    for start in range(0, MANY, 100):
        calls = [
            one.service.call(
                "ask_text", QUESTION, thread=THREAD, key=f"job-{each}", within=0.001, timeout_sec=3600
            )
            for each in range(start, start + 100)
        ]
        assert all(isinstance(told, Waiting) for told in await asyncio.gather(*calls))
    await one.log.flush()
    assert len(await other.log.open_calls(LOCAL, THREAD)) == MANY
    assert len(asyncio.all_tasks()) <= tasks
    assert len(one.log.broker.subscribers) <= topics
    found = await other.log.get_requested(LOCAL, "key=job-7")
    assert found is not None
    await other.answer(found, Success("L"))
    assert await one.service.call("ask_text", QUESTION, thread=THREAD, key="job-7") == Success("L")
