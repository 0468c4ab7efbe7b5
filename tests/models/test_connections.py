"""Connections to a provider, as its server sees them: cut with a cancelled answer, kept after a whole one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from farhand.core.thread import Text, UserMessage
from farhand.models.aiohttp_transport import AiohttpTransport
from farhand.models.base import ClosableModel, Model, Prompt, TextDelta
from farhand.models.openai import OpenAI, OpenAIChat
from farhand.models.scripted import Moment, Say, Step
from tests.models.stage import PROVIDERS, Provider, said

pytestmark = pytest.mark.usefixtures("http_client")
HELLO = Prompt([UserMessage("m1", (Text("hello"),))])
by_provider = pytest.mark.parametrize("provider", PROVIDERS[:3], ids=lambda provider: provider.name)


@by_provider
async def test_a_cancelled_answer_is_cut_at_the_provider(provider: Provider) -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def endless(moment: Moment) -> AsyncGenerator[Step, None]:
        try:
            yield Say(["Once ", "upon "])
            # silent from here on: only the connection tells that nobody listens any more
            await asyncio.Event().wait()
        finally:
            left.set()

    async def listen(model: Model) -> None:
        async for event in model.stream(HELLO):
            if isinstance(event, TextDelta):
                begun.set()

    async with provider.fake(endless) as fake:
        model = provider.model(fake)
        listening = asyncio.get_running_loop().create_task(listen(model))
        await begun.wait()
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        await left.wait()
        assert isinstance(model, ClosableModel)
        await model.close()


@by_provider
async def test_requests_go_through_the_chosen_client(
    provider: Provider, http_client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    handle = AiohttpTransport.handle_async_request

    async def noted(transport: AiohttpTransport, request: httpx2.Request) -> httpx2.Response:
        sent.append(request.method)
        return await handle(transport, request)

    monkeypatch.setattr(AiohttpTransport, "handle_async_request", noted)
    async with provider.fake(["Hi."]) as fake:
        await said(provider.model(fake), HELLO)
    assert sent == (["POST"] if http_client == "aiohttp" else [])


@asynccontextmanager
async def counting_server(
    answer: bytes, *, end: bytes = b"0\r\n\r\n"
) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that gives this answer to every request: its address, and the requests of each connection."""
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(connections)
        connections.append(0)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))
                connections[number] += 1
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
                writer.write(b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(answer), answer))
                await writer.drain()
                # the end of a response comes by itself, after all that was said
                await asyncio.sleep(0.01)
                writer.write(end)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", connections


CHAT = b'data: {"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
RESPONSE = b'data: {"type": "response.completed", "response": {"status": "completed"}}\n\n'


async def ask_twice(model: OpenAI | OpenAIChat) -> None:
    for _ in range(2):
        assert [event async for event in model.stream(HELLO)]
    await model.close()


async def test_the_connection_of_a_whole_answer_serves_the_next_request() -> None:
    async with counting_server(CHAT) as (url, connections):
        await ask_twice(OpenAIChat("m", base_url=url))
        assert connections == [2]
    async with counting_server(RESPONSE) as (url, connections):
        await ask_twice(OpenAI("m", api_key="key", base_url=url))
        assert connections == [2]


async def test_a_server_that_keeps_its_response_open_after_the_last_word_is_not_waited_for() -> None:
    async with counting_server(CHAT, end=b"") as (url, connections):
        await ask_twice(OpenAIChat("m", base_url=url))
        assert connections == [1, 1]
