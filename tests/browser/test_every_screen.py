"""Every screen in light, in dark and on a phone: no finding of axe, and nothing overflows.

Cards in all their states are in the gallery, and have the same test there.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser import lamp
from tests.browser.axe import COLOURS, findings
from tests.browser.conftest import EVERYTHING
from tests.browser.test_messages import MARKDOWN, fresh
from tests.browser.test_states import Away
from tests.browser.visitor import Scheme, Visitor, Visitors
from tests.process import FarhandProcess, farhand_process
from tests.requirement import requirement

pytestmark = [requirement("ui:every-screen"), pytest.mark.sweep]

LOOKS: tuple[tuple[Scheme, int], ...] = (("light", 1326), ("dark", 1326), ("light", 390))
WORD = "W" * 180
RIGHT_TO_LEFT = "هل تريد إرسال التقرير الآن؟"


async def is_fine(page: Page, screen: str) -> None:
    """Leaves the page wide and light."""
    for scheme, width in LOOKS:
        await page.emulate_media(color_scheme=scheme)
        await page.set_viewport_size({"width": width, "height": 896})
        found = await findings(page, rules=COLOURS if scheme == "dark" else ())
        assert found == [], f"{screen}, {scheme}, {width}"
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{screen}, {scheme}, {width}: {wide} px too wide"
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size({"width": 1326, "height": 896})


# named before `visitors`: the server leaves after its guests
@pytest.fixture
async def street() -> AsyncIterator[FarhandProcess]:
    async with farhand_process("tests.browser.lamp:agent") as server, lamp.played(server):
        yield server


@pytest.fixture
async def unused(tmp_path: Path) -> AsyncIterator[FarhandProcess]:
    async with farhand_process("demo", env={"FARHAND_DEMO_FOLDER": str(tmp_path / "scratch")}) as server:
        yield server


async def test_a_stranger_signs_in_with_the_token_and_leaves_an_unknown_path_for_the_chat(
    browser: Browser, demo: FarhandProcess
) -> None:
    context = await browser.new_context()
    try:
        page = await context.new_page()
        await page.goto(f"{demo.url}/")
        await is_fine(page, "not signed in")
        await page.get_by_label("Token").fill("wrong-wrong-wrong")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_text("The token is not valid for this server.")).to_be_visible()
        await is_fine(page, "wrong token")
        await page.get_by_label("Token").fill(demo.token)
        await page.get_by_label("Token").press("Enter")
        await expect(page.get_by_text("This browser is connected")).to_have_count(1)
        assert "token" not in page.url
        await page.goto(f"{demo.url}/nowhere")
        await is_fine(page, "unknown path")
        await page.get_by_role("link", name="Open the chat").click()
        await expect(page.get_by_text("This browser is connected")).to_have_count(1)
    finally:
        await context.close()


async def test_what_is_said(player: Visitor, room: Path) -> None:
    await player.new_chat()
    await is_fine(player.page, "welcome")
    await player.asks(MARKDOWN)
    await player.sees_state("Done")
    await expect(player.main.locator(".hljs-keyword").first).to_be_visible()
    await is_fine(player.page, "Markdown")
    await player.main.get_by_role("button", name="Edit").first.click()
    await is_fine(player.page, "a message is edited")
    name = fresh("lamps")
    await player.asks(f"think {name}")
    await expect(player.main.get_by_text(f"About {name}.", exact=True)).to_be_visible()
    await is_fine(player.page, "reasoning")
    (room / "gates" / name).touch()
    await player.sees_state("Done")
    await player.page.goto(f"{player.server.url}/#/chat/nothing-here")
    player.forgives("404")
    await player.sees("There is no such chat.")
    await is_fine(player.page, "no such chat")


async def test_long_words_and_other_directions(player: Visitor) -> None:
    await player.asks(f"write {WORD} {RIGHT_TO_LEFT}")
    await player.sees_state("Done")
    await is_fine(player.page, "a long word")
    choice = {"question": f"{RIGHT_TO_LEFT} {WORD}", "options": [WORD, "short", "many words " * 20]}
    await player.asks(f"choose {json.dumps(choice, ensure_ascii=False)}")
    await player.cards.get_by_text("short").click()
    await is_fine(player.page, "a long question")
    await player.presses("Send answer")
    await player.sees_state("Done")
    await is_fine(player.page, "a long row")


async def test_when_something_is_wrong(guest: Visitor, player: Visitor) -> None:
    await guest.asks("Fail on purpose")
    await guest.sees_state("Failed")
    await is_fine(guest.page, "failed")
    guest.expects_to_be_cut_off()
    away = Away(guest, "**/api/chat/*/stream*")
    await away.begins()
    await guest.tries("A long story")
    await guest.sees("Once upon a time")
    await guest.presses("Pull the plug")
    await guest.sees("Connection lost. Trying again.")
    await is_fine(guest.page, "connection lost")
    await away.ends()
    player.forgives("401")
    await player.asks('choose {"question": "Which one?", "options": ["red", "blue"]}')
    await player.cards.get_by_text("blue").click()
    await player.page.context.clear_cookies()
    await player.presses("Send answer")
    await player.sees("Your answer: blue")
    await expect(player.cards.get_by_role("alert")).to_have_text("You were signed out.")
    await is_fine(player.page, "signed out")


async def test_the_lamp_story_and_a_page_beside_it(demo: FarhandProcess, visitors: Visitors) -> None:
    guest = await visitors.at(demo, allowed=EVERYTHING)
    await guest.tries("Report a street lamp")
    await expect(guest.main.get_by_role("button", name="Share once")).to_be_visible()
    await is_fine(guest.page, "location")
    await guest.presses("Share once")
    await expect(guest.main.get_by_role("button", name="Take photo")).to_be_visible()
    await is_fine(guest.page, "photo")
    await guest.presses("Stop")
    await guest.sees_state("Stopped")
    await is_fine(guest.page, "stopped")
    # somebody stopped it: nothing broke
    await expect(guest.main.get_by_role("img", name="Failed")).to_have_count(0)
    await guest.asks("Open the lamp form")
    await guest.presses("Open")
    await expect(guest.page.get_by_role("complementary", name="Page beside the chat")).to_be_visible()
    await is_fine(guest.page, "a page beside the chat")


async def test_the_inbox(unused: FarhandProcess, visitors: Visitors) -> None:
    guest = await visitors.at(unused, "#/inbox")
    await guest.sees("All caught up.")
    await is_fine(guest.page, "empty inbox")
    for prompt in ("Delete the file old-draft.txt", "Delete the file notes.md"):
        await guest.asks(prompt)
        await guest.sees("Waiting for 1 answer.")
    await guest.page.goto(f"{unused.url}/#/inbox")
    for number in (0, 1):
        await guest.main.get_by_role("checkbox", name="Pick").nth(number).check()
    await expect(guest.main.get_by_role("group", name="Picked questions")).to_be_visible()
    await is_fine(guest.page, "inbox with picked questions")


async def test_the_inspector(street: FarhandProcess, visitors: Visitors) -> None:
    guest = await visitors.at(street)
    page = guest.page
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"{street.url}/_farhand")
    await expect(page.get_by_role("navigation", name="Runs").get_by_role("link").first).to_be_visible()
    assert await findings(page) == [], "runs on a phone"
    await page.get_by_role("link", name="The street lamp").first.click()
    await expect(page.get_by_role("heading", name="The street lamp")).to_be_visible()
    await is_fine(page, "run")
    await guest.main.get_by_role("link", name="photo").first.click()
    await expect(page.get_by_text("Answer stored (exactly once)")).to_be_visible()
    # the title keeps its room beside an open call
    title = await page.get_by_role("heading", name="The street lamp").bounding_box()
    assert title is not None
    assert title["width"] > 300
    await is_fine(page, "call")
    await page.get_by_role("button", name="Rerun from here").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await is_fine(page, "rerun")
    await page.keyboard.press("Escape")
    for tab in ("Inbox", "Clients", "Tools", "Events"):
        await (
            page.get_by_role("navigation", name="Inspector")
            .get_by_role("link", name=re.compile(f"^{tab}"))
            .click()
        )
        await expect(page.get_by_role("heading", name=tab, level=1)).to_be_visible()
        await is_fine(page, tab)
    await page.goto(f"{street.url}/_farhand#/runs/run_nothing")
    guest.forgives("404")
    await expect(page.get_by_text("This no longer exists")).to_be_visible()
    await is_fine(page, "no such run")


async def test_lists_scroll_and_the_page_around_them_does_not(
    street: FarhandProcess, visitors: Visitors
) -> None:
    """Though every row has words for screen readers, which are placed absolutely."""
    guest = await visitors.at(street)
    page = guest.page
    await page.set_viewport_size({"width": 1326, "height": 330})
    for address in ("/", "/#/inbox", "/_farhand"):
        await page.goto(f"{street.url}{address}")
        await expect(page.get_by_role("link", name="The street lamp").first).to_be_visible()
        await _stays(page, address)
    await page.get_by_role("link", name="The street lamp").first.click()
    await expect(page.get_by_role("heading", name="The street lamp")).to_be_visible()
    await _stays(page, "run")
    await page.goto(f"{street.url}/")
    await page.get_by_role("link", name="The street lamp").first.click()
    await expect(guest.main.get_by_text("The street lamp").first).to_be_visible()
    await _stays(page, "chat")


async def _stays(page: Page, screen: str) -> None:
    assert await page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0, screen


async def test_an_inspector_without_runs(unused: FarhandProcess, visitors: Visitors) -> None:
    guest = await visitors.at(unused)
    await guest.page.goto(f"{unused.url}/_farhand")
    await expect(guest.page.get_by_text("No runs yet.")).to_be_visible()
    await is_fine(guest.page, "no runs")
