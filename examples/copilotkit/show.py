"""Starts the server and the page, uses the page in Chromium as a person does, and checks what it shows.

Run it with `python -m examples.copilotkit.show`. `--seen FOLDER` keeps pictures of what was on screen.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import secrets
import shutil
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Page, async_playwright, expect

PAGE = Path(__file__).with_name("page")
VITE = PAGE / "node_modules/.bin/vite"
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


async def main(seen: Path | None) -> None:
    assert VITE.exists(), f"run `npm install` in {PAGE} first"
    with tempfile.TemporaryDirectory() as folder:
        token = secrets.token_urlsafe()
        built = Path(folder, "page")
        into = ("--outDir", str(built), "--emptyOutDir", "--logLevel", "warn")
        async with _process({}, str(VITE), "build", *into) as build:
            assert await build.wait() == 0
        store = f"sqlite:///{Path(folder, 'farhand.db')}"
        agent = "examples.copilotkit.assistant:agent"
        server = (sys.executable, "-m", "farhand", "run", agent, "--port", "0", "--store", store)
        preview = (str(VITE), "preview", "--host", "127.0.0.1", "--port", "0", "--outDir", str(built))
        async with _served({"FARHAND_TOKEN": token}, *server) as farhand:
            environment = {"FARHAND_URL": farhand, "FARHAND_TOKEN": token}
            async with _served(environment, *preview) as url, _chromium() as page:
                await _show(page, url, seen)


async def _show(page: Page, url: str, seen: Path | None) -> None:
    await page.goto(url)
    await _say(page, "Put the room on my list")
    await _read(page, "It is on your list: Book a room.")
    entries = page.get_by_role("complementary").get_by_role("listitem")
    assert await entries.all_inner_texts() == ["Book a room"]

    await _say(page, "Find a time to meet")
    await page.reload()
    await _see(page, seen, "a-card-after-a-reload", button="Tuesday at 10:00")
    await page.get_by_role("button", name="Tuesday at 10:00").click()
    await _read(page, "Then we meet on Tuesday at 10:00.")

    await _say(page, "Invite Ada")
    await page.reload()
    await _see(page, seen, "an-approval-after-a-reload", button="Approve")
    await page.get_by_role("button", name="Approve").click()
    await _read(page, "ada@example.com is invited for Tuesday at 10:00.")

    await _say(page, "Book a room")
    await page.reload()
    await page.get_by_label("How many people?").fill("6")
    await _see(page, seen, "a-form-after-a-reload", button="Send")
    await page.get_by_role("button", name="Send", exact=True).click()
    await _read(page, "A room for 6 is booked for Tuesday at 10:00. Ground floor.")


async def _say(page: Page, text: str) -> None:
    box = page.get_by_test_id("copilot-chat-textarea")
    await box.fill(text)
    await box.press("Enter")
    await expect(page.get_by_test_id("copilot-user-message").get_by_text(text)).to_be_visible()
    sys.stdout.write(f"you: {text}\n")


async def _read(page: Page, text: str) -> None:
    await expect(page.get_by_test_id("copilot-assistant-message").get_by_text(text)).to_have_count(1)
    sys.stdout.write(f"assistant: {text}\n")


async def _see(page: Page, seen: Path | None, name: str, *, button: str) -> None:
    """Waits until the card with this button can be answered."""
    await expect(page.get_by_role("button", name=button, exact=True)).to_be_enabled()
    sys.stdout.write(f"{name.replace('-', ' ')}: [{button}]\n")
    if seen is not None:
        await page.screenshot(path=seen / f"{name}.png")


@asynccontextmanager
async def _chromium() -> AsyncIterator[Page]:
    program = shutil.which("chromium")
    assert program is not None, "chromium is missing (Debian: apt install chromium)"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        expect.set_options(timeout=25_000)
        try:
            yield await browser.new_page()
        finally:
            await browser.close()


@asynccontextmanager
async def _served(environment: dict[str, str], *command: str) -> AsyncIterator[str]:
    """A process that prints the address it serves."""
    async with _process(environment, *command) as process:
        assert process.stdout is not None
        while line := (await asyncio.wait_for(process.stdout.readline(), 60)).decode():
            if found := ADDRESS.search(re.sub(r"\x1b\[\d+m", "", line)):
                yield found[0]
                return
        raise AssertionError(f"{command[0]} ended")


@asynccontextmanager
async def _process(environment: dict[str, str], *command: str) -> AsyncIterator[Process]:
    """A process that is terminated at the end of the block."""
    # the server finds this package from the root, the page its own files from its folder
    cwd = PAGE if command[0] == str(VITE) else PAGE.parents[2]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, env={**os.environ, **environment}, stdout=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--seen", type=Path, help="a folder for pictures of the page")
    asyncio.run(main(options.parse_args().seen))
