"""Starts the page of `examples/copilotkit` as its README says, and uses it as a person does.

Owns how the page is built and served, and what a person can see and press there. Must not know how CopilotKit
talks to the server: the requests are its own, through the proxy of the example.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal
from uuid import uuid4

from playwright.async_api import Browser, ConsoleMessage, Locator, Page, expect

from tests.browser.visitor import ELSEWHERE, SEEN_WITHIN_MS
from tests.process import ROOT, FarhandProcess

PAGE = ROOT / "examples/copilotkit/page"
VITE = PAGE / "node_modules/.bin/vite"
BUILT_WITHIN_SEC = 120
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


def copy_page(built: Path, folder: Path, runtime: str) -> None:
    """The built page with another way to its runtime: these properties of `CopilotKit` instead of its own."""
    shutil.copytree(built, folder, dirs_exist_ok=True)
    own = 'runtimeUrl: "/copilotkit"'
    [script] = [each for each in folder.rglob("*.js") if own in each.read_text()]
    code = script.read_text()
    assert code.count(own) == 1
    script.write_text(code.replace(own, runtime))


@contextmanager
def served_folder(folder: Path) -> Iterator[str]:
    """Its files at an origin of their own, without a way to any server."""
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """A test's output is for its failures."""


async def build_page(folder: Path) -> None:
    """As `npm run dev` would have it: with React's warnings and its double mounting."""
    assert VITE.exists(), "the packages of the example are missing; `make example-packages` installs them"
    vite = await asyncio.create_subprocess_exec(
        str(VITE), "build", "--mode", "development", "--minify", "false", "--logLevel", "warn",
        "--outDir", str(folder), "--emptyOutDir",
        cwd=PAGE, env={**os.environ, "NODE_ENV": "development"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(vite.communicate(), BUILT_WITHIN_SEC)
    assert vite.returncode == 0, out.decode()


@asynccontextmanager
async def serving(folder: Path, server: FarhandProcess) -> AsyncIterator[str]:
    """The built page at an address of its own, with the example's proxy to this server."""
    vite = await asyncio.create_subprocess_exec(
        str(VITE), "preview", "--host", "127.0.0.1", "--port", "0", "--outDir", str(folder),
        cwd=PAGE, env={**os.environ, "FARHAND_URL": server.url, "FARHAND_TOKEN": server.token},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert vite.stdout is not None
        while True:
            line = (await asyncio.wait_for(vite.stdout.readline(), BUILT_WITHIN_SEC)).decode()
            assert line, "vite preview ended"
            # it prints in colours, also within the address
            if found := _ADDRESS.search(re.sub(r"\x1b\[\d+m", "", line)):
                break
        yield found[0]
    finally:
        vite.terminate()
        await vite.wait()


class CopilotPage:
    """One tab with CopilotKit's chat, on one thread."""

    def __init__(self, page: Page, url: str, thread: str) -> None:
        self.page = page
        self.thread = thread
        self.complaints: list[str] = []
        """Errors that CopilotKit or the browser noted, without those that a test forgives."""
        self._forgiven: list[str] = []
        self._url = url
        page.on("console", self._console)
        page.on("pageerror", lambda error: self._complain(f"{error}"))

    async def opens(self) -> None:
        """Ready once it has loaded the thread: only then it makes suggestions."""
        await self.page.goto(f"{self._url}/#{self.thread}")
        await expect(self.page.get_by_test_id("copilot-suggestions")).to_be_visible()

    async def reloads(self) -> None:
        await self.page.reload()
        await expect(self.box).to_be_visible()

    async def says(self, text: str) -> None:
        await self.box.fill(text)
        await self.box.press("Enter")
        said = self.page.get_by_test_id("copilot-user-message").get_by_text(text, exact=True)
        await expect(said).to_have_count(1)

    async def has_said(self, *texts: str) -> None:
        await expect(self.page.get_by_test_id("copilot-user-message")).to_have_text(list(texts))

    async def presses(self, name: str) -> None:
        await self.page.get_by_role("button", name=name, exact=True).click()

    @property
    def box(self) -> Locator:
        return self.page.get_by_test_id("copilot-chat-textarea")

    @property
    def todos(self) -> Locator:
        """What the page's own tool did, once for each time."""
        return self.page.get_by_role("complementary").get_by_role("listitem")

    def card(self, title: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("region", name=title)

    @property
    def approval(self) -> Locator:
        return self.page.get_by_role("region").filter(has=self.page.get_by_role("button", name="Approve"))

    async def stops(self) -> None:
        """Presses the button that sends, which stops while an answer comes."""
        await self.page.get_by_test_id("copilot-send-button").click()

    async def shows_result(self, tool: str, result: str) -> None:
        """One call of this tool, folded, with this result in it."""
        call = self.page.locator(f"[data-tool-name={tool}]")
        await expect(call).to_have_count(1)
        await expect(call).to_have_attribute("data-result", result)

    async def reads(self, text: str) -> None:
        """An answer of the assistant that is there once."""
        said = self.page.get_by_test_id("copilot-assistant-message").get_by_text(text, exact=True)
        await expect(said).to_have_count(1)

    def forgives(self, words: str) -> None:
        self._forgiven.append(words)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._complain(message.text)

    def _complain(self, text: str) -> None:
        if not any(words in text for words in self._forgiven):
            self.complaints.append(text)


@asynccontextmanager
async def copilot_page(
    browser: Browser, url: str, *, thread: str = "", scheme: Literal["light", "dark"] = "light"
) -> AsyncIterator[CopilotPage]:
    """A person at the page, in a profile of its own, cut off from every other machine."""
    context = await browser.new_context(color_scheme=scheme, reduced_motion="reduce")
    context.set_default_timeout(SEEN_WITHIN_MS)
    try:
        await context.route(ELSEWHERE, lambda route: route.abort())
        guest = CopilotPage(await context.new_page(), url, thread or f"copilot-{uuid4().hex[:12]}")
        await guest.opens()
        yield guest
        assert not guest.complaints, f"the browser complained: {guest.complaints}"
    finally:
        await context.close()
