"""The calls a client may take: each sent once on a stream, and again on the next one."""

from __future__ import annotations

import asyncio

import pytest

from farhand.clients import inbox as inbox_module
from farhand.clients.inbox import EndedCall, OfferedCall, StreamReplaced
from farhand.core.call import Call, Phase
from farhand.core.outcome import Success
from farhand.core.principal import Owner
from farhand.core.result import Accepted, Receipt, Result
from farhand.errors import StoreDown, Unreadable
from farhand.eventlog.pubsub import client_topic, feed_topic
from farhand.store.base import FEED_GREW, Loaded, Store
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.clients.client_harness import ANN, Office, names


@requirement("client-tools:request")
async def test_a_call_is_taken_before_it_is_handed_out_and_told_when_it_ends(office: Office) -> None:
    await office.register("notes", "read")
    with office.inbox() as inbox:
        call = await office.ask("client_notes_read")
        assert await inbox.next(5) == [OfferedCall(call)]
        assert (await office.stored(call)).phase is Phase.TAKEN
        await office.desk.settle(ANN, Result(call_id=call.call_id, outcome=Success(1)))
        assert await inbox.next(5) == [EndedCall(await office.stored(call))]
        assert await inbox.next(0.01) == []


async def test_what_is_open_is_handed_out_again_on_the_next_stream(office: Office) -> None:
    await office.register("notes", "read")
    call = await office.ask("client_notes_read")
    for _ in range(2):
        with office.inbox() as inbox:
            items = await inbox.next(5)
            assert items is not None
            [offered] = items
            assert isinstance(offered, OfferedCall)
            assert (offered.call.call_id, offered.again) == (call.call_id, False)


async def test_what_another_program_had_is_marked(office: Office) -> None:
    await office.register("notes", "read")
    await office.ask("client_notes_read")
    with office.inbox(holder="notes.one") as inbox:
        await inbox.next(5)
    with office.inbox(holder="notes.two") as inbox:
        items = await inbox.next(5)
        assert items is not None
        assert isinstance(items[0], OfferedCall)
        assert items[0].again


async def test_news_that_were_lost_are_read_from_the_record(office: Office) -> None:
    await office.register("notes", "read")
    with office.inbox() as inbox:
        first = await office.ask("client_notes_read")
        assert names(await inbox.next(5)) == ["OfferedCall"]
        second = await office.ask("client_notes_read")
        await office.desk.settle(ANN, Result(call_id=first.call_id, outcome=Success(1)))
        for _ in range(2_000):
            office.log.broker.publish(client_topic(ANN, "notes"), first)
        assert await inbox.next(5) == [EndedCall(await office.stored(first)), OfferedCall(second)]


async def test_a_lost_notification_costs_a_look_at_the_record(office: Office) -> None:
    office.log.broker.recheck = 0.01
    await office.register("notes", "read")
    with office.inbox() as inbox:
        assert await inbox.next(0.01) == []
        watchers = office.log.broker.subscribers.pop(client_topic(ANN, "notes"))
        call = await office.ask("client_notes_read")
        office.log.broker.subscribers[client_topic(ANN, "notes")] = watchers
        assert await inbox.next(5) == [OfferedCall(call)]


async def test_a_call_that_another_process_opened_is_found_once_the_feed_has_grown(
    office: Office, clock: FakeClock, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "is_shared", True)
    monkeypatch.setattr(office.log, "is_shared", True)
    await office.register("notes", "read")
    elsewhere = Office(store, clock)
    await elsewhere.registry.load()
    with office.inbox() as inbox:
        assert await inbox.next(0.0) == []
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(inbox.next(5))
            call = await elsewhere.ask("client_notes_read")
            office.log.broker.publish(feed_topic(ANN), FEED_GREW)
        assert waiting.result() == [OfferedCall(call)]
        await elsewhere.desk.settle(ANN, Result(call_id=call.call_id, outcome=Success(1)))
        office.log.broker.publish(feed_topic(ANN), FEED_GREW)
        assert await inbox.next(5) == [EndedCall(await elsewhere.stored(call))]


async def test_what_this_process_adds_to_the_feed_costs_an_inbox_no_read(
    office: Office, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "is_shared", True)
    await office.register("notes", "read")
    with office.inbox() as inbox:
        assert await inbox.next(0.0) == []
        monkeypatch.setattr(office.log, "client_calls", _never)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(inbox.next(5))
            await asyncio.sleep(0)
            await office.register("mail", "send")
            call = await office.ask("client_notes_read")
        assert waiting.result() == [OfferedCall(call)]


@pytest.mark.parametrize("holder", ["tab", "notes-tab", "notesy"])
async def test_what_somebody_else_executes_is_not_handed_out(office: Office, holder: str) -> None:
    await office.register("notes", "read")
    call = await office.ask("client_notes_read")
    assert await office.desk.take(ANN, call.call_id, holder) == Accepted()
    with office.inbox() as inbox:
        assert await inbox.next(0.05) == []
        office.clock.advance(31)
    with office.inbox() as inbox:
        items = await inbox.next(5)
        assert items is not None
        assert isinstance(items[0], OfferedCall)
        # whether the tab has begun is not known
        assert (items[0].call.call_id, items[0].again) == (call.call_id, True)


@requirement("client-tools:request")
async def test_a_superseded_inbox_says_so_and_ends(office: Office) -> None:
    with office.inbox() as inbox, office.inbox():
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(inbox.next(5))
            await asyncio.sleep(0)
            inbox.supersede()
        assert waiting.result() == [StreamReplaced()]
        assert await inbox.next(5) is None


async def test_who_leaves_or_whose_server_stops_waits_no_longer(office: Office) -> None:
    with office.inbox() as inbox:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(inbox.next(5))
            await asyncio.sleep(0)
            inbox.leave()
        assert waiting.result() is None
    with office.inbox() as inbox:
        office.log.broker.close()
        assert await inbox.next(5) is None


async def _never(owner: object, client_id: object) -> list[object]:
    raise AssertionError("the record is not asked for what is told here")


@requirement("store-away:every-route")
async def test_a_stream_stays_open_while_the_store_is_down(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its program could not begin another one."""
    client_calls, errors = office.log.client_calls, [StoreDown("The store is away.")] * 3

    async def away(owner: Owner, client_id: str) -> list[Call]:
        if errors:
            raise errors.pop()
        return await client_calls(owner, client_id)

    monkeypatch.setattr(inbox_module, "STORE_RETRY_SEC", 0.001)
    monkeypatch.setattr(office.log, "client_calls", away)
    await office.register("notes", "read")
    with office.inbox() as inbox:
        assert await inbox.next(0) == []
        call = await office.ask("client_notes_read")
        assert await inbox.next(5) == [OfferedCall(call)]
    assert errors == []


async def test_a_call_of_a_thread_that_cannot_be_read_keeps_no_other_from_the_client(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.register("notes", "read")
    await office.ask("client_notes_read", thread_id="bad")
    call = await office.ask("client_notes_read")
    load = office.store.load

    async def load_or_fail(owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        if thread_id == "bad":
            raise Unreadable("Row 1 of a thread's log cannot be read.")
        return await load(owner, thread_id, after=after)

    monkeypatch.setattr(office.store, "load", load_or_fail)
    office.log.forget(ANN, "bad")
    with office.inbox() as inbox:
        assert await inbox.next(5) == [OfferedCall(call)]
        assert await inbox.next(0.01) == []


@requirement("store-away:every-route")
@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_call_whose_take_was_not_confirmed_is_handed_out_once_it_is(
    office: Office, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    """And no other call is lost with it."""
    await office.register("notes", "read")
    first, second = await office.ask("client_notes_read"), await office.ask("client_notes_read")
    take, failed = office.desk.take, [first.call_id]

    async def in_doubt(owner: Owner, call_id: str, holder: str, *, instead_of: str | None = None) -> Receipt:
        if call_id not in failed:
            return await take(owner, call_id, holder, instead_of=instead_of)
        failed.remove(call_id)
        if is_stored:
            await take(owner, call_id, holder, instead_of=instead_of)
        raise StoreDown("The store is away.")

    monkeypatch.setattr(inbox_module, "STORE_RETRY_SEC", 0.001)
    monkeypatch.setattr(office.desk, "take", in_doubt)
    with office.inbox() as inbox:
        assert await inbox.next(5) == [OfferedCall(second)]
        # not only after a silence
        async with asyncio.timeout(10):
            items = await inbox.next(60)
        assert items is not None
        [offered] = items
        assert isinstance(offered, OfferedCall)
        assert (offered.call.call_id, offered.again) == (first.call_id, False)
