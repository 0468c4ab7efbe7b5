"""The gallery: every card in every state, without a finding of axe, in light, dark and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.axe import findings
from tests.browser.visitor import Scheme, Visitors
from tests.process import FarhandProcess
from tests.requirement import requirement

PLACES: list[tuple[Scheme, int]] = [("light", 1280), ("dark", 1280), ("light", 390)]
KINDS = {
    "confirm", "text", "select", "file", "photo", "location", "open_page", "clipboard", "color", "form",
    "approval", "unknown",
}  # fmt: skip
STATES = {
    "writing", "open", "running", "sending", "undelivered", "refused", "parked", "no-client", "timed-out",
    "denied", "done", "elsewhere", "failed", "skipped", "declined",
}  # fmt: skip


@requirement("cards:gallery")
@pytest.mark.sweep
@pytest.mark.parametrize(("scheme", "width"), PLACES)
async def test_every_card_in_every_state_has_no_finding(
    demo: FarhandProcess, visitors: Visitors, scheme: Scheme, width: int, tmp_path: Path
) -> None:
    guest = await visitors.at(demo, "_farhand/cards", scheme=scheme, size=(width, 900))
    await expect(guest.page.get_by_role("heading", name="Tool cards")).to_be_visible()
    # presses count after a moment, and by then every card is as it stays
    asking = guest.page.locator(".fh-card:not([data-state=sending])")
    for button in await asking.get_by_role("button", name="Allow once").all():
        await button.scroll_into_view_if_needed()
        await expect(button).to_be_enabled()
    assert await findings(guest.page) == []
    # nothing is wider than the page
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await guest.page.evaluate(wide) <= 0
    await guest.page.screenshot(path=tmp_path / f"cards-{scheme}-{width}.png", full_page=True)


@requirement("cards:gallery")
async def test_no_kind_and_no_state_is_missing(demo: FarhandProcess, visitors: Visitors) -> None:
    guest = await visitors.at(demo, "_farhand/cards")
    await expect(guest.page.get_by_role("heading", name="Tool cards")).to_be_visible()
    cards = guest.page.locator("[data-kind]")
    seen = await cards.evaluate_all("(all) => all.map(({ dataset }) => [dataset.kind, dataset.state])")
    assert {kind for kind, _ in seen} == KINDS
    assert {state for _, state in seen} == STATES


@requirement("cards:gallery")
@pytest.mark.parametrize("width", [390, 620, 900, 1280])
async def test_options_stand_in_one_row_or_below_each_other_and_none_is_left_alone(
    demo: FarhandProcess, visitors: Visitors, width: int
) -> None:
    guest = await visitors.at(demo, "_farhand/cards", size=(width, 900))
    groups = guest.page.locator(".fh-radios")
    await expect(groups.first).to_be_visible()
    rows = """(all) => all.map((group) => {
        const options = [...group.querySelectorAll("label")];
        const tops = options.map((each) => Math.round(each.getBoundingClientRect().top));
        return [tops.length, new Set(tops).size];
    })"""
    shapes = await groups.evaluate_all(rows)
    assert {count for count, _ in shapes} >= {2, 3}
    assert all(rows in (1, count) for count, rows in shapes), shapes


@requirement("cards:gallery")
async def test_the_tool_and_the_time_left_of_an_approval_share_a_line(
    demo: FarhandProcess, visitors: Visitors
) -> None:
    guest = await visitors.at(demo, "_farhand/cards")
    card = guest.page.locator(".fh-card", has=guest.page.get_by_role("timer", name="Time left: 3 days")).first
    tool = await card.locator("code").first.bounding_box()
    time = await card.get_by_role("timer").bounding_box()
    assert tool is not None
    assert time is not None
    assert tool["x"] + tool["width"] <= time["x"]
    assert abs(tool["y"] + tool["height"] / 2 - time["y"] - time["height"] / 2) < 3


@requirement("cards:gallery")
async def test_a_page_that_is_open_to_every_program_has_no_gallery(demo: FarhandProcess) -> None:
    async with demo.client() as client:
        signed_out = await client.get("/_farhand/cards", headers={"accept": "text/html", "authorization": ""})
    assert b"Tool cards" not in signed_out.content
