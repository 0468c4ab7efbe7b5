"""The Inspector next to a running chat: what it shows, and what can be copied from it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from tests.browser.axe import findings
from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess, farhand_process
from tests.requirement import requirement

CLIPBOARD = ("clipboard-read", "clipboard-write")
ENDS_WITHIN_SEC = 50
READ_CLIPBOARD = "navigator.clipboard.readText()"


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[FarhandProcess]:
    """A demo of the test's own: the Inspector lists all runs."""
    async with farhand_process("demo", env={"FARHAND_DEMO_FOLDER": str(tmp_path / "scratch")}) as server:
        yield server


@pytest.fixture
async def guest(own: FarhandProcess, visitors: Visitors) -> Visitor:
    return await visitors.at(own, allowed=CLIPBOARD, size=(1520, 900))


async def test_a_run_is_watched_live_from_the_question_to_the_answer(
    guest: Visitor, visitors: Visitors
) -> None:
    await guest.tries("Yes or no")
    await expect(guest.card("Shall I go on?")).to_be_visible()
    watcher = await visitors.beside(guest)
    await guest.page.bring_to_front()
    href = await guest.main.get_by_role("link", name="Inspect run").get_attribute("href")
    await watcher.page.goto(f"{guest.server.url}{href}")
    await expect(watcher.main.get_by_text("Waiting for you", exact=True)).to_be_visible()
    await expect(watcher.main.get_by_text("so far")).to_be_visible()
    await guest.presses("Yes")
    await expect(watcher.main.get_by_text("Done", exact=True)).to_be_visible()
    await expect(watcher.main.get_by_text("total", exact=True)).to_be_visible()
    await watcher.main.get_by_role("link", name="user_confirm").first.click()
    panel = watcher.page.locator("body")
    for sentence in ("Asked by the model", "Answer stored (exactly once)", "Model continued"):
        await expect(panel.get_by_text(sentence)).to_be_visible()


async def test_the_waterfall_shows_its_segments_in_a_high_contrast_theme_too(guest: Visitor) -> None:
    await guest.asks("What is the weather in Oslo?")
    await guest.sees("degrees Fahrenheit")
    await guest.page.emulate_media(forced_colors="active")
    await guest.main.get_by_role("link", name="Inspect run").click()
    await expect(guest.main.locator("ol [title='Server tool']")).to_have_count(1)
    colours = await guest.page.evaluate(COLOURS_OF_SEGMENTS)
    assert len(set(colours)) == len(colours)


COLOURS_OF_SEGMENTS = """() => ["body", "ol [title='Model']", "ol [title='Server tool']"].map(
    (selector) => getComputedStyle(document.querySelector(selector)).backgroundColor,
)"""


async def test_only_what_is_chosen_looks_chosen_in_a_high_contrast_theme(guest: Visitor) -> None:
    await guest.asks("What is the weather in Oslo?")
    await guest.sees("degrees Fahrenheit")
    await guest.page.emulate_media(forced_colors="active")
    await guest.main.get_by_role("link", name="Inspect run").click()
    await guest.main.get_by_role("link", name="get_current_weather").first.click()
    tabs = guest.page.get_by_role("navigation", name="Inspector").get_by_role("link")
    await expect(tabs).to_have_count(5)
    assert await tabs.evaluate_all(f"tabs => tabs.map({IS_UNDERLINED})") == [True, *[False] * 4]
    views = guest.page.get_by_role("tab")
    await expect(views).to_have_count(4)
    frames = await views.evaluate_all(f"tabs => tabs.map({FRAME_OF_TAB})")
    assert sorted(frames) == [["false", "none"]] * 3 + [["true", "solid"]]
    row = guest.main.get_by_role("link", name="get_current_weather").first
    # without the focus, which has a frame of its own
    await row.evaluate("row => row.blur()")
    assert await row.evaluate("row => getComputedStyle(row).outlineStyle") == "solid"


FRAME_OF_TAB = "(tab) => [tab.ariaSelected, getComputedStyle(tab).outlineStyle]"
IS_UNDERLINED = "(tab) => parseFloat(getComputedStyle(tab).borderBottomWidth) > 0"


async def test_the_parts_of_the_time_add_up_to_the_whole(guest: Visitor) -> None:
    await guest.asks("What is the weather in Oslo?")
    await guest.sees("degrees Fahrenheit")
    await guest.main.get_by_role("link", name="Inspect run").click()
    figures = guest.main.locator("dl")
    await expect(figures.get_by_text("total")).to_be_visible()
    whole, *parts = [seconds_of(await each.inner_text()) for each in (await figures.locator("dd").all())[:6]]
    assert whole > 0
    assert round(sum(parts), 1) == whole


async def test_input_output_and_the_exact_frames_of_a_call(guest: Visitor) -> None:
    panel = await a_settled_call(guest)
    await panel.get_by_role("tab", name="Input").click()
    await expect(panel.get_by_role("tabpanel")).to_contain_text("What is your name?")
    await guest.page.keyboard.press("ArrowRight")
    await expect(panel.get_by_role("tab", name="Output")).to_have_attribute("aria-selected", "true")
    await expect(panel.get_by_role("tabpanel")).to_contain_text('"Ada"')
    await panel.get_by_role("tab", name="Wire").click()
    await expect(panel.get_by_role("tabpanel")).to_contain_text("tool-input-available")


async def test_an_answer_that_is_sent_again_changes_nothing(guest: Visitor) -> None:
    panel = await a_settled_call(guest)
    await panel.get_by_role("button", name="Send again").click()
    await expect(panel.get_by_text(re.compile("nothing changed"))).to_be_visible()


async def test_the_copied_command_is_told_that_it_repeats(guest: Visitor) -> None:
    panel = await a_settled_call(guest)
    await panel.get_by_role("button", name="Copy as curl").click()
    await expect(panel.get_by_role("status").filter(has_text="Copied")).to_have_count(1)
    command = await guest.page.evaluate(READ_CLIPBOARD)
    assert guest.server.token not in command
    assert shlex.split(command)[0] == "curl"
    said = await ran("sh", "-c", command, FARHAND_TOKEN=guest.server.token)
    assert '"ok":true' in said.replace(" ", "")


@pytest.mark.tools
async def test_the_copied_test_passes_when_it_is_saved_and_run(guest: Visitor, tmp_path: Path) -> None:
    await a_settled_call(guest)
    await guest.main.get_by_role("button", name="Copy as test").click()
    await expect(guest.main.get_by_role("status").filter(has_text="Copied")).to_have_count(1)
    copied = tmp_path / "test_copied.py"
    copied.write_text(await guest.page.evaluate(READ_CLIPBOARD))
    alone = ("-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(copied))
    assert "1 passed" in await ran(sys.executable, "-m", "pytest", *alone)


async def test_runs_are_searched_and_the_replay_shows_how_it_went(guest: Visitor) -> None:
    await guest.asks("What is the weather in Oslo?")
    await guest.sees("degrees Fahrenheit")
    await guest.asks("Make me a coffee")
    await guest.sees("It seems that I cannot")
    await guest.page.goto(f"{guest.server.url}/_farhand")
    runs = guest.page.get_by_role("navigation", name="Runs")
    await expect(runs.get_by_role("link")).to_have_count(2)
    await guest.page.keyboard.press("/")
    await guest.page.keyboard.type("weather")
    await expect(runs.get_by_role("link")).to_have_count(1)
    await runs.get_by_role("link").click()
    # looked for before it begins: a short run is soon played
    async with asyncio.TaskGroup() as looking:
        looking.create_task(guest.main.get_by_role("button", name="Stop replay").wait_for())
        await guest.main.get_by_role("button", name="Replay").click()
    await expect(guest.main.get_by_role("button", name="Replay", exact=True)).to_be_visible()


@requirement("inspector:rerun")
async def test_a_run_is_rerun_with_another_message_and_leads_to_its_chat(guest: Visitor) -> None:
    await guest.asks("What is the weather in Oslo?")
    await guest.sees("degrees Fahrenheit")
    chat = guest.page.url
    await guest.main.get_by_role("link", name="Inspect run").click()
    await guest.main.get_by_role("link", name="Open chat").click()
    await expect(guest.page).to_have_url(chat)
    await guest.main.get_by_role("link", name="Inspect run").click()
    await guest.main.get_by_role("button", name="Rerun from step 1").click()
    dialog = guest.page.get_by_role("dialog", name="Rerun from step 1")
    await dialog.get_by_role("textbox", name="Message").fill("What is the weather in Rome?")
    assert await findings(guest.page) == []
    await dialog.get_by_role("button", name="Start the rerun").click()
    await expect(guest.page.get_by_role("heading", name="What is the weather in Rome?")).to_be_visible()
    await expect(guest.main.get_by_text("Done", exact=True)).to_be_visible()
    await guest.main.get_by_role("link", name="Open chat").click()
    await guest.sees("It is Sunny in Rome")


@requirement("inspector:rerun")
async def test_a_call_is_rerun_with_an_edited_input(guest: Visitor) -> None:
    panel = await a_settled_call(guest)
    await panel.get_by_role("button", name="Rerun from here").click()
    dialog = guest.page.get_by_role("dialog", name="Rerun from ask_text")
    # a field for each value, and no JSON
    limit = dialog.get_by_role("textbox", name="timeout")
    await limit.fill("soon")
    await dialog.get_by_role("button", name="Start the rerun").click()
    await expect(dialog.get_by_text("Enter a number, such as 2.5.")).to_be_visible()
    await limit.fill("")
    await dialog.get_by_role("textbox", name="question").fill("And yours?")
    await dialog.get_by_role("button", name="Start the rerun").click()
    parked = guest.main.get_by_text("Parked", exact=True)
    await expect(parked).to_have_attribute("title", re.compile("^Saved while waiting"))
    await guest.main.get_by_role("link", name="Open chat").click()
    await guest.main.get_by_role("textbox", name="And yours?").fill("Joan")
    await guest.presses("Send answer")
    await guest.sees("Nice to meet you, Joan.")


@requirement("inspector:rerun-asks")
async def test_a_rerun_that_may_repeat_a_finished_server_tool_asks_first(player: Visitor, room: Path) -> None:
    bread, cake = "bread-to-rerun", "cake-instead"
    for name in (bread, cake):
        (room / "gates" / name).touch()
    await player.asks(f'bake {{"name": "{bread}"}}')
    await player.sees_state("Done")
    await player.main.get_by_role("link", name="Inspect run").click()
    await player.main.get_by_role("link", name="bake").first.click()
    await player.page.get_by_role("button", name="Rerun from here").click()
    dialog = player.page.get_by_role("dialog", name="Rerun from bake")
    # a field for each value, and no JSON
    what = dialog.get_by_role("textbox", name="name")
    await expect(what).to_have_value(bread)
    await what.fill(cake)
    run = player.page.url
    await dialog.get_by_role("button", name="Start the rerun").click()
    warning = "bake ran on the server. The new run may call it again, with real effects."
    await expect(dialog.get_by_role("alert")).to_have_text(warning)
    assert await findings(player.page) == []
    # nothing has begun yet, and whoever cancels leaves it at that
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_have_count(0)
    assert (player.page.url, baked(room, cake)) == (run, 0)
    await player.page.get_by_role("button", name="Rerun from here").click()
    await what.fill(cake)
    await dialog.get_by_role("button", name="Start the rerun").click()
    await dialog.get_by_role("button", name="Run it again anyway").click()
    await expect(dialog).to_have_count(0)
    await expect(player.main.get_by_text("Done", exact=True)).to_be_visible()
    await player.main.get_by_role("link", name="Open chat").click()
    await player.sees(f'bake brought {{"baked": "{cake}"}}.')
    assert (baked(room, bread), baked(room, cake)) == (1, 1)


def baked(room: Path, name: str) -> int:
    notes = room / "notes.jsonl"
    lines = notes.read_text().splitlines() if notes.exists() else []
    return sum(json.loads(each).get("baked") == name for each in lines)


@requirement("inspector:marks")
async def test_a_repeated_answer_is_marked_in_the_waterfall_and_in_the_life_of_its_call(
    guest: Visitor,
) -> None:
    panel = await a_settled_call(guest)
    await panel.get_by_role("button", name="Send again").click()
    await expect(panel.get_by_text(re.compile("nothing changed"))).to_be_visible()
    await guest.page.reload()
    await expect(guest.main.get_by_text("repeat ignored").first).to_be_visible()
    await expect(panel.get_by_text("Same answer received again")).to_be_visible()


async def test_what_waits_is_allowed_from_the_inspectors_inbox(guest: Visitor) -> None:
    await guest.tries("Delete an old draft")
    chat = guest.page.url
    await expect(guest.card("Delete old-draft.txt?")).to_be_visible()
    await guest.page.goto(f"{guest.server.url}/_farhand#/inbox")
    await guest.main.get_by_role("button", name="Allow once").click()
    await guest.sees("All caught up.")
    await guest.page.goto(chat)
    await guest.sees("old-draft.txt is gone.")


async def test_tools_clients_and_events_are_listed(guest: Visitor) -> None:
    await guest.asks("What is the weather in Oslo?")
    await guest.sees("degrees Fahrenheit")
    await guest.page.goto(f"{guest.server.url}/_farhand#/tools")
    await guest.sees("get_current_weather")
    await guest.page.goto(f"{guest.server.url}/_farhand#/events")
    await guest.sees("call-settled")
    async with guest.server.client() as client:
        schema = {"type": "object", "properties": {}}
        offer = [{"id": "scan", "description": "Scan a sheet.", "parameters": schema}]
        await client.post("/client-tools/register", json={"clientID": "studio-mac", "tools": offer})
    await guest.page.goto(f"{guest.server.url}/_farhand#/clients")
    await guest.sees("studio-mac")


async def a_settled_call(guest: Visitor) -> Locator:
    """A call of the person's name, answered, and the panel that shows its life."""
    await guest.tries("My name")
    await guest.main.get_by_role("textbox", name="What is your name?").fill("Ada")
    await guest.presses("Send answer")
    await guest.sees("Nice to meet you, Ada.")
    await guest.main.get_by_role("link", name="Inspect run").click()
    await guest.main.get_by_role("link", name="ask_text").first.click()
    panel = guest.page.locator("body")
    await expect(panel.get_by_text("Answer stored (exactly once)")).to_be_visible()
    return panel


async def ran(*command: str, **variables: str) -> str:
    """What the command printed; it has to end well."""
    process = await asyncio.create_subprocess_exec(
        *command, env={"PATH": os.environ["PATH"], **variables}, stdout=subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), ENDS_WITHIN_SEC)
    assert process.returncode == 0, out.decode()
    return out.decode()


def seconds_of(figure: str) -> float:
    number, unit = figure.split()
    assert unit == "s", figure
    return float(number)


@requirement("ui:signed-out")
async def test_somebody_who_is_signed_out_enters_the_token_in_the_inspector(guest: Visitor) -> None:
    page = guest.page
    guest.forgives("401")
    await guest.tries("Yes or no")
    await expect(guest.card("Shall I go on?")).to_be_visible()
    await page.goto(f"{guest.server.url}/_farhand")
    await expect(guest.main.get_by_role("heading", name="Ask me to confirm something")).to_be_visible()
    await page.context.clear_cookies()
    await page.get_by_role("link", name="Clients").click()
    banner = page.get_by_role("region", name="You are signed out.")
    await expect(banner).to_be_visible()
    await expect(page.get_by_text("Signed out", exact=True)).to_be_visible()
    await page.set_viewport_size({"width": 390, "height": 844})
    words = await banner.get_by_role("alert").first.bounding_box()
    assert words is not None
    assert words["width"] > 300, "on a phone, the field is below the words"
    assert await findings(page) == []
    await page.set_viewport_size({"width": 1520, "height": 900})
    token = banner.get_by_role("textbox", name="Token")
    await token.fill("wrong-wrong-wrong")
    await banner.get_by_role("button", name="Sign in").click()
    await expect(banner.get_by_text("The server did not accept this token.")).to_be_visible()
    await token.fill(guest.server.token)
    await token.press("Enter")
    await expect(banner).to_have_count(0)
    await expect(page.get_by_text("No program has registered tools.")).to_be_visible()
    await page.get_by_role("link", name="Runs").click()
    await expect(guest.main.get_by_role("heading", name="Ask me to confirm something")).to_be_visible()


async def test_the_badge_counts_only_what_somebody_has_to_answer(guest: Visitor) -> None:
    await guest.tries("Two things at once")
    card = guest.card("What shall I call you?")
    await expect(card).to_be_visible()
    async with guest.server.client() as client:
        taken = {"toolCallId": await card.get_attribute("data-call"), "clientId": "another-page"}
        assert (await client.post("/api/tools/take", json=taken)).status_code == 200
    await guest.page.goto(f"{guest.server.url}/_farhand#/inbox")
    await expect(guest.page.get_by_role("link", name="Inbox")).to_have_text(
        re.compile(r"Inbox\s*1 open question$")
    )
    await expect(guest.cards).to_have_count(1)
    await expect(guest.card("Pick your favourite colour")).to_be_visible()
