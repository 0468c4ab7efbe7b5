"""Cards derived from schemas, answers that can be changed, time to type, marks, and cards that are not
visible."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.async_api import expect

from tests.browser.test_approvals import sent
from tests.browser.visitor import Visitor
from tests.requirement import requirement

HIDE = "() => { document.querySelector('main').style.display = 'none'; }"
SHOW = "() => { document.querySelector('main').style.display = ''; }"
A_SECOND = "() => new Promise((wake) => setTimeout(wake, 1_000))"


@requirement("cards:guessed")
async def test_a_tool_without_a_card_that_wants_yes_or_no_is_a_confirm_card(player: Visitor) -> None:
    await player.asks('approve_plan {"message": "Send the report now?"}')
    card = player.card("Send the report now?")
    await expect(card.get_by_role("button")).to_have_text(["Yes", "No"])
    await card.get_by_role("button", name="Yes").click()
    await player.sees('approve_plan brought "yes".')


@requirement("ack:changeable")
async def test_an_answer_that_does_not_fit_is_told_so_and_can_be_changed(player: Visitor) -> None:
    player.forgives("400")
    await player.asks('count_rows {"table": "birds"}')
    card = player.card("Count rows")
    field = card.get_by_role("textbox", name="Answer as JSON")
    await field.fill("three")
    await card.get_by_role("button", name="Send answer").click()
    await expect(card.get_by_role("alert")).to_contain_text("This is not JSON.")
    await field.fill("[3]")
    await card.get_by_role("button", name="Send answer").click()
    await expect(card.get_by_text("The answer does not fit 'count_rows'")).to_be_visible()
    await card.get_by_role("button", name="Change answer").click()
    # what was typed is still there
    await expect(field).to_have_value("[3]")
    await field.fill('[{"rows": 3}]')
    await card.get_by_role("button", name="Send answer").click()
    await player.sees('count_rows brought [{"rows": 3}].')


async def test_a_tool_that_returns_nothing_wants_a_press_and_no_text(player: Visitor) -> None:
    await player.asks('stretch {"minutes": 5}')
    card = player.card("Stretch")
    await expect(card.get_by_text("Press Done when it is done")).to_be_visible()
    await expect(card.get_by_role("row", name="minutes 5")).to_be_visible()
    await expect(card.get_by_role("textbox")).to_have_count(0)
    await expect(card.get_by_role("button")).to_have_text(["Done", "Skip"])
    await card.get_by_role("button", name="Done").click()
    await player.sees("stretch brought null.")
    await expect(player.rows.last).to_contain_text("Done")
    # what an inbox shows is the same card
    await player.asks('stretch {"minutes": 7}')
    await expect(player.card("Stretch")).to_be_visible()
    await player.page.goto(f"{player.server.url}/#/inbox")
    card = player.main.get_by_role("group", name="Stretch").filter(has_text="7")
    await card.get_by_role("button", name="Done").click()
    await expect(card).to_have_count(0)


@requirement("cards:typed")
async def test_who_has_to_type_has_five_minutes(player: Visitor) -> None:
    await player.asks('ask_text {"question": "What is it called?"}')
    card = player.card("What is it called?")
    await expect(card.get_by_role("timer")).to_have_text(re.compile(r"^\s*[45]:[0-5]\d$"))
    await card.get_by_role("button", name="Skip").click()
    row = player.rows.filter(has_text="What is it called?")
    await expect(row.get_by_text("Skipped", exact=True)).to_be_visible()
    await expect(row.get_by_label("Not done")).to_be_visible()


@requirement("cards:marks")
async def test_what_is_always_allowed_is_marked_and_taken_back(player: Visitor, room: Path) -> None:
    await player.asks('send_report {"to": "mark-1", "copies": 1}')
    await player.allows_always()
    await player.sees('send_report brought {"sent": "mark-1"}.')
    await player.says('send_report {"to": "mark-2", "copies": 1}')
    await player.sees('send_report brought {"sent": "mark-2"}.')
    row = player.rows.last
    await expect(row.get_by_text("always allowed")).to_be_visible()
    await row.get_by_role("button", name="undo").click()
    # the call that it was allowed with says so, too
    await expect(player.rows.get_by_text("asks again")).to_have_count(2)
    await player.says('send_report {"to": "mark-3", "copies": 1}')
    card = player.card("Send report?")
    await card.get_by_role("button", name="Edit").click()
    await card.get_by_role("textbox", name="Copies").fill("4")
    await card.get_by_role("button", name="Allow once").click()
    await player.sees('send_report brought {"sent": "mark-3"}.')
    await expect(player.rows.last.get_by_text("changed by you")).to_be_visible()
    assert [sent(room, f"mark-{number}") for number in (1, 2, 3)] == [[1], [1], [4]]


@requirement("approval:deliberate")
async def test_a_card_that_the_page_hides_has_been_seen_by_nobody(player: Visitor) -> None:
    await player.new_chat()
    await player.says('slowly send_report {"to": "hidden", "copies": 1}')
    await player.page.evaluate(HIDE)
    allow = player.page.locator("[aria-keyshortcuts=a]")
    await expect(allow).to_be_attached()
    # longer than a card in sight has to be looked at
    await player.page.evaluate(A_SECOND)
    assert await allow.is_disabled()
    await player.page.evaluate(SHOW)
    assert await allow.is_disabled()
    await expect(allow).to_be_enabled()
    await player.presses("Deny")
