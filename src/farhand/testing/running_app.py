"""Serves an agent or an app over real HTTP on a free port of this machine, inside a `with` block."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct
from starlette.types import ASGIApp

from farhand.agent.agent import Agent
from farhand.errors import BadSetting, not_installed
from farhand.server.app import App, create_app

try:
    import uvicorn
except ModuleNotFoundError as error:
    raise not_installed("Test servers", "testing") from error

STOP_WITHIN_SEC = 1


class RunningApp(Struct, frozen=True):
    """A served app: `httpx.get(running.url, headers={"authorization": f"Bearer {running.token}"})`.

    `token` is None for an app with an `authenticate` hook of its own.
    """

    app: App
    url: str
    token: str | None


@asynccontextmanager
async def serve_app(target: Agent | App) -> AsyncIterator[RunningApp]:
    """Serves an agent or an app on a free port of this machine: `async with serve_app(agent) as running: …`.

    An app that is already started is not stopped. An agent is served with a store in memory.
    """
    app = create_app(target, store="memory:") if isinstance(target, Agent) else target
    started_here = not _has_started(app)
    await app.start()
    # not `async with`: an error in the block is raised as it is, not in an exception group
    stack = AsyncExitStack()
    try:
        url = await stack.enter_async_context(serve_on_loopback(app))
        yield RunningApp(app, url, app.auth.token)
    finally:
        if started_here:
            # first, because the server waits for its streams to end
            await app.drain()
        await stack.aclose()
        if started_here:
            await app.stop()


def _has_started(app: App) -> bool:
    try:
        return app.service is not None
    except BadSetting:
        return False


@asynccontextmanager
async def serve_on_loopback(app: ASGIApp) -> AsyncIterator[str]:
    """Yields the address, such as `http://127.0.0.1:40001`. At the end, open connections are cut."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        # by default, uvicorn configures the logging of the whole process
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=STOP_WITHIN_SEC,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # not `serve()`: it installs signal handlers for the whole process
        await server.startup(sockets=[listening])
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            await server.shutdown(sockets=[listening])
