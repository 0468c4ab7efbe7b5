"""Results of far hands: the first wins, and every later one gets the correct receipt."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.core.call import Phase
from farhand.core.event import CallSettled
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut, digest
from farhand.core.result import Accepted, Conflict, Refused, Repeated, Result, Unknown, Winner
from farhand.core.tool import Executor
from farhand.errors import Malformed
from tests.requirement import requirement
from tests.unit.calls.desk_harness import ANN, BOB, NO, ON_SERVER, OPEN_URL, YES, Bench


@requirement("calls:first-wins")
@pytest.mark.parametrize(
    "outcome", [Success({"viewKey": "v1"}), Success(None), Failure("skipped by the user")]
)
async def test_a_result_settles_the_call_and_is_stored_before_it_is_accepted(
    bench: Bench, outcome: Outcome
) -> None:
    call = await bench.open()
    bench.clock.advance(5)
    assert await bench.settle(call, outcome) == Accepted()
    stored = await bench.stored(call)
    assert stored.outcome == outcome
    assert stored.winner == Winner(digest_kind(outcome), digest(outcome), bench.clock.now())


@requirement("calls:first-wins")
async def test_second_identical_result_is_repeated_not_applied(bench: Bench) -> None:
    call = await bench.open()
    await bench.settle(call, Success({"a": 1, "b": 2}))
    settled = await bench.stored(call)
    bench.clock.advance(1)
    assert await bench.settle(call, Success({"b": 2, "a": 1})) == Repeated()
    assert await bench.stored(call) == settled


@requirement("calls:first-wins")
@pytest.mark.parametrize("other", [Success(1.0), Success(True), Success("1"), Failure("1"), Success(None)])
async def test_another_result_is_told_the_winner(bench: Bench, other: Outcome) -> None:
    call = await bench.open()
    await bench.settle(call, Success(1))
    winner = Winner("success", digest(Success(1)), bench.clock.now())
    bench.clock.advance(1)
    assert await bench.settle(call, other) == Conflict(winner)
    assert (await bench.stored(call)).outcome == Success(1)


@requirement("calls:one-outcome")
async def test_title_and_metadata_are_kept_with_the_result_they_came_with(bench: Bench) -> None:
    call = await bench.open()
    result = Result(call_id=call.call_id, outcome=Success(1), title="Report", metadata={"w": 3})
    assert await bench.desk.settle(ANN, result) == Accepted()
    assert await bench.desk.settle(ANN, replace(result, title="Other")) == Repeated()
    stored = await bench.stored(call)
    assert (stored.title, stored.metadata) == ("Report", {"w": 3})


async def test_metadata_alone_is_kept_as_well(bench: Bench) -> None:
    call = await bench.open()
    await bench.desk.settle(ANN, Result(call_id=call.call_id, outcome=Success(1), metadata={}))
    stored = await bench.stored(call)
    assert (stored.title, stored.metadata) == (None, {})


@requirement("calls:early-result")
async def test_a_result_for_an_id_never_issued_is_unknown_and_leaves_no_trace(bench: Bench) -> None:
    result = Result(call_id=bench.clock.fresh("call"), outcome=Success(1))
    assert await bench.desk.settle(ANN, result) == Unknown()
    assert await bench.log.get_call(ANN, result.call_id) is None


@requirement("calls:owner")
async def test_a_call_can_be_answered_only_by_its_owner(bench: Bench) -> None:
    call = await bench.open(asks=True)
    assert call.approval is not None
    assert await bench.settle(call, Success(1), owner=BOB) == Unknown()
    assert await bench.answer(call, replace(YES, reason="mine"), owner=BOB) == Unknown()
    assert await bench.desk.take(BOB, call.call_id, "tab") == Unknown()
    assert await bench.desk.release(BOB, call.call_id, "tab") == Unknown()
    assert await bench.stored(call) == call


@requirement("calls:owner")
async def test_a_settled_call_does_not_exist_for_others_either(bench: Bench) -> None:
    call = await bench.open()
    await bench.settle(call, Success(1))
    assert await bench.settle(call, Success(1), owner=BOB) == Unknown()


async def test_what_runs_on_the_server_is_answered_by_nobody_else(bench: Bench) -> None:
    call = await bench.open(ON_SERVER)
    assert await bench.settle(call, Success("forged")) == Unknown()
    assert await bench.desk.take(ANN, call.call_id, "tab") == Unknown()
    assert await bench.desk.release(ANN, call.call_id, "server") == Unknown()
    assert await bench.stored(call) == call


@requirement("calls:not-before-approval")
@pytest.mark.parametrize("outcome", [Success(1), Failure("no")])
async def test_a_result_before_the_approval_is_refused(bench: Bench, outcome: Outcome) -> None:
    call = await bench.open(asks=True)
    assert await bench.settle(call, outcome) == Refused("not_approved")
    assert (await bench.stored(call)).phase is Phase.ASKING


@requirement("calls:output-check")
async def test_an_output_that_breaks_its_schema_is_a_failure_that_says_so(bench: Bench) -> None:
    call = await bench.open(OPEN_URL)
    assert await bench.settle(call, Success({"viewKey": 3})) == Accepted()
    stored = await bench.stored(call)
    assert isinstance(stored.outcome, Failure)
    assert "open_url" in stored.outcome.error
    assert "viewKey" in stored.outcome.error


@requirement("calls:output-check")
async def test_a_retried_bad_output_is_repeated_and_a_good_one_is_a_conflict(bench: Bench) -> None:
    call = await bench.open(OPEN_URL)
    await bench.settle(call, Success({"viewKey": 3}))
    assert await bench.settle(call, Success({"viewKey": 3})) == Repeated()
    conflict = await bench.settle(call, Success({"viewKey": "v1"}))
    assert conflict == Conflict(Winner("failure", digest(Success({"viewKey": 3})), bench.clock.now()))


@requirement("calls:output-check")
async def test_a_good_output_and_a_failure_pass_the_output_check(bench: Bench) -> None:
    good, failed = await bench.open(OPEN_URL), await bench.open(OPEN_URL)
    await bench.settle(good, Success({"viewKey": "v1"}))
    await bench.settle(failed, Failure("popup blocked"))
    assert (await bench.stored(good)).outcome == Success({"viewKey": "v1"})
    assert (await bench.stored(failed)).outcome == Failure("popup blocked")


@requirement("calls:output-check")
async def test_a_call_keeps_the_schema_it_was_opened_with(bench: Bench) -> None:
    before = await bench.open(OPEN_URL)
    changed = replace(OPEN_URL, output_schema={"type": "number"})
    after = await bench.open(changed)
    await bench.settle(before, Success({"viewKey": "v1"}))
    await bench.settle(after, Success(5))
    assert (await bench.stored(before)).outcome == Success({"viewKey": "v1"})
    assert (await bench.stored(after)).outcome == Success(5)


@requirement("calls:deadline")
async def test_a_result_just_in_time_is_accepted_and_one_at_the_deadline_is_not(bench: Bench) -> None:
    in_time, late = await bench.open(), await bench.open()
    bench.clock.advance(59.5)
    assert await bench.settle(in_time, Success(1)) == Accepted()
    bench.clock.advance(0.5)
    winner = Winner("timed_out", digest(TimedOut(60.0)), bench.clock.now())
    assert await bench.settle(late, Success(1)) == Refused("expired", winner)
    assert (await bench.stored(late)).outcome == TimedOut(60.0)


@requirement("calls:deadline")
async def test_a_late_result_leaves_the_call_timed_out_though_nobody_swept(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    bench.clock.advance(61)
    await bench.settle(call, Success(1))
    assert [type(event) for event in await bench.moves(run)] == [CallSettled]
    assert not (await bench.stored_run(run)).waits


@requirement("calls:first-wins")
async def test_a_result_after_a_cancel_is_told_so(bench: Bench) -> None:
    call = await bench.open()
    assert await bench.desk.cancel([call], "stopped by the user") == 1
    winner = (await bench.stored(call)).winner
    assert await bench.settle(call, Success(1)) == Refused("cancelled", winner)
    assert (await bench.stored(call)).outcome == Cancelled("stopped by the user")


@requirement("calls:first-wins")
async def test_a_result_for_a_denied_call_is_a_conflict(bench: Bench) -> None:
    call = await bench.open(asks=True)
    await bench.answer(call, NO)
    receipt = await bench.settle(call, Success(1))
    assert receipt == Conflict(Winner("denied", digest(Denied("too dear")), bench.clock.now()))


@requirement("calls:early-result")
async def test_a_result_may_arrive_before_anyone_waits(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    assert (await bench.stored_run(run)).waits
    assert await bench.settle(call, Success(1)) == Accepted()
    assert not (await bench.stored_run(run)).waits


async def test_the_event_of_a_settled_call_is_stored_with_it(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    await bench.settle(call, Success(1))
    await bench.settle(call, Success(1))
    assert await bench.moves(run) == [
        CallSettled(
            call_id=call.call_id,
            tool="ask_text",
            executor=Executor.FRONTEND,
            outcome=Success(1),
            digest=digest(Success(1)),
        )
    ]


def digest_kind(outcome: Outcome) -> str:
    return "success" if isinstance(outcome, Success) else "failure"


async def test_an_answer_that_does_not_fit_can_be_changed_by_the_person_who_gave_it(bench: Bench) -> None:
    call = await bench.open(OPEN_URL)
    with pytest.raises(Malformed, match="does not fit 'open_url'"):
        await bench.desk.settle_if_it_fits(ANN, Result(call_id=call.call_id, outcome=Success({"view": 1})))
    assert (await bench.stored(call)).phase is not Phase.SETTLED
    fitting = Result(call_id=call.call_id, outcome=Success({"viewKey": "v1"}))
    assert await bench.desk.settle_if_it_fits(ANN, fitting) == Accepted()


async def test_whether_an_answer_fits_is_asked_for_open_calls_alone(bench: Bench) -> None:
    call = await bench.open(OPEN_URL)
    await bench.settle(call, Failure("no window"))
    late = Result(call_id=call.call_id, outcome=Success({"view": 1}))
    assert isinstance(await bench.desk.settle_if_it_fits(ANN, late), Conflict)
    assert await bench.desk.settle_if_it_fits(ANN, replace(late, call_id="call_none")) == Unknown()


async def test_any_answer_fits_a_tool_that_declares_no_output(bench: Bench) -> None:
    call = await bench.open()
    anything = Result(call_id=call.call_id, outcome=Success([1]))
    assert await bench.desk.settle_if_it_fits(ANN, anything) == Accepted()
