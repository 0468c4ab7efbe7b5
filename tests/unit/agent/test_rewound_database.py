"""A database that goes back in time under its workers: a replica took over that lacked the last commits, or
an older backup was restored. What the workers remember is newer than the log, and the log counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from farhand.clock import SystemClock
from farhand.core.call import Call, Phase
from farhand.core.event import CallOpened, RunFinished
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.core.run import Run
from farhand.core.settings import Settings, Timeouts
from farhand.errors import StoreDown
from farhand.eventlog.feed import FeedReader
from farhand.eventlog.reader import LogReader
from farhand.models.scripted import Ask
from farhand.models.scripted.model import Moment, Script, Step
from farhand.store.base import FoundThread
from farhand.store.postgres import PostgresStore
from farhand.store.postgres.connection import connect, parse_address
from farhand.tools.decorate import tool
from tests.postgres import Cluster
from tests.unit.agent.hands import open_url
from tests.unit.agent.stage import PATIENCE_SEC, YES, Stage, comes_true, text_in

OPEN = Ask("open_url", {"url": "https://example.org"})
PAGE = Success({"viewKey": "v"})
TABLES = ("threads", "log", "snapshots", "calls", "runs", "tools", "feeds", "feed", "streams")


class Database:
    """With a copy of its tables, and workers."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stages: list[Stage] = []

    async def hire(self, script: Script | Sequence[Step | Script], *tools: object) -> Stage:
        store = await PostgresStore.open(self._address)
        settings = Settings(timeouts=Timeouts(lease=1.0))
        stage = Stage(store, SystemClock(), script, *tools, settings=settings)
        await stage.service.open()
        self._stages.append(stage)
        return stage

    async def copy(self) -> None:
        await self._execute(
            # as at one moment: an append between two of the copies would make them contradict each other
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            *(f"CREATE TABLE copy_of_{name} AS TABLE {name}" for name in TABLES),
        )

    async def go_back(self) -> None:
        """To the copy, as a failover does: every session ends."""
        await self._execute(
            *(f"LOCK {name}" for name in TABLES),
            *(f"DELETE FROM {name}" for name in TABLES),
            *(f"INSERT INTO {name} OVERRIDING SYSTEM VALUE TABLE copy_of_{name}" for name in TABLES),
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'farhand%'",
        )

    async def close(self) -> None:
        for stage in self._stages:
            await stage.service.close()

    async def _execute(self, *statements: str) -> None:
        connection = await connect(parse_address(self._address), settings={"application_name": "test"})
        await connection.execute("; ".join(["BEGIN", *statements, "COMMIT"]))
        await connection.close()


@pytest.fixture
async def database(cluster: Cluster) -> AsyncIterator[Database]:
    database = Database(cluster.address())
    yield database
    await database.close()


async def test_a_step_that_follows_from_what_the_log_lost_is_not_stored(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the call of the step before it would never get a result in the history."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def script(moment: Moment) -> Step:
        if not moment.results:
            return OPEN
        asked.set()
        await go_on.wait()
        return "Thanks."

    worker = await database.hire(script, open_url)
    run, call = await _copied_at_its_call(worker, database)
    await worker.answer(call, PAGE)
    await asked.wait()
    looks = _looks_for_own_leases(worker, monkeypatch)
    await database.go_back()
    # what that finds is advanced here
    await asyncio.wait_for(looks.get(), PATIENCE_SEC)
    go_on.set()
    await comes_true(lambda: _is_in(worker, call, Phase.READY))
    await asyncio.wait_for(looks.get(), PATIENCE_SEC)
    await worker.answer(call, PAGE)
    assert text_in(await worker.told(run, RunFinished)) == "Thanks."
    await worker.check()


async def test_a_held_run_forgets_the_steps_that_the_log_lost(database: Database) -> None:
    worker = await database.hire(
        lambda moment: OPEN if len(moment.results) < 2 else "Thanks.",
        open_url,
    )
    run, first = await _copied_at_its_call(worker, database)
    after = await worker.position(run)
    await worker.answer(first, PAGE)
    await worker.told(run, CallOpened, after=after)
    await database.go_back()
    await comes_true(lambda: _is_in(worker, first, Phase.READY))
    await worker.answer(first, PAGE)

    async def asks_again() -> bool:
        return any(call.step == 2 for call in await worker.log.open_calls(run.owner, run.thread_id))

    await comes_true(asks_again)
    await worker.answer(await worker.open_call(), PAGE)
    assert text_in(await worker.told(run, RunFinished)) == "Thanks."
    await worker.check()


async def test_a_run_that_is_unfinished_again_goes_on(database: Database) -> None:
    """Though the worker that had finished it renews the lease that it had then."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def script(moment: Moment) -> Step:
        asked.set()
        await go_on.wait()
        return "Hello."

    worker = await database.hire(script)
    run = await worker.say("hi")
    await asked.wait()
    await database.copy()
    go_on.set()
    await worker.told(run, RunFinished)
    await database.go_back()

    async def was_taken_up_again() -> bool:
        try:
            last = await worker.stored(run)
        except StoreDown:
            return False
        return last.fence > run.fence and not last.active

    await comes_true(was_taken_up_again)
    await worker.check()


async def test_a_tool_whose_start_was_lost_is_approved_and_run_again(database: Database) -> None:
    """The worker whose tool has ended does not look for its outcome over and over again."""
    started, go_on = asyncio.Event(), asyncio.Event()
    ran: list[str] = []

    @tool(needs_approval=True)
    async def buy(item: str) -> str:
        """Buy something.

        Args:
            item: What to buy.

        Returns:
            What was bought.
        """
        ran.append(item)
        started.set()
        await go_on.wait()
        return item

    worker = await database.hire([Ask("buy", {"item": "tea"}), "Done."], buy)
    run, call = await _copied_at_its_call(worker, database)
    await worker.decide(call, YES)
    await started.wait()
    await database.go_back()
    go_on.set()
    await comes_true(lambda: _is_in(worker, call, Phase.ASKING))
    await worker.decide(call, YES)
    assert text_in(await worker.told(run, RunFinished)) == "Done."
    assert ran == ["tea", "tea"]
    await worker.check()


async def _copied_at_its_call(worker: Stage, database: Database) -> tuple[Run, Call]:
    """A held run and its call; the database is copied while that is open."""
    run = await worker.say("hi", hold_for=30.0)
    await worker.told(run, CallOpened)
    call = await worker.open_call()
    await database.copy()
    return run, call


async def _ended(reader: LogReader | FeedReader) -> None:
    while True:
        with suppress(StoreDown):
            if await reader.next(PATIENCE_SEC) is None:
                return


def _looks_for_own_leases(worker: Stage, monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[int]:
    """Gets an item whenever the worker has asked the store for its own leases."""
    looks: asyncio.Queue[int] = asyncio.Queue()
    claimable = worker.store.claimable

    # all arguments are passed on
    async def note(**asked: Any) -> list[FoundThread]:
        found = await claimable(**asked)
        if asked.get("worker"):
            looks.put_nowait(len(found))
        return found

    monkeypatch.setattr(worker.store, "claimable", note)
    return looks


async def _is_in(worker: Stage, call: Call, phase: Phase) -> bool:
    try:
        current = await worker.log.get_call(call.owner, call.call_id)
    except StoreDown:
        return False
    return current is not None and current.phase is phase


async def test_a_reader_that_knows_more_than_the_log_comes_again(database: Database) -> None:
    """With its position, so that it is told of the gap; it would miss what the run does from here on."""
    worker = await database.hire(lambda moment: OPEN if len(moment.results) < 2 else "Thanks.", open_url)
    run = await worker.say("hi", hold_for=30.0)
    await worker.told(run, CallOpened)
    first = await worker.open_call()
    await database.copy()
    after = await worker.position(run)
    with worker.service.read(run, after) as reader:
        await worker.answer(first, PAGE)
        async with asyncio.timeout(PATIENCE_SEC):
            while reader.at.seq == after.seq:
                assert await reader.next(PATIENCE_SEC) is not None
            await database.go_back()
            await _ended(reader)
        assert reader.cut


async def test_a_reader_of_a_feed_that_lost_entries_comes_again(database: Database) -> None:
    worker = await database.hire(["Hello.", "Hello again."])
    await worker.told(await worker.say("hi"), RunFinished)
    _, last = await worker.log.feed_span(LOCAL)
    await database.copy()
    with worker.service.feed(LOCAL, last) as reader:
        await worker.told(await worker.say("hi again"), RunFinished)
        async with asyncio.timeout(PATIENCE_SEC):
            while (await worker.log.feed_span(LOCAL))[1] > reader.at:
                assert await reader.next(PATIENCE_SEC)
            await database.go_back()
            await _ended(reader)
    assert reader.at > last
