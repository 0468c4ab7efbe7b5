"""A server on a free port of this machine, in the running event loop, for as long as a `with` block lasts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

STOP_WITHIN_SEC = 1


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """Gives the address, such as `http://127.0.0.1:40001`. What is still open at the end is cut."""
    config = uvicorn.Config(
        app, log_level="critical", lifespan="off", timeout_graceful_shutdown=STOP_WITHIN_SEC
    )
    server = _Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]))
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            finally:
                server.should_exit = True


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the program that runs the test."""
        yield
