"""A clone of the last commit, `make demo`, and the first card answered in a browser.

Sets up a whole environment, so it takes a minute and the network, and has a command of its own:
`make tests-walk`.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.chromium import chromium
from tests.process import ROOT

READY_WITHIN_SEC = 500
SEEN_WITHIN_MS = 30_000
ADDRESS = re.compile(r"^  open +(http://127\.0\.0\.1:\d+/\?token=\S+)$", re.MULTILINE)
# of the make that runs this test; the newcomer has none of them
OUTER_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "VENV", "PYTHON", "VIRTUAL_ENV")


@pytest.mark.timeout(600)
async def test_in_a_fresh_clone_make_demo_leads_to_a_card_that_can_be_answered(tmp_path: Path) -> None:
    clone = await cloned(tmp_path)
    began = time.monotonic()
    async with demo_in(clone) as out:
        address = await asyncio.wait_for(printed_address(out), READY_WITHIN_SEC)
        took = time.monotonic() - began
        await answer_the_first_card(address)
    told = out.read_text()
    assert "set-up: done in" in told
    assert "demo: everything was set up in" in told
    answered = time.monotonic() - began - took
    # for whoever runs it: a figure of this machine, and no limit
    sys.stdout.write(
        f"\nwalk: ready {took:.0f} s after make demo, first card answered {answered:.0f} s later\n"
    )


async def answer_the_first_card(address: str) -> None:
    async with chromium() as browser:
        page = await browser.new_page()
        page.set_default_timeout(SEEN_WITHIN_MS)
        await page.goto(address)
        await page.get_by_role("main").get_by_role("button", name="Yes or no").click()
        await page.get_by_role("group", name="Shall I go on?").get_by_role("button", name="Yes").click()
        said = page.get_by_text("You said yes, so I went on.")
        await expect(said).to_be_visible(timeout=SEEN_WITHIN_MS)


async def cloned(folder: Path) -> Path:
    clone = folder / "farhand"
    made = await asyncio.create_subprocess_exec("git", "clone", "--quiet", "--no-hardlinks", ROOT, clone)
    assert await made.wait() == 0, "git could not clone the repository"
    return clone


@asynccontextmanager
async def demo_in(clone: Path) -> AsyncIterator[Path]:
    """`make demo` on a free port, as a newcomer types it; what it prints is in the file."""
    out = clone.parent / "out.txt"
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("FARHAND_", "COV_"))}
    own = {name: value for name, value in plain.items() if name not in OUTER_MAKE}
    homes = {"XDG_CONFIG_HOME": str(clone.parent / "config"), "XDG_STATE_HOME": str(clone.parent / "state")}
    with out.open("w") as file:
        process = await asyncio.create_subprocess_exec(
            "make", "demo", "PORT=0", cwd=clone, env={**own, **homes, "COLUMNS": "200"},
            stdin=asyncio.subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
    try:
        yield out
        assert process.returncode is None, out.read_text()
    finally:
        if process.returncode is None:
            # make and the server it started: a group of their own
            os.killpg(process.pid, signal.SIGTERM)
            await process.wait()


async def printed_address(out: Path) -> str:
    """Printed only when the server answers requests."""
    while not (found := ADDRESS.search(read(out))):
        assert "Error" not in read(out), read(out)
        await asyncio.sleep(0.2)
    return found[1]


def read(out: Path) -> str:
    return out.read_text()
