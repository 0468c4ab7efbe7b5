"""The whole page, used with the keyboard alone."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

from tests.browser.visitor import Visitor
from tests.requirement import requirement

pytestmark = requirement("page:keyboard")

OUTLINE = "() => getComputedStyle(document.activeElement).outlineStyle"


async def test_a_question_is_asked_and_answered_with_keys_alone(guest: Visitor) -> None:
    await guest.new_chat()
    keys = guest.page.keyboard
    await expect(guest.page.get_by_role("textbox", name="Message")).to_be_focused()
    await keys.type("Help me choose lunch")
    await keys.press("Enter")
    card = guest.card("What shall it be for lunch?")
    await expect(card.get_by_role("radio").last).to_be_visible()
    # whoever is in the message box stays there until they leave it
    await expect(guest.page.get_by_role("textbox", name="Message")).to_be_focused()
    await back_to(guest.page, card.get_by_role("radio").last)
    await keys.press("Space")
    await keys.press("ArrowUp")
    await expect(card.get_by_role("radio", name="Noodles")).to_be_checked()
    await keys.press("Tab")
    await expect(card.get_by_role("button", name="Send answer")).to_be_focused()
    assert await guest.page.evaluate(OUTLINE) != "none"
    await keys.press("Enter")
    await guest.sees("Noodles, then. Enjoy.")


async def test_shift_and_tab_in_the_message_box_lead_to_the_field_of_a_question_and_not_to_skip(
    player: Visitor,
) -> None:
    await player.asks('ask_text {"question": "Your name?"}')
    await expect(player.card("Your name?").get_by_role("textbox")).to_be_visible()
    await player.page.get_by_role("textbox", name="Message").focus()
    await player.page.keyboard.press("Shift+Tab")
    await player.page.keyboard.type("Ada")
    await player.page.keyboard.press("Enter")
    await player.sees('ask_text brought "Ada".')
    await player.asks('send_report {"to": "ada", "copies": 1}')
    await player.card("Send report?").get_by_role("button", name="Deny").click()
    reason = player.card("Send report?").get_by_role("textbox")
    await expect(reason).to_be_focused()
    await player.page.get_by_role("textbox", name="Message").focus()
    await player.page.keyboard.press("Shift+Tab")
    await expect(reason).not_to_be_focused()


async def test_the_focus_goes_from_card_to_card_as_they_are_answered(guest: Visitor) -> None:
    await guest.tries("Two things at once")
    name = guest.card("What shall I call you?").get_by_role("textbox")
    await back_to(guest.page, name)
    await guest.page.keyboard.type("Ada")
    await guest.page.keyboard.press("Enter")
    await guest.sees("Waiting for 1 answer.")
    await expect(guest.card("Pick your favourite colour").locator("input")).to_be_focused()
    await tab_to(guest.page, "Send answer")
    await guest.page.keyboard.press("Space")
    await guest.sees("Thank you, Ada.")


async def test_after_a_reload_the_focus_is_on_the_heading_of_the_question(player: Visitor) -> None:
    questions = {
        "Go on?": 'user_confirm {"message": "Go on?"}',
        "Your name?": 'ask_text {"question": "Your name?"}',
        "Send report?": 'send_report {"to": "ada", "copies": 1}',
    }
    for title, question in questions.items():
        await player.asks(question)
        heading = player.card(title).get_by_role("heading", name=title)
        await expect(heading).to_be_visible()
        await expect(player.page.get_by_role("textbox", name="Message")).to_be_focused()
        await player.page.reload()
        await expect(heading).to_be_focused()
        await player.page.keyboard.press("Enter")
        await player.page.keyboard.press(" ")
        await expect(heading).to_be_focused()
        await expect(player.card(title)).to_have_attribute("data-state", re.compile("open|parked"))


async def test_a_chat_that_asks_nothing_has_the_focus_in_the_message_box_after_a_reload(
    player: Visitor,
) -> None:
    await player.asks("write Hello.")
    await player.sees_state("Done")
    await player.page.reload()
    await expect(player.page.get_by_role("textbox", name="Message")).to_be_focused()


async def test_a_allows_and_d_denies(player: Visitor) -> None:
    await player.asks('send_report {"to": "keys", "copies": 1}')
    allow = player.card("Send report?").get_by_role("button", name="Allow once")
    await expect(allow).to_be_enabled()
    await back_to(player.page, allow)
    await player.page.keyboard.press("a")
    await player.sees('send_report brought {"sent": "keys"}.')
    await player.says('send_report {"to": "no-keys", "copies": 1}')
    await expect(allow).to_be_enabled()
    await back_to(player.page, allow)
    await player.page.keyboard.press("d")
    await expect(player.main.get_by_label("Reason (optional)")).to_be_focused()
    # letters are words now, not orders
    await player.page.keyboard.type("a bad idea")
    await tab_to(player.page, "Deny")
    await player.page.keyboard.press("Enter")
    await expect(player.card("Send report: not done").get_by_text("“a bad idea”")).to_be_visible()


async def test_new_questions_are_announced_politely(guest: Visitor) -> None:
    await guest.tries("Yes or no")
    spoken = guest.main.locator("[aria-live=polite]").filter(has_text="Shall I go on?")
    await expect(spoken).to_have_count(1)
    status = guest.main.get_by_role("status").filter(has_text="The assistant: Waiting for you")
    await expect(status).to_have_count(1)


async def test_a_file_a_fold_and_the_way_back_are_reached_with_keys(guest: Visitor) -> None:
    # watched from the start: a chooser that opens before anybody looks is gone
    async with guest.page.expect_file_chooser() as choosing:
        await guest.tries("Pick a file")
        await back_to(guest.page, guest.main.get_by_role("button", name="Choose a file"))
        await guest.page.keyboard.press("Enter")
    chosen = await choosing.value
    await chosen.set_files({"name": "keys.txt", "mimeType": "text/plain", "buffer": b"keys"})
    await guest.sees("keys.txt has 4 bytes")
    await guest.sees_state("Done")
    await guest.rows.locator("summary").focus()
    await guest.page.keyboard.press("Enter")
    await expect(guest.rows.get_by_text(re.compile(r'"ref": "blob_'))).to_be_visible()
    await guest.page.get_by_role("link", name="New chat").focus()
    await guest.page.keyboard.press("Enter")
    await guest.is_welcome()


async def back_to(page: Page, target: Locator) -> None:
    """Presses Shift and Tab until this has the focus; not forever."""
    await expect(target).to_be_visible()
    for _ in range(12):
        if await target.evaluate("(element) => element === document.activeElement"):
            return
        await page.keyboard.press("Shift+Tab")
    raise AssertionError("Shift and Tab do not lead there")


async def tab_to(page: Page, name: str) -> None:
    """Presses Tab until a button of this name has the focus; not forever."""
    for _ in range(8):
        await page.keyboard.press("Tab")
        if await page.evaluate("() => document.activeElement.textContent.trim()") == name:
            return
    raise AssertionError(f"Tab does not lead to {name}")
