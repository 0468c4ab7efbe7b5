"""An outside program, written by hand against the wire: it registers, listens and answers as it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import httpx2

from farhand.agent.agent import Agent
from farhand.core.settings import Settings, Timeouts
from farhand.models.scripted import Ask, Moment, ScriptedModel, Step
from farhand.wire.sse import Event, Parser

# Any: bodies of a wire
Json = Any

T = TypeVar("T")
WITHIN_SEC = 20.0

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def a_tool(tool_id: str, **changes: Json) -> Json:
    return {"id": tool_id, "description": f"Can {tool_id}.", "parameters": TEXT, **changes}


def soon(**timeouts: float) -> Settings:
    """A server whose graces are short enough for a test."""
    return Settings(timeouts=Timeouts(**{"client_grace": 1.0, "client_first": 1.0, **timeouts}))


async def eventually(look: Callable[[], Awaitable[T]]) -> T:
    """What `look` finds, once it finds something."""
    for _ in range(2_000):
        found = await look()
        if found:
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


class Stream:
    """One open stream of requests."""

    def __init__(self, response: httpx2.Response) -> None:
        self.headers = response.headers
        self.pings = 0
        self._chunks = response.aiter_bytes()
        self._parser = Parser()
        self._waiting: list[Event] = []

    async def event(self) -> Event | None:
        """The next one that is no ping; None at the end of the stream."""
        async with asyncio.timeout(WITHIN_SEC):
            while True:
                found = await self._any()
                if found is None or found.event != "ping":
                    return found
                assert found.data == ""
                self.pings += 1

    async def ping(self) -> Event:
        async with asyncio.timeout(WITHIN_SEC):
            found = await self._any()
        assert found is not None
        return found

    async def request(self) -> Json:
        """The data of the next request."""
        while True:
            event = await self.event()
            assert event is not None, "the stream ended"
            if event.event == "tool-request":
                assert event.id == json.loads(event.data)["requestID"]
                return json.loads(event.data)

    async def _any(self) -> Event | None:
        while not self._waiting:
            try:
                self._waiting += self._parser.feed(await anext(self._chunks))
            except StopAsyncIteration:
                return None
        return self._waiting.pop(0)


class Program:
    def __init__(self, http: httpx2.AsyncClient, client_id: str = "notes") -> None:
        self.http = http
        self.client_id = client_id

    async def register(self, *tools: Json, **more: Json) -> httpx2.Response:
        offered = [a_tool(tool) if isinstance(tool, str) else tool for tool in tools]
        body = {"clientID": self.client_id, "tools": offered, **more}
        return await self.http.post("/client-tools/register", json=body)

    async def unregister(self, **more: Json) -> httpx2.Response:
        body = {"clientID": self.client_id, **more}
        return await self.http.request("DELETE", "/client-tools/unregister", json=body)

    async def tools(self) -> Json:
        return (await self.http.get(f"/client-tools/tools/{self.client_id}")).json()

    @asynccontextmanager
    async def listen(self, *, holder: str | None = None, **headers: str) -> AsyncIterator[Stream]:
        params = {} if holder is None else {"holder": holder}
        path = f"/client-tools/pending/{self.client_id}"
        async with self.http.stream("GET", path, params=params, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield Stream(response)

    async def result(self, request_id: str, **result: Json) -> httpx2.Response:
        """The flat dialect."""
        body = {"requestID": request_id, **result}
        return await self.http.post("/client-tools/result", json=body)

    async def nested(self, request_id: str, **result: Json) -> httpx2.Response:
        body = {"requestID": request_id, "result": result}
        return await self.http.post("/client-tools/result", json=body)

    async def execute(self, tool: str, input: Json, **more: Json) -> httpx2.Response:
        body = {"toolID": f"client_{self.client_id}_{tool}", "input": input, **more}
        return await self.http.post("/client-tools/execute", json=body)


class Ready:
    """A registered program that listens."""

    def __init__(self, program: Program, stream: Stream) -> None:
        self.program = program
        self.stream = stream

    async def answer(self, **result: Json) -> Json:
        """Brings this result to the next request."""
        request = await self.stream.request()
        assert (await self.program.result(request["requestID"], **result)).status_code == 200
        return request


@asynccontextmanager
async def ready(program: Program, *tools: Json, **more: Json) -> AsyncIterator[Ready]:
    assert (await program.register(*tools, **more)).status_code == 200
    async with AsyncExitStack() as stack:
        yield Ready(program, await stack.enter_async_context(program.listen()))


def asks(*asked: Ask) -> Agent:
    """An agent that asks for these in its first step and then says what came back."""
    return Agent(ScriptedModel(lambda moment: _step(moment, asked)))


def _step(moment: Moment, asked: tuple[Ask, ...]) -> Step:
    if not moment.results:
        return list(asked)
    return " | ".join(result.seen for result in moment.results)


async def chat(http: httpx2.AsyncClient, text: str = "go", thread: str = "t1", **more: Json) -> Json:
    """Says something, and returns the chunks of the whole answer."""
    message = {"id": f"m-{len(text)}", "role": "user", "parts": [{"type": "text", "text": text}]}
    response = await http.post("/api/chat", json={"id": thread, "messages": [message], **more})
    assert response.status_code == 200, response.text
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line[:5] == "data:"]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def said(chunks: Json) -> str:
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")
