"""A browser that forbids the page to keep anything: everything works for as long as the page is open."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess

FORBIDDEN = """
for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, name, { get() { throw new DOMException("forbidden", "SecurityError"); } });
}
// Chromium then refuses every lock, too
LockManager.prototype.request = async () => { throw new DOMException("denied", "SecurityError"); };
"""
SCHEME = "document.documentElement.getAttribute('data-theme')"


async def _without_storage(visitors: Visitors, server: FarhandProcess) -> Visitor:
    visitor = await visitors.at(server)
    await visitor.page.add_init_script(FORBIDDEN)
    await visitor.page.reload()
    return visitor


async def test_the_chat_page_works_without_storage(visitors: Visitors, stage: FarhandProcess) -> None:
    player = await _without_storage(visitors, stage)
    await expect(player.page.get_by_text("This browser is connected")).to_have_count(1)
    await player.asks('send_report {"to": "unkept@example", "copies": 1}')
    card = player.card("Send report?")
    await card.get_by_role("button", name="Edit").click()
    await card.get_by_role("textbox", name="to").fill("changed@example")
    first = player.page.url
    await player.new_chat()
    await player.page.get_by_role("textbox", name="Message").fill("kept while the page is open")
    await player.page.get_by_role("button", name="Theme: as the system").click()
    assert await player.page.evaluate(SCHEME) == "light"
    await player.page.goto(first)
    await expect(card.get_by_role("textbox", name="to")).to_have_value("changed@example")
    await card.get_by_role("button", name="Allow once").click()
    await player.sees('send_report brought {"sent": "changed@example"}.')
    await player.new_chat()
    await expect(player.page.get_by_role("textbox", name="Message")).to_have_value(
        "kept while the page is open"
    )
    # the wish to stop is kept over a reload where that is allowed
    await player.asks("tell unkept-tale")
    await player.sees("The tale of unkept-tale begins.")
    await player.presses("Stop")
    await player.sees_state("Stopped")


async def test_the_inspector_works_without_storage(visitors: Visitors, stage: FarhandProcess) -> None:
    player = await _without_storage(visitors, stage)
    await player.asks('choose {"question": "Which one, unkept?", "options": ["a", "b"]}')
    await expect(player.cards.filter(has_text="Which one, unkept?")).to_be_visible()
    await player.page.goto(f"{player.server.url}/_farhand#/inbox")
    card = player.cards.filter(has_text="Which one, unkept?")
    await card.get_by_text("b", exact=True).click()
    await card.get_by_role("button", name="Send answer").click()
    await expect(card).to_have_count(0)
