"""Where the fakes of providers are served: a free port of this machine, in the running event loop."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

STOP_WITHIN_SEC = 1


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """Gives the address, such as `http://127.0.0.1:40001`. What is still open at the end is cut."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        # left to itself, uvicorn sets the logging of the whole process, and what tests expect in it is gone
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=STOP_WITHIN_SEC,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # not `serve()`: its signal handlers belong to a process of its own
        await server.startup(sockets=[listening])
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            await server.shutdown(sockets=[listening])
