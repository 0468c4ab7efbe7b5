"""One round trip through the whole app, with its appends, reads and writes counted."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator

from starlette.requests import HTTPConnection
from starlette.types import Message, Scope, Send

from farhand import Agent, Principal, create_app, tool
from farhand.core.thread import ResultsMessage, UserMessage, text_of
from farhand.models.base import CallDone, CallStart, InputDelta, ModelEvent, Prompt, Stop, TextDelta
from farhand.server.app import App
from farhand.store.base import ClientStore, FileStore, Store
from farhand.store.memory import MemoryStore

CALL = re.compile(rb'"type":"tool-input-available","toolCallId":"([^"]+)"')
BY_THE_CLOCK = frozenset(
    {"open_calls", "claimable", "renew", "without_snapshot", "put_snapshot", "purge", "check", "close"}
)
"""What is asked of a store now and then, whoever makes a trip."""
INPUT = '{"url":"https://example.org"}'


@tool(executor="frontend")
def open_url(url: str) -> str:
    """Open a page.

    Args:
        url: The address.

    Returns:
        What it said.
    """
    raise NotImplementedError


class CountedStore(MemoryStore):
    """A store that counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        for name in asked_of(Store) - BY_THE_CLOCK:
            self._count(self, name, name)
        for name in asked_of(FileStore):
            self._count(self.files, name, f"files.{name}")
        for name in asked_of(ClientStore):
            self._count(self.clients, name, f"clients.{name}")

    def _count(self, owner: object, name: str, told: str) -> None:
        read = getattr(owner, name)

        async def counted(*arguments: object, **named: object) -> object:
            self.asked[told] += 1
            return await read(*arguments, **named)

        setattr(owner, name, counted)


def asked_of(contract: type) -> set[str]:
    """Whatever a store can be asked that may wait for a disk: a new read is counted as well."""
    return {name for name, what in vars(contract).items() if inspect.iscoroutinefunction(what)}


class OneCall:
    """Asks for one call, then says what came of it; or says many words, in one moment or one by one."""

    name = "one call"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        last = prompt.messages[-1]
        if isinstance(last, ResultsMessage):
            yield TextDelta(f"It said {last.results[0].outcome}.")
            yield Stop("end")
            return
        if isinstance(last, UserMessage) and "words" in text_of(last):
            for number in range(500):
                yield TextDelta(f"word {number} ")
                if text_of(last) == "words one by one":
                    # in the next turn of the loop it is told, and then comes the next one
                    await asyncio.sleep(0)
            yield Stop("end")
            return
        yield CallStart(0, "open_url", "call_0")
        yield InputDelta(0, INPUT)
        yield CallDone(0, INPUT)
        yield Stop("calls")


def make_app(store: Store | str) -> App:
    def authenticate(request: HTTPConnection) -> Principal:
        return Principal("tenant", "ann")

    return create_app(
        Agent(model=OneCall(), frontend_tools=[open_url]), store=store, authenticate=authenticate
    )


class Trip:
    """A message, and the answer to the call that comes of it. `bodies` are the writes to the stream."""

    def __init__(
        self, app: App, thread: str, *, message_id: str = "m", answered_at: App | None = None
    ) -> None:
        self.bodies: list[bytes] = []
        self._app = app
        self._other = answered_at or app
        self._thread = thread
        self._message_id = f"{thread}-{message_id}"
        self._answer: asyncio.Task[None] | None = None

    async def run(self, text: str = "go", *, wait: str = "hold") -> bytes:
        message = {"id": self._message_id, "role": "user", "parts": [{"type": "text", "text": text}]}
        body = {"id": self._thread, "messages": [message], "wait": wait}
        await post(self._app, "/api/chat", body, self._hear)
        if self._answer is not None:
            await self._answer
        return b"".join(self.bodies)

    async def _hear(self, message: Message) -> None:
        # the head leaves with an empty body, for servers that would keep it back
        if message["type"] == "http.response.body" and message.get("body"):
            self._take(message["body"])

    def _take(self, body: bytes) -> None:
        self.bodies.append(body)
        found = CALL.search(b"".join(self.bodies))
        if found is not None and self._answer is None:
            self._answer = asyncio.create_task(self._settle(found[1].decode()))

    async def _settle(self, call_id: str) -> None:
        async def hear(message: Message) -> None:
            assert message.get("status", 200) == 200, message

        body = {"toolCallId": call_id, "status": "success", "output": "hello"}
        await post(self._other, "/api/tools/ack", body, hear)


async def post(app: App, path: str, body: object, hear: Send) -> None:
    data = json.dumps(body).encode()
    left = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive() -> Message:
        if left:
            return left.pop()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody leaves")

    await app(_scope(path, len(data)), receive, hear)


def _scope(path: str, length: int) -> Scope:
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [*headers, (b"content-length", b"%d" % length)],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
