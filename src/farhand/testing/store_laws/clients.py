"""Registrations of clients, what they are asked for, and calls that a program knows by an id of its own."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.call import Call, Request
from farhand.core.client import Client, tool_name, with_tools, without_tools
from farhand.core.principal import Owner
from farhand.core.tool import Executor, Tool
from farhand.store.base import DropClient, InsertCall, InsertRun, PutClient, SwapCall, WriteRun
from farhand.store.hub import CLIENT_CALLS, asked_of
from farhand.testing.store_laws.given import ANN, BOB, Given, Laws


class ClientLaws(Laws):
    async def test_a_registration_is_kept_as_it_was_made(self) -> None:
        async with self.given() as given:
            client = new_client(given, "notes", "read", "search")
            await given.write(PutClient(client))
            assert await given.store.clients() == [client]

    async def test_a_registration_is_replaced_only_by_the_version_after_it(self) -> None:
        async with self.given() as given:
            first = new_client(given, "notes", "read")
            await given.write(PutClient(first))
            second = with_tools(first, [new_tool("notes", "search")])
            assert await given.refuse(PutClient(first)) == "version"
            assert await given.refuse(PutClient(replace(second, version=3))) == "version"
            await given.write(PutClient(second))
            assert await given.refuse(PutClient(second)) == "version"
            assert await given.store.clients() == [second]

    async def test_a_first_registration_has_version_one(self) -> None:
        async with self.given() as given:
            late = replace(new_client(given, "notes", "read"), version=2)
            assert await given.refuse(PutClient(late)) == "version"
            assert await given.store.clients() == []

    async def test_two_clients_of_an_owner_never_have_a_tool_of_the_same_name(self) -> None:
        async with self.given() as given:
            await given.write(PutClient(new_client(given, "a", "b_c")))
            same_name = new_client(given, "a_b", "c")
            assert await given.refuse(PutClient(same_name)) == "exists"
            await given.write(PutClient(replace(same_name, owner=BOB)))
            assert len(await given.store.clients()) == 2

    async def test_a_client_may_keep_the_names_it_has(self) -> None:
        async with self.given() as given:
            first = new_client(given, "notes", "read", "search")
            await given.write(PutClient(first))
            await given.write(PutClient(without_tools(first, [tool_name("notes", "read")])))
            [kept] = await given.store.clients()
            assert [tool.name for tool in kept.tools] == ["client_notes_search"]

    async def test_only_the_version_that_is_there_can_be_dropped(self) -> None:
        async with self.given() as given:
            client = new_client(given, "notes", "read")
            assert await given.refuse(DropClient(client)) == "missing"
            await given.write(PutClient(client))
            assert await given.refuse(DropClient(replace(client, version=2))) == "version"
            assert await given.refuse(DropClient(replace(client, owner=BOB))) == "missing"
            await given.write(DropClient(client))
            assert await given.store.clients() == []

    async def test_a_refused_commit_registers_and_drops_nobody(self) -> None:
        async with self.given() as given:
            run = await given.run()
            stale = WriteRun(run_id=run.run_id, fence=9)
            client = new_client(given, "notes", "read")
            assert await given.refuse(PutClient(client), stale) == "fence"
            assert await given.store.clients() == []
            await given.write(PutClient(client))
            assert await given.refuse(DropClient(client), stale) == "fence"
            assert await given.store.clients() == [client]

    async def test_a_client_is_asked_for_its_own_open_calls_oldest_first(self) -> None:
        async with self.given() as given:
            run = await given.run()
            first, second = await asked(given, "notes"), await asked(given, "notes", run_id=run.run_id)
            await asked(given, "mail")
            await given.call(run)
            settled = await asked(given, "notes")
            await given.write(SwapCall(settled, given.settled(settled)))
            assert await given.store.client_calls(ANN, "notes") == [first, second]
            assert await given.store.client_calls(BOB, "notes") == []
            assert await given.store.client_calls(ANN, "nobody") == []

    async def test_watchers_of_a_client_hear_of_its_calls_when_they_open_and_when_they_move(self) -> None:
        async with self.given() as given:
            hub = given.store.hub
            with hub.watch(asked_of(ANN, "notes")) as one, hub.watch(CLIENT_CALLS) as every:
                call = await asked(given, "notes")
                other = await asked(given, "mail")
                settled = given.settled(call)
                await given.write(SwapCall(call, settled))
                await given.refuse(SwapCall(call, settled))
                await given.refuse(InsertCall(call))
                await given.call()
                assert list(one.news) == [call, settled]
                assert list(every.news) == [call, other, settled]

    async def test_a_call_is_found_by_the_id_its_program_gave_it(self) -> None:
        async with self.given() as given:
            call = await asked(given, "notes", request=Request("job-1", "m1"))
            assert await given.store.get_requested(ANN, "job-1") == call
            await given.write(SwapCall(call, given.settled(call)))
            assert await given.store.get_requested(ANN, "job-1") == await given.stored_call(call)
            assert await given.store.get_requested(BOB, "job-1") is None
            assert await given.store.get_requested(ANN, "job-2") is None

    async def test_a_program_uses_each_of_its_ids_once(self) -> None:
        async with self.given() as given:
            first = await asked(given, "notes", request=Request("job-1"))
            again = given.new_call(request=Request("job-1"))
            assert await given.refuse(InsertCall(again)) == "exists"
            assert await given.store.get_call(ANN, again.call_id) is None
            assert (
                await given.refuse(
                    InsertCall(given.new_call(request=Request("job-2"))),
                    InsertCall(given.new_call(request=Request("job-2"))),
                )
                == "exists"
            )
            await asked(given, "notes", request=Request("job-2"))
            await asked(given, "notes", request=Request(None, "m1"))
            await asked(given, "notes", request=Request(None, "m1"))
            await asked(given, "notes", request=Request("job-1"), owner=BOB)
            assert await given.store.get_requested(ANN, "job-1") == first

    async def test_an_id_of_a_program_goes_with_its_call(self) -> None:
        async with self.given() as given:
            call = await asked(given, "notes", request=Request("job-1"))
            await given.write(SwapCall(call, given.settled(call)))
            given.clock.advance(10)
            await given.store.purge(settled_before=given.clock.now())
            assert await given.store.get_requested(ANN, "job-1") is None
            await asked(given, "notes", request=Request("job-1"))

    async def test_a_call_keeps_its_client_and_its_request_through_every_move(self) -> None:
        async with self.given() as given:
            run = given.new_run("t9")
            await given.thread("t9")
            await given.write(InsertRun(run))
            call = await asked(given, "notes", request=Request("job-1", "m1"), run_id=run.run_id)
            await given.write(SwapCall(call, given.settled(call)))
            stored = await given.stored_call(call)
            assert (stored.client_id, stored.request) == ("notes", Request("job-1", "m1"))


def new_tool(client_id: str, tool_id: str) -> Tool:
    return Tool(
        name=tool_name(client_id, tool_id),
        description=f"Can {tool_id}.",
        input_schema={"type": "object"},
        executor=Executor.CLIENT,
        client_id=client_id,
    )


def new_client(given: Given, client_id: str, *tool_ids: str) -> Client:
    return Client(
        owner=ANN,
        client_id=client_id,
        tools=tuple(new_tool(client_id, tool_id) for tool_id in tool_ids),
        grace_sec=5.0,
        registered_at=given.clock.now(),
    )


async def asked(given: Given, client_id: str, owner: Owner = ANN, **changes: object) -> Call:
    """A call that waits for this client."""
    call = given.new_call(None, executor=Executor.CLIENT, client_id=client_id, owner=owner, **changes)
    await given.write(InsertCall(call))
    return call
