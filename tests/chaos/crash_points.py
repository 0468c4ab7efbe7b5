"""Plays scenes on servers of which one kills itself at a chosen append; another one continues.

Whoever brings an answer does not repeat it if it was stored by the append that killed the server: nothing but
the log may see to it that it is acted on.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import httpx2
from msgspec import json

from farhand.core.outcome import Success
from tests.chaos.crash_agent import Crashed, Order
from tests.chaos.history import Sending, Told
from tests.chaos.storm.caller import Caller, Direct
from tests.chaos.storm.hand import hands
from tests.chaos.storm.person import Person
from tests.chaos.storm.sender import Json, Progress, Sender
from tests.chaos.storm.servers import TOKEN, Server
from tests.fork_server import own_fork_server

AGENT = "tests.chaos.crash_agent"
When = Literal["before", "after"]
VIEW = Success({"viewKey": "v1"})


class CarefulSender(Sender):
    """Says a thing again only if it was not stored when the server died."""

    def __init__(self, client: Callable[[], httpx2.AsyncClient], stage: Stage) -> None:
        super().__init__(client, Progress())
        self._stage = stage

    async def _send(self, door: str, body: Json, sending: Sending, book: list[Sending]) -> None:
        kind = "CallSettled" if door == "ack" else "ApprovalAnswered"
        while True:
            told, winner, outcome = await self._try(f"/api/tools/{door}", body)
            book.append(replace(sending, told=told, winner=winner, kind=outcome))
            if told is not Told.NOTHING:
                return
            await self._stage.until_back()
            if self._stage.is_stored(sending.call_id, kind):
                return


class CarefulPerson(Person):
    """One result for each page, one yes for each question."""

    def __init__(self, chat: str, stage: Stage, *, is_held: bool) -> None:
        super().__init__(chat, lambda: stage.client, random.Random(0), Progress())
        self.sender = CarefulSender(lambda: stage.client, stage)
        self._is_held = is_held

    async def _bring(self, call_id: str) -> None:
        await self.sender.bring(call_id, VIEW)

    async def _say_yes_or_no(self, call_id: str, approval_id: str) -> None:
        await self.sender.answer(call_id, approval_id, approved=True)


class OneByOne(CarefulPerson):
    """Opens the page that is asked for beside a deletion only when the deletion has ended."""

    def __init__(self, chat: str, stage: Stage, *, is_held: bool) -> None:
        super().__init__(chat, stage, is_held=is_held)
        self._deletions: set[str] = set()
        self._pages_after: set[str] = set()
        self._has_ended = asyncio.Event()

    def _react(self, chunk: Json) -> None:
        call_id = chunk.get("toolCallId", "")
        match chunk["type"]:
            case "tool-approval-request":
                self._deletions.add(call_id)
            case "tool-input-available" if chunk["input"].get("address", "").endswith("/c"):
                self._pages_after.add(call_id)
            case "tool-output-available" | "tool-output-error" if call_id in self._deletions:
                self._has_ended.set()
        super()._react(chunk)

    async def _bring(self, call_id: str) -> None:
        if call_id in self._pages_after:
            await self._has_ended.wait()
        await super()._bring(call_id)


class Stage:
    """`armed` is the server that dies; `others` continue. Without others it is started again."""

    def __init__(self, folder: Path, armed: Server, others: list[Server]) -> None:
        self.folder = folder
        self._armed = armed
        self._others = others
        self._clients: dict[int, httpx2.AsyncClient] = {}
        self._is_armed_there = True
        self._back = asyncio.Event()
        self.killed: Counter[tuple[When, str]] = Counter()
        """How often it died before and after appends with an event of each kind."""

    @property
    def client(self) -> httpx2.AsyncClient:
        """Of the server that dies, as long as it lives."""
        server = self._armed if self._is_armed_there or not self._others else self._others[0]
        if server.port not in self._clients:
            self._clients[server.port] = _client(server.port)
        return self._clients[server.port]

    def is_stored(self, call_id: str, kind: str) -> bool:
        crashed = self._crashed()
        return crashed is not None and crashed.is_stored and (call_id, kind) in crashed.moves

    async def until_back(self) -> None:
        """A request failed: the server is dying, and somebody else will be there."""
        await self._back.wait()

    async def play(
        self, when: When, number: int, scene: Callable[[], Awaitable[None]], *, kind: str = ""
    ) -> bool:
        """The scene, with a server that dies in it; False if the scene was over first."""
        (self.folder / "crashed").unlink(missing_ok=True)
        self._back.clear()
        order = Order(self._armed.pid, when, number, kind)
        (self.folder / "crash").write_bytes(json.encode(order))
        async with asyncio.TaskGroup() as group:
            replacing = group.create_task(self._replace())
            await scene()
            crashed = self._crashed()
            if crashed is None:
                replacing.cancel()
        self.killed.update((when, kind) for kind in set(crashed.kinds if crashed is not None else ()))
        return crashed is not None

    async def set(self) -> None:
        """Everybody is there again."""
        if not self._is_armed_there:
            await self._armed.start()
            self._is_armed_there = True

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def _replace(self) -> None:
        code = await self._armed.until_gone()
        assert code == -9, f"it ended with {code}:\n{self._armed.errors[-2000:]}"
        if self._others:
            self._is_armed_there = False
        else:
            await self._armed.start()
        self._back.set()

    def _crashed(self) -> Crashed | None:
        path = self.folder / "crashed"
        return json.decode(path.read_bytes(), type=Crashed) if path.exists() else None


@asynccontextmanager
async def stage(stores: list[str], folder: Path) -> AsyncIterator[Stage]:
    """With a registered client at a server that stays, if there is one. `stores` are ways to one store."""
    async with AsyncExitStack() as stack:
        fork_server = await stack.enter_async_context(own_fork_server(AGENT))
        servers = [
            Server(fork_server, store, folder, number, agent=AGENT) for number, store in enumerate(stores)
        ]
        for server in servers:
            await server.start()
        await stack.enter_async_context(hands([servers[-1].port], folder))
        there = Stage(folder, servers[0], servers[1:])
        stack.push_async_callback(there.close)
        yield there


def caller(direct: Direct, there: Stage) -> Caller:
    program = Caller(direct, lambda: there.client, Progress())
    program.sender = CarefulSender(lambda: there.client, there)
    return program


def _client(port: int) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{port}",
        headers={"authorization": f"Bearer {TOKEN}"},
        timeout=30.0,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        trust_env=False,
        verify=False,
    )
