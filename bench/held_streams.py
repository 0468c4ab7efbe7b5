"""Measures how many transactions a second idle held streams cost the database."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import httpx2

from farhand.store.postgres.connection import Connection, connect, parse_address
from tests.postgres import Cluster
from tests.process import FarhandProcess, farhand_process

HELD = 200
SECONDS = 30.0
"""Long enough that every watcher re-reads the record several times."""
AGENT = "tests.chaos.agents:agent"


async def transactions(cluster: Cluster) -> tuple[float, float]:
    """Of one idle worker without streams, and with `HELD` streams that each have a waiting call."""
    address = cluster.address("held")
    many = {
        "FARHAND_LIMITS__STREAMS_PER_PRINCIPAL": str(HELD),
        "FARHAND_LIMITS__RUNNING_PER_PRINCIPAL": str(HELD),
        "FARHAND_LIMITS__RUNS_PER_MIN": str(10 * HELD),
    }
    line = await connect(parse_address(address))
    try:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                farhand_process(AGENT, "--hold-for", "300", store=address, env=many)
            )
            idle = await _per_second(line)
            await _hold(stack, server)
            return idle, await _per_second(line)
    finally:
        await line.close()


async def _hold(stack: AsyncExitStack, server: FarhandProcess) -> None:
    client = await stack.enter_async_context(server.client(timeout=120.0))
    for number in range(HELD):
        message = {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": "open it"}]}
        chat = {"id": f"t{number}", "wait": "hold", "messages": [message]}
        response = await stack.enter_async_context(client.stream("POST", "/api/chat", json=chat))
        await _until_shown(response)


async def _until_shown(response: httpx2.Response) -> None:
    body, pieces = "", response.aiter_text()
    while "tool-input-available" not in body:
        body += await anext(pieces)


async def _per_second(line: Connection) -> float:
    """After the database's own statistics have settled: they are updated about once a second."""
    await asyncio.sleep(3.0)
    before = await _count(line)
    await asyncio.sleep(SECONDS)
    # without the transaction of this query
    return max(0.0, await _count(line) - before - 1) / SECONDS


async def _count(line: Connection) -> int:
    [row] = await line.fetch(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    )
    assert isinstance(row[0], int), "a count"
    return row[0]
