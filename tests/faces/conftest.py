"""What the tests of every face share: a server to talk to, on every store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypedDict, Unpack

import pytest

from farhand.agent.agent import Agent
from farhand.clients.registry import ClientTools
from farhand.core.settings import Settings
from farhand.faces.ui_stream import sockets
from farhand.server.auth.authenticator import Authenticate
from farhand.store.base import Store
from tests.faces.served import Options, Served, served


class NamedOptions(TypedDict, total=False):
    store: str | Store
    settings: Settings | None
    authenticate: Authenticate | None
    client_tools: ClientTools | None
    inspector: bool | None
    prices: dict[str, tuple[float, float]] | None
    open: bool
    mounted: bool


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, file_store: str) -> str:
    """An address of each kind of store."""
    return "memory:" if request.param == "memory" else file_store


@pytest.fixture
def file_store(tmp_path: Path) -> str:
    """A store that outlives its server."""
    return f"sqlite:///{tmp_path}/farhand.db"


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """`await serve(agent, store=…, settings=…, authenticate=…)`; each one is stopped with the test."""
    async with AsyncExitStack() as stack:

        async def start(agent: Agent, **options: Unpack[NamedOptions]) -> Served:
            return await stack.enter_async_context(served(agent, Options(**options)))

        yield start


@pytest.fixture
def time_for_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An output that follows its approval on a socket comes in time on a busy machine as well."""
    monkeypatch.setattr(sockets, "OUTPUT_GRACE_SEC", 3.0)
