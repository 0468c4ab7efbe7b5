"""Defaults that the model leaves out are shown before an approval: nobody approves what they have not
seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from tests.browser.visitor import Visitor
from tests.requirement import requirement

pytestmark = requirement("approval:defaults")

PARCEL = {"weight": 2}


async def test_a_card_shows_the_defaults_that_a_call_runs_with(player: Visitor, room: Path) -> None:
    card = await asked(player, "shown@example")
    rows = card.get_by_role("row")
    await expect(rows.filter(has_text="urgent")).to_have_text("urgenttruedefault")
    await expect(rows.filter(has_text="greeting")).to_have_text("greetingDear alldefault")
    await expect(rows.filter(has_text="parcel")).to_have_text(
        'parcel{ "weight": 2, "unit": "kg" }default: unit'
    )
    await expect(rows.filter(has_text="shown@example")).to_have_text("toshown@example")
    await expect(card.get_by_text("Left out: remark")).to_be_visible()
    # the same after a reload, and in the inbox
    await player.page.reload()
    await expect(rows.filter(has_text="urgent")).to_have_text("urgenttruedefault")
    chat = player.thread_id
    await player.page.goto(f"{player.server.url}/#/inbox")
    await expect(titled(player, "shown@example").get_by_role("row", name="urgent")).to_have_text(
        "urgenttruedefault"
    )
    await player.page.goto(f"{player.server.url}/#/chat/{chat}")
    await card.get_by_role("button", name="Allow once").click()
    await player.sees("send_parcel brought")
    assert sent(room, "shown@example") == [(True, "kg", "Dear all", None)]
    assert await recorded(player) == {"to": "shown@example", "parcel": PARCEL}
    await expect(player.main.get_by_text("changed by you")).to_have_count(0)


async def test_a_default_that_stays_is_no_edit_and_is_not_sent(player: Visitor, room: Path) -> None:
    card = await asked(player, "kept@example")
    await card.get_by_role("button", name="Edit").click()
    await expect(card.get_by_role("checkbox", name="urgent")).to_be_checked()
    await expect(card.get_by_role("textbox", name="greeting")).to_have_value("Dear all")
    await expect(card.get_by_text("default", exact=True)).to_have_count(2)
    await expect(card.get_by_text("Changed by you.")).to_have_count(0)
    # there and back is no edit, either
    await card.get_by_role("textbox", name="greeting").fill("Hello")
    await expect(card.get_by_text("Changed by you.")).to_be_visible()
    await expect(card.get_by_text("default", exact=True)).to_have_count(1)
    await card.get_by_role("textbox", name="greeting").fill("Dear all")
    await expect(card.get_by_text("Changed by you.")).to_have_count(0)
    await card.get_by_role("button", name="Allow once").click()
    await player.sees("send_parcel brought")
    assert sent(room, "kept@example") == [(True, "kg", "Dear all", None)]
    assert await recorded(player) == {"to": "kept@example", "parcel": PARCEL}


async def test_a_changed_default_is_what_runs_and_no_other_default_goes_with_it(
    player: Visitor, room: Path
) -> None:
    card = await asked(player, "changed@example")
    await card.get_by_role("button", name="Edit").click()
    await card.get_by_role("checkbox", name="urgent").uncheck()
    await card.get_by_role("button", name="Allow once").click()
    await player.sees("send_parcel brought")
    assert sent(room, "changed@example") == [(False, "kg", "Dear all", None)]
    assert await recorded(player) == {"to": "changed@example", "parcel": PARCEL, "urgent": False}
    await expect(player.rows.get_by_text("changed by you")).to_be_visible()
    await expect(player.rows.get_by_text("Send a parcel to changed@example, urgent: no")).to_be_visible()


async def test_a_field_with_a_default_cannot_be_emptied(player: Visitor) -> None:
    """Left out, it would have its default again."""
    card = await asked(player, "emptied@example")
    await card.get_by_role("button", name="Edit").click()
    await card.get_by_role("textbox", name="greeting").fill("")
    await expect(card.get_by_text("Fill in this field.")).to_be_visible()
    await expect(card.get_by_role("button", name="Allow once")).to_be_disabled()


@pytest.mark.parametrize("given", [{"urgent": True, "greeting": "Dear all", "remark": "now"}])
async def test_what_the_model_wrote_is_not_called_a_default(
    player: Visitor, given: dict[str, object]
) -> None:
    whole = {"to": "whole@example", "parcel": {**PARCEL, "unit": "kg"}, **given}
    await player.asks(f"send_parcel {json.dumps(whole)}")
    card = player.card("Send a parcel to whole@example")
    await expect(card.get_by_role("row", name="urgent")).to_have_text("urgenttrue")
    await expect(card.get_by_text("default")).to_have_count(0)
    await expect(card.get_by_text("Left out")).to_have_count(0)


async def asked(player: Visitor, to: str) -> Locator:
    await player.asks(f"send_parcel {json.dumps({'to': to, 'parcel': PARCEL})}")
    # the title has the default, too
    await expect(titled(player, to)).to_be_visible()
    card = player.main.locator("[data-kind=approval]")
    await expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    return card


def titled(player: Visitor, to: str) -> Locator:
    return player.card(f"Send a parcel to {to}, urgent: yes?")


async def recorded(player: Visitor) -> object:
    """The input of the last call, as the server keeps it for the model."""
    async with player.server.client() as client:
        thread = (await client.get(f"/api/chat/{player.thread_id}")).json()
    parts = [part for message in thread["messages"] for part in message["parts"] if "toolCallId" in part]
    return parts[-1]["input"]


def sent(room: Path, to: str) -> list[tuple[object, ...]]:
    lines = (room / "notes.jsonl").read_text().splitlines()
    parcels = [each["parcel"] for each in map(json.loads, lines) if "parcel" in each]
    return [
        (each["urgent"], each["parcel"]["unit"], each["greeting"], each["remark"])
        for each in parcels
        if each["to"] == to
    ]
