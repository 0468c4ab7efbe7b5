"""A program that leaves while another one takes over as the same client."""

from __future__ import annotations

from farhand.clients.inbox import ClientStream, OfferedCall
from farhand.core.outcome import Failure
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.clients.client_harness import ANN, Office

OLD, NEW = "notes.old", "notes.new"
READ = "client_notes_read"


def as_notes(holder: str) -> ClientStream:
    return ClientStream(ANN, "notes", holder)


async def test_who_leaves_fails_no_call_that_its_successor_was_handed(office: Office) -> None:
    await office.register("notes", "read", holder=OLD)
    async with office.sessions.listen(as_notes(OLD)):
        await office.register("notes", "read", holder=NEW)
        async with office.sessions.listen(as_notes(NEW)) as inbox:
            call = await office.ask(READ)
            assert await inbox.next(5.0) == [OfferedCall(call)]
            assert await office.sessions.unregister(ANN, "notes", None, by=OLD) == []
            assert (await office.stored(call)).outcome is None
            assert [tool.name for tool in office.registry.tools(ANN)] == [READ]
            assert await office.sessions.unregister(ANN, "notes", None, by=NEW) == [READ]
    assert (await office.stored(call)).outcome == Failure("the client unregistered this tool")


async def test_a_successor_that_has_no_stream_yet_keeps_its_tools(office: Office) -> None:
    await office.register("notes", "read", holder=OLD)
    await office.register("notes", "read", holder=NEW)
    assert await office.sessions.unregister(ANN, "notes", None, by=OLD) == []
    assert [tool.name for tool in office.registry.tools(ANN)] == [READ]


async def test_who_registers_again_without_knowing_that_it_was_succeeded_is_not_the_client(
    office: Office,
) -> None:
    await office.register("notes", "read", holder=OLD)
    await office.register("notes", "read", holder=NEW)
    await office.register("notes", "read", holder=OLD)
    assert await office.sessions.unregister(ANN, "notes", None, by=OLD) == []
    async with office.sessions.listen(as_notes(OLD)):
        # the newest stream wins, whoever was there first
        assert await office.sessions.unregister(ANN, "notes", None, by=NEW) == []
        assert await office.sessions.unregister(ANN, "notes", None, by=OLD) == [READ]


async def test_a_stream_alone_makes_a_program_the_client(office: Office) -> None:
    await office.register("notes", "read", holder=OLD)
    async with office.sessions.listen(as_notes(NEW)):
        assert await office.sessions.unregister(ANN, "notes", None, by=OLD) == []


async def test_who_leaves_at_a_worker_that_has_not_heard_of_its_successor_takes_nothing_along(
    office: Office,
) -> None:
    elsewhere = Office(office.store, FakeClock(seed="elsewhere"))
    await office.register("notes", "read", holder=OLD)
    await elsewhere.registry.load()
    await elsewhere.register("notes", "read", holder=NEW)
    [known] = office.registry.clients(ANN)
    assert known.holder == OLD
    assert await office.sessions.unregister(ANN, "notes", None, by=OLD) == []
    assert [client.holder for client in await office.clients()] == [NEW]


@requirement("client-tools:unregister")
async def test_whoever_names_no_program_unregisters_in_any_case(office: Office) -> None:
    await office.register("notes", "read", holder=NEW)
    assert await office.sessions.unregister(ANN, "notes", None) == [READ]
