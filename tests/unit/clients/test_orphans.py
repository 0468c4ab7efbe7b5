"""Calls whose tool no client offers fail, however they came about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import pytest

from farhand.clients import cluster, reaper
from farhand.clients.presence import ClientKey
from farhand.core.call import Call
from farhand.core.event import CallSettled, ClientUnregistered
from farhand.core.outcome import Cancelled, Failure
from farhand.errors import StoreDown, Unreadable
from farhand.eventlog.pubsub import CLIENT_CALLS
from farhand.store.base import Store
from farhand.testing.clock import FakeClock
from tests.requirement import requirement
from tests.unit.clients.client_harness import ANN, PATIENT, Office, comes_true

READ = "client_notes_read"
UNREGISTERED = "the client unregistered this tool"
DISCONNECTED = "client disconnected"


@pytest.fixture
def office(store: Store, clock: FakeClock) -> Office:
    return Office(store, clock, settings=PATIENT)


class Killed(BaseException):
    """As if the process were gone."""


def refusing(error: BaseException) -> Callable[..., object]:
    async def refuse(calls: Iterable[Call], why: str) -> int:
        raise error

    return refuse


async def kill_between(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools are withdrawn, and the process stops before their calls have failed."""
    office.clock.advance(1)
    with monkeypatch.context() as patch:
        patch.setattr(office.desk, "give_up", refusing(Killed()))
        with pytest.raises(Killed):
            await office.sessions.unregister(ANN, "notes", None)


@requirement("client-tools:unregister")
async def test_calls_that_a_killed_process_left_open_fail_at_the_next_start(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.register("notes", "read", "search")
    await office.register("mail", "send")
    calls = [await office.ask(READ), await office.ask("client_notes_search")]
    taken = await office.ask(READ)
    await office.desk.take(ANN, taken.call_id, "notes")
    asking = await office.ask(READ, needs_approval=True)
    kept = await office.ask("client_mail_send")
    await kill_between(office, monkeypatch)
    assert [client.client_id for client in await office.clients()] == ["mail"]
    assert [(await office.stored(call)).outcome for call in calls] == [None, None]
    again = Office(office.store, office.clock, settings=PATIENT)
    async with again.kept():
        for call in (*calls, taken):
            assert (await again.ended(call)).outcome == Failure(UNREGISTERED)
        assert (await again.ended(asking)).outcome == Cancelled(UNREGISTERED)
    assert (await again.stored(kept)).outcome is None


@requirement("client-tools:unregister")
async def test_the_feed_has_a_withdrawal_before_the_ends_of_its_calls_also_after_a_kill(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.register("notes", "read")
    call = await office.ask(READ)
    await kill_between(office, monkeypatch)
    again = Office(office.store, office.clock, settings=PATIENT)
    async with again.kept():
        await again.ended(call)
    events = [news.event for news in await again.log.feed(ANN)]
    ends = [event for event in events if isinstance(event, ClientUnregistered | CallSettled)]
    assert [type(event) for event in ends] == [ClientUnregistered, CallSettled]


@requirement("client-tools:unregister")
async def test_a_withdrawal_whose_calls_the_store_refused_is_completed_without_being_asked_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "RETRY_SEC", 0.01)
    await office.register("notes", "read")
    await office.register("mail", "send")
    call = await office.ask(READ)
    office.clock.advance(1)
    async with office.kept():
        with monkeypatch.context() as patch:
            patch.setattr(office.desk, "give_up", refusing(StoreDown("The disk is full.")))
            assert await office.sessions.unregister(ANN, "notes", None) == [READ]
            assert (await office.stored(call)).outcome is None
        assert (await office.ended(call)).outcome == Failure(UNREGISTERED)


@requirement("client-tools:unregister")
async def test_a_withdrawal_whose_request_is_cancelled_fails_its_calls_anyway(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.register("notes", "read")
    call = await office.ask(READ)
    office.clock.advance(1)
    reached = asyncio.Event()
    give_up = office.desk.give_up

    async def hang_once(calls: Iterable[Call], why: str) -> int:
        if not reached.is_set():
            reached.set()
            await asyncio.Event().wait()
        return await give_up(calls, why)

    monkeypatch.setattr(office.desk, "give_up", hang_once)
    async with office.kept():
        async with asyncio.TaskGroup() as group:
            leaving = group.create_task(office.sessions.unregister(ANN, "notes", None))
            await reached.wait()
            leaving.cancel()
        assert (await office.ended(call)).outcome == Failure(UNREGISTERED)


async def test_a_call_that_is_opened_while_its_tool_leaves_fails_at_once(office: Office) -> None:
    await office.register("notes", "read")
    [client] = office.registry.clients(ANN)
    async with office.kept():
        await office.sessions.unregister(ANN, "notes", None)
        # as whoever looked the tool up the moment before
        office.registry.keep(client)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(office.ask(READ))
            await asyncio.sleep(0)
            office.registry.forget(client)
        assert (await office.ended(asking.result())).outcome == Failure(DISCONNECTED)


async def test_a_call_for_nobody_fails_once_the_store_is_back(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "RETRY_SEC", 0.01)
    refused: list[str] = []
    give_up = office.desk.give_up

    async def away_twice(calls: Iterable[Call], error: str) -> int:
        if len(refused) < 2:
            refused.append(error)
            raise StoreDown("The disk is full.")
        return await give_up(calls, error)

    monkeypatch.setattr(office.desk, "give_up", away_twice)
    await _orphan_fails(office)
    assert refused == [DISCONNECTED] * 2


async def test_background_work_that_crashes_is_started_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = [OSError("a mistake of ours")] * 2
    give_up = office.desk.give_up

    async def crashing(calls: Iterable[Call], error: str) -> int:
        if crashes:
            raise crashes.pop()
        return await give_up(calls, error)

    monkeypatch.setattr(cluster, "POLL_SEC", 0.0)
    monkeypatch.setattr(office.desk, "give_up", crashing)
    await _orphan_fails(office)
    assert crashes == []


async def test_an_absent_client_is_removed_although_the_check_has_crashed(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(store, clock)
    crashes = [OSError("a mistake of ours")]
    dismiss = office.sessions.dismiss

    async def crashing(key: ClientKey) -> None:
        if crashes:
            raise crashes.pop()
        await dismiss(key)

    monkeypatch.setattr(cluster, "POLL_SEC", 0.0)
    monkeypatch.setattr(office.sessions, "dismiss", crashing)
    await office.register("notes", "read")

    async def is_removed() -> bool:
        return not await office.clients()

    async with office.kept():
        await comes_true(is_removed)
    assert crashes == []


async def test_a_call_whose_thread_cannot_be_read_is_left_to_its_deadline_and_hides_no_other(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.register("notes", "read")
    bad, good = await office.ask(READ), await office.ask(READ)
    await kill_between(office, monkeypatch)
    again = Office(office.store, office.clock, settings=PATIENT)
    give_up = again.desk.give_up

    async def damaged(calls: Iterable[Call], error: str) -> int:
        listed = list(calls)
        if bad.call_id in [call.call_id for call in listed]:
            raise Unreadable("A row of the log makes no sense.")
        return await give_up(listed, error)

    monkeypatch.setattr(again.desk, "give_up", damaged)
    async with again.kept():
        assert (await again.ended(good)).outcome == Failure(UNREGISTERED)
        assert not again.sessions.has_orphans.is_set()
    assert (await again.stored(bad)).outcome is None


async def test_in_a_shared_store_every_worker_looks_now_and_then(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "ORPHANS_SEC", 0.01)
    monkeypatch.setattr(office.store, "is_shared", True)
    await office.register("notes", "read")
    call = await office.ask(READ)
    other = Office(office.store, office.clock, settings=PATIENT)
    monkeypatch.setattr(other.sessions, "grace", lambda client: 1_000.0)
    async with other.kept():

        async def knows() -> bool:
            return len(other.registry.tools(ANN)) == 1

        await comes_true(knows)
        await kill_between(office, monkeypatch)
        # what it hears of the change, where processes share a store
        await other.sessions.refresh(ANN)
        assert (await other.ended(call)).outcome == Failure(UNREGISTERED)


async def _orphan_fails(office: Office) -> None:
    """A call is opened at the moment its tool is withdrawn."""
    await office.register("notes", "read")
    async with office.kept():
        call = await office.ask(READ)
        [client] = office.registry.clients(ANN)
        office.registry.forget(client)
        office.log.broker.publish(CLIENT_CALLS, call)
        assert (await office.ended(call)).outcome == Failure(DISCONNECTED)
