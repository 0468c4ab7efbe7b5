"""Transactions in a row: the next one begins with the end of the last, and nothing is lost between them."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.event import TextAdded
from farhand.core.run import Run
from farhand.store.base import Commit, Committed, InsertCall, Stale, SwapCall, WriteRun
from farhand.store.postgres import PostgresStore
from farhand.store.postgres.line import Line, Lost
from farhand.store.postgres.writer import IN_A_ROW
from farhand.testing.store_laws.given import ANN, Given
from tests.requirement import requirement
from tests.statements import counted_statements
from tests.unit.agent.stage import comes_true

END_WRITERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND state = 'idle in transaction' AND query = 'COMMIT AND CHAIN'
"""


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that others wait at the end of every transaction but the last."""
    monkeypatch.setattr("farhand.store.postgres.writer.AT_MOST", 1)


@requirement("postgres:in-a-row")
async def test_a_transaction_that_others_wait_for_begins_with_the_end_of_the_last(
    given: Given, postgres: PostgresStore
) -> None:
    run = await given.run()
    postgres._writer._batch = 10 * IN_A_ROW
    with counted_statements() as asked:
        await _say(postgres, run, "a", "b", "c")
    assert asked == {"BEGIN": 1, "gather": 3, "write": 3, "COMMIT AND CHAIN": 2, "COMMIT": 1}
    assert _line(postgres).is_in_transaction is False
    assert await _said(postgres, run) == ["a", "b", "c"]


@requirement("postgres:in-a-row")
async def test_after_some_in_a_row_the_connection_is_free_so_that_the_database_counts_what_it_wrote(
    given: Given, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.postgres.writer.IN_A_ROW", 4)
    run = await given.run()
    postgres._writer._batch = 10 * IN_A_ROW
    with counted_statements() as asked:
        await _say(postgres, run, *map(str, range(10)))
    assert (asked["BEGIN"], asked["COMMIT"], asked["COMMIT AND CHAIN"]) == (3, 3, 7)


@requirement("postgres:in-a-row")
async def test_before_version_15_every_transaction_ends_alone_since_only_then_the_others_hear_of_it(
    given: Given, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await given.run()
    monkeypatch.setattr(Line, "notifies_at_commit", False)
    with counted_statements() as asked:
        await _say(postgres, run, "a", "b")
    assert asked == {"BEGIN": 2, "gather": 2, "write": 2, "COMMIT": 2}


@requirement("postgres:in-a-row")
async def test_a_guard_that_does_not_hold_in_the_middle_fails_its_own_commit_alone(
    given: Given, postgres: PostgresStore
) -> None:
    run = await given.run()
    stale = WriteRun(run_id=run.run_id, fence=9, events=(TextAdded(0, "never"),))
    said = [WriteRun(run_id=run.run_id, events=(TextAdded(0, word),)) for word in "ab"]
    commits = await asyncio.gather(*(postgres.commit(write) for write in (said[0], stale, said[1])))
    assert [type(commit) for commit in commits] == [Committed, Stale, Committed]
    assert await _said(postgres, run) == ["a", "b"]


@requirement("postgres:in-a-row")
async def test_the_others_hear_of_a_transaction_while_the_next_one_waits(
    given: Given, other: Given, postgres: PostgresStore
) -> None:
    run, call = await given.run(), given.new_call()
    await given.write(InsertCall(call))
    postgres._writer._batch = 10 * IN_A_ROW
    hub = other.store.hub
    assert isinstance(other.store, PostgresStore)
    await _comes_hearing(other.store)
    holder = await postgres._lines._connect()
    await holder.run("BEGIN")
    await holder.fetch("SELECT 1 FROM calls WHERE call_id = $1 FOR UPDATE", call.call_id)
    with hub.watch(run.run_id) as watch:
        said = WriteRun(run_id=run.run_id, events=(TextAdded(0, "a"),))
        waits = SwapCall(call, given.settled(call))
        both = asyncio.gather(postgres.commit(said), postgres.commit(waits))

        async def is_heard() -> bool:
            return bool(watch.news)

        await comes_true(is_heard)
        assert not both.done()
    await holder.run("COMMIT")
    holder.cut()
    assert [type(commit) for commit in await both] == [Committed, Committed]


@requirement("postgres:no-half-truth")
@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_connection_that_breaks_between_two_transactions_loses_nothing_and_writes_nothing_twice(
    given: Given, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    run = await given.run()
    postgres._writer._batch = 10 * IN_A_ROW
    ends: list[str] = []
    whole = Line.run

    async def breaking(line: Line, sql: str) -> None:
        if sql == "BEGIN" or ends:
            return await whole(line, sql)
        ends.append(sql)
        if is_kept:
            await whole(line, sql)
        line.cut()
        raise Lost("cut")

    monkeypatch.setattr(Line, "run", breaking)
    commits = await _say(postgres, run, "a", "b", "c", "d")
    assert ends == ["COMMIT AND CHAIN"]
    assert [type(commit) for commit in commits] == [Committed] * 4
    assert await _said(postgres, run) == ["a", "b", "c", "d"]


@requirement("postgres:no-half-truth")
async def test_a_session_that_is_ended_when_its_next_transaction_has_begun_loses_nothing(
    given: Given, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await given.run()
    postgres._writer._batch = 10 * IN_A_ROW
    whole, ended = Line.run, 0

    async def then_ended(line: Line, sql: str) -> None:
        nonlocal ended
        await whole(line, sql)
        if sql == "COMMIT AND CHAIN" and not ended:
            found = await postgres._lines.do(lambda reader: reader.fetch(END_WRITERS))
            ended = len(found)

    monkeypatch.setattr(Line, "run", then_ended)
    commits = await _say(postgres, run, "a", "b", "c")
    assert ended == 1
    assert [type(commit) for commit in commits] == [Committed] * 3
    assert await _said(postgres, run) == ["a", "b", "c"]


@requirement("postgres:no-half-truth")
async def test_a_store_that_is_closed_with_many_in_the_queue_writes_them_all(
    given: Given, postgres: PostgresStore, other: Given
) -> None:
    run = await given.run()
    said = asyncio.gather(
        *(postgres.commit(WriteRun(run_id=run.run_id, events=(TextAdded(0, word),))) for word in "abcdef")
    )
    await asyncio.sleep(0)
    await postgres.close()
    assert [type(commit) for commit in await said] == [Committed] * 6
    entries = await other.store.events(ANN, run.run_id)
    assert [entry.event for entry in entries] == [TextAdded(0, word) for word in "abcdef"]


async def _say(store: PostgresStore, run: Run, *words: str) -> list[Commit]:
    said = [WriteRun(run_id=run.run_id, events=(TextAdded(0, word),)) for word in words]
    return await asyncio.gather(*(store.commit(write) for write in said))


async def _said(store: PostgresStore, run: Run) -> list[str]:
    events = [entry.event for entry in await store.events(ANN, run.run_id)]
    return [event.text for event in events if isinstance(event, TextAdded)]


async def _comes_hearing(store: PostgresStore) -> None:
    async def is_hearing() -> bool:
        return store._bell.is_hearing

    await comes_true(is_hearing)


def _line(store: PostgresStore) -> Line:
    line = store._writer._line
    assert line is not None
    return line
