"""The pytest plugin: light to load, and its fixtures do what they say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import httpx2
import pytest

from farhand.agent.agent import Agent
from farhand.core.principal import LOCAL
from farhand.models.scripted import ScriptedModel
from farhand.store.base import CallFilter
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from farhand.testing.far_client import FarClient
from farhand.testing.plugin import fake_clock, far_client, farhand_app, memory_store
from farhand.testing.running_app import RunningApp
from tests.requirement import requirement

pytestmark = requirement("testing:far-client")

__all__ = ["fake_clock", "far_client", "farhand_app", "memory_store"]


@pytest.mark.slow
def test_the_plugin_loads_no_server_and_no_core() -> None:
    loaded = (
        "import sys, farhand.testing.plugin;"
        "print([name for name in sys.modules if name.startswith('farhand.') and '.testing' not in name])"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_the_store_keeps_the_time_of_the_clock(
    memory_store: MemoryStore, fake_clock: FakeClock
) -> None:
    before = memory_store.now()
    fake_clock.advance(60)
    assert memory_store.now() == before + 60
    assert await memory_store.open_calls(CallFilter(owner=LOCAL)) == []


async def test_an_app_is_behind_real_http(
    farhand_app: Callable[..., AbstractAsyncContextManager[RunningApp]],
) -> None:
    async with farhand_app(Agent(ScriptedModel([]))) as served, httpx2.AsyncClient() as http:
        assert (await http.get(f"{served.url}/healthz")).status_code == 200
    async with httpx2.AsyncClient() as http:
        with pytest.raises(httpx2.HTTPError):
            await http.get(f"{served.url}/healthz")


async def test_a_far_hand_is_at_hand(far_client: Callable[..., FarClient]) -> None:
    async with far_client(Agent(ScriptedModel(["Hello."]))) as far:
        await far.chat("hi")
        assert await far.text() == "Hello."
