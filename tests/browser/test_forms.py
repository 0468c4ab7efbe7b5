"""Forms that a tool asks for while it runs: filled in, declined, too late, in the chat and in the inbox."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.test_screenshots import fits, has_no_finding
from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess
from tests.requirement import requirement

pytestmark = requirement("page:forms")

MESSAGE = "Who is the table for?"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "maxLength": 40},
        "mail": {"type": "string", "format": "email", "description": "The confirmation goes there."},
        "guests": {"type": "integer", "minimum": 1, "maximum": 12, "default": 2},
        "day": {"type": "string", "format": "date"},
        "area": {
            "type": "string",
            "oneOf": [{"const": "in", "title": "Inside"}, {"const": "out", "title": "On the terrace"}],
        },
        "needs": {"type": "array", "items": {"type": "string", "enum": ["High chair", "Step-free", "Quiet"]}},
        "reminder": {"type": "boolean", "title": "Send me a reminder", "default": True},
    },
    "required": ["name", "mail", "guests", "area"],
}


def asked(**more: object) -> str:
    return f"interview {json.dumps({'about': MESSAGE, **more})}"


async def test_a_form_is_filled_in_and_the_run_continues(player: Visitor) -> None:
    await player.asks(asked(schema=SCHEMA))
    card = player.card(MESSAGE)
    await player.sees("Waiting for 1 answer.")
    await card.get_by_label("Your name").fill("Ada")
    await card.get_by_label("Mail").fill("ada at example")
    await card.get_by_label("Guests").fill("40")
    await card.get_by_role("button", name="Send").click()
    await expect(card.get_by_text("Enter an email address, such as name@example.com.")).to_be_visible()
    await expect(card.get_by_text("Enter 12 or less.")).to_be_visible()
    await expect(card.get_by_text("Choose one.")).to_be_visible()
    await expect(card.get_by_label("Mail")).to_be_focused()
    await card.get_by_label("Mail").fill("ada@example.com")
    await card.get_by_label("Guests").fill("4")
    await card.get_by_label("Day (optional)").fill("2027-03-01")
    await card.get_by_label("On the terrace").check()
    await card.get_by_label("Quiet").check()
    await card.get_by_label("High chair").check()
    await card.get_by_label("Send me a reminder").uncheck()
    await card.get_by_role("button", name="Send").click()
    content = {
        "area": "out",
        "day": "2027-03-01",
        "guests": 4,
        "mail": "ada@example.com",
        "name": "Ada",
        "needs": ["High chair", "Quiet"],
        "reminder": False,
    }
    brought = json.dumps({"action": "accept", "content": content}, sort_keys=True)
    await player.sees(f"interview brought {brought}.")


@pytest.mark.parametrize(("button", "action"), [("Decline", "decline"), ("Close", "cancel")])
async def test_a_form_is_left_without_an_answer_by_a_press_alone(
    player: Visitor, button: str, action: str
) -> None:
    await player.asks(asked(schema=SCHEMA))
    await player.card(MESSAGE).get_by_label("Your name").press("Escape")
    await player.card(MESSAGE).get_by_role("button", name=button).click()
    await player.sees(f'interview brought {{"action": "{action}", "content": {{}}}}.')


async def test_what_was_typed_can_be_read_after_the_time_ran_out(player: Visitor) -> None:
    await player.asks(asked(schema=SCHEMA, seconds=6))
    await player.card(MESSAGE).get_by_label("Your name").fill("Ada Lovelace")
    late = player.card("Timed out")
    await expect(late.get_by_role("row", name=re.compile("Your name.*Ada Lovelace"))).to_be_visible()


async def test_a_page_is_named_in_full_and_opens_from_a_press_alone(player: Visitor) -> None:
    url = "https://a-rather-long-name.accounts.pages.example/connect?state=1"
    await player.asks(asked(url=url))
    card = player.card(MESSAGE)
    await expect(card.get_by_text("a-rather-long-name.accounts.pages.example", exact=True)).to_be_visible()
    link = card.get_by_role("link", name="Open page")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    assert len(player.page.context.pages) == 1
    await player.finds_other_sites()
    async with player.page.context.expect_page() as opening:
        await link.click()
    opened = await opening.value
    await expect(opened.get_by_text("Another site")).to_be_visible()
    assert opened.url == url
    assert await opened.evaluate("window.opener") is None
    await card.get_by_role("button", name="Done").click()
    await player.sees('interview brought {"action": "accept", "content": {}}.')


async def test_a_form_is_answered_in_the_inbox_with_what_was_typed_in_the_chat(player: Visitor) -> None:
    message = "Which name goes on the door?"
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    await player.asks(f"interview {json.dumps({'about': message, 'schema': schema})}")
    await player.card(message).get_by_label("Name").fill("Ada")
    thread = player.thread_id
    await player.page.get_by_role("link", name="Inbox").click()
    await player.sees("in all your chats")
    card = player.card(message)
    await expect(card.get_by_label("Name")).to_have_value("Ada")
    await card.get_by_role("button", name="Send").click()
    await expect(card).to_have_count(0)
    await player.page.goto(f"{player.server.url}/#/chat/{thread}")
    await player.sees('interview brought {"action": "accept", "content": {"name": "Ada"}}.')


async def test_a_form_with_mistakes_has_no_finding_and_fits(
    stage: FarhandProcess, visitors: Visitors, tmp_path: Path
) -> None:
    guest = await visitors.at(stage, size=(1100, 1150))
    await guest.asks(asked(schema=SCHEMA))
    card = guest.card(MESSAGE)
    await card.get_by_label("Mail").fill("ada at example")
    await card.get_by_role("button", name="Send").click()
    await expect(card.get_by_text("Fill in this field.")).to_be_visible()
    await has_no_finding(guest, "form", tmp_path)
    await guest.page.set_viewport_size({"width": 390, "height": 844})
    assert await fits(guest)
