"""What is typed into a card and not sent yet survives a reload."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import expect

from tests.browser.test_approvals import sent
from tests.browser.visitor import Visitor
from tests.requirement import requirement

pytestmark = requirement("cards:drafts")

KEPT = "Object.keys(sessionStorage).filter((key) => key.startsWith('farhand:draft:')).length"


async def test_typed_text_is_there_after_a_reload_and_forgotten_once_it_is_sent(guest: Visitor) -> None:
    await guest.tries("Two things at once")
    card = guest.card("What shall I call you?")
    await card.get_by_role("textbox").fill("Ada Lovelace")
    await guest.page.reload()
    await expect(card.get_by_role("textbox")).to_have_value("Ada Lovelace")
    await card.get_by_role("button", name="Send answer").click()
    await guest.card("Pick your favourite colour").get_by_role("button", name="Send answer").click()
    await guest.sees("Thank you, Ada Lovelace.")
    await guest.page.wait_for_function(f"() => {KEPT} === 0")


async def test_a_changed_input_survives_a_reload_and_says_so_before_it_is_allowed(
    player: Visitor, room: Path
) -> None:
    await player.asks('send_report {"to": "written@example", "copies": 1}')
    card = player.card("Send report?")
    await card.get_by_role("button", name="Edit").click()
    await card.get_by_role("textbox", name="to").fill("reloaded@example")
    await expect(card.get_by_text("Changed by you")).to_be_visible()
    await player.page.reload()
    await expect(card.get_by_text("Changed by you")).to_be_visible()
    await expect(card.get_by_role("textbox", name="to")).to_have_value("reloaded@example")
    await card.get_by_role("button", name="Allow once").click()
    await player.sees('send_report brought {"sent": "reloaded@example"}.')
    assert sent(room, "written@example") == []
    assert sent(room, "reloaded@example") == [1]
    await expect(player.rows.get_by_text("changed by you")).to_be_visible()


async def test_a_place_that_is_being_typed_is_typed_on_after_a_reload(guest: Visitor) -> None:
    await guest.tries("Where am I?")
    await guest.card("Share where you are?").get_by_role("button", name="Type a place").click()
    await guest.card("Type a place").get_by_role("textbox").fill("Newcastle")
    await guest.page.reload()
    await expect(guest.card("Type a place").get_by_role("textbox")).to_have_value("Newcastle")


async def test_what_was_typed_too_late_is_in_the_field_once_the_person_is_asked_again(
    player: Visitor,
) -> None:
    await player.asks('ask_text {"question": "What is it called?", "timeout_sec": 6}')
    await player.card("What is it called?").get_by_role("textbox").fill("Newcastle upon Tyne")
    await expect(player.card("Timed out").get_by_role("row", name="Newcastle upon Tyne")).to_be_visible()
    await player.sees_state("Done")
    await player.presses("Ask me again")
    card = player.card("Which one was it?")
    await expect(card.get_by_role("textbox")).to_have_value("Newcastle upon Tyne")
    await player.page.reload()
    await expect(card.get_by_role("textbox")).to_have_value("Newcastle upon Tyne")
    await card.get_by_role("button", name="Send answer").click()
    await player.sees('ask_text brought "Newcastle upon Tyne".')
