"""The SDK when the connection breaks: it reconnects, registers again, and no call is lost or run twice."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from farhand.client import Client, current
from farhand.client.connection import ServerConnection
from farhand.core.outcome import Failure, Success
from farhand.core.principal import LOCAL
from farhand.core.result import Result
from tests.faces.client_tools.program import Program
from tests.faces.served import Served
from tests.requirement import requirement
from tests.unit.client.relay import Relay, relayed
from tests.unit.client.served_clients import call, eventually, house, port_of, running


@requirement("client:once")
async def test_a_cut_stream_is_opened_again_and_the_handler_that_runs_continues() -> None:
    async with house() as server, relayed(port_of(server.url)) as relay:
        client = Client(relay.url, "notes", token=server.token)
        runs: Counter[str] = Counter()
        started, go_on = asyncio.Event(), asyncio.Event()

        @client.tool
        async def slow(text: str) -> str:
            """Be slow.

            Args:
                text: Whatever.
            """
            runs[text] += 1
            started.set()
            await go_on.wait()
            return text

        async with running(client), asyncio.TaskGroup() as group:
            outcome = group.create_task(call(server, "slow", {"text": "a"}))
            await started.wait()
            for _ in range(3):
                before = relay.connections
                relay.cut()
                await _came_back(relay, before)
                await client.connected.wait()
            go_on.set()
            assert await outcome == Success("a")
    assert runs == {"a": 1}


async def _came_back(relay: Relay, before: int) -> None:
    async def look() -> bool:
        return relay.connections > before

    await eventually(look)


async def _not(event: asyncio.Event) -> None:
    async def look() -> bool:
        return not event.is_set()

    await eventually(look)


@requirement("client:once")
async def test_an_answer_is_sent_until_its_receipt() -> None:
    async with house() as server, relayed(port_of(server.url)) as relay:
        client = Client(relay.url, "notes", token=server.token)
        started, go_on = asyncio.Event(), asyncio.Event()

        @client.tool
        async def slow(text: str) -> str:
            """Be slow.

            Args:
                text: Whatever.
            """
            started.set()
            await go_on.wait()
            return text

        async with running(client), asyncio.TaskGroup() as group:
            outcome = group.create_task(call(server, "slow", {"text": "a"}))
            await started.wait()
            await relay.down()
            go_on.set()
            await _not(client.connected)
            await relay.up()
            assert await outcome == Success("a")
            await client.connected.wait()


@requirement("client:once")
async def test_who_was_forgotten_registers_again() -> None:
    async with house(client_grace=0.0) as server, relayed(port_of(server.url)) as relay:
        client = Client(relay.url, "notes", token=server.token)

        @client.tool
        def echo(text: str) -> str:
            """Say it again.

            Args:
                text: What to say.
            """
            return text

        async with running(client):
            await relay.down()

            async def forgotten() -> bool:
                return not await Program(server.http).tools()

            await eventually(forgotten)
            await relay.up()
            await client.connected.wait()
            assert await call(server, "echo", {"text": "back"}) == Success("back")


@requirement("client:once")
async def test_a_client_that_is_started_first_waits_for_its_server() -> None:
    async with house() as server, relayed(port_of(server.url)) as relay:
        await relay.down()
        client = Client(relay.url, "notes", token=server.token)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await asyncio.sleep(0)
            await relay.up()
            await client.connected.wait()
            client.stop()


async def test_a_handler_whose_call_ended_while_the_line_was_down_stops_when_it_reports() -> None:
    async with house() as server, relayed(port_of(server.url)) as relay:
        client = Client(relay.url, "notes", token=server.token)
        started, ended = asyncio.Event(), asyncio.Event()

        @client.tool
        async def slow(text: str) -> str:
            """Be slow.

            Args:
                text: Whatever.
            """
            started.set()
            try:
                while True:
                    current().progress("still at it")
                    await asyncio.sleep(0.02)
            finally:
                ended.set()

        async with running(client):
            async with asyncio.TaskGroup() as group:
                outcome = group.create_task(call(server, "slow", {"text": "a"}))
                await started.wait()
                await relay.down()
                [lost] = await server.service.log.open_calls(LOCAL)
                await server.service.desk.settle(LOCAL, Result(call_id=lost.call_id, outcome=Success("hand")))
                assert await outcome == Success("hand")
            assert not ended.is_set()
            await relay.up()
            await ended.wait()


@pytest.mark.slow
async def test_a_client_ends_though_its_server_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farhand.client.client.LEAVE_WITHIN_SEC", 0.2)
    monkeypatch.setattr("farhand.client.executor.LAST_RESULT_SEC", 0.2)
    async with house() as server, relayed(port_of(server.url)) as relay:
        client = Client(relay.url, "notes", token=server.token, finish_within=0.1)
        started = asyncio.Event()

        @client.tool
        async def forever(text: str) -> str:
            """Never end.

            Args:
                text: Whatever.
            """
            started.set()
            await asyncio.Event().wait()
            return text

        async with asyncio.TaskGroup() as group:
            async with running(client) as run:
                outcome = group.create_task(call(server, "forever", {"text": "a"}))
                await started.wait()
                await relay.down()
                client.stop()
                await run
            await relay.up()
            await Program(server.http).unregister()
            assert await outcome == Failure("the client unregistered this tool")


async def test_tools_that_somebody_else_unregistered_are_offered_again_on_the_same_connection() -> None:
    async with house() as server, relayed(port_of(server.url)) as relay:
        client = _with_echo(relay, server)
        async with running(client):
            for _ in range(3):
                before = relay.connections
                assert (await Program(server.http).unregister()).json()["unregistered"]
                await eventually(Program(server.http).tools)
                assert await call(server, "echo", {"text": "still here"}) == Success("still here")
                assert client.connected.is_set()
                # its requests may take a connection of their own, its stream keeps the one it has
                assert relay.connections <= before + 1


async def test_tools_that_left_between_registration_and_stream_are_offered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with house() as server, relayed(port_of(server.url)) as relay:
        client = _with_echo(relay, server)
        register, left = ServerConnection.register, asyncio.Event()

        async def register_and_lose(
            link: ServerConnection, tools: list[dict[str, object]], grace: float | None
        ) -> None:
            await register(link, tools, grace)
            if not left.is_set():
                # as a program that was this client before does when it stops
                await Program(server.http).unregister()
                left.set()

        monkeypatch.setattr(ServerConnection, "register", register_and_lose)
        async with running(client):
            assert left.is_set()
            assert await call(server, "echo", {"text": "here"}) == Success("here")


def _with_echo(relay: Relay, server: Served) -> Client:
    client = Client(relay.url, "notes", token=server.token)

    @client.tool
    def echo(text: str) -> str:
        """Say it again.

        Args:
            text: What to say.
        """
        return text

    return client
