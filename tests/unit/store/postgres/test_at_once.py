"""Reads that are asked for in the same moment share a statement, and each is answered for itself."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.call import Call
from farhand.errors import StoreDown, Unreadable
from farhand.store.base import InsertThread
from farhand.store.postgres import PostgresStore, at_once
from farhand.testing.store_laws.given import ANN, BOB, OPEN_URL, Given, user_message
from tests.requirement import requirement
from tests.statements import counted_statements


@pytest.fixture
async def calls(given: Given) -> list[Call]:
    run = await given.run()
    return [await given.call(run) for _ in range(8)]


@requirement("postgres:at-once")
async def test_what_is_asked_for_in_one_moment_is_read_with_one_statement(
    given: Given, calls: list[Call]
) -> None:
    with counted_statements() as asked:
        found = await asyncio.gather(*(given.store.get_call(ANN, call.call_id) for call in calls))
    assert found == calls
    assert asked == {"call": 1}


@requirement("postgres:at-once")
async def test_everybody_gets_what_they_asked_for_and_nothing_of_others(
    given: Given, calls: list[Call]
) -> None:
    first, store = calls[0], given.store
    said = await given.message("m1")
    reads = [store.get_call(ANN, first.call_id), store.get_call(BOB, first.call_id), store.get_call(ANN, "?")]
    assert await asyncio.gather(*reads) == [first, None, None]
    places = [(ANN, "none"), (ANN, "t1"), (BOB, "t1")]
    assert await asyncio.gather(*(store.messages(*place) for place in places)) == [[], [said], []]
    assert await asyncio.gather(*(store.count_open(*place) for place in places)) == [0, len(calls), 0]


@requirement("postgres:at-once")
async def test_runs_their_calls_and_tools_are_read_together_too(given: Given, calls: list[Call]) -> None:
    store, run_id = given.store, calls[0].run_id or ""
    run = await store.get_run(ANN, run_id)
    assert run is not None
    with counted_statements() as asked:
        assert await asyncio.gather(
            *(store.get_run(owner, each) for owner, each in [(ANN, run_id), (BOB, run_id), (ANN, "?")])
        ) == [run, None, None]
        assert await asyncio.gather(*(store.calls_of(ANN, run_id, step) for step in (None, 1, 2))) == [
            calls,
            [call for call in calls if call.step == 1],
            [],
        ]
        tools = await asyncio.gather(*(store.get_tool(each) for each in (OPEN_URL.version, "?")))
        assert tools == [OPEN_URL, None]
    assert asked == {"run": 1, "calls of run": 1, "tool": 1}


@requirement("postgres:at-once")
async def test_what_cannot_be_read_fails_whoever_asked_for_it_alone(
    given: Given, postgres: PostgresStore, calls: list[Call]
) -> None:
    odd, fine = calls[0].call_id, calls[1].call_id
    await postgres._lines.do(lambda line: line.fetch("UPDATE calls SET body = '{}' WHERE call_id = $1", odd))
    asked = (odd, fine, "a\0b", "half \ud800")
    found = await asyncio.gather(
        *(given.store.get_call(ANN, call_id) for call_id in asked), return_exceptions=True
    )
    assert [type(each) for each in found[:3]] == [Unreadable, Call, type(None)]
    assert isinstance(found[3], ValueError)


@requirement("postgres:at-once")
async def test_whenever_one_asks_one_is_answered(given: Given, calls: list[Call]) -> None:
    async def ask_on(call: Call) -> None:
        for _ in range(60):
            assert await given.store.get_call(ANN, call.call_id) == call

    async with asyncio.timeout(50), asyncio.TaskGroup() as group:
        for call in calls[:5]:
            group.create_task(ask_on(call))


@requirement("postgres:at-once")
async def test_more_than_fit_into_a_statement_are_read_with_several(
    given: Given, calls: list[Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_once, "KEYS", 3)
    with counted_statements() as asked:
        found = await asyncio.gather(*(given.store.get_call(ANN, call.call_id) for call in calls))
    assert found == calls
    assert asked == {"call": 3}


@requirement("postgres:at-once")
async def test_who_does_not_wait_any_more_holds_up_nobody(given: Given, calls: list[Call]) -> None:
    impatient = asyncio.ensure_future(given.store.get_call(ANN, calls[0].call_id))
    patient = asyncio.ensure_future(given.store.get_call(ANN, calls[1].call_id))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient == calls[1]


@requirement("postgres:at-once")
async def test_all_who_ask_a_store_that_is_closed_are_told_so(postgres: PostgresStore) -> None:
    await postgres.close()
    found = await asyncio.gather(*(postgres.get_call(ANN, name) for name in "abc"), return_exceptions=True)
    assert [type(each) for each in found] == [StoreDown] * 3


@requirement("postgres:at-once")
async def test_a_long_thread_is_read_in_its_order(given: Given) -> None:
    await given.write(InsertThread(given.new_thread("t1")))
    for number in range(20):
        await given.message(f"m{number}")
    said = await given.store.messages(ANN, "t1")
    assert said == [user_message(f"m{number}") for number in range(20)]
