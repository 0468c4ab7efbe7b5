"""Approvals: asked once, answered once, for exactly this tool with exactly this input."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.calls.desk import Reply
from farhand.core.approval import Answer, Approval
from farhand.core.call import Call, Phase
from farhand.core.event import ApprovalAnswered, CallSettled
from farhand.core.outcome import Denied, Success, TimedOut, digest
from farhand.core.result import Accepted, Conflict, Refused, Repeated, Result, Unknown, Winner
from farhand.core.tool import Executor, Tool, digest_of_approval
from farhand.errors import Malformed
from tests.requirement import requirement
from tests.unit.calls.desk_harness import ANN, ANY_OUTPUT, BY_CLIENT, NO, ON_SERVER, YES, Bench

THREE_DAYS = 3 * 24 * 3600


async def test_an_approval_makes_the_call_ready_and_a_result_may_follow(bench: Bench) -> None:
    call = await bench.open(asks=True)
    assert await bench.answer(call, YES) == Accepted()
    assert (await bench.stored(call)).phase is Phase.READY
    assert await bench.settle(call, Success(1)) == Accepted()


async def test_a_denial_settles_the_call_as_denied_with_its_reason(bench: Bench) -> None:
    call = await bench.open(asks=True)
    assert await bench.answer(call, NO) == Accepted()
    assert (await bench.stored(call)).outcome == Denied("too dear")


@pytest.mark.parametrize(("first", "second", "kind"), [(NO, YES, "denied"), (YES, NO, "approved")])
async def test_the_first_answer_stands_and_the_other_is_told_so(
    bench: Bench, first: Answer, second: Answer, kind: str
) -> None:
    call = await bench.open(asks=True)
    await bench.answer(call, first)
    at = bench.clock.now()
    bench.clock.advance(1)
    assert await bench.answer(call, first) == Repeated()
    assert await bench.answer(call, second) == Conflict(Winner(kind, digest(first), at))


@pytest.mark.parametrize(("first", "second"), [(1, True), (1, 1.0)])
async def test_an_answer_with_another_edit_is_no_repetition(
    bench: Bench, first: object, second: object
) -> None:
    loose = replace(ANY_OUTPUT, name="count", input_schema={"type": "object"})
    call = await bench.open(loose, asks=True)
    await bench.answer(call, Answer(approved=True, input={"n": first}))
    assert isinstance(await bench.answer(call, Answer(approved=True, input={"n": second})), Conflict)


async def test_an_answer_after_the_result_is_still_told_what_was_answered(bench: Bench) -> None:
    call = await bench.open(asks=True)
    await bench.answer(call, YES)
    await bench.settle(call, Success(1))
    assert await bench.answer(call, YES) == Repeated()
    assert isinstance(await bench.answer(call, NO), Conflict)


@requirement("calls:early-result")
async def test_an_answer_to_a_question_never_asked_is_unknown(bench: Bench) -> None:
    assert await bench.desk.approve(ANN, bench.clock.fresh("apr"), YES) == Unknown()


async def test_a_question_nobody_answers_in_time_times_out(bench: Bench) -> None:
    call = await bench.open(replace(ANY_OUTPUT, approval_timeout_sec=20.0), asks=True)
    bench.clock.advance(20)
    receipt = await bench.answer(call, YES)
    winner = Winner("timed_out", digest(TimedOut(20.0)), bench.clock.now())
    assert receipt == Refused("expired", winner)
    assert (await bench.stored(call)).outcome == TimedOut(20.0)


async def test_an_answer_to_a_cancelled_question_is_told_so(bench: Bench) -> None:
    call = await bench.open(asks=True)
    await bench.desk.cancel([call], "stopped by the user")
    assert await bench.answer(call, YES) == Refused("cancelled", (await bench.stored(call)).winner)


@requirement("calls:what-was-approved")
async def test_an_edited_input_is_stored_with_the_one_that_was_asked_for(bench: Bench) -> None:
    call = await bench.open(asks=True)
    edit: dict[str, object] = {"url": "https://example.com"}
    assert await bench.answer(call, Answer(approved=True, input=edit)) == Accepted()
    stored = await bench.stored(call)
    assert stored.approval is not None
    assert stored.input == edit
    assert stored.approval.asked_input == call.input
    assert stored.approval.digest == digest_of_approval(call.tool_version, edit)


@requirement("calls:what-was-approved")
async def test_an_edited_input_that_breaks_the_schema_is_refused_and_nothing_is_approved(
    bench: Bench,
) -> None:
    call = await bench.open(asks=True)
    with pytest.raises(Malformed, match=r"ask_text.*url") as refused:
        await bench.answer(call, Answer(approved=True, input={"url": 5}))
    assert "Nothing was approved." in str(refused.value)
    assert await bench.stored(call) == call


@requirement("calls:what-was-approved")
async def test_an_edit_beside_a_denial_is_not_looked_at(bench: Bench) -> None:
    call = await bench.open(asks=True)
    assert await bench.answer(call, Answer(approved=False, input={"url": 5})) == Accepted()
    assert (await bench.stored(call)).input == call.input


@requirement("calls:always-in-thread")
async def test_an_approval_for_the_thread_allows_this_version_of_the_tool_in_it(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(asks=True, run=run)
    assert await bench.answer(call, Answer(approved=True, scope="thread")) == Accepted()
    thread = await bench.log.get_thread(ANN, call.thread_id)
    assert thread is not None
    assert thread.allowed == (call.tool_version,)


@requirement("calls:always-in-thread")
@pytest.mark.parametrize("answer", [YES, Answer(approved=False, scope="thread")])
async def test_an_approval_for_once_and_a_denial_allow_nothing_else(bench: Bench, answer: Answer) -> None:
    run = await bench.start_run()
    call = await bench.open(asks=True, run=run)
    await bench.answer(call, answer)
    thread = await bench.log.get_thread(ANN, call.thread_id)
    assert thread is not None
    assert thread.allowed == ()


@requirement("calls:always-in-thread")
async def test_an_approval_in_a_thread_that_is_gone_is_unknown_and_makes_no_thread(bench: Bench) -> None:
    call = await bench.open(asks=True)
    assert await bench.log.delete(ANN, call.thread_id)
    assert await bench.answer(call, Answer(approved=True, scope="thread")) == Unknown()
    assert await bench.log.get_thread(ANN, call.thread_id) is None


@requirement("calls:deadline-defaults")
@pytest.mark.parametrize(
    ("tool", "seconds"),
    [
        (ANY_OUTPUT, 60),
        (BY_CLIENT, 30),
        (replace(ANY_OUTPUT, timeout_sec=7.0), 7),
        (ON_SERVER, None),
    ],
)
async def test_the_time_to_answer_starts_with_the_approval(
    bench: Bench, tool: Tool, seconds: float | None
) -> None:
    run = await bench.start_run()
    call = await bench.open(tool, asks=True, run=run)
    bench.clock.advance(1_000)
    await bench.answer(call, YES)
    deadline = (await bench.stored(call)).deadline
    assert deadline == (None if seconds is None else bench.clock.now() + seconds)


@requirement("calls:deadline-defaults")
async def test_a_call_approved_in_a_parked_run_may_take_as_long_as_the_park(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(asks=True, run=run)
    await bench.park(run)
    await bench.answer(call, YES)
    assert (await bench.stored(call)).deadline == bench.clock.now() + THREE_DAYS


async def test_the_journal_tells_of_the_answer_and_of_a_denied_call_its_end(bench: Bench) -> None:
    run = await bench.start_run()
    openings = [bench.opening(asks=True, is_direct=False) for _ in range(2)]
    yes, no = await bench.open_step(run, *openings)
    await bench.answer(yes, YES)
    await bench.answer(no, NO)
    assert await bench.moves(run) == [
        _answered(yes, YES, bench, deadline=bench.clock.now() + 60),
        _answered(no, NO, bench, deadline=no.deadline),
        CallSettled(
            call_id=no.call_id,
            tool="ask_text",
            executor=Executor.FRONTEND,
            outcome=Denied("too dear"),
            digest=digest(Denied("too dear")),
        ),
    ]


async def test_an_approval_and_a_result_in_one_message_are_accepted_together(bench: Bench) -> None:
    call = await bench.open(asks=True)
    receipts = await bench.desk.accept(ANN, _reply(call, YES), _result(call, 1))
    assert receipts == [Accepted(), Accepted()]
    assert (await bench.stored(call)).outcome == Success(1)


async def test_a_result_beside_a_denial_is_told_that_it_was_denied(bench: Bench) -> None:
    call = await bench.open(asks=True)
    receipts = await bench.desk.accept(ANN, _reply(call, NO), _result(call, 1))
    winner = Winner("denied", digest(Denied("too dear")), bench.clock.now())
    assert receipts == [Accepted(), Conflict(winner)]


async def test_a_message_that_brings_the_same_thing_twice_is_told_so(bench: Bench) -> None:
    asking, ready = await bench.open(asks=True), await bench.open()
    receipts = await bench.desk.accept(
        ANN,
        _reply(asking, YES),
        _reply(asking, YES),
        _reply(asking, NO),
        _result(ready, 1),
        _result(ready, 1),
        _result(ready, 2),
    )
    kinds = [type(receipt) for receipt in receipts]
    assert kinds == [Accepted, Repeated, Conflict, Accepted, Repeated, Conflict]


async def test_one_bad_edit_keeps_the_whole_message_from_being_applied(bench: Bench) -> None:
    asking, ready = await bench.open(asks=True), await bench.open()
    bad = Answer(approved=True, input={"url": 5})
    with pytest.raises(Malformed):
        await bench.desk.accept(ANN, _result(ready, 1), _reply(asking, bad))
    assert await bench.stored(ready) == ready


async def test_an_approval_does_not_open_a_server_tool_to_a_result_in_the_same_message(bench: Bench) -> None:
    call = await bench.open(ON_SERVER, asks=True)
    receipts = await bench.desk.accept(ANN, _reply(call, YES), _result(call, "forged"))
    assert receipts == [Accepted(), Unknown()]
    assert (await bench.stored(call)).phase is Phase.READY


async def test_a_message_that_brings_nothing_gets_no_receipt(bench: Bench) -> None:
    assert await bench.desk.accept(ANN) == []


def _answered(call: Call, answer: Answer, bench: Bench, *, deadline: float | None) -> ApprovalAnswered:
    assert call.approval is not None
    approval = Approval(
        approval_id=call.approval.approval_id,
        digest=digest_of_approval(call.tool_version, call.input),
        answer=answer,
        answered_at=bench.clock.now(),
    )
    return ApprovalAnswered(
        call_id=call.call_id,
        tool=call.tool,
        executor=call.executor,
        approval=approval,
        input=call.input,
        deadline=deadline,
    )


def _reply(call: Call, answer: Answer) -> Reply:
    assert call.approval is not None
    return Reply(call.approval.approval_id, answer)


def _result(call: Call, output: object) -> Result:
    return Result(call_id=call.call_id, outcome=Success(output))
