"""Runs the office with its page in a real browser, approves as a person does, and checks the results.

Run it with `python -m examples.inbox_beside.show`.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from playwright.async_api import Page, async_playwright, expect
from starlette.applications import Starlette

from examples.inbox_beside.office import INVOICES, Script, make_office

HERE = Path(__file__).parent
TS = Path(__file__).parents[2] / "ts"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place, pages = Path(folder), Path(folder) / "pages"
        await _bundle(pages)
        app, pay_invoices = make_office(place, pages)
        async with _served(app) as url, _browser(url) as page:
            await _show(pay_invoices, page, place / "payments.txt")


async def _show(pay_invoices: Script, page: Page, payments: Path) -> None:
    await expect(page.get_by_text("No invoice yet.")).to_be_visible()
    async with asyncio.TaskGroup() as group:
        script = group.create_task(pay_invoices())
        await _approve(page, "I-7")
        await expect(page.get_by_text("Invoice I-8: 80 €")).to_be_visible()
        _print("the page shows", await page.locator("#shown").inner_text())
        await page.reload()
        await expect(page.get_by_text("No invoice yet.")).to_be_visible()
        assert _paid(payments) == ["I-7 120"], (
            "the second payment still waits for its approval after a reload"
        )
        script.cancel()
    _print("the script was stopped, and paid so far", ", ".join(_paid(payments)))

    # the same calls again: settled ones return their outcome, open ones are waited for
    async with asyncio.TaskGroup() as group:
        again = group.create_task(pay_invoices())
        await _approve(page, "I-8")
    outcomes = again.result()
    _print("the script ends with", " | ".join(outcomes))
    assert outcomes[1::2] == [f"paid {amount} for {number}" for number, amount in INVOICES.items()]
    assert "Invoice I-7: 120 €" in outcomes[0]
    assert _paid(payments) == ["I-7 120", "I-8 80"], "each invoice is paid once"
    await expect(page.get_by_role("button", name="Allow once", exact=True)).to_have_count(0)


async def _approve(page: Page, number: str) -> None:
    await expect(page.get_by_text(number, exact=False).last).to_be_visible()
    allow = page.get_by_role("button", name="Allow once", exact=True)
    # a button that has just appeared ignores presses, so that nobody approves by accident
    await expect(allow).to_be_enabled()
    await expect(allow).not_to_have_attribute("aria-disabled", "true")
    await allow.click()
    await expect(allow).to_have_count(0)


def _paid(payments: Path) -> list[str]:
    lines = payments.read_text().splitlines() if payments.exists() else []
    return [line.rpartition(" ")[0] for line in lines]


async def _bundle(pages: Path) -> None:
    command = ("node", str(TS / "bundle-page.mjs"), str(HERE), str(pages))
    bundler = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    assert await bundler.wait() == 0, "the page could not be built"


@asynccontextmanager
async def _served(app: Starlette) -> AsyncIterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve(sockets=[listener]))
        while not server.started:
            assert not serving.done(), "the server ended"
            await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True


@asynccontextmanager
async def _browser(url: str) -> AsyncIterator[Page]:
    program = shutil.which("chromium")
    assert program is not None, "chromium is missing (Debian: apt install chromium)"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            page = await browser.new_page()
            await page.goto(url)
            yield page
        finally:
            await browser.close()


def _print(what: str, shown: str) -> None:
    sys.stdout.write(f"{what}: {shown}\n")


if __name__ == "__main__":
    asyncio.run(main())
