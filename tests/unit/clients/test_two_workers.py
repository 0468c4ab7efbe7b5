"""Registered clients on several workers: each has its own registry, presence and broker, over one store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import pytest

from farhand.clients.inbox import ClientStream, Inbox, InboxItem, OfferedCall, StreamReplaced, WithdrawnTools
from farhand.core.outcome import Failure
from farhand.core.settings import Settings, Timeouts
from farhand.store.postgres import PostgresStore
from farhand.store.presence import Absence
from farhand.testing import FakeClock
from tests.postgres import Cluster
from tests.requirement import requirement
from tests.unit.clients.client_harness import ANN, Office, comes_true, names

Open: TypeAlias = Callable[..., Awaitable[Office]]
NOTES = ClientStream(ANN, "notes", "notes")


@pytest.fixture
async def open_office(cluster: Cluster) -> AsyncIterator[Open]:
    """`await open_office(grace=1.0)`: one more worker on the same store."""
    address = cluster.address()
    opened: list[Office] = []

    async def open_office(*, grace: float = 60.0, lease: float = 1.0) -> Office:
        office = Office(await PostgresStore.open(address), FakeClock(seed=str(len(opened))))
        timeouts = Timeouts(lease=lease, client_grace=grace, client_first=60.0)
        office.sessions.settings = Settings(timeouts=timeouts)
        await office.reaper.open()
        opened.append(office)
        return office

    yield open_office
    for office in opened:
        await office.reaper.close()
        await office.log.close()


async def test_a_client_that_registers_at_one_worker_is_known_at_the_other(open_office: Open) -> None:
    one, other = await open_office(), await open_office()
    await one.register("notes", "read")
    await _offers(other, "client_notes_read")
    await other.sessions.unregister(ANN, "notes", None)
    await _offers(one)


async def test_a_call_that_is_opened_at_one_worker_reaches_the_stream_at_another(open_office: Open) -> None:
    one, other = await open_office(), await open_office()
    await one.register("notes", "read")
    await _offers(other, "client_notes_read")
    async with one.sessions.listen(NOTES) as inbox:
        assert await inbox.next(0.0) == []
        call = await other.ask("client_notes_read")
        [offered] = await _next(inbox)
        assert isinstance(offered, OfferedCall)
        assert offered.call.call_id == call.call_id


async def test_the_newest_stream_wins_whichever_worker_has_it(open_office: Open) -> None:
    one, other = await open_office(), await open_office()
    await one.register("notes", "read")
    async with one.sessions.listen(NOTES) as old, other.sessions.listen(NOTES) as new:
        assert await _next(old) == [StreamReplaced()]
        assert await old.next(1.0) is None
        call = await one.ask("client_notes_read")
        assert names(await _next(new)) == ["OfferedCall"]
        assert (await one.stored(call)).take is not None


async def test_a_stream_that_lost_its_seat_unheard_ends_with_the_next_renewal(open_office: Open) -> None:
    one = await open_office()
    async with one.sessions.listen(NOTES) as old:
        assert one.store.streams is not None
        # as a worker would that dies before it can tell of its stream
        await one.store.streams.arrive(ANN, "notes", lease_sec=1.0)
        assert await _next(old) == [StreamReplaced()]


async def test_a_client_is_told_of_tools_that_were_unregistered_at_another_worker(open_office: Open) -> None:
    one, other = await open_office(), await open_office()
    await one.register("notes", "read", "write")
    async with one.sessions.listen(NOTES) as inbox:
        assert await inbox.next(0.0) == []
        await other.sessions.unregister(ANN, "notes", ["read"])
        assert await _next(inbox) == [WithdrawnTools(("client_notes_read",))]


@requirement("client-tools:grace")
async def test_a_client_whose_stream_is_at_another_worker_is_not_dismissed(open_office: Open) -> None:
    one, other = await open_office(grace=0.1), await open_office(grace=0.1)
    await one.register("notes", "read")
    async with one.sessions.listen(NOTES):
        await _offers(other, "client_notes_read")
        await _looked(other, times=3)
        assert [client.client_id for client in await other.clients()] == ["notes"]


@requirement("client-tools:grace")
async def test_a_client_that_lost_its_stream_and_stays_away_is_dismissed_once(open_office: Open) -> None:
    one, other = await open_office(grace=0.3), await open_office(grace=0.3)
    await one.register("notes", "read")
    async with one.sessions.listen(NOTES) as inbox:
        await _next(inbox, at_least=0)
        await _offers(other, "client_notes_read")
    call = await other.ask("client_notes_read")
    await _offers(one)
    await _offers(other)
    assert (await other.ended(call)).outcome == Failure("client disconnected")
    left = [news.event for news in await one.log.feed(ANN) if "Unregistered" in type(news.event).__name__]
    assert len(left) == 1


@requirement("client-tools:grace")
async def test_a_client_of_a_worker_that_died_has_its_grace_to_come_to_another(open_office: Open) -> None:
    one, other = await open_office(grace=1.5), await open_office(grace=1.5)
    await one.register("notes", "read")
    async with _dying(one) as inbox:
        await _next(inbox, at_least=0)
    await _offers(other, "client_notes_read")
    async with other.sessions.listen(NOTES):
        assert other.store.streams is not None
        assert await other.store.streams.is_here(ANN, "notes")
    await _offers(other)


@requirement("client-tools:grace")
async def test_a_client_that_comes_back_this_moment_at_another_worker_keeps_its_tools(
    open_office: Open,
) -> None:
    one, other = await open_office(), await open_office()
    await one.register("notes", "read")
    async with other.sessions.listen(NOTES):
        one.sessions._has_seat = _no  # type: ignore[method-assign]
        await one.sessions.dismiss((ANN, "notes"))
        assert [client.client_id for client in await other.clients()] == ["notes"]


async def test_a_call_for_a_tool_that_left_at_another_worker_is_not_left_waiting(open_office: Open) -> None:
    one, other = await open_office(), await open_office()
    await one.register("notes", "read", "write")
    await _offers(other, "client_notes_read", "client_notes_write")
    [before] = await one.clients()
    await one.sessions.unregister(ANN, "notes", ["read"])
    await _offers(other, "client_notes_write")
    # as if it had been opened in the same moment, by a worker that had not heard of it yet
    other.registry.keep(before)
    call = await other.ask("client_notes_read")
    await one.register("mail", "send")
    assert isinstance((await one.ended(call)).outcome, Failure)


async def test_calls_of_tools_that_a_dying_worker_withdrew_fail_at_another(
    open_office: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await open_office(), await open_office()
    await one.register("notes", "read")
    await _offers(other, "client_notes_read")
    calls = [await other.ask("client_notes_read"), await one.ask("client_notes_read")]
    await one.desk.take(ANN, calls[0].call_id, "notes")
    await one.reaper.close()
    monkeypatch.setattr(one.desk, "give_up", _die)
    with pytest.raises(KeyboardInterrupt):
        await one.sessions.unregister(ANN, "notes", None)
    for call in calls:
        assert (await other.ended(call)).outcome == Failure("the client unregistered this tool")


async def _offers(office: Office, *tools: str) -> None:
    async def is_so() -> bool:
        return [tool.name for tool in office.registry.tools(ANN)] == list(tools)

    await comes_true(is_so)


async def _looked(office: Office, *, times: int) -> None:
    """Until it has looked so often for clients that are absent."""
    streams = office.store.streams
    assert streams is not None
    looked: list[object] = []
    look = streams.absent

    async def counting() -> list[Absence]:
        looked.append(None)
        return await look()

    async def is_enough() -> bool:
        return len(looked) >= times

    streams.absent = counting  # type: ignore[method-assign]
    await comes_true(is_enough)


async def _next(inbox: Inbox, *, at_least: int = 1) -> list[InboxItem]:
    async with asyncio.timeout(20):
        while True:
            items = await inbox.next(0.0 if at_least == 0 else 1.0)
            assert items is not None
            if len(items) >= at_least:
                return items


@asynccontextmanager
async def _dying(office: Office) -> AsyncIterator[Inbox]:
    """A stream whose worker is gone before it can say so."""
    async with office.sessions.listen(NOTES) as inbox:
        yield inbox
        await office.reaper.close()
        office.sessions.presence.take_left()


async def _no(key: object) -> bool:
    return False


async def _die(calls: object, error: object) -> int:
    raise KeyboardInterrupt
