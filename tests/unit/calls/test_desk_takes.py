"""Who executes a call. A take never decides who may answer it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.core.call import Phase
from farhand.core.event import CallReleased, CallSettled, CallTaken, TakeRenewed
from farhand.core.outcome import Failure, Success, TimedOut
from farhand.core.result import Accepted, Conflict, Refused, Unknown
from tests.requirement import requirement
from tests.unit.calls.desk_harness import ANN, ANY_OUTPUT, BY_CLIENT, YES, Bench


@requirement("calls:take")
async def test_the_first_to_take_executes_and_the_other_is_told_it_is_taken(bench: Bench) -> None:
    call = await bench.open()
    assert await bench.desk.take(ANN, call.call_id, "tab") == Accepted()
    assert await bench.desk.take(ANN, call.call_id, "phone") == Refused("taken")
    stored = await bench.stored(call)
    assert stored.take is not None
    assert (stored.phase, stored.take.holder) == (Phase.TAKEN, "tab")


@requirement("calls:take")
async def test_a_take_lapses_unless_it_is_renewed(bench: Bench) -> None:
    call = await bench.open()
    await bench.desk.take(ANN, call.call_id, "tab")
    bench.clock.advance(20)
    assert await bench.desk.take(ANN, call.call_id, "tab") == Accepted()
    bench.clock.advance(29.5)
    assert await bench.desk.take(ANN, call.call_id, "phone") == Refused("taken")
    bench.clock.advance(0.5)
    assert await bench.desk.take(ANN, call.call_id, "phone") == Accepted()


@requirement("calls:take")
async def test_a_take_moves_no_deadline(bench: Bench) -> None:
    call = await bench.open()
    bench.clock.advance(50)
    await bench.desk.take(ANN, call.call_id, "tab")
    assert (await bench.stored(call)).deadline == call.deadline
    bench.clock.advance(10)
    receipt = await bench.desk.take(ANN, call.call_id, "tab")
    assert receipt == Refused("expired", (await bench.stored(call)).winner)
    assert (await bench.stored(call)).outcome == TimedOut(60.0)


@requirement("calls:take")
async def test_anybody_of_the_owner_may_answer_what_another_tab_has_taken(bench: Bench) -> None:
    call = await bench.open()
    await bench.desk.take(ANN, call.call_id, "tab")
    assert await bench.settle(call, Success("answered on the phone")) == Accepted()
    assert isinstance(await bench.settle(call, Success("answered in the tab")), Conflict)


@requirement("calls:take")
async def test_a_released_call_may_be_taken_by_another(bench: Bench) -> None:
    call = await bench.open()
    await bench.desk.take(ANN, call.call_id, "tab")
    assert await bench.desk.release(ANN, call.call_id, "tab") == Accepted()
    assert (await bench.stored(call)).phase is Phase.READY
    assert await bench.desk.take(ANN, call.call_id, "phone") == Accepted()


@requirement("calls:take")
async def test_only_its_holder_releases_a_call(bench: Bench) -> None:
    call = await bench.open()
    assert await bench.desk.release(ANN, call.call_id, "tab") == Refused("taken")
    await bench.desk.take(ANN, call.call_id, "tab")
    assert await bench.desk.release(ANN, call.call_id, "phone") == Refused("taken")
    assert (await bench.stored(call)).phase is Phase.TAKEN


@requirement("calls:not-before-approval")
async def test_a_call_is_not_taken_before_it_is_approved(bench: Bench) -> None:
    call = await bench.open(asks=True)
    assert await bench.desk.take(ANN, call.call_id, "tab") == Refused("not_approved")
    assert await bench.stored(call) == call
    await bench.answer(call, YES)
    assert await bench.desk.take(ANN, call.call_id, "tab") == Accepted()


@requirement("calls:take")
async def test_a_settled_call_is_neither_taken_nor_released(bench: Bench) -> None:
    call = await bench.open()
    await bench.settle(call, Failure("popup blocked"))
    winner = (await bench.stored(call)).winner
    assert winner is not None
    assert await bench.desk.take(ANN, call.call_id, "tab") == Conflict(winner)
    assert await bench.desk.release(ANN, call.call_id, "tab") == Conflict(winner)


@requirement("calls:early-result")
async def test_an_id_never_issued_is_neither_taken_nor_released(bench: Bench) -> None:
    assert await bench.desk.take(ANN, bench.clock.fresh("call"), "tab") == Unknown()
    assert await bench.desk.release(ANN, bench.clock.fresh("call"), "tab") == Unknown()


@requirement("calls:take")
async def test_the_journal_tells_who_has_it_and_the_feed_is_silent_about_renewals(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    for _ in range(3):
        await bench.desk.take(ANN, call.call_id, "tab")
    await bench.desk.release(ANN, call.call_id, "tab")
    await bench.settle(call, Success(1))
    moves = await bench.moves(run)
    renewed = TakeRenewed(call.call_id, "tab")
    assert moves[:4] == [CallTaken(call.call_id, "tab"), renewed, renewed, CallReleased(call.call_id)]
    assert [type(event) for event in moves[4:]] == [CallSettled]
    feed = [type(news.event) for news in await bench.log.feed(ANN) if news.run_id == run.run_id]
    assert feed[-3:] == [CallTaken, CallReleased, CallSettled]


@requirement("calls:wakes")
@pytest.mark.parametrize("moves", [("take",), ("take", "release")])
async def test_a_take_leaves_the_run_waiting(bench: Bench, moves: tuple[str, ...]) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    for move in moves:
        await getattr(bench.desk, move)(ANN, call.call_id, "tab")
    assert (await bench.stored_run(run)).waits


@requirement("client-tools:progress-time")
async def test_progress_renews_the_time_of_a_client_up_to_ten_times_of_it(bench: Bench) -> None:
    call = await bench.open(replace(BY_CLIENT, timeout_sec=20.0))
    first = bench.clock.now()
    for _ in range(30):
        bench.clock.advance(15)
        receipt = await bench.desk.renew(ANN, call.call_id, "desk")
        now = bench.clock.now()
        if now >= first + 200:
            assert isinstance(receipt, Refused)
            return
        assert receipt == Accepted()
        assert (await bench.stored(call)).deadline == min(now + 20, first + 200)
    raise AssertionError("it went on for ever")


@requirement("client-tools:progress-time")
async def test_the_time_of_a_call_without_its_own_is_renewed_by_the_default_and_counts_from_the_approval(
    bench: Bench,
) -> None:
    asking = await bench.open(BY_CLIENT, asks=True)
    bench.clock.advance(1_000)
    await bench.answer(asking, YES)
    ready_at = bench.clock.now()
    for _ in range(40):
        bench.clock.advance(7)
        assert await bench.desk.renew(ANN, asking.call_id, "desk") == Accepted()
    assert (await bench.stored(asking)).deadline == min(bench.clock.now() + 30, ready_at + 300)


@requirement("client-tools:progress-time")
async def test_progress_never_shortens_a_time_and_renews_none_but_a_clients(bench: Bench) -> None:
    by_page = await bench.open(ANY_OUTPUT)
    bench.clock.advance(1)
    assert await bench.desk.renew(ANN, by_page.call_id, "tab") == Accepted()
    assert (await bench.stored(by_page)).deadline == by_page.deadline
    by_client = await bench.open(replace(BY_CLIENT, timeout_sec=20.0))
    assert await bench.desk.renew(ANN, by_client.call_id, "desk") == Accepted()
    assert (await bench.stored(by_client)).deadline == by_client.deadline
