"""Every page in light and dark: no finding of axe, and pictures for the documentation.

`make screenshots` keeps the pictures in docs/screenshots; otherwise they are only taken.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Route, expect

from tests.browser import lamp
from tests.browser.axe import COLOURS, findings
from tests.browser.visitor import Scheme, Visitor, Visitors
from tests.process import ROOT, FarhandProcess, farhand_process

pytestmark = pytest.mark.sweep

CHAT = (1480, 1040)
INSPECTOR = (1520, 900)
NARROW = (390, 844)
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


@pytest.fixture
async def fresh(tmp_path: Path) -> AsyncIterator[FarhandProcess]:
    """A demo that nobody has used yet."""
    async with farhand_process("demo", env={"FARHAND_DEMO_FOLDER": str(tmp_path / "scratch")}) as server:
        yield server


# named before `visitors` wherever both are: the server leaves after its guests
@pytest.fixture
async def street() -> AsyncIterator[FarhandProcess]:
    """The story of the lamp, played up to the two questions that are left."""
    async with farhand_process("tests.browser.lamp:agent") as server, lamp.played(server):
        yield server


async def test_a_newcomer_sees_what_there_is_to_ask(
    fresh: FarhandProcess, visitors: Visitors, tmp_path: Path
) -> None:
    guest = await visitors.at(fresh, size=CHAT)
    await expect(guest.main.get_by_role("list", name="Try one").get_by_role("button")).to_have_count(6)
    await has_no_finding(guest, "chat-empty", tmp_path)


async def test_the_chat_with_open_cards_and_when_all_is_done(
    street: FarhandProcess, visitors: Visitors, tmp_path: Path
) -> None:
    guest = await visitors.at(street, f"#/chat/{lamp.THREAD}", size=CHAT)
    await guest.page.context.route(f"{lamp.FORM}*", _form)
    await guest.sees("Waiting for 2 answers.")
    await guest.main.get_by_role("button", name="Open again: northgate.example").click()
    await expect(guest.page.frame_locator("iframe").get_by_text("Report a street lamp")).to_be_visible()
    await guest.main.get_by_text("Normal").click()
    await has_no_finding(guest, "chat-cards", tmp_path)
    await guest.presses("Send answer")
    # the approval moves up when this one leaves, and a press while it moves does not count
    await expect(guest.card("How urgent is it?")).to_have_count(0)
    await guest.presses("Allow once")
    await guest.sees("It is on its way.")
    await guest.sees_state("Done")
    await has_no_finding(guest, "chat-done", tmp_path)


async def test_the_inbox_over_all_chats(street: FarhandProcess, visitors: Visitors, tmp_path: Path) -> None:
    guest = await visitors.at(street, "#/inbox", size=CHAT)
    await guest.sees("3 open questions in all your chats")
    await expect(guest.cards).to_have_count(3)
    await has_no_finding(guest, "inbox", tmp_path)


async def test_a_run_and_one_of_its_calls_in_the_inspector(
    street: FarhandProcess, visitors: Visitors, tmp_path: Path
) -> None:
    guest = await visitors.at(street, size=INSPECTOR)
    await guest.page.goto(f"{street.url}/_farhand")
    await guest.page.get_by_role("link", name="The street lamp").first.click()
    await guest.main.get_by_role("link", name="photo").first.click()
    await expect(guest.page.get_by_text("Answer stored (exactly once)")).to_be_visible()
    await has_no_finding(guest, "inspector", tmp_path)


async def test_blocked_and_denied_cards_have_no_finding(visitors: Visitors, demo: FarhandProcess) -> None:
    guest = await visitors.at(demo, size=CHAT)
    await guest.forbids("geolocation")
    await guest.tries("Where am I?")
    await guest.presses("Share once")
    await expect(guest.card("Location is blocked")).to_be_visible()
    await has_no_finding(guest)
    await guest.tries("Delete an old draft")
    await guest.presses("Deny")
    await guest.presses("Deny")
    await expect(guest.card("Delete old-draft.txt: not done")).to_be_visible()
    await has_no_finding(guest)


async def test_the_colours_follow_the_system(visitors: Visitors, demo: FarhandProcess) -> None:
    ground = "() => getComputedStyle(document.body).backgroundColor"
    guest = await visitors.at(demo, scheme="light")
    light = await guest.page.evaluate(ground)
    await guest.page.emulate_media(color_scheme="dark")
    assert await guest.page.evaluate(ground) != light


async def test_on_a_narrow_screen_lists_and_pages_are_drawers_and_nothing_sticks_out(
    visitors: Visitors, demo: FarhandProcess
) -> None:
    guest = await visitors.at(demo, size=NARROW)
    chats = guest.page.get_by_role("navigation", name="Chats")
    await expect(chats).to_be_hidden()
    await guest.tries("Open a page")
    await expect(guest.card("Open example.com")).to_be_visible()
    assert await fits(guest)
    await has_no_finding(guest)
    await guest.finds_other_sites()
    await guest.presses("Open")
    panel = guest.page.get_by_role("complementary", name="Page beside the chat")
    await expect(panel).to_be_visible()
    assert await fits(guest)
    await panel.get_by_role("button", name="Close the page").press("Escape")
    await expect(panel).to_have_count(0)
    await guest.main.get_by_role("button", name="Chats", exact=True).click()
    await expect(chats).to_be_visible()
    await chats.get_by_role("link", name="New chat").click()
    await expect(chats).to_be_hidden()
    await guest.is_welcome()
    assert await fits(guest)


async def test_the_inspector_fits_on_a_narrow_screen(street: FarhandProcess, visitors: Visitors) -> None:
    guest = await visitors.at(street, size=NARROW)
    await guest.page.goto(f"{street.url}/_farhand")
    await guest.page.get_by_role("link", name="The street lamp").first.click()
    await expect(guest.page.get_by_role("heading", name="The street lamp")).to_be_visible()
    assert await fits(guest)
    assert await findings(guest.page) == []


async def has_no_finding(guest: Visitor, name: str = "", folder: Path | None = None) -> None:
    """In light and in dark, where only colours differ. With a name, each has its picture."""
    for scheme in SCHEMES:
        await guest.page.emulate_media(color_scheme=scheme)
        assert await findings(guest.page, rules=COLOURS if scheme == "dark" else ()) == [], scheme
        if folder is not None:
            await picture(guest, f"{name}-{scheme}", folder)
    await guest.page.emulate_media(color_scheme="light")


async def fits(guest: Visitor) -> bool:
    return bool(await guest.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


async def picture(guest: Visitor, name: str, folder: Path) -> None:
    kept = ROOT / "docs/screenshots" if os.environ.get("SCREENSHOTS") else folder
    path = kept / f"{name}.png"
    # a caret that blinks or a pointer that hovers would make every picture another one
    await guest.page.mouse.move(0, 0)
    await guest.page.screenshot(path=path, caret="hide")
    assert path.stat().st_size > 20_000, "an empty page makes a small picture"


async def _form(route: Route) -> None:
    await route.fulfill(path=Path(__file__).with_name("form.html"), content_type="text/html")
