"""An approval's input can be read completely before it is allowed: nothing is hidden in a value or behind
another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from tests.browser.test_approvals import sent
from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess
from tests.requirement import requirement

pytestmark = requirement("approval:readable")

HIDDEN = "/home/ada/secrets" + "\n" * 120 + "notes\u202etxt.exe"
SPELLED = "/home/ada/secrets⏎ ×120notesU+202Etxt.exe"
REPORT = " ".join(f"Paragraph {number} of the report." for number in range(320))
CLAIM = (
    "first_name last_name street town country phone mail policy insured_since happened_on happened_at place"
    " weather witness damage amount account bank reference pay_to"
)
SIZES = [(1326, 896), (390, 844), (1280, 600)]


@pytest.mark.parametrize("size", SIZES)
async def test_a_value_that_hides_a_path_shows_it_beside_the_button(
    stage: FarhandProcess, visitors: Visitors, size: tuple[int, int]
) -> None:
    player = await visitors.at(stage, size=size)
    card = await asked(player, "send_report", {"to": HIDDEN, "copies": 1})
    value = card.get_by_role("row").first.locator("td")
    assert (await value.inner_text()).replace("\n", "") == SPELLED
    await are_in_sight(player, card)


@pytest.mark.parametrize("size", SIZES)
async def test_a_long_value_is_folded_under_a_head_and_buttons_that_stay_in_sight(
    stage: FarhandProcess, visitors: Visitors, size: tuple[int, int]
) -> None:
    player = await visitors.at(stage, size=size)
    card = await asked(player, "send_report", {"to": REPORT, "copies": 1})
    await expect(card.get_by_text("Paragraph 0 of the report.")).to_be_visible()
    await expect(card.get_by_text("characters more")).to_be_visible()
    await are_in_sight(player, card)
    await card.get_by_role("button", name="Show all 1,600 words").click()
    await expect(card.get_by_text("Paragraph 319 of the report.")).to_have_count(1)
    await card.get_by_role("button", name="Allow once").scroll_into_view_if_needed()
    await are_in_sight(player, card)
    await card.get_by_role("button", name="Show less").click()
    await expect(card.get_by_text("Paragraph 319 of the report.")).to_have_count(0)


async def test_more_parameters_than_fit_are_scrolled_through_before_they_are_allowed(
    player: Visitor, room: Path
) -> None:
    await player.asks("file_claim " + json.dumps({name: f"{name}@many" for name in CLAIM.split()}))
    card = player.card("File claim?")
    await expect(
        card.get_by_text("20 parameters. Scroll to the last one before you allow it.")
    ).to_be_visible()
    allow = card.get_by_role("button", name="Allow once")
    await expect(card.get_by_role("button", name="Deny")).to_be_enabled()
    await expect(allow).to_be_disabled()
    # with keys alone, too: the list can have the focus
    await card.get_by_role("group", name="What it runs with").focus()
    await player.page.keyboard.press("End")
    await expect(card.get_by_role("row").last).to_be_in_viewport()
    await expect(allow).to_be_enabled()
    # the hint above it is gone, and a press while the button moves does not count
    await expect(allow).not_to_have_attribute("aria-disabled", "true")
    await allow.click()
    await player.sees('file_claim brought {"filed": "pay_to@many"}.')
    assert sent(room, "pay_to@many") == [1]


async def test_an_edit_shows_what_hides_in_it(player: Visitor) -> None:
    card = await asked(player, "send_report", {"to": HIDDEN, "copies": 1})
    await card.get_by_role("button", name="Edit").click()
    await expect(card.locator(".fh-spelling")).to_have_text(SPELLED)
    await card.get_by_role("textbox", name="to").fill("ada@example")
    await expect(card.locator(".fh-spelling")).to_have_count(0)


async def test_an_edit_begins_at_its_first_field_however_far_the_table_was_scrolled(player: Visitor) -> None:
    await player.asks("file_claim " + json.dumps({name: f"{name}@edit" for name in CLAIM.split()}))
    card = player.card("File claim?")
    await expect(card.get_by_role("button", name="Edit")).to_be_enabled()
    await card.get_by_role("row").last.scroll_into_view_if_needed()
    await expect(card.get_by_role("row").first).not_to_be_in_viewport()
    await card.get_by_role("button", name="Edit").click()
    await expect(card.get_by_role("textbox", name="First name")).to_be_in_viewport(ratio=1)
    await player.presses("Stop")


async def test_the_inbox_shows_it_the_same_way(visitors: Visitors, player: Visitor) -> None:
    await asked(player, "send_report", {"to": "inbox@example" + HIDDEN, "copies": 1})
    other = await visitors.beside(player, "#/inbox")
    card = other.card("Send report?").filter(has_text="inbox@example")
    value = card.get_by_role("row").first.locator("td")
    await expect(value).to_be_visible()
    assert (await value.inner_text()).replace("\n", "") == "inbox@example" + SPELLED
    await player.presses("Stop")


async def asked(player: Visitor, tool: str, given: dict[str, object]) -> Locator:
    await player.asks(f"{tool} {json.dumps(given)}")
    card = player.card("Send report?")
    await expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    return card


async def are_in_sight(player: Visitor, card: Locator) -> None:
    """The tool, the beginning of every parameter and the button, all at once."""
    for each in [card.locator("code").first, *await card.get_by_role("rowheader").all()]:
        await expect(each).to_be_in_viewport(ratio=0.2)
    await expect(card.get_by_role("button", name="Allow once")).to_be_in_viewport(ratio=1)
    width = await player.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert width <= 0
