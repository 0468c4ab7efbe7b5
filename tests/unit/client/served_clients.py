"""A served agent and clients of the SDK, in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from farhand import Agent, ScriptedModel
from farhand.agent.keyed_calls import Waiting
from farhand.client import Client
from farhand.core.outcome import Outcome
from farhand.core.settings import Settings, Timeouts
from tests.faces.served import Options, Served, served

T = TypeVar("T")
# Any: inputs of tools
Json = Any

WITHIN_SEC = 20.0


@asynccontextmanager
async def house(**timeouts: float) -> AsyncIterator[Served]:
    agent = Agent(ScriptedModel(lambda moment: "hm"))
    settings = Settings(timeouts=Timeouts(**{"client_grace": 30.0, **timeouts}))
    async with asyncio.timeout(WITHIN_SEC), served(agent, Options(settings=settings)) as server:
        yield server


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[asyncio.Task[None]]:
    """Connected; stopped with the block unless it has ended by itself."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(client.run())
        await client.connected.wait()
        yield task
        client.stop()


async def call(server: Served, tool: str, input: Json, *, within: float | None = None) -> Outcome:
    ended = await server.service.call(f"client_notes_{tool}", input, thread="t1", timeout_sec=within)
    assert not isinstance(ended, Waiting), "nobody limited the wait"
    return ended


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


async def eventually(look: Callable[[], Awaitable[T]]) -> T:
    """What `look` finds, once it finds something."""
    for _ in range(2_000):
        found = await look()
        if found:
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")
