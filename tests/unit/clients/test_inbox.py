"""The calls a client may take: each handed out once on a stream, and again on the next one."""

from __future__ import annotations

import asyncio

import pytest

from farhand.clients.inbox import Ended, Offered, Superseded
from farhand.core.call import Phase
from farhand.core.outcome import Success
from farhand.core.result import Accepted, Result
from farhand.store.hub import asked_of
from tests.requirement import requirement
from tests.unit.clients.office import ANN, Office, names


@requirement("client-tools:request")
async def test_a_call_is_taken_before_it_is_handed_out_and_told_when_it_ends(office: Office) -> None:
    await office.register("notes", "read")
    with office.inbox() as inbox:
        call = await office.ask("client_notes_read")
        assert await inbox.next(5) == [Offered(call)]
        assert (await office.stored(call)).phase is Phase.TAKEN
        await office.desk.settle(ANN, Result(call_id=call.call_id, outcome=Success(1)))
        assert await inbox.next(5) == [Ended(await office.stored(call))]
        assert await inbox.next(0.01) == []


@requirement("client-tools:delivery")
async def test_what_is_open_is_handed_out_again_on_the_next_stream(office: Office) -> None:
    await office.register("notes", "read")
    call = await office.ask("client_notes_read")
    for _ in range(2):
        with office.inbox() as inbox:
            items = await inbox.next(5)
            assert items is not None
            [offered] = items
            assert isinstance(offered, Offered)
            assert (offered.call.call_id, offered.again) == (call.call_id, False)


@requirement("client-tools:again")
async def test_what_another_program_had_is_marked(office: Office) -> None:
    await office.register("notes", "read")
    await office.ask("client_notes_read")
    with office.inbox(holder="notes.one") as inbox:
        await inbox.next(5)
    with office.inbox(holder="notes.two") as inbox:
        items = await inbox.next(5)
        assert items is not None
        assert isinstance(items[0], Offered)
        assert items[0].again


@requirement("client-tools:delivery")
async def test_news_that_were_lost_are_read_from_the_record(office: Office) -> None:
    await office.register("notes", "read")
    with office.inbox() as inbox:
        first = await office.ask("client_notes_read")
        assert names(await inbox.next(5)) == ["Offered"]
        second = await office.ask("client_notes_read")
        await office.desk.settle(ANN, Result(call_id=first.call_id, outcome=Success(1)))
        for _ in range(2_000):
            office.store.hub.tell(asked_of(ANN, "notes"), first)
        assert await inbox.next(5) == [Ended(await office.stored(first)), Offered(second)]


@requirement("client-tools:delivery")
async def test_a_lost_notification_costs_a_look_at_the_record(office: Office) -> None:
    office.store.hub.recheck = 0.01
    await office.register("notes", "read")
    with office.inbox() as inbox:
        assert await inbox.next(0.01) == []
        watchers = office.store.hub.watches.pop(asked_of(ANN, "notes"))
        call = await office.ask("client_notes_read")
        office.store.hub.watches[asked_of(ANN, "notes")] = watchers
        assert await inbox.next(5) == [Offered(call)]


@requirement("client-tools:run-here")
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
        assert isinstance(items[0], Offered)
        # whether the tab has begun is not known
        assert (items[0].call.call_id, items[0].again) == (call.call_id, True)


@requirement("client-tools:newest-wins")
async def test_a_superseded_inbox_says_so_and_ends(office: Office) -> None:
    with office.inbox() as inbox, office.inbox():
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(inbox.next(5))
            await asyncio.sleep(0)
            inbox.supersede()
        assert waiting.result() == [Superseded()]
        assert await inbox.next(5) is None


@requirement("client-tools:delivery")
async def test_who_leaves_or_whose_server_stops_waits_no_longer(office: Office) -> None:
    with office.inbox() as inbox:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(inbox.next(5))
            await asyncio.sleep(0)
            inbox.leave()
        assert waiting.result() is None
    with office.inbox() as inbox:
        office.store.hub.close()
        assert await inbox.next(5) is None
