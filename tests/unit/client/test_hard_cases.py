"""The SDK under difficult conditions: odd titles, many progress reports, handlers that do not end, bad
settings."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from farhand.client import Client, current
from farhand.client.executor import CLIENT_STOPPED
from farhand.core.event import CallProgressed
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.errors import BadSetting
from tests.unit.client.relay import relayed
from tests.unit.client.served_clients import call, eventually, house, port_of, running
from tests.unit.client.test_client import notes, with_echo


@pytest.mark.parametrize(
    ("title", "metadata"),
    [
        ("long " * 100, None),
        ("\ud800", None),
        (None, {"a": object()}),
        (None, {"a": "x" * 20_000}),
        (None, ["no", "object"]),
        (7, {1: 2}),
    ],
)
async def test_a_title_or_metadata_that_the_wire_does_not_take_costs_no_result(
    title: object, metadata: object
) -> None:
    async with house() as server:
        client = with_echo(notes(server))

        @client.tool
        def adorned(text: str) -> str:
            """Say it with a title.

            Args:
                text: What to say.
            """
            # whatever a handler may get wrong
            current().title = title  # type: ignore[assignment]
            current().metadata = metadata  # type: ignore[assignment]
            return text

        async with running(client):
            assert await call(server, "adorned", {"text": "hey"}) == Success("hey")
            assert await call(server, "echo", {"text": "still here"}) == Success("still here")


async def test_people_who_watch_hear_how_far_a_call_is() -> None:
    async with house() as server:
        client = notes(server)
        seen = asyncio.Event()

        @client.tool
        async def slow(text: str) -> str:
            """Take a while.

            Args:
                text: What to say.
            """
            current().progress("half of it")
            await seen.wait()
            return text

        async def progress() -> list[CallProgressed]:
            page = await server.service.log.feed(LOCAL, after=0, limit=100)
            return [news.event for news in page if isinstance(news.event, CallProgressed)]

        async with running(client), asyncio.TaskGroup() as group:
            outcome = group.create_task(call(server, "slow", {"text": "all"}))
            [report] = await eventually(progress)
            assert (report.tool, report.text) == ("client_notes_slow", "half of it")
            seen.set()
            assert await outcome == Success("all")


async def test_a_handler_that_talks_without_end_is_told_on_now_and_then() -> None:
    async with house() as server:
        client = notes(server)

        @client.tool
        def chatty(text: str) -> str:
            """Talk.

            Args:
                text: What to say.
            """
            for number in range(5_000):
                current().progress(f"{number}")
            return text

        async with running(client):
            assert await call(server, "chatty", {"text": "done"}) == Success("done")
        page = await server.service.log.feed(LOCAL, after=0, limit=1_000)
        assert len([news for news in page if isinstance(news.event, CallProgressed)]) < 50


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8787", "ftp://here", "http://", "http://[::1", "http://a:99999"]
)
def test_an_address_that_is_none_is_reported_at_once(url: str) -> None:
    with pytest.raises(BadSetting, match="not the address of a server"):
        Client(url, "notes")


@pytest.mark.parametrize("token", ["line\n", " blank", "gr\u00fcn"])
def test_a_token_that_no_header_can_carry_is_reported_at_once(token: str) -> None:
    with pytest.raises(BadSetting, match="token"):
        Client("http://127.0.0.1:1", "notes", token=token)


@pytest.mark.parametrize("grace_sec", [-1, 86_401, float("nan")])
def test_a_grace_that_the_server_would_refuse_is_reported_at_once(grace_sec: float) -> None:
    with pytest.raises(BadSetting, match="grace_sec"):
        Client("http://127.0.0.1:1", "notes", grace_sec=grace_sec)


async def test_a_client_is_stopped_from_another_thread() -> None:
    async with house() as server:
        client = with_echo(notes(server))
        async with asyncio.TaskGroup() as group:
            run = group.create_task(client.run())
            await client.connected.wait()
            await asyncio.to_thread(client.stop)
            async with asyncio.timeout(5):
                await run


async def test_a_handler_that_swallows_its_cancellation_holds_up_nobody() -> None:
    async with house() as server:
        client = notes(server, finish_within=0.0)
        begun, let_go = asyncio.Event(), asyncio.Event()

        @client.tool
        async def stubborn(text: str) -> str:
            """Go on whatever happens.

            Args:
                text: Whatever.
            """
            begun.set()
            while not let_go.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await let_go.wait()
            return text

        async with asyncio.TaskGroup() as group:
            run = group.create_task(client.run())
            await client.connected.wait()
            outcome = group.create_task(call(server, "stubborn", {"text": "a"}))
            await begun.wait()
            client.stop()
            await run
            assert await outcome == CLIENT_STOPPED
            let_go.set()


async def test_what_was_done_is_the_last_word_of_a_client_that_stops() -> None:
    async with house() as server, relayed(port_of(server.url)) as relay:
        client = Client(relay.url, "notes", token=server.token, finish_within=0.0)
        begun, may_end = asyncio.Event(), asyncio.Event()

        @client.tool
        async def work(text: str) -> str:
            """Do it.

            Args:
                text: What to say.
            """
            begun.set()
            await may_end.wait()
            return text

        async with asyncio.TaskGroup() as group:
            run = group.create_task(client.run())
            await client.connected.wait()
            outcome = group.create_task(call(server, "work", {"text": "it is done"}))
            await begun.wait()
            await relay.down()
            may_end.set()
            # the handler has ended and its answer found no server
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            client.stop()
            await relay.up()
            await run
            assert await outcome == Success("it is done")
