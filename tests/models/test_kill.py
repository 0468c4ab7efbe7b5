"""SIGKILL with every adapter: the server dies while a person is asked, restarts, and is answered.

Real processes: the server and its provider's library in one, the provider's fake in this one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest

from farhand.models.scripted import Ask, Moment, Say, Step, Think
from tests.faces.ui_stream.page import Page
from tests.fakes.provider import FakeProvider
from tests.models.stage import Provider
from tests.models.test_demo import MODELS, environment
from tests.process import FarhandProcess, farhand_process


def script(moment: Moment) -> Step:
    if moment.text.endswith("Thanks"):
        return "You are welcome."
    if moment.results:
        weather, name = (result.output for result in moment.results[:2])
        assert isinstance(weather, dict)
        return f"{weather['condition']} in {weather['location']}, {name}."
    return [
        Think("Both at once."),
        Say("One moment. "),
        Ask("get_current_weather", {"location": "Oslo"}, id="call_0"),
        Ask("ask_text", {"question": "Your name?"}, id="call_1"),
    ]


@asynccontextmanager
async def demo_of(provider: Provider, fake: FakeProvider) -> AsyncIterator[tuple[FarhandProcess, Page]]:
    async with farhand_process("demo", "--model", MODELS[provider.name], env=environment(fake)) as server:
        headers = {"authorization": f"Bearer {server.token}"}
        # connections of a killed server are of no use, so none is kept
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx2.AsyncClient(
            base_url=server.url, headers=headers, timeout=60, limits=limits, trust_env=False, verify=False
        ) as http:
            yield server, Page(http, "chat")


@pytest.mark.sweep
@pytest.mark.parametrize("held", [False, True], ids=["parked", "held"])
async def test_a_call_that_waits_is_answered_after_the_server_was_killed(
    provider: Provider, held: bool
) -> None:
    async with provider.fake(script) as fake, demo_of(provider, fake) as (server, page):
        call = await (_held(server, page) if held else _parked(server, page))
        await server.start()
        answer = {"toolCallId": call, "status": "success", "output": "Ada"}
        assert (await page.http.post("/api/tools/ack", json=answer)).json() == {"ok": True}
        assert (await page.resume()).text.endswith("Sunny in Oslo, Ada.")
        assert (await page.http.post("/api/tools/ack", json=answer)).json()["ok"] is True
        assert len(fake.prompts) == 2, "what the model said before the kill is not asked for again"
        assert (await page.say("Thanks")).text == "You are welcome."
        assert fake.refused == []


async def _parked(server: FarhandProcess, page: Page) -> str:
    turn = await page.say("The weather, and greet me")
    await server.kill()
    return str(turn.of("tool-input-available")[-1]["toolCallId"])


async def _held(server: FarhandProcess, page: Page) -> str:
    holding = Page(page.http, "chat", wait="hold")
    async with holding.saying("The weather, and greet me") as live:
        # the server's own tool has run, and only the person is waited for
        await live.until("tool-output-available")
        await server.kill()
        with suppress(httpx2.TransportError):
            await live.rest()
    page.messages = holding.messages
    return str(live.turn.of("tool-input-available")[-1]["toolCallId"])
