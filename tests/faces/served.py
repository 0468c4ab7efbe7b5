"""A farhand server on loopback, in the event loop of the test: real sockets, real HTTP, no second process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import uvicorn

from farhand.agent.agent import Agent
from farhand.agent.service import AgentService
from farhand.cli.protocols import http_protocol, socket_protocol
from farhand.clients.registry import ClientTools
from farhand.core.settings import Settings
from farhand.server.app import App, create_app
from farhand.server.auth.authenticator import Authenticate
from farhand.store.base import Store

SHORT_WAITS = 100
"""Of a millisecond each, for what was in progress at a stop."""


@dataclass(frozen=True)
class Options:
    store: str | Store = "memory:"
    settings: Settings | None = None
    authenticate: Authenticate | None = None
    client_tools: ClientTools | None = None
    inspector: bool | None = None
    prices: dict[str, tuple[float, float]] | None = None
    open: bool = False
    mounted: bool = False
    """Served as by a host's own server: without the limits of `farhand run`."""


@dataclass
class Served:
    """`http` sends the token by itself; `stranger` sends nothing."""

    app: App
    url: str
    token: str
    http: httpx2.AsyncClient
    stranger: httpx2.AsyncClient
    _server: uvicorn.Server
    _sockets: list[socket.socket]
    _stopped: bool = field(default=False)

    @property
    def service(self) -> AgentService:
        return self.app.service

    @property
    def under_way(self) -> int:
        """Requests that are being answered."""
        return len(self._server.server_state.tasks)

    async def stop(self) -> None:
        """As at a signal: streams end resumably, what is in progress is in the store."""
        if self._stopped:
            return
        self._stopped = True
        await self.app.drain()
        await shut_down(self._server, self._sockets)
        await self.app.stop()


@asynccontextmanager
async def served(agent: Agent, options: Options) -> AsyncIterator[Served]:
    app = create_app(
        agent,
        store=options.store,
        settings=options.settings,
        authenticate=options.authenticate,
        client_tools=options.client_tools,
        inspector=options.inspector,
        prices=options.prices,
    )
    app.auth.open = options.open
    await app.start()
    listener = socket.create_server(("127.0.0.1", 0))
    # the loop sets it only on sockets that name their protocol, and without it each answer waits 40 ms
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = await _listen(app, listener, is_mounted=options.mounted)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    token = app.auth.token or ""
    async with _client(url, token) as http, _client(url, "") as stranger:
        running = Served(app, url, token, http, stranger, server, [listener])
        try:
            yield running
        finally:
            await running.stop()


@asynccontextmanager
async def listening(app: App) -> AsyncIterator[str]:
    """The address of an app that the test has made itself."""
    await app.start()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = await _listen(app, listener, is_mounted=False)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await app.drain()
        await shut_down(server, [listener])
        await app.stop()


async def _listen(app: App, listener: socket.socket, *, is_mounted: bool) -> uvicorn.Server:
    stalled_after = app.settings.limits.stalled_after_sec
    # without its loop of ticks and its signal handlers: those belong to a process of its own
    config = uvicorn.Config(
        app,
        http="auto" if is_mounted else http_protocol(stalled_after),
        ws="auto" if is_mounted else socket_protocol(stalled_after) or "none",
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=5,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    return server


async def shut_down(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
    """Returns once nothing is in progress, where uvicorn by itself waits a tenth of a second in any case."""
    for each in server.servers:
        each.close()
    for connection in list(server.server_state.connections):
        connection.shutdown()
    tries = 0
    while server.server_state.connections or server.server_state.tasks:
        tries += 1
        if tries > SHORT_WAITS:
            # it waits longer, and cancels what does not end
            await server.shutdown(sockets)
            return
        await asyncio.sleep(0.001)
    for listener in sockets:
        listener.close()


def _client(url: str, token: str) -> httpx2.AsyncClient:
    # no time limit of its own: the test has one; no certificates, which take longer to load than a server
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx2.AsyncClient(base_url=url, headers=headers, timeout=None, verify=False, trust_env=False)
