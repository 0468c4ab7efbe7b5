"""One browser and one server of each kind for all tests of a process; a fresh profile for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.chromium import chromium
from tests.browser.visitor import Visitor, Visitors, visitors_of
from tests.process import MANY_RUNS, ROOT, FarhandProcess, farhand_process

EVERYTHING = ("geolocation", "camera", "clipboard-read", "clipboard-write")


@pytest.fixture(scope="package")
def anyio_backend() -> str:
    # wider than elsewhere: browser and servers outlive a test, and their loop with them
    return "asyncio"


@pytest.fixture(scope="package")
def built() -> None:
    pages = ROOT / "src/farhand/_ui/index.html"
    assert pages.exists(), "the pages are not built; `make ui` does it"


@pytest.fixture(scope="package")
async def browser(built: None) -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FarhandProcess]:
    """`farhand demo`, shared by the tests of this process: chats are each their own."""
    folder = tmp_path_factory.mktemp("demo") / "scratch"
    async with farhand_process("demo", env={"FARHAND_DEMO_FOLDER": str(folder), **MANY_RUNS}) as server:
        yield server


@pytest.fixture(scope="package")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the stage's tools note what they did, and where their gates are."""
    folder = tmp_path_factory.mktemp("room")
    (folder / "gates").mkdir()
    return folder


@pytest.fixture(scope="package")
async def stage(room: Path) -> AsyncIterator[FarhandProcess]:
    """An agent that calls whatever tool it is told to; shared like the demo."""
    async with farhand_process(
        "tests.browser.stage:agent", env={"TEST_ROOM": str(room), **MANY_RUNS}
    ) as server:
        yield server


@pytest.fixture
async def visitors(browser: Browser) -> AsyncIterator[Visitors]:
    async with visitors_of(browser) as visitors:
        yield visitors


@pytest.fixture
async def guest(visitors: Visitors, demo: FarhandProcess) -> Visitor:
    """A person at the demo whose browser allows everything."""
    return await visitors.at(demo, allowed=EVERYTHING)


@pytest.fixture
async def player(visitors: Visitors, stage: FarhandProcess) -> Visitor:
    """A person at the stage whose browser allows everything."""
    return await visitors.at(stage, allowed=EVERYTHING)
