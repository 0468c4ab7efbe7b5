"""An agent or an app behind real HTTP on loopback, for as long as a `with` block lasts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct

from farhand.agent.agent import Agent
from farhand.errors import BadSetting
from farhand.server.app import App, create_app
from farhand.testing.fake_server import served


class ServedApp(Struct, frozen=True):
    """It answers at `url`; `token` is what a program sends where the app has no hook of its own."""

    app: App
    url: str
    token: str | None


@asynccontextmanager
async def serve_app(target: Agent | App) -> AsyncIterator[ServedApp]:
    """Starts what is not started, and stops what it started. An Agent is served from memory."""
    app = create_app(target, store="memory:") if isinstance(target, Agent) else target
    started_here = not _has_started(app)
    await app.start()
    # not `async with`: what goes wrong in the block is told as it is, not as one of a group
    stack = AsyncExitStack()
    try:
        url = await stack.enter_async_context(served(app))
        yield ServedApp(app, url, app.door.token)
    finally:
        if started_here:
            # first, since the server waits for its streams to end
            await app.drain()
        await stack.aclose()
        if started_here:
            await app.stop()


def _has_started(app: App) -> bool:
    try:
        return app.farhand is not None
    except BadSetting:
        return False
