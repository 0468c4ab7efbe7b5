"""Approvals and denials on the chat page."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.async_api import expect

from tests.browser.visitor import Visitor
from tests.requirement import requirement

pytestmark = requirement("page:approvals")


async def test_an_allowed_call_runs_once_with_what_was_shown(player: Visitor, room: Path) -> None:
    await player.asks('send_report {"to": "once@example", "copies": 2}')
    card = player.card("Send report?")
    await expect(card.get_by_text("Runs on the server once you allow it")).to_be_visible()
    await expect(card.locator("code")).to_have_text("send_report")
    await expect(card.get_by_role("row", name="to once@example")).to_be_visible()
    await expect(card.get_by_role("row", name="copies 2")).to_be_visible()
    await card.get_by_role("button", name="Allow once").click()
    await player.sees('send_report brought {"sent": "once@example"}.')
    assert sent(room, "once@example") == [2]


async def test_an_edited_call_runs_with_what_was_written(player: Visitor, room: Path) -> None:
    await player.asks('send_report {"to": "edit@example", "copies": 1}')
    card = player.card("Send report?")
    await card.get_by_role("button", name="Edit").click()
    await card.get_by_role("textbox", name="copies").fill("many")
    await expect(card.get_by_text("Enter a whole number.")).to_be_visible()
    await expect(card.get_by_role("button", name="Allow once")).to_be_disabled()
    await card.get_by_role("textbox", name="copies").fill("3")
    await card.get_by_role("textbox", name="to").fill("edited@example")
    await card.get_by_role("button", name="Allow once").click()
    await player.sees('send_report brought {"sent": "edited@example"}.')
    assert sent(room, "edited@example") == [3]
    assert sent(room, "edit@example") == []


async def test_changes_that_are_undone_leave_the_call_as_it_was(player: Visitor, room: Path) -> None:
    await player.asks('send_report {"to": "undone@example", "copies": 1}')
    card = player.card("Send report?")
    await card.get_by_role("button", name="Edit").click()
    await card.get_by_role("textbox", name="to").fill("other@example")
    await card.get_by_role("button", name="Undo changes").click()
    await card.get_by_role("button", name="Allow once").click()
    await player.sees('send_report brought {"sent": "undone@example"}.')
    assert sent(room, "other@example") == []


async def test_a_denied_call_does_not_run_and_the_model_is_told_why(player: Visitor, room: Path) -> None:
    await player.asks('send_report {"to": "deny@example", "copies": 1}')
    card = player.card("Send report?")
    await card.get_by_role("button", name="Deny").click()
    await card.get_by_role("textbox").fill("Wrong address")
    await card.get_by_role("button", name="Deny").click()
    await player.sees("send_report brought nothing: denied, ")
    denied = player.card("Send report: not done")
    await expect(denied.get_by_text("Denied: “Wrong address”")).to_be_visible()
    await expect(denied.get_by_text("Denied", exact=True)).to_be_visible()
    assert sent(room, "deny@example") == []


async def test_whoever_goes_back_from_denying_can_still_allow(player: Visitor) -> None:
    await player.asks('send_report {"to": "back@example", "copies": 1}')
    card = player.card("Send report?")
    await card.get_by_role("button", name="Deny").click()
    await card.get_by_role("button", name="Back").click()
    await card.get_by_role("button", name="Allow once").click()
    await player.sees('send_report brought {"sent": "back@example"}.')


async def test_always_holds_in_this_chat_and_in_no_other(player: Visitor, room: Path) -> None:
    await player.asks('send_report {"to": "first@example", "copies": 1}')
    await player.allows_always()
    await player.sees('send_report brought {"sent": "first@example"}.')
    await player.says('send_report {"to": "second@example", "copies": 1}')
    await player.sees('send_report brought {"sent": "second@example"}.')
    assert sent(room, "second@example") == [1]
    await player.asks('send_report {"to": "third@example", "copies": 1}')
    await expect(player.card("Send report?")).to_be_visible()
    assert sent(room, "third@example") == []


async def test_a_tool_of_the_browser_is_allowed_first_and_asked_then(guest: Visitor) -> None:
    await guest.tries("Take a photo")
    card = guest.card("Take a photo?")
    await expect(card.get_by_text("Runs in this browser once you allow it")).to_be_visible()
    await card.get_by_role("button", name="Allow once").click()
    await expect(guest.card("Take a photo").get_by_text("Uses your camera once")).to_be_visible()


async def test_of_two_calls_the_allowed_one_runs_while_the_other_still_asks(
    player: Visitor, room: Path
) -> None:
    calls = 'print_report {"name": "first-of-two"}\nsend_report {"to": "second@two", "copies": 1}'
    await player.asks(calls)
    first, second = player.card("Print report"), player.card("Send report?")
    await expect(second).to_be_visible()
    await player.sees("Waiting for 2 answers.")
    await player.card("Print report?").get_by_role("button", name="Allow once").click()
    await expect(first.get_by_text("Running on the server")).to_be_visible()
    await expect(second.get_by_role("button", name="Allow once")).to_be_enabled()
    await player.sees("Waiting for 1 answer.")
    await player.sees_state("Waiting for you")
    # the same for whoever comes back meanwhile
    await player.page.reload()
    await expect(first.get_by_text("Running on the server")).to_be_visible()
    await expect(second.get_by_role("button", name="Allow once")).to_be_enabled()
    (room / "gates" / "first-of-two").touch()
    row = player.rows.filter(has_text="Print report")
    await expect(row).to_have_attribute("data-state", "done")
    await expect(first).to_have_count(0)
    assert sent(room, "second@two") == []
    await second.get_by_role("button", name="Allow once").click()
    await player.sees('print_report brought {"printed": "first-of-two"}. send_report brought')
    assert sent(room, "second@two") == [1]


async def test_the_words_in_an_empty_field_are_as_readable_as_others(player: Visitor) -> None:
    await player.asks('send_report {"to": "reason@example", "copies": 1}')
    card = player.card("Send report?")
    await card.get_by_role("button", name="Deny").click()
    muted = await card.locator(".fh-context").first.evaluate("each => getComputedStyle(each).color")
    reason = card.get_by_label("Reason (optional)")
    assert await reason.evaluate("each => getComputedStyle(each, '::placeholder').color") == muted


def sent(room: Path, to: str) -> list[int]:
    """How many copies went to this address, one number for each time."""
    notes = room / "notes.jsonl"
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [each["copies"] for each in map(json.loads, lines) if each.get("to") == to]
