"""Pages of another origin: the page of docs/how-to/ack.md as printed, and sign-in by a custom header."""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect
from starlette.requests import HTTPConnection

from farhand import Agent, Principal, ScriptedModel, create_app
from farhand.server.app import App
from tests.faces.served import listening
from tests.process import ROOT, farhand_process
from tests.requirement import requirement

HOW_TO = ROOT / "docs/how-to/ack.md"
READ = """
async ([url, headers]) => {
  try {
    const response = await fetch(url, { headers });
    return response.status;
  } catch (error) {
    return error.message;
  }
}
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """A test's output is for its failures."""


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """The files of a folder under an origin of their own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def block(language: str) -> str:
    [code] = re.findall(rf"^```{language}\n(.*?)^```", HOW_TO.read_text(), re.DOTALL | re.MULTILINE)
    return str(code)


@asynccontextmanager
async def open_page(browser: Browser, url: str) -> AsyncIterator[Page]:
    context = await browser.new_context()
    try:
        page = await context.new_page()
        await page.goto(url)
        yield page
    finally:
        await context.close()


@requirement("docs:ack-page")
async def test_the_page_of_the_how_to_runs_a_tool_and_shows_the_answer(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "hello.py").write_text(block("python"))
    with site(tmp_path) as origin:
        async with farhand_process(
            "hello:agent", "--allow-origin", origin, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}
        ) as server:
            page_text = block("html").replace("http://127.0.0.1:8787", server.url).replace("…", server.token)
            (tmp_path / "page.html").write_text(page_text)
            async with open_page(browser, f"{origin}/page.html") as page:
                await page.get_by_role("button", name="Ask").click()
                await expect(page.locator("#answer")).to_have_text("It is open in panel-1.")
                await expect(page.locator("#panel")).to_have_text("https://example.org/")


@pytest.mark.parametrize("listed", [True, False])
async def test_a_hook_that_reads_its_own_header_can_be_used_from_a_page(
    browser: Browser, tmp_path: Path, *, listed: bool
) -> None:
    (tmp_path / "page.html").write_text("<title>Elsewhere</title>")
    with site(tmp_path) as origin:
        app = _app(origin, ["X-Team-Key"] if listed else [])
        async with listening(app) as url, open_page(browser, f"{origin}/page.html") as page:
            got = await page.evaluate(READ, [f"{url}/api/chat", {"X-Team-Key": "sesame"}])
            assert got == (200 if listed else "Failed to fetch")
            # one of the usual headers needs no setting
            assert await page.evaluate(READ, [f"{url}/api/chat", {"X-API-Key": "sesame"}]) == 200


def _app(origin: str, headers: list[str]) -> App:
    async def authenticate(request: HTTPConnection) -> Principal | None:
        key = request.headers.get("x-team-key") or request.headers.get("x-api-key")
        return Principal("acme", "ada") if key == "sesame" else None

    agent = Agent(ScriptedModel(["Hello."]))
    return create_app(
        agent, store="memory:", authenticate=authenticate, allow_origins=[origin], allow_headers=headers
    )
