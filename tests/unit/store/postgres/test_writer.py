"""Batches: what queued shares a transaction, and each commit keeps its own guards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from farhand.calls.verdict import settled_event
from farhand.core.event import TextAdded
from farhand.core.run import RunState
from farhand.errors import StoreDown, Unreadable
from farhand.store.base import (
    ClaimRun,
    Commit,
    Committed,
    InsertCall,
    InsertMessage,
    InsertRun,
    InsertThread,
    Stale,
    SwapCall,
    When,
    WriteRun,
)
from farhand.store.postgres import PostgresStore
from farhand.store.postgres.line import Line, Lost
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import ANN, OPEN_URL, Given, user_message
from tests.requirement import requirement
from tests.statements import counted_statements


@requirement("postgres:batches")
async def test_what_queued_while_a_transaction_ran_shares_the_next_one(
    given: Given, postgres: PostgresStore
) -> None:
    run = await given.run()
    before = postgres._writer.transactions
    calls = [given.new_call(run) for _ in range(200)]
    await asyncio.gather(*(given.write(InsertCall(call)) for call in calls))
    assert postgres._writer.transactions - before <= 3
    assert (await given.stored_run(run)).blockers == 200


@requirement("postgres:batches")
async def test_a_guard_that_does_not_hold_fails_its_own_commit_alone(
    given: Given, postgres: PostgresStore
) -> None:
    run = await given.run()
    stale = WriteRun(run_id=run.run_id, fence=9, events=(TextAdded(0, "never"),))
    fine = [WriteRun(run_id=run.run_id, events=(TextAdded(0, str(number)),)) for number in range(10)]
    before = postgres._writer.transactions
    writes = [write for each in fine for write in (each, stale)]
    commits = await asyncio.gather(*(postgres.commit(write) for write in writes))
    assert [type(commit) for commit in commits] == [Committed, Stale] * 10
    assert postgres._writer.transactions - before <= 3
    entries = await postgres.events(ANN, run.run_id)
    assert [(entry.seq, entry.event) for entry in entries] == [
        (number + 1, TextAdded(0, str(number))) for number in range(10)
    ]


@requirement("postgres:batches")
async def test_a_run_that_ends_and_the_next_one_of_its_thread_share_a_transaction(
    given: Given, postgres: PostgresStore
) -> None:
    first, second = await given.run(), given.new_run()
    ended = WriteRun(run_id=first.run_id, fence=first.fence, state=RunState.DONE)
    with counted_statements() as asked:
        commits = await asyncio.gather(postgres.commit(ended), postgres.commit(InsertRun(second)))
    assert [type(commit) for commit in commits] == [Committed, Committed]
    assert asked == {"BEGIN": 1, "gather": 1, "runs": 1, "write": 1, "COMMIT": 1}
    assert [run.run_id for run in await postgres.runs(ANN, limit=5)] == [second.run_id, first.run_id]


@requirement("postgres:batches")
async def test_a_transaction_is_four_round_trips_whatever_is_in_it(
    given: Given,
) -> None:
    runs = [await given.run(f"t{number}") for number in range(10)]
    calls = [given.new_call(run) for run in runs]
    new = [
        given.write(
            InsertThread(given.new_thread(f"n{number}")),
            InsertMessage(ANN, f"n{number}", user_message("m1")),
            InsertRun(given.new_run(f"n{number}")),
            InsertCall(calls[number], OPEN_URL),
            WriteRun(run_id=runs[number].run_id, events=(TextAdded(0, "a"),)),
        )
        for number in range(10)
    ]
    with counted_statements() as asked:
        await asyncio.gather(*new)
    assert asked == {"BEGIN": 1, "gather": 1, "write": 1, "COMMIT": 1}
    with counted_statements() as asked:
        await asyncio.gather(*(given.settle(call) for call in calls))
    assert asked == {"BEGIN": 1, "gather": 1, "write": 1, "COMMIT": 1}


@requirement("postgres:batches")
async def test_a_call_that_is_opened_and_settled_in_one_transaction_is_settled(given: Given) -> None:
    run = await given.run()
    call = given.new_call(run)
    after = given.settled(call)
    await given.write(InsertCall(call, OPEN_URL), SwapCall(call, after))
    assert await given.stored_call(call) == after
    assert (await given.stored_run(run)).blockers == 0


@requirement("postgres:database-clock")
async def test_a_deadline_that_passes_while_a_row_is_waited_for_has_passed(address: str) -> None:
    """With the database's own clock: it is read after the last lock."""
    store = await PostgresStore.open(address)
    given = Given(store, FakeClock())
    call = given.new_call(deadline=store.now() + 1.0)
    await given.write(InsertThread(given.new_thread("t1")), InsertCall(call))
    holder = await store._lines._connect()
    await holder.run("BEGIN")
    await holder.fetch("SELECT 1 FROM calls WHERE call_id = $1 FOR UPDATE", call.call_id)
    settling = asyncio.ensure_future(store.commit(SwapCall(call, given.settled(call), When.IN_TIME)))
    # the database tells when it is over by its own clock, however slow this process is
    await holder.fetch("SELECT pg_sleep(1.2)")
    await holder.run("COMMIT")
    assert _word(await settling) == "overdue"
    holder.cut()
    await store.close()


@requirement("postgres:batches")
async def test_a_record_that_the_database_cannot_hold_fails_alone(given: Given) -> None:
    odd = InsertThread(given.new_thread("nothing\0here"))
    threads = [InsertThread(given.new_thread(f"t{number}")) for number in range(5)]
    answers = await asyncio.gather(
        *(given.store.commit(write) for write in (threads[0], odd, *threads[1:])), return_exceptions=True
    )
    assert isinstance(answers[1], ValueError)
    assert [type(answer) for number, answer in enumerate(answers) if number != 1] == [Committed] * 5


@requirement("postgres:batches")
async def test_a_row_that_makes_no_sense_fails_those_who_need_it_alone(
    given: Given, postgres: PostgresStore
) -> None:
    await given.thread("odd")
    await postgres._lines.do(lambda line: line.fetch("UPDATE threads SET body = '{}'"))
    fine, odd = given.new_thread("fine"), given.new_thread("odd")
    answers = await asyncio.gather(
        *(postgres.commit(InsertThread(thread)) for thread in (fine, odd)), return_exceptions=True
    )
    assert isinstance(answers[0], Committed)
    assert isinstance(answers[1], Unreadable)


@requirement("postgres:many-writers")
async def test_two_processes_that_insert_the_same_are_both_answered_truly(given: Given, other: Given) -> None:
    for number in range(20):
        thread = given.new_thread(f"t{number}")
        said = InsertMessage(ANN, thread.thread_id, user_message("m1"))
        commits = await asyncio.gather(
            given.store.commit(InsertThread(thread), said), other.store.commit(InsertThread(thread), said)
        )
        assert sorted(_word(commit) for commit in commits) == ["committed", "exists"]
        assert await other.store.messages(ANN, thread.thread_id) == [user_message("m1")]


@requirement("postgres:many-writers")
async def test_of_runs_that_two_processes_begin_in_a_thread_one_is_there(given: Given, other: Given) -> None:
    for number in range(20):
        place = InsertThread(given.new_thread(f"t{number}"))
        runs = [each.new_run(f"t{number}") for each in (given, other)]
        commits = await asyncio.gather(
            given.store.commit(place, InsertRun(runs[0])), other.store.commit(place, InsertRun(runs[1]))
        )
        assert sorted(_word(commit) for commit in commits) == ["active", "committed"]


@requirement("postgres:many-writers")
async def test_of_claims_by_two_processes_one_wins_with_a_fence_of_its_own(
    given: Given, other: Given
) -> None:
    for number in range(20):
        run = await given.run(f"t{number}")
        await given.call(run)
        await given.park(run)
        claim = ClaimRun(run.run_id, 15.0)
        commits = await asyncio.gather(given.store.commit(claim), other.store.commit(claim))
        assert sorted(_word(commit) for commit in commits) == ["committed", "held"]
        assert (await other.stored_run(run)).fence == 2


@requirement("postgres:strays")
async def test_workers_that_look_for_strays_at_once_do_not_run_for_the_same(
    given: Given, other: Given
) -> None:
    runs = {(await given.run(f"t{number}")).run_id for number in range(40)}
    for each in (given, other):
        each.clock.advance(60.0)
    looks = [store.stray_runs(limit=10, reserve_sec=2.0) for store in (given.store, other.store) * 2]
    pages = await asyncio.gather(*looks)
    found = [run.run_id for page in pages for run in page]
    assert (len(found), set(found) <= runs) == (len(set(found)), True), "no run twice"
    assert len(found) >= 20
    for each in (given, other):
        each.clock.advance(2.0)
    assert len(await given.store.stray_runs(limit=100, reserve_sec=2.0)) == 40, "who died with them kept none"


@requirement("postgres:strays")
async def test_strays_that_cannot_be_read_or_are_skipped_hide_no_others(
    given: Given, postgres: PostgresStore
) -> None:
    runs = [await given.run(f"t{number}") for number in range(6)]
    given.clock.advance(60.0)
    odd = [run.run_id for run in runs[:3]]
    await postgres._lines.do(
        lambda line: line.fetch("UPDATE runs SET state = 'odd', stray_at = 0 WHERE run_id = ANY($1)", odd)
    )
    found = await postgres.stray_runs(limit=2, skip={runs[3].run_id})
    assert found, "some of them; the others come next"
    assert {run.run_id for run in found} <= {runs[4].run_id, runs[5].run_id}


@requirement("postgres:many-writers")
async def test_journals_and_feeds_that_two_processes_write_have_no_gap(given: Given, other: Given) -> None:
    runs = [await given.run(f"t{number}") for number in range(4)]
    calls = [await given.call(run) for run in runs for _ in range(10)]
    stores = (given.store, other.store)
    writes = [
        stores[(number + extra) % 2].commit(
            SwapCall(call, given.settled(call)),
            WriteRun(run_id=call.run_id or "", events=(settled_event(given.settled(call)),)),
        )
        for number, call in enumerate(calls)
        for extra in range(2)
    ]
    commits = await asyncio.gather(*writes)
    assert sorted(_word(commit) for commit in commits) == ["committed"] * 40 + ["version"] * 40
    for run in runs:
        entries = await other.store.events(ANN, run.run_id)
        assert [entry.seq for entry in entries] == list(range(1, 11))
        assert (await given.stored_run(run)).blockers == 0
    assert [news.no for news in await given.store.feed(ANN)] == list(range(1, 41))


@requirement("postgres:no-half-truth")
@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_connection_that_breaks_at_the_very_end_is_asked_for_what_became_of_it(
    given: Given, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    run = await given.run()
    broken = _breaking_at_commit(monkeypatch, is_kept=is_kept)
    written = await given.store.commit(WriteRun(run_id=run.run_id, events=(TextAdded(0, "once"),)))
    assert isinstance(written, Committed)
    assert broken() == 1
    assert [entry.event for entry in await given.store.events(ANN, run.run_id)] == [TextAdded(0, "once")]


@requirement("postgres:no-half-truth")
async def test_a_store_that_is_closed_takes_nothing_more(given: Given, postgres: PostgresStore) -> None:
    await postgres.close()
    with pytest.raises(StoreDown):
        await postgres.commit(InsertThread(given.new_thread("t1")))
    with pytest.raises(StoreDown):
        await postgres.get_thread(ANN, "t1")


@requirement("postgres:no-half-truth")
async def test_a_fault_that_nobody_foresaw_ends_its_transaction_and_not_the_writer(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = InsertThread(given.new_thread("t1"))

    async def broken(*_: object, **__: object) -> None:
        raise KeyError("planted")

    with monkeypatch.context() as planted:
        planted.setattr("farhand.store.postgres.writer.flush", broken)
        with pytest.raises(StoreDown):
            await given.store.commit(thread)
    assert isinstance(await given.store.commit(thread), Committed)


@requirement("postgres:unknown-fields")
async def test_fields_of_a_newer_version_are_kept_when_a_record_is_changed(
    given: Given, postgres: PostgresStore
) -> None:
    call = await given.call(await given.run())
    for table in ("calls", "threads"):
        added = f"UPDATE {table} SET body = convert_to(rtrim(convert_from(body, 'UTF8'), '}}') || $1, 'UTF8')"
        await postgres._lines.do(lambda line, sql=added: line.fetch(sql, ', "newer": [1]}'))  # type: ignore[misc]
    await given.settle(call)
    await given.write(InsertThread(replace(given.new_thread("t1"), updated_at=given.clock.advance(1))))
    for table in ("calls", "threads"):
        found = await postgres._lines.many(f"SELECT body FROM {table}", (), lambda row: row[0])
        assert b'"newer":[1]' in found[0].replace(b" ", b"")


def _word(commit: Commit) -> str:
    return commit.why if isinstance(commit, Stale) else "committed"


def _breaking_at_commit(monkeypatch: pytest.MonkeyPatch, *, is_kept: bool) -> Callable[[], int]:
    """The next COMMIT is never answered: it reached the database, or it did not. How often that was."""
    run = Line.run
    broken = 0

    async def breaking(line: Line, sql: str) -> None:
        nonlocal broken
        if sql != "COMMIT" or broken:
            return await run(line, sql)
        broken += 1
        if is_kept:
            await run(line, sql)
        line.cut()
        raise Lost("cut")

    monkeypatch.setattr(Line, "run", breaking)
    return lambda: broken
