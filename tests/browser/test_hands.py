"""Pages that are hands without a chat of ours, in a browser: no AI SDK, no React.

A Python script makes the calls. The page is reloaded and the script is killed in mid call; on a database the
page talks to another worker than the script is.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.doc_pages import Block, build
from tests.browser.test_other_origin import open_page, site
from tests.fork_server import ForkedProcess, ForkServer, own_fork_server
from tests.postgres import Cluster, free_port
from tests.process import environment
from tests.requirement import requirement

pytestmark = pytest.mark.timeout(180)
Json = dict[str, object]

CONNECTED = """
import { connect } from "@farhand/client";
const url = new URLSearchParams(location.search).get("server") ?? "";
const lives = Number(sessionStorage.getItem("lives") ?? 0) + 1;
sessionStorage.setItem("lives", String(lives));
const hand = connect({ url, headers: { "x-api-key": "sesame" }, thread: "t1", askAgainMs: 500 });
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
const url = new URLSearchParams(location.search).get("server") ?? "";
const count = (): number => Number(localStorage.getItem("runs") ?? 0);
const lives = Number(sessionStorage.getItem("lives") ?? 0) + 1;
sessionStorage.setItem("lives", String(lives));
const desk = offer({
  url,
  headers: { "x-api-key": "sesame" },
  clientID: "tab",
  graceSec: 60,
  tools: {
    count: {
      description: `Count the times that it was run, in life ${lives}.`,
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


@pytest.fixture(scope="module")
async def origin(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """Both pages, from elsewhere, with this code alone."""
    folder = tmp_path_factory.mktemp("pages")
    pages = {"connected": CONNECTED, "offered": OFFERED}
    blocks = {
        name: (Block("hands", 0, "ts", code), f'import "./{name}.code.ts";') for name, code in pages.items()
    }
    await build(blocks, folder, {})
    with site(folder) as origin:
        yield origin


@pytest.fixture(scope="module")
async def fork_server() -> AsyncIterator[ForkServer]:
    async with own_fork_server("tests.browser.hands_script") as started:
        yield started


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/hands.db"
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        yield cluster.address()


class Script:
    """Killed and run again, at the same address."""

    def __init__(self, fork_server: ForkServer, arguments: list[str], out: Path) -> None:
        self.port = free_port()
        self._fork_server = fork_server
        self._arguments = arguments
        self._out = out
        self._process: ForkedProcess | None = None

    async def start(self) -> None:
        store, origin, what = self._arguments
        self._process = await self._fork_server.start(
            [store, str(self.port), origin, what],
            environment(self._out.parent),
            self._out,
            main="tests.browser.hands_script:main",
        )
        assert await self._process.line(0) == "ready"

    async def kill(self) -> None:
        assert self._process is not None, "start() comes first"
        self._process.kill()
        await self._process.wait()

    async def told(self, number: int) -> Json:
        """The outcome of its first call, or of a later one."""
        assert self._process is not None, "start() comes first"
        outcome: Json = json.loads(await self._process.line(number))
        return outcome


@asynccontextmanager
async def at_work(
    fork_server: ForkServer, store: str, origin: str, folder: Path, what: str
) -> AsyncIterator[tuple[Script, int]]:
    """A script that runs, and the port that a page talks to: its own, or that of another worker."""
    script = Script(fork_server, [store, origin, what], folder / "script.out")
    other = Script(fork_server, [store, origin, "serve"], folder / "other.out")
    started = [script, other] if store.startswith("postgresql") else [script]
    for each in started:
        await each.start()
    try:
        yield script, started[-1].port
    finally:
        for each in started:
            await each.kill()


@asynccontextmanager
async def showing(browser: Browser, origin: str, name: str, port: int) -> AsyncIterator[Page]:
    async with open_page(browser, f"{origin}/{name}.html?server=http://127.0.0.1:{port}") as page:
        yield page


@requirement("connect:reload")
async def test_a_page_with_connect_alone_runs_a_scripts_call_after_a_reload_in_the_middle(
    browser: Browser, fork_server: ForkServer, origin: str, store: str, tmp_path: Path
) -> None:
    async with (
        at_work(fork_server, store, origin, tmp_path, "open") as (script, port),
        showing(browser, origin, "connected", port) as page,
    ):
        await expect(page).to_have_title("life 1 has it")
        await script.kill()
        await script.start()
        await page.reload()
        output = {"url": "https://example.org/", "viewKey": "life 2"}
        assert await script.told(1) == {"kind": "success", "output": output}
        await expect(page).to_have_title("life 2 has it")


@requirement("offer:once")
async def test_a_page_with_offer_is_reloaded_in_the_middle_and_runs_nothing_twice(
    browser: Browser, fork_server: ForkServer, origin: str, store: str, tmp_path: Path
) -> None:
    async with (
        at_work(fork_server, store, origin, tmp_path, "count") as (script, port),
        showing(browser, origin, "offered", port) as page,
    ):
        await expect(page).to_have_title("counted")
        await script.kill()
        await script.start()
        await page.reload()
        assert (await script.told(1))["kind"] == "failure"
        assert await script.told(2) == {"kind": "success", "output": 2}
