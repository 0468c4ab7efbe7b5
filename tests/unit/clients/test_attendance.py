"""Who comes and who leaves, also when somebody else was faster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from farhand.clients.inbox import Listener
from farhand.clients.registration import Registration
from farhand.core.client import with_tools
from farhand.core.event import ClientRegistered, ClientUnregistered
from farhand.core.outcome import Failure, Success
from farhand.core.result import Result
from farhand.errors import Malformed, NameTaken, StoreDown
from farhand.store.base import Commit, DropClient, PutClient, Write
from tests.requirement import requirement
from tests.unit.clients.office import ANN, Office


@asynccontextmanager
async def kept(office: Office) -> AsyncIterator[None]:
    await office.keeper.open()
    try:
        yield
    finally:
        await office.keeper.close()


async def _gone(office: Office) -> None:
    async with asyncio.timeout(10):
        for _ in range(1_000):
            if not office.roster.tools(ANN):
                return
            await asyncio.sleep(0.01)


@requirement("client-tools:restart")
async def test_a_registration_that_was_changed_elsewhere_is_changed_on_top_of_that(office: Office) -> None:
    await office.register("notes", "read")
    [stored] = await office.store.clients()
    other = with_tools(stored, [])
    await office.store.commit(PutClient(other))
    await office.register("notes", "search")
    [after] = await office.store.clients()
    assert [tool.name for tool in after.tools] == ["client_notes_read", "client_notes_search"]
    assert after.version == stored.version + 2


@requirement("client-tools:unregister")
async def test_an_unregistration_sees_what_was_changed_elsewhere(office: Office) -> None:
    await office.register("notes", "read", "search")
    [stored] = await office.store.clients()
    await office.store.commit(PutClient(with_tools(stored, [])))
    assert await office.attendance.unregister(ANN, "notes", ["read"]) == ["client_notes_read"]
    [after] = await office.store.clients()
    await office.store.commit(DropClient(after))
    assert await office.attendance.unregister(ANN, "notes", None) == []
    assert office.roster.tools(ANN) == []


@requirement("client-tools:one-outcome")
async def test_a_result_that_was_faster_than_a_farewell_is_kept(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.register("notes", "read")
    call, other = await office.ask("client_notes_read"), await office.ask("client_notes_read")
    give_up = office.desk.give_up
    tried = 0

    async def late(calls: object, error: str, *beside: Write) -> Commit:
        nonlocal tried
        tried += 1
        if tried == 1:
            await office.desk.settle(ANN, Result(call_id=call.call_id, outcome=Success("in time")))
        # the desk's own arguments
        return await give_up(calls, error, *beside)  # type: ignore[arg-type]

    monkeypatch.setattr(office.desk, "give_up", late)
    await office.attendance.unregister(ANN, "notes", None)
    assert (await office.stored(call)).outcome == Success("in time")
    assert (await office.stored(other)).outcome == Failure("the client unregistered this tool")
    assert tried == 2


@requirement("events:client-tools")
async def test_coming_and_leaving_is_told_in_the_same_transaction(office: Office) -> None:
    await office.register("notes", "read")
    await office.attendance.unregister(ANN, "notes", None)
    assert [news.event for news in await office.store.feed(ANN)] == [
        ClientRegistered("notes", ("client_notes_read",)),
        ClientUnregistered("notes", ("client_notes_read",), "the client unregistered this tool"),
    ]


@requirement("client-tools:no-ambiguity")
async def test_a_name_that_another_client_took_elsewhere_is_refused(office: Office) -> None:
    elsewhere = Office(office.store, office.clock)
    await elsewhere.register("a", "b_c")
    with pytest.raises(NameTaken):
        await office.register("a_b", "c")
    assert office.roster.tools(ANN) == []


@requirement("client-tools:errors")
@pytest.mark.parametrize("grace", [-0.1, 86_400.1, float("nan"), float("inf")])
async def test_a_grace_that_can_not_be_is_refused(office: Office, grace: float) -> None:
    with pytest.raises(Malformed, match="graceSec"):
        await office.attendance.register(ANN, Registration("notes", (), grace))


@requirement("client-tools:grace")
async def test_who_stays_away_is_dismissed_and_who_came_back_is_not(office: Office) -> None:
    async with kept(office):
        await office.register("notes", "read")
        async with office.attendance.listen(Listener(ANN, "notes", "notes")):
            await office.attendance.dismiss((ANN, "notes"))
            assert len(office.roster.tools(ANN)) == 1
        await _gone(office)
    assert await office.store.clients() == []


@requirement("client-tools:grace")
async def test_a_farewell_that_the_store_could_not_write_is_said_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.clients.keeper.AGAIN_SEC", 0.01)
    dismiss = office.attendance.dismiss
    refused = 0

    async def away(key: object) -> None:
        nonlocal refused
        refused += 1
        if refused < 3:
            raise StoreDown("The disk is full.")
        # the attendance's own argument
        await dismiss(key)  # type: ignore[arg-type]

    monkeypatch.setattr(office.attendance, "dismiss", away)
    async with kept(office):
        await office.register("notes", "read")
        await _gone(office)
    assert refused == 3


@requirement("client-tools:race")
async def test_a_call_for_nobody_is_left_to_its_deadline_when_the_store_is_away(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def away(*arguments: object) -> None:
        asked.set()
        raise StoreDown("The disk is full.")

    await office.register("notes", "read")
    tool = office.roster.get(ANN, "client_notes_read")
    assert tool is not None
    async with kept(office), asyncio.timeout(10):
        await asyncio.sleep(0)
        call = await office.ask("client_notes_read")
        monkeypatch.setattr(office.desk, "give_up", away)
        office.roster._tools.clear()
        office.store.hub.tell("client-calls", call)
        await asked.wait()
    assert (await office.stored(call)).outcome is None
