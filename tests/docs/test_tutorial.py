"""The tutorial works as printed: a card, an approval, a killed server, a program elsewhere."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.chromium import chromium
from tests.postgres import free_port
from tests.requirement import requirement

PAGE = (Path(__file__).parents[2] / "docs/tutorial/your-first-agent.md").read_text()
BLOCK = re.compile(r"^```(\w+)(?: ([\w.]+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [(found[1], found[2] or "", found[3]) for found in BLOCK.finditer(PAGE)]
MESSAGES = re.findall(r"^> (.+)$", PAGE, re.MULTILINE)
SAID = [text.replace("\n", " ") for text in re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", PAGE)]
SEEN_WITHIN_MS = 30_000
READY_WITHIN_SEC = 40.0
BIN = Path(sys.executable).parent


class Reader:
    """Someone who follows the page in a folder of their own, on a free port instead of 8787."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        own = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "FARHAND_"))}
        homes = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}
        [(name, _, value)] = [text.removeprefix("export ").strip().partition("=") for text in blocks("token")]
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        port = {"FARHAND_PORT": str(self.port), "COLUMNS": "200"}
        self.environment: Mapping[str, str] = {**own, **homes, **port, name: value, "PATH": path}
        self.address = f"http://127.0.0.1:{self.port}/?token={value}"

    def write_files(self) -> None:
        for kind, name, text in BLOCKS:
            if kind == "python":
                (self.folder / name).write_text(text.replace(":8787", f":{self.port}"))

    @asynccontextmanager
    async def running(self, command: str, until: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """A command that stays, once it has printed this; killed without a warning at the end."""
        out = self.folder / "out.txt"
        with out.open("w") as file:
            process = await asyncio.create_subprocess_exec(
                *command.split(), cwd=self.folder, env=self.environment, stdout=file, stderr=file
            )
        try:
            async with asyncio.timeout(READY_WITHIN_SEC):
                while until not in out.read_text():
                    assert process.returncode is None, out.read_text()
                    await asyncio.sleep(0.02)
            yield process
        finally:
            process.kill()
            await process.wait()

    async def output_of(self, command: str) -> str:
        """Run as printed, until it succeeds: a program may not have connected yet."""
        async with asyncio.timeout(READY_WITHIN_SEC):
            while True:
                process = await asyncio.create_subprocess_exec(
                    "bash", "-ec", command, cwd=self.folder, env=self.environment,
                    stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                )  # fmt: skip
                out, _ = await process.communicate()
                if process.returncode == 0:
                    return out.decode()


def blocks(name: str, kind: str = "sh") -> list[str]:
    return [
        text.strip() for block_kind, block_name, text in BLOCKS if (block_kind, block_name) == (kind, name)
    ]


def test_the_tutorial_has_no_block_that_is_not_run() -> None:
    known = {"install", "token", "server", "check", "program", "call", "assistant.py", "printer.py"}
    assert {name for kind, name, _ in BLOCKS if kind != "text"} == known


@pytest.mark.browser
@requirement("docs:tutorial")
@pytest.mark.timeout(180)
async def test_the_tutorial_works_as_printed(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.write_files()
    first, second = MESSAGES
    sent, printed = SAID
    server, again = blocks("server")
    async with chromium() as browser:
        page = await browser.new_page()
        page.set_default_timeout(SEEN_WITHIN_MS)
        expect.set_options(timeout=SEEN_WITHIN_MS)
        async with reader.running(server, until="stop "):
            await page.goto(reader.address)
            await send(page, first)
            answer = page.get_by_role("group", name="Who gets the report?").get_by_role("textbox")
            await answer.fill("Ada")
            await answer.press("Enter")
            await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
            assert not (tmp_path / "sent.txt").exists()
        async with reader.running(again, until="stop "):
            await page.get_by_role("button", name="Allow once").click()
            await expect(page.get_by_role("main").get_by_text(sent).first).to_be_visible()
            expected, expected_of_call = blocks("", kind="text")
            assert (await reader.output_of(blocks("check")[0])).strip() == expected
            async with reader.running(blocks("program")[0], until=""):
                called = await reader.output_of(blocks("call")[0])
                assert expected_of_call in called
                await send(page, second)
                await expect(page.get_by_role("main").get_by_text(printed).first).to_be_visible()


async def send(page: Page, text: str) -> None:
    message = page.get_by_role("textbox", name="Message")
    await message.fill(text)
    await message.press("Enter")
