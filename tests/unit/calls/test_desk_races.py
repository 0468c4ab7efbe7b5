"""Many far hands at once: exactly one wins, and all receipts name the same winner."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from farhand.core.approval import Answer
from farhand.core.call import Call
from farhand.core.outcome import Failure, Success, digest
from farhand.core.result import Accepted, Conflict, Refused, Repeated, Result, Winner
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.calls.desk_harness import ANN, ANY_OUTPUT, NO, YES, Bench


@requirement("calls:first-wins")
async def test_of_200_identical_results_at_once_one_is_accepted_and_199_are_repeated(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    receipts = await asyncio.gather(*(bench.settle(call, Success({"n": 1})) for _ in range(200)))
    assert Counter(map(type, receipts)) == {Accepted: 1, Repeated: 199}
    assert len(await bench.moves(run)) == 1


@requirement("calls:first-wins")
async def test_of_100_different_results_at_once_one_wins_and_99_are_told_its_digest(bench: Bench) -> None:
    call = await bench.open()
    receipts = await asyncio.gather(*(bench.settle(call, Success(number)) for number in range(100)))
    assert Counter(map(type, receipts)) == {Accepted: 1, Conflict: 99}
    won = Success(receipts.index(Accepted()))
    stored = await bench.stored(call)
    assert stored.outcome == won
    winners = {receipt.winner for receipt in receipts if isinstance(receipt, Conflict)}
    assert winners == {stored.winner}
    assert stored.digest == digest(won)


@requirement("calls:first-wins")
async def test_of_two_holders_that_take_at_once_one_executes(bench: Bench) -> None:
    call = await bench.open()
    receipts = await asyncio.gather(
        *(bench.desk.take(ANN, call.call_id, f"tab {number}") for number in range(20))
    )
    assert Counter(map(type, receipts)) == {Accepted: 1, Refused: 19}
    stored = await bench.stored(call)
    assert stored.take is not None
    assert stored.take.holder == f"tab {receipts.index(Accepted())}"


@requirement("calls:take")
async def test_of_two_releases_at_once_one_gives_the_call_back(bench: Bench) -> None:
    call = await bench.open()
    await bench.desk.take(ANN, call.call_id, "tab")
    receipts = await asyncio.gather(*(bench.desk.release(ANN, call.call_id, "tab") for _ in range(5)))
    assert Counter(map(type, receipts)) == {Accepted: 1, Refused: 4}


async def test_of_yes_and_no_at_once_one_stands(bench: Bench) -> None:
    call = await bench.open(asks=True)
    answers = [YES, NO] * 20
    receipts = await asyncio.gather(*(bench.answer(call, answer) for answer in answers))
    assert Counter(map(type, receipts)) == {Accepted: 1, Repeated: 19, Conflict: 20}
    stored = await bench.stored(call)
    assert stored.approval is not None
    assert stored.approval.answer == answers[receipts.index(Accepted())]


@requirement("calls:first-wins")
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)])
async def test_result_expiry_cancel_and_take_at_once_leave_one_outcome(
    bench: Bench, order: tuple[int, ...]
) -> None:
    run = await bench.start_run()
    call = await bench.open(replace(ANY_OUTPUT, timeout_sec=5.0), run=run)
    bench.clock.advance(5)
    hands: list[Callable[[], Awaitable[object]]] = [
        lambda: bench.settle(call, Success(1)),
        lambda: bench.desk.expire(call),
        lambda: bench.desk.cancel([call], "stopped"),
        lambda: bench.desk.take(ANN, call.call_id, "tab"),
    ]
    told = await asyncio.gather(*(hands[number]() for number in order))
    stored = await bench.stored(call)
    events = await bench.moves(run)
    assert len(events) == 1
    assert stored.outcome is not None
    assert not isinstance(stored.outcome, Success), "it was overdue before anybody began"
    settled_by_sweep, settled_by_cancel = told[order.index(1)], told[order.index(2)]
    assert bool(settled_by_sweep) + bool(settled_by_cancel) <= 1
    assert isinstance(told[order.index(0)], Refused)


async def test_yes_and_cancel_and_result_at_once_leave_one_outcome(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(asks=True, run=run)
    yes, cancelled, result = await asyncio.gather(
        bench.answer(call, YES), bench.desk.cancel([call], "stopped"), bench.settle(call, Success(1))
    )
    stored = await bench.stored(call)
    if isinstance(stored.outcome, Success):
        assert (yes, cancelled, result) == (Accepted(), 0, Accepted())
    else:
        assert cancelled == 1
        assert isinstance(result, Refused)
    assert (await bench.stored_run(run)).waits == (stored.outcome is None)


async def test_messages_that_share_calls_are_each_accepted_wholly_in_turn(bench: Bench) -> None:
    first, second = await bench.open(), await bench.open()
    here, there = await asyncio.gather(
        bench.desk.accept(ANN, *(_result(call, "here") for call in (first, second))),
        bench.desk.accept(ANN, *(_result(call, "there") for call in (second, first))),
    )
    assert {tuple(map(type, here)), tuple(map(type, there))} == {(Accepted, Accepted), (Conflict, Conflict)}
    assert (await bench.stored(first)).outcome == (await bench.stored(second)).outcome


@requirement("calls:what-was-approved")
async def test_of_two_edits_at_once_one_runs(bench: Bench) -> None:
    call = await bench.open(asks=True)
    edits = [Answer(approved=True, input={"url": f"https://example.org/{number}"}) for number in range(10)]
    receipts = await asyncio.gather(*(bench.answer(call, edit) for edit in edits))
    assert Counter(map(type, receipts)) == {Accepted: 1, Conflict: 9}
    assert (await bench.stored(call)).input == edits[receipts.index(Accepted())].input


MOVES: dict[str, Callable[[Bench, Call], Awaitable[object]]] = {
    "yes": lambda bench, call: bench.answer(call, YES),
    "no": lambda bench, call: bench.answer(call, NO),
    "take": lambda bench, call: bench.desk.take(ANN, call.call_id, "tab"),
    "take elsewhere": lambda bench, call: bench.desk.take(ANN, call.call_id, "phone"),
    "release": lambda bench, call: bench.desk.release(ANN, call.call_id, "tab"),
    "one": lambda bench, call: bench.settle(call, Success(1)),
    "two": lambda bench, call: bench.settle(call, Failure("two")),
    "expire": lambda bench, call: bench.desk.expire(call),
}


@pytest.mark.slow
@requirement("calls:one-outcome")
@given(
    st.lists(st.tuples(st.lists(st.sampled_from(sorted(MOVES)), max_size=4), st.floats(0, 40)), max_size=6)
)
async def test_whatever_many_hands_do_at_once_the_call_ends_once_and_receipts_agree(
    rounds: list[tuple[list[str], float]],
) -> None:
    clock = FakeClock()
    bench = Bench(MemoryStore(clock), clock)
    run = await bench.start_run()
    call = await bench.open(asks=True, run=run)
    receipts: list[tuple[str, object]] = []
    for names, pause in rounds:
        told = await asyncio.gather(*(MOVES[name](bench, call) for name in names))
        receipts += zip(names, told, strict=True)
        clock.advance(pause)
    stored = await bench.stored(call)
    assert sum(each == Accepted() and name in {"one", "two", "no"} for name, each in receipts) <= 1
    assert {winner for name, each in receipts for winner in _told_winner(name, each)} <= {stored.winner}
    assert (await bench.stored_run(run)).waits == (stored.outcome is None)


def _told_winner(name: str, receipt: object) -> list[Winner]:
    """A conflict of answers tells of the first answer, not of the call's end."""
    if isinstance(receipt, Refused) and receipt.winner is not None:
        return [receipt.winner]
    return [receipt.winner] if isinstance(receipt, Conflict) and name not in {"yes", "no"} else []


def _result(call: Call, output: object) -> Result:
    return Result(call_id=call.call_id, outcome=Success(output))
