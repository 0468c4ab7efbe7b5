"""The demo's story, played to its end by a visitor: nothing leaves this machine."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, expect

from tests.browser.chromium import chromium
from tests.browser.visitor import Visitor
from tests.requirement import requirement


@pytest.fixture(scope="module")
async def browser(built: None) -> AsyncIterator[Browser]:
    async with chromium(has_camera=True) as browser:
        yield browser


@requirement("demo:offline")
async def test_a_street_lamp_is_reported_and_the_form_beside_the_chat_shows_what_was_found(
    guest: Visitor,
) -> None:
    asked: list[str] = []
    guest.page.on("request", lambda each: asked.append(each.url))
    await guest.tries("Report a street lamp")
    await guest.presses("Share once")
    await guest.card("Photo of the lamp").get_by_role("button", name="Take photo").click()
    await guest.card("Photo of the lamp").get_by_role("button", name="Use photo").click()
    await guest.sees("Open it beside this chat to follow along.")
    await guest.presses("Open")
    form = guest.page.frame_locator("iframe")
    await expect(form.get_by_text("14 Mill Lane, 54.9783, -1.6178")).to_be_visible()
    await expect(form.get_by_text("photo.jpg")).to_be_visible()
    photo = form.locator(".photo img")
    assert await photo.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    await guest.main.get_by_text("Normal: within a week").click()
    urgency = guest.card("How urgent is it?")
    await urgency.get_by_role("button", name="Send answer").click()
    more = guest.card("What else should the council know?")
    await more.get_by_role("textbox").fill("The bulb flickered before.")
    await more.get_by_role("button", name="Send answer").click()
    await expect(form.get_by_text("Normal: within a week")).to_be_visible()
    report = guest.card("Send the report to lighting@northgate.example?")
    await expect(report.get_by_role("row", name=re.compile("problem.*The bulb flickered"))).to_be_visible()
    await report.get_by_role("button", name="Allow once").click()
    await guest.sees(re.compile(r"Sent\. The reference is NG-\d{6}"))
    titles = guest.rows.locator(".fh-title")
    await expect(titles).to_have_text(
        [
            "Find the lamp owner",
            "Location",
            "Photo of the lamp",
            "Page opened",
            "How urgent is it?",
            "What else should the council know?",
            "Page opened",
            "Send the report to lighting@northgate.example",
        ]
    )
    assert [each for each in asked if not each.startswith((guest.server.url, "blob:", "data:"))] == []


async def test_a_typed_place_is_used_as_typed_and_the_photo_can_be_skipped(guest: Visitor) -> None:
    await guest.tries("Report a street lamp")
    await guest.presses("Type a place")
    place = "14 Northgate Road & Mill Lane #2, 100%+"
    await guest.main.get_by_role("textbox", name="Place").fill(place)
    await guest.presses("Send answer")
    await guest.card("Photo of the lamp").get_by_role("button", name="Skip").click()
    await guest.presses("Open")
    form = guest.page.frame_locator("iframe")
    await expect(form.get_by_text(place, exact=True)).to_be_visible()
    await expect(form.get_by_text("No photo")).to_be_visible()
    await guest.main.get_by_text("Low: any time this month").click()
    await guest.card("How urgent is it?").get_by_role("button", name="Send answer").click()
    more = guest.card("What else should the council know?")
    await more.get_by_role("textbox").fill("Nothing")
    await more.get_by_role("button", name="Send answer").click()
    report = guest.card("Send the report to lighting@northgate.example?")
    await expect(report.get_by_role("row", name=f"place {place}", exact=True)).to_be_visible()
    await expect(report.get_by_role("row", name="photo none", exact=True)).to_be_visible()
    await expect(form.get_by_text("Low: any time this month")).to_be_visible()
    await report.get_by_role("button", name="Allow once").click()
    await guest.sees(re.compile(r"Sent\. The reference is NG-\d{6}"))


async def test_after_a_reload_at_a_card_the_next_cards_can_be_answered(guest: Visitor) -> None:
    await guest.tries("Report a street lamp")
    await guest.presses("Share once")
    await expect(guest.card("Photo of the lamp")).to_be_visible()
    await guest.page.reload()
    await guest.card("Photo of the lamp").get_by_role("button", name="Skip").click()
    await guest.presses("Open")
    await guest.page.reload()
    await guest.card("How urgent is it?").get_by_role("radio").first.check()
    await guest.card("How urgent is it?").get_by_role("button", name="Send answer").click()
    await guest.card("What else should the council know?").get_by_role("button", name="Skip").click()
    report = guest.card("Send the report to lighting@northgate.example?")
    await report.get_by_role("button", name="Allow once").click()
    await guest.sees(re.compile(r"Sent\. The reference is NG-\d{6}"))
