"""Several server processes with the recording agent on one database, and the folder with their notes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx2

from tests.chaos.recorded_server import Room
from tests.process import MANY_RUNS, FarhandProcess, farhand_process

AGENT = "tests.chaos.recording_agent:agent"
LEASE_SEC = 1.0
SETTINGS = {
    "FARHAND_TIMEOUTS__LEASE": str(LEASE_SEC),
    "FARHAND_LIMITS__STREAMS_PER_PRINCIPAL": "1000",
    **MANY_RUNS,
}


@asynccontextmanager
async def workers(
    folder: Path,
    stores: list[str],
    *arguments: str,
    settings: dict[str, str] | None = None,
    agent: str = AGENT,
) -> AsyncIterator[list[Room]]:
    """One worker for each address; the addresses are of one store, by different ways."""
    variables = {**SETTINGS, "TEST_ROOM": str(folder), **(settings or {})}
    async with AsyncExitStack() as stack:
        rooms = []
        for store in stores:
            serving = farhand_process(agent, *arguments, store=store, env=variables)
            server = await stack.enter_async_context(serving)
            http = await stack.enter_async_context(_client(server))
            rooms.append(Room(server, http, folder))
        yield rooms


def _client(server: FarhandProcess) -> httpx2.AsyncClient:
    # connections of a killed server are of no use, so none is kept
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    headers = {"authorization": f"Bearer {server.token}"}
    return httpx2.AsyncClient(
        base_url=server.url, headers=headers, timeout=60, limits=limits, trust_env=False, verify=False
    )
