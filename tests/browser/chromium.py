"""Starts Debian's chromium under Playwright, and simulates what a person does with a browser."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # no test reaches beyond this machine
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    # a camera that shows a moving picture, on machines that have none
    "--use-fake-device-for-media-stream",
)
STARTED_WITHIN_MS = 50_000


@asynccontextmanager
async def chromium(*flags: str, has_camera: bool = False) -> AsyncIterator[Browser]:
    """A browser with a fresh profile of its own."""
    program = None if has_camera else shutil.which("chromium-headless-shell")
    # the shell is the same engine without camera and desktop: half the processor time
    program = program or shutil.which("chromium")
    assert program is not None, "chromium is missing; `make test` installs it (Debian: apt install chromium)"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=[*FLAGS, *flags], timeout=STARTED_WITHIN_MS
        )
        try:
            yield browser
        finally:
            await browser.close()
