"""What another process wrote is told here with the records themselves, read once for all that was heard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from farhand.calls.verdict import settled_event
from farhand.core.call import Call
from farhand.store.base import SwapCall, WriteRun
from farhand.store.hub import freed
from farhand.store.postgres import PostgresStore
from farhand.store.postgres.heard import Heard
from farhand.testing.store_laws.given import ANN, Given
from tests.requirement import requirement
from tests.statements import counted_statements
from tests.unit.agent.stage import comes_true


@requirement("workers:told-whole")
async def test_an_answer_at_another_process_is_told_with_run_call_and_entries_by_one_read(
    given: Given, other: Given, postgres: PostgresStore
) -> None:
    await _comes(lambda: postgres._bell.is_hearing)
    run = await given.run()
    call = await given.call(run)
    after = given.settled(call)
    topics = (freed(run.run_id), run.run_id, call.call_id)
    with postgres.hub.watch(*topics) as watch, counted_statements() as asked:
        await other.write(SwapCall(call, after), WriteRun(run_id=run.run_id, events=(settled_event(after),)))
        await _comes(lambda: len(watch.news) == 3)
        assert asked["news"] == 1
        assert asked["run"] + asked["call"] + asked["calls of run"] == 0
    [told_run, told_entries, told_call] = watch.news
    assert told_run == await given.stored_run(run)
    assert told_call == await given.stored_call(call)
    assert told_entries == await postgres.events(ANN, run.run_id)


@requirement("workers:told-whole")
async def test_what_is_heard_while_a_read_is_under_way_is_read_with_the_next_one(
    given: Given, other: Given, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _comes(lambda: postgres._bell.is_hearing)
    run = await given.run()
    calls = [await given.call(run) for _ in range(6)]
    tell, go_on, reads = Heard._tell, asyncio.Event(), 0

    async def tell_slowly(self: Heard, wanted: object) -> None:
        nonlocal reads
        reads += 1
        await go_on.wait()
        # Any of its own kind: it is handed on as it came
        await tell(self, wanted)  # type: ignore[arg-type]

    with postgres.hub.watch(*(call.call_id for call in calls)) as watch, monkeypatch.context() as slow:
        slow.setattr(Heard, "_tell", tell_slowly)
        await other.settle(calls[0])
        await _comes(lambda: reads == 1)
        for call in calls[1:]:
            await other.settle(call)
        await _comes(lambda: len(postgres._bell._heard._wanted.calls) == 5)
        go_on.set()
        await _comes(lambda: len(watch.news) == 6)
    assert reads == 2
    assert {item.call_id for item in watch.news if isinstance(item, Call)} == {call.call_id for call in calls}


@requirement("workers:told-whole")
async def test_nothing_is_read_of_what_nobody_watches_here(
    given: Given, other: Given, postgres: PostgresStore
) -> None:
    await _comes(lambda: postgres._bell.is_hearing)
    run = await given.run()
    call = await given.call(run)
    watched = await given.call(run)
    with postgres.hub.watch(watched.call_id) as watch, counted_statements() as asked:
        await other.settle(call)
        await other.settle(watched)
        await _comes(lambda: bool(watch.news))
        assert asked["news"] == 1, "what is told later was not told of the first"


@requirement("workers:told-whole")
async def test_of_what_is_gone_or_of_another_version_watchers_are_told_to_look(
    given: Given, postgres: PostgresStore
) -> None:
    run = await given.run()
    await postgres._lines.do(lambda line: line.fetch("UPDATE runs SET state = 'odd'"))
    hint = f'["you",[["moved","{freed(run.run_id)}"],["moved","call_gone"],["grew","run_gone",1]]]'
    with (
        postgres.hub.watch(freed(run.run_id)) as odd,
        postgres.hub.watch("call_gone") as gone,
        postgres.hub.watch("run_gone") as journal,
    ):
        postgres._bell._hear(hint)
        await _comes(lambda: odd.lost and gone.lost and journal.lost)
        assert [odd.news, gone.news, journal.news] == [[], [], []]


@requirement("workers:told-whole")
async def test_while_the_store_cannot_be_read_watchers_are_told_to_look(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres._lines, "_closed", True)
    with postgres.hub.watch("call_1") as watch:
        postgres._bell._hear('["you",[["moved","call_1"]]]')
        await _comes(lambda: watch.lost)


async def _comes(fact: Callable[[], bool]) -> None:
    async def asked() -> bool:
        await asyncio.sleep(0)
        return fact()

    await comes_true(asked)
