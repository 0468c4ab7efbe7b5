"""The pytest plugin: a clock that stands still, a store in memory, an app on loopback, a far hand.

Loaded with every run of pytest where farhand is installed, so it imports nothing before a test asks for it.
The fixtures are plain functions, so that they serve under every plugin for async tests.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from farhand.store.memory import MemoryStore
    from farhand.testing.clock import FakeClock
    from farhand.testing.far_client import FarClient
    from farhand.testing.served_app import ServedApp


@pytest.fixture
def fake_clock() -> FakeClock:
    """Time that moves when the test says so."""
    # loaded only for a test that asks for it
    from farhand.testing.clock import FakeClock  # noqa: PLC0415

    return FakeClock()


@pytest.fixture
def memory_store(fake_clock: FakeClock) -> MemoryStore:
    """An empty store on the test's own clock."""
    # loaded only for a test that asks for it
    from farhand.store.memory import MemoryStore  # noqa: PLC0415

    return MemoryStore(fake_clock)


@pytest.fixture
def farhand_app() -> Callable[..., AbstractAsyncContextManager[ServedApp]]:
    """`async with farhand_app(agent) as served`: an agent or an app behind real HTTP, at `served.url`."""
    # loaded only for a test that asks for it
    from farhand.testing.served_app import serve_app  # noqa: PLC0415

    return serve_app


@pytest.fixture
def far_client() -> Callable[..., FarClient]:
    """`async with far_client(agent) as far`: a scripted far hand; it takes an address or an app, too."""
    # loaded only for a test that asks for it
    from farhand.testing.far_client import FarClient  # noqa: PLC0415

    return FarClient
