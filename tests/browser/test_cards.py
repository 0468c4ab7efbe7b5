"""Every card, answered and refused, with the browser's real abilities."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import expect

from tests.browser.visitor import Visitor
from tests.requirement import requirement


async def test_a_question_is_answered_yes(guest: Visitor) -> None:
    await guest.tries("Yes or no")
    card = guest.card("Shall I go on?")
    await expect(card.get_by_text("Yes or no, in this browser")).to_be_visible()
    await guest.sees("Waiting for 1 answer.")
    await guest.sees_state("Waiting for you")
    await card.get_by_role("button", name="Yes").click()
    await guest.sees("You said yes, so I went on.")
    await expect(guest.rows.get_by_text("Yes", exact=True)).to_be_visible()
    await guest.sees_state("Done")


async def test_a_question_is_answered_no(guest: Visitor) -> None:
    await guest.tries("Yes or no")
    await guest.presses("No")
    await guest.sees("You said no, so I stopped right there.")


async def test_a_text_is_typed_and_sent(guest: Visitor) -> None:
    await guest.tries("My name")
    card = guest.card("What is your name?")
    await expect(card.get_by_role("button", name="Send answer")).to_be_disabled()
    await card.get_by_role("textbox").fill("Ada <b>Lovelace</b>")
    await card.get_by_role("button", name="Send answer").click()
    await guest.sees("Nice to meet you, Ada <b>Lovelace</b>.")


async def test_an_option_is_chosen_from_radios(guest: Visitor) -> None:
    await guest.tries("Choose lunch")
    card = guest.card("What shall it be for lunch?")
    await expect(card.get_by_role("radio")).to_have_count(4)
    await card.get_by_text("Noodles").click()
    await card.get_by_role("button", name="Send answer").click()
    await guest.sees("Noodles, then. Enjoy.")


async def test_more_than_five_options_are_a_list(player: Visitor) -> None:
    options = [f"Floor {number}" for number in range(7)]
    await player.asks(f"choose {json.dumps({'question': 'Which floor?', 'options': options})}")
    card = player.card("Which floor?")
    await card.get_by_role("combobox").select_option("Floor 6")
    await card.get_by_role("button", name="Send answer").click()
    await player.sees('choose brought "Floor 6".')


async def test_a_colour_is_picked(guest: Visitor) -> None:
    await guest.tries("Pick a colour")
    card = guest.card("Pick a colour for the day")
    await card.locator("input[type=color]").fill("#aa3300")
    await card.get_by_role("button", name="Send answer").click()
    await guest.sees("#aa3300 it is. A good choice.")


async def test_a_file_is_chosen_and_goes_by_reference(guest: Visitor) -> None:
    await guest.tries("Pick a file")
    async with guest.page.expect_file_chooser() as choosing:
        await guest.presses("Choose a file")
    chooser = await choosing.value
    content = b"hello from a file\n" * 40_000
    async with guest.page.expect_response("**/api/files") as sent:
        await chooser.set_files({"name": "grüße.txt", "mimeType": "text/plain", "buffer": content})
    ref = (await (await sent.value).json())["ref"]
    await guest.sees(f"grüße.txt has {len(content)} bytes and says it is text/plain.")
    async with guest.server.client() as client:
        assert (await client.get(f"/api/files/{ref}")).content == content


async def test_a_file_can_be_dropped(guest: Visitor) -> None:
    await guest.tries("Pick a file")
    carried = await guest.page.evaluate_handle(
        """() => { const data = new DataTransfer();
        data.items.add(new File(["dropped"], "drop.txt", { type: "text/plain" })); return data; }"""
    )
    zone = guest.main.get_by_text("Drop a file here")
    await zone.dispatch_event("drop", {"dataTransfer": carried})
    await guest.sees("drop.txt has 7 bytes")
    # the box is a small part of the card
    await guest.tries("Pick a file")
    await expect(zone).to_be_visible()
    heading = guest.cards.get_by_role("heading")
    await heading.dispatch_event("dragover", {"dataTransfer": carried})
    await expect(guest.main.locator("[data-over=true]")).to_have_text("Drop a file here")
    await heading.dispatch_event("drop", {"dataTransfer": carried})
    await guest.sees("drop.txt has 7 bytes")


async def test_a_photo_can_be_a_file_instead(guest: Visitor) -> None:
    await guest.tries("Take a photo")
    await guest.presses("Allow once")
    async with guest.page.expect_file_chooser() as choosing:
        await guest.presses("Choose a file")
    await (await choosing.value).set_files(
        {"name": "lamp.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n"}
    )
    await guest.sees("Got it: lamp.png, 8 bytes of image/png.")


async def test_a_place_is_shared_once_and_rounded(guest: Visitor) -> None:
    await guest.tries("Where am I?")
    await expect(guest.card("Share where you are?").get_by_text("rounded to about 20 m")).to_be_visible()
    await guest.presses("Share once")
    await guest.sees("You are at 54.9783, -1.6178, give or take 20 metres.")
    await expect(guest.rows.get_by_text("Shared once, within 20 m")).to_be_visible()


async def test_a_place_is_typed_instead(guest: Visitor) -> None:
    await guest.tries("Where am I?")
    await guest.presses("Type a place")
    await guest.main.get_by_role("textbox", name="Place").fill("Northgate")
    await guest.presses("Send answer")
    await guest.sees("You are in Northgate, as you say yourself.")


async def test_words_are_copied_to_the_clipboard(guest: Visitor) -> None:
    await guest.tries("Copy a greeting")
    await expect(
        guest.card("Copy 1 line to the clipboard?").get_by_text("Hello from far away")
    ).to_be_visible()
    await guest.cards.get_by_role("button", name="Copy").click()
    await guest.sees("Copied. Paste it wherever you like.")
    assert await guest.page.evaluate("navigator.clipboard.readText()") == "Hello from far away"


async def test_a_page_opens_beside_the_chat_and_its_button_stays(guest: Visitor) -> None:
    await guest.finds_other_sites()
    await guest.tries("Open a page")
    await expect(guest.card("Open example.com").get_by_text("https://example.com/")).to_be_visible()
    await guest.presses("Open")
    panel = guest.page.get_by_role("complementary", name="Page beside the chat")
    await expect(panel.frame_locator("iframe").get_by_text("Another site")).to_be_visible()
    await guest.sees("The page is open beside us: https://example.com/")
    await panel.get_by_role("button", name="Close the page").click()
    await expect(panel).to_have_count(0)
    await guest.main.get_by_role("button", name="Open again: example.com").click()
    await expect(panel.get_by_title("Page: example.com")).to_be_visible()
    # over the chat, Escape closes it wherever the focus is; beside the chat, it stays
    box = guest.page.get_by_role("textbox", name="Message")
    await box.press("Escape")
    await guest.page.set_viewport_size({"width": 900, "height": 700})
    await expect(panel).to_be_visible()
    await box.press("Escape")
    await expect(panel).to_have_count(0)


async def test_a_page_opens_in_a_tab_of_its_own_that_cannot_reach_back(guest: Visitor) -> None:
    await guest.finds_other_sites()
    await guest.tries("Open a page")
    async with guest.page.context.expect_page() as opening:
        await guest.presses("Open in a new tab")
    opened = await opening.value
    await expect(opened.get_by_text("Another site")).to_be_visible()
    assert await opened.evaluate("window.opener") is None
    await guest.sees("The page is open beside us: https://example.com/ (view tab-")


@requirement("cards:guessed")
async def test_a_tool_without_a_card_is_answered_in_a_form_made_from_its_schema(guest: Visitor) -> None:
    await guest.asks("Read the thermometer")
    card = guest.card("Thermometer in the kitchen")
    await expect(card.get_by_role("row", name="room kitchen")).to_be_visible()
    await card.get_by_role("textbox", name="Answer").fill("about twenty")
    await card.get_by_role("button", name="Send answer").click()
    await expect(card.get_by_text("Enter a number, such as 2.5.")).to_be_visible()
    await card.get_by_role("textbox", name="Answer").fill("21.5")
    await card.get_by_role("button", name="Send answer").click()
    await guest.sees("21.5 °C in the kitchen, then.")


async def test_a_tool_that_nobody_has_is_no_question_for_a_person(guest: Visitor) -> None:
    await guest.tries("Make me a coffee")
    await guest.sees("It seems that I cannot:")
    await expect(guest.rows.get_by_text("Make coffee")).to_be_visible()


async def test_two_questions_of_one_turn_go_back_together(guest: Visitor) -> None:
    await guest.tries("Two things at once")
    await guest.sees("Waiting for 2 answers.")
    await guest.card("What shall I call you?").get_by_role("textbox").fill("Ada")
    await guest.card("What shall I call you?").get_by_role("button", name="Send answer").click()
    await guest.sees("Waiting for 1 answer.")
    await guest.card("Pick your favourite colour").locator("input[type=color]").fill("#00aa33")
    await guest.presses("Send answer")
    await guest.sees("Thank you, Ada. #00aa33 suits you.")


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("prompt", "way_out", "told"),
    [
        ("Ask me my name", "Skip", "We can stay strangers: skipped by the user."),
        ("Help me choose lunch", "Skip", "I continued without it: skipped by the user."),
        ("Let me pick a colour", "Skip", "I continued without it: skipped by the user."),
        ("Let me pick a file", "Skip", "I continued without it: skipped by the user."),
        ("Where am I?", "No", "Then it stays your secret: declined by the user."),
        ('Copy "a secret"', "No", "The clipboard stays as it was: declined by the user."),
        ("Open https://example.com", "Skip", "The page did not open: skipped by the user."),
        ("Read the thermometer", "Skip", "I continued without it: skipped by the user."),
    ],
)
async def test_each_card_has_a_way_out(guest: Visitor, prompt: str, way_out: str, told: str) -> None:
    await guest.asks(prompt)
    await guest.presses(way_out)
    await guest.sees(told)
    await expect(guest.rows.get_by_label("Not done")).to_be_visible()


async def test_a_photo_that_was_allowed_can_still_be_skipped(guest: Visitor) -> None:
    await guest.tries("Take a photo")
    await guest.presses("Allow once")
    await guest.card("Take a photo").get_by_role("button", name="Skip").click()
    await guest.sees("I continued without it: skipped by the user.")
