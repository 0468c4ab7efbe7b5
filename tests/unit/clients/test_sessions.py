"""Clients that connect and leave, also when another worker is faster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from farhand.clients.inbox import ClientStream
from farhand.clients.registration import Registration
from farhand.core.call import Call
from farhand.core.client import with_tools
from farhand.core.event import ClientRegistered, ClientUnregistered
from farhand.core.outcome import Cancelled, Failure, Success
from farhand.core.result import Result
from farhand.errors import Malformed, NameTaken, StoreDown
from farhand.eventlog.feed import FeedReader
from tests.requirement import requirement
from tests.unit.clients.client_harness import ANN, Office, comes_true


async def _gone(office: Office) -> None:
    async def is_so() -> bool:
        return not office.registry.tools(ANN)

    await comes_true(is_so)


@requirement("client-tools:restart")
async def test_a_registration_that_was_changed_elsewhere_is_changed_on_top_of_that(office: Office) -> None:
    await office.register("notes", "read")
    [stored] = await office.clients()
    other = with_tools(stored, [])
    assert await office.store.clients.put(other) == "put"
    await office.register("notes", "search")
    [after] = await office.clients()
    assert [tool.name for tool in after.tools] == ["client_notes_read", "client_notes_search"]
    assert after.version == stored.version + 2


@requirement("client-tools:unregister")
async def test_an_unregistration_sees_what_was_changed_elsewhere(office: Office) -> None:
    await office.register("notes", "read", "search")
    [stored] = await office.clients()
    assert await office.store.clients.put(with_tools(stored, [])) == "put"
    assert await office.sessions.unregister(ANN, "notes", ["read"]) == ["client_notes_read"]
    [after] = await office.clients()
    assert await office.store.clients.drop(after) == "dropped"
    assert await office.sessions.unregister(ANN, "notes", None) == []
    assert office.registry.tools(ANN) == []


async def test_a_result_that_was_faster_than_a_withdrawal_is_kept(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.register("notes", "read")
    call, other = await office.ask("client_notes_read"), await office.ask("client_notes_read")
    give_up = office.desk.give_up

    async def late(calls: Iterable[Call], error: str) -> int:
        await office.desk.settle(ANN, Result(call_id=call.call_id, outcome=Success("in time")))
        return await give_up(calls, error)

    monkeypatch.setattr(office.desk, "give_up", late)
    await office.sessions.unregister(ANN, "notes", None)
    assert (await office.stored(call)).outcome == Success("in time")
    assert (await office.stored(other)).outcome == Failure("the client unregistered this tool")


@requirement("client-tools:unregister")
async def test_only_calls_of_withdrawn_tools_fail_and_what_waits_for_an_approval_is_cancelled(
    office: Office,
) -> None:
    await office.register("notes", "read", "search")
    gone, kept = await office.ask("client_notes_read"), await office.ask("client_notes_search")
    asking = await office.ask("client_notes_read", needs_approval=True)
    await office.sessions.unregister(ANN, "notes", ["read"])
    assert (await office.stored(gone)).outcome == Failure("the client unregistered this tool")
    assert (await office.stored(asking)).outcome == Cancelled("the client unregistered this tool")
    assert (await office.stored(kept)).outcome is None


async def test_coming_and_leaving_is_told_in_the_same_transaction(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(office.log, "add_notice", None)
    with FeedReader(office.log, ANN, after=0) as reader:
        await office.register("notes", "read")
        came = await reader.next(5)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(reader.next(5))
            await asyncio.sleep(0)
            await office.sessions.unregister(ANN, "notes", None)
    assert [news.event for news in (*(came or ()), *(waiting.result() or ()))] == [
        ClientRegistered("notes", ("client_notes_read",)),
        ClientUnregistered("notes", ("client_notes_read",), "the client unregistered this tool"),
    ]


@requirement("client-tools:no-ambiguity")
async def test_a_name_that_another_client_took_elsewhere_is_refused(office: Office) -> None:
    elsewhere = Office(office.store, office.clock)
    await elsewhere.register("a", "b_c")
    with pytest.raises(NameTaken):
        await office.register("a_b", "c")
    assert office.registry.tools(ANN) == []


@pytest.mark.parametrize("grace", [-0.1, 86_400.1, float("nan"), float("inf")])
async def test_a_grace_that_can_not_be_is_refused(office: Office, grace: float) -> None:
    with pytest.raises(Malformed, match="graceSec"):
        await office.sessions.register(ANN, Registration("notes", (), grace))


@requirement("client-tools:grace")
async def test_who_stays_away_is_dismissed_and_who_came_back_is_not(office: Office) -> None:
    async with office.kept():
        await office.register("notes", "read")
        async with office.sessions.listen(ClientStream(ANN, "notes", "notes")):
            await office.sessions.dismiss((ANN, "notes"))
            assert len(office.registry.tools(ANN)) == 1
        await _gone(office)
    assert await office.clients() == []


@requirement("client-tools:grace")
async def test_a_dismissal_that_the_store_could_not_write_is_tried_again(
    office: Office, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("farhand.clients.reaper.RETRY_SEC", 0.01)
    dismiss = office.sessions.dismiss
    refused = 0

    async def away(key: object) -> None:
        nonlocal refused
        refused += 1
        if refused < 3:
            raise StoreDown("The disk is full.")
        # the sessions's own argument
        await dismiss(key)  # type: ignore[arg-type]

    monkeypatch.setattr(office.sessions, "dismiss", away)
    async with office.kept():
        await office.register("notes", "read")
        await _gone(office)
    assert refused == 3
    assert caplog.records == [], "the store logs its outages"
