"""Registrations of clients, and the entries about them in the owner's feed."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from farhand.core.client import Client, tool_name, with_tools, without_tools
from farhand.core.tool import Executor, Tool
from farhand.testing.store_laws.fixture import ANN, BOB, Laws, StoreFixture


class ClientLaws(Laws):
    async def test_a_registration_is_kept_as_it_was_made(self) -> None:
        async with self.opened() as fixture:
            client = new_client(fixture, "notes", "read", "search")
            theirs = replace(client, owner=BOB)
            assert await fixture.store.clients.put(client) == "put"
            assert await fixture.store.clients.put(theirs) == "put"
            assert await fixture.store.clients.all(ANN) == [client]
            assert await fixture.store.clients.all(BOB) == [theirs]
            assert len(await fixture.store.clients.all()) == 2

    async def test_a_registration_is_replaced_only_by_the_version_after_it(self) -> None:
        async with self.opened() as fixture:
            clients = fixture.store.clients
            first = new_client(fixture, "notes", "read")
            assert await clients.put(replace(first, version=2)) == "moved"
            assert await clients.all() == []
            assert await clients.put(first) == "put"
            second = with_tools(first, [new_tool("notes", "search")])
            assert await clients.put(first) == "moved"
            assert await clients.put(replace(second, version=3)) == "moved"
            assert await clients.put(second) == "put"
            assert await clients.put(second) == "moved"
            assert await clients.all() == [second]

    async def test_of_many_registrations_at_once_one_wins(self) -> None:
        async with self.opened() as fixture:
            client = new_client(fixture, "notes", "read")
            answers = await asyncio.gather(
                *(fixture.store.clients.put(replace(client, holder=f"h{no}")) for no in range(10))
            )
            assert sorted(answers) == ["moved"] * 9 + ["put"]
            [stored] = await fixture.store.clients.all()
            assert stored.holder == f"h{answers.index('put')}"

    async def test_two_clients_of_an_owner_never_have_a_tool_of_the_same_name(self) -> None:
        async with self.opened() as fixture:
            clients = fixture.store.clients
            assert await clients.put(new_client(fixture, "a", "b_c")) == "put"
            same_name = new_client(fixture, "a_b", "c")
            assert await clients.put(same_name, b"registered") == "name_taken"
            assert await fixture.store.feed_span(ANN) == (1, 0)
            assert await clients.put(replace(same_name, owner=BOB)) == "put"
            assert len(await clients.all()) == 2

    async def test_a_client_may_keep_the_names_it_has(self) -> None:
        async with self.opened() as fixture:
            first = new_client(fixture, "notes", "read", "search")
            assert await fixture.store.clients.put(first) == "put"
            fewer = without_tools(first, [tool_name("notes", "read")])
            assert await fixture.store.clients.put(fewer) == "put"
            [kept] = await fixture.store.clients.all()
            assert [tool.name for tool in kept.tools] == ["client_notes_search"]

    async def test_only_the_version_that_is_there_can_be_dropped(self) -> None:
        async with self.opened() as fixture:
            clients = fixture.store.clients
            client = new_client(fixture, "notes", "read")
            assert await clients.drop(client) == "moved"
            assert await clients.put(client) == "put"
            assert await clients.drop(replace(client, version=2), b"left") == "moved"
            assert await clients.drop(replace(client, owner=BOB), b"left") == "moved"
            assert await fixture.store.feed_span(ANN) == (1, 0)
            assert await clients.drop(client) == "dropped"
            assert await clients.all() == []
            # the next one starts from the first version
            assert await clients.put(client) == "put"

    async def test_one_without_a_stream_is_away(self) -> None:
        async with self.opened() as fixture:
            client = new_client(fixture, "notes", "read")
            assert await fixture.store.clients.put(client) == "put"
            assert await fixture.store.clients.drop(client, if_away=True) == "dropped"

    async def test_the_owners_feed_has_an_entry_for_each_change_and_nothing_else(self) -> None:
        async with self.opened() as fixture:
            clients = fixture.store.clients
            client = new_client(fixture, "notes", "read")
            assert await clients.put(client, b"came") == "put"
            assert await clients.put(client, b"came again") == "moved"
            assert await clients.put(replace(client, version=2)) == "put"
            assert await clients.drop(replace(client, version=2), b"left") == "dropped"
            feed = await fixture.store.feed(ANN, after=0, limit=9)
            assert [(row.no, row.count, row.body, row.thread_id) for row in feed] == [
                (1, 1, b"came", None),
                (2, 1, b"left", None),
            ]
            assert await fixture.store.feed(BOB, after=0, limit=9) == []


def new_tool(client_id: str, tool_id: str) -> Tool:
    return Tool(
        name=tool_name(client_id, tool_id),
        description=f"Can {tool_id}.",
        input_schema={"type": "object"},
        executor=Executor.CLIENT,
        client_id=client_id,
    )


def new_client(fixture: StoreFixture, client_id: str, *tool_ids: str) -> Client:
    return Client(
        owner=ANN,
        client_id=client_id,
        tools=tuple(new_tool(client_id, tool_id) for tool_id in tool_ids),
        grace_sec=5.0,
        registered_at=fixture.clock.now(),
    )
