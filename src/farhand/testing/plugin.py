"""The pytest plugin: fixtures for a clock that stands still, a store in memory, a served app, a test client.

pytest loads it wherever farhand is installed, so it imports nothing before a test uses a fixture. The
fixtures are plain functions, so they work with every plugin for async tests.
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
    from farhand.testing.running_app import RunningApp


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that moves only when the test says so."""
    # loaded only for a test that uses it
    from farhand.testing.clock import FakeClock  # noqa: PLC0415

    return FakeClock()


@pytest.fixture
def memory_store(fake_clock: FakeClock) -> MemoryStore:
    """An empty store that uses the clock of the test."""
    # loaded only for a test that uses it
    from farhand.store.memory import MemoryStore  # noqa: PLC0415

    return MemoryStore(fake_clock)


@pytest.fixture
def farhand_app() -> Callable[..., AbstractAsyncContextManager[RunningApp]]:
    """`async with farhand_app(agent) as app`: serves an agent or an app over real HTTP, at `app.url`."""
    # loaded only for a test that uses it
    from farhand.testing.running_app import serve_app  # noqa: PLC0415

    return serve_app


@pytest.fixture
def far_client() -> Callable[..., FarClient]:
    """`async with far_client(agent) as client`: a test client for an agent, an app or an address."""
    # loaded only for a test that uses it
    from farhand.testing.far_client import FarClient  # noqa: PLC0415

    return FarClient
