"""Pages that are hands without a chat of ours, in a browser: no AI SDK, no React, reloaded in mid call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect
from starlette.requests import HTTPConnection

from farhand import Agent, Principal, ScriptedModel, create_app, tool
from farhand.core.outcome import Failure, Success
from farhand.core.principal import SCOPES, Owner
from farhand.server.app import App
from tests.browser.doc_pages import Block, build
from tests.browser.test_other_origin import open_page, site
from tests.faces.served import listening
from tests.requirement import requirement

# a take of a page that is gone lapses after half a minute
pytestmark = pytest.mark.timeout(180)
ADA = Owner("acme", "ada")

CONNECTED = """
import { connect } from "@farhand/client";
const lives = Number(sessionStorage.getItem("lives") ?? 0) + 1;
sessionStorage.setItem("lives", String(lives));
const hand = connect({ url: "SERVER", headers: { "x-api-key": "sesame" }, thread: "t1", askAgainMs: 500 });
hand.handle({
  open_url: async ({ url }: { url: string }) => {
    document.title = `life ${lives} has it`;
    // the first life never comes to an end
    await (lives === 1 ? new Promise(() => undefined) : undefined);
    return { url, viewKey: `life ${lives}` };
  },
});
"""

OFFERED = """
import { offer } from "@farhand/client";
const count = (): number => Number(localStorage.getItem("runs") ?? 0);
const desk = offer({
  url: "SERVER",
  headers: { "x-api-key": "sesame" },
  clientID: "tab",
  tools: {
    count: {
      description: "Count the times that it was run.",
      parameters: { type: "object", properties: { wait: { type: "boolean" } }, required: ["wait"] },
      run: async ({ wait }: { wait: boolean }, { progress }) => {
        localStorage.setItem("runs", String(count() + 1));
        progress("counted");
        document.title = "counted";
        await (wait ? new Promise(() => undefined) : undefined);
        return count();
      },
    },
  },
});
desk.subscribe(() => (document.title = desk.state.state === "offered" ? "offered" : document.title));
"""


@tool(executor="frontend")
def open_url(url: str) -> dict[str, object]:
    """Open a page.

    Args:
        url: Its address.

    Returns:
        url and viewKey of the page.
    """
    raise NotImplementedError


@asynccontextmanager
async def opened(browser: Browser, folder: Path, code: str) -> AsyncIterator[tuple[App, Page]]:
    """A host with farhand in it, and a page from elsewhere with this code alone."""

    async def authenticate(request: HTTPConnection) -> Principal | None:
        return Principal("acme", "ada", SCOPES) if request.headers.get("x-api-key") == "sesame" else None

    with site(folder) as origin:
        agent = Agent(ScriptedModel(["Hello."]), frontend_tools=[open_url])
        app = create_app(agent, store="memory:", authenticate=authenticate, allow_origins=[origin])
        async with listening(app) as url:
            block = Block("hands", 0, "ts", code)
            await build({"page": (block, 'import "./page.code.ts";')}, folder, {"SERVER": url})
            async with open_page(browser, f"{origin}/page.html") as page:
                yield app, page


@requirement("connect:reload")
async def test_a_page_with_connect_alone_runs_a_scripts_call_after_a_reload_in_the_middle(
    browser: Browser, tmp_path: Path
) -> None:
    async with opened(browser, tmp_path, CONNECTED) as (app, page), asyncio.TaskGroup() as group:
        url = {"url": "https://example.org/"}
        outcome = group.create_task(app.call("open_url", url, thread="t1", owner=ADA, timeout_sec=120))
        await expect(page).to_have_title("life 1 has it")
        await page.reload()
        assert await outcome == Success({**url, "viewKey": "life 2"})
        await expect(page).to_have_title("life 2 has it")


@requirement("offer:once")
async def test_a_page_with_offer_is_reloaded_in_the_middle_and_runs_nothing_twice(
    browser: Browser, tmp_path: Path
) -> None:
    async with opened(browser, tmp_path, OFFERED) as (app, page):
        async with asyncio.TaskGroup() as group:
            await expect(page).to_have_title("offered")
            outcome = group.create_task(
                app.call("client_tab_count", {"wait": True}, thread="t1", owner=ADA, timeout_sec=120)
            )
            await expect(page).to_have_title("counted")
            await page.reload()
            assert isinstance(await outcome, Failure)
        await expect(page).to_have_title("offered")
        again = await app.call("client_tab_count", {"wait": False}, thread="t1", owner=ADA, timeout_sec=120)
        assert again == Success(2)
