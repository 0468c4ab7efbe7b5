"""The states of a card, most of them shown on a card that opens a page."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from playwright.async_api import Route, expect

from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess

PAGE = 'open_url {"url": "https://pages.example/report"}'
TITLE = "Open pages.example"


async def test_a_question_that_is_being_written_shows_bars_and_no_button(player: Visitor) -> None:
    words = "a question that takes a while to write"
    await player.asks(f'slowly user_confirm {{"message": "Is it {words}?"}}')
    # its tool has no title of its own, and the name is for programs
    card = player.card("The assistant is still writing the question")
    await expect(card).to_have_attribute("data-state", "writing")
    await expect(player.main.get_by_text("User confirm")).to_have_count(0)
    await expect(card.get_by_role("button")).to_have_count(0)
    await expect(card.locator(".fh-bar")).to_have_count(2)
    await expect(player.card(f"Is it {words}?").get_by_role("button", name="Yes")).to_be_visible()


async def test_an_open_question_has_icon_title_context_buttons_and_time_left(player: Visitor) -> None:
    await player.asks(PAGE)
    card = player.card(TITLE)
    await expect(card).to_have_attribute("data-state", "open")
    await expect(card.locator(".fh-head svg").first).to_be_visible()
    await expect(card.get_by_role("heading", name=TITLE)).to_be_visible()
    await expect(card.get_by_text("Beside this chat")).to_be_visible()
    await expect(card.get_by_role("button")).to_have_text(["Open", "Open in a new tab", "Skip"])
    await expect(card.get_by_role("timer")).to_have_text(re.compile(r"^\s*0:[0-5]\d$"))
    await expect(card.get_by_role("timer")).to_have_attribute("data-short", "false")


async def test_the_last_ten_seconds_are_amber_and_then_it_is_too_late(player: Visitor) -> None:
    await player.asks('open_url {"url": "https://pages.example/report", "timeout_sec": 9}')
    timer = player.card(TITLE).get_by_role("timer")
    await expect(timer).to_have_attribute("data-short", "true")
    plain = await player.card(TITLE).get_by_role("heading").evaluate(COLOUR)
    assert await timer.evaluate(COLOUR) != plain
    late = player.card("Timed out")
    await expect(late.get_by_text("No answer within 9 s")).to_be_visible()
    await expect(late.get_by_text("Timed out", exact=True)).to_be_visible()
    # a press passes the rules for pop-ups at any time
    await expect(late.get_by_role("button", name="Open: pages.example")).to_be_visible()
    await expect(late.get_by_role("button", name="Ask me again")).to_be_visible()
    heights = await late.get_by_role("button").evaluate_all("(all) => all.map((each) => each.offsetHeight)")
    assert len(set(heights)) == 1, "the buttons of a card have one height"


async def test_whoever_was_too_late_is_asked_the_same_again(guest: Visitor) -> None:
    await guest.asks("Open https://pages.example quickly")
    await expect(guest.card("Timed out")).to_be_visible()
    await guest.presses("Ask me again")
    await guest.card("Open pages.example").get_by_role("button", name="Open", exact=True).click()
    await guest.sees("The page is open beside us: https://pages.example/")


async def test_a_call_that_somebody_has_taken_shows_as_running(player: Visitor) -> None:
    await player.asks(PAGE)
    card = player.card(TITLE)
    await expect(card).to_have_attribute("data-state", "open")
    async with player.server.client() as client:
        taken = {"toolCallId": await card.get_attribute("data-call"), "clientId": "another-page"}
        assert (await client.post("/api/tools/take", json=taken)).status_code == 200
    running = player.main.locator(".fh-card[data-state=running]")
    await expect(running.get_by_text("Running in this browser")).to_be_visible()
    await expect(running.get_by_text("Running", exact=True)).to_be_visible()
    await running.get_by_role("button", name="Cancel").click()
    await player.sees("open_url brought nothing: failure, skipped by the user.")


async def test_a_tool_of_the_server_shows_as_running_there(player: Visitor, room: Path) -> None:
    await player.asks('print_report {"name": "slow-print"}')
    await player.presses("Allow once")
    await player.sees("Running on the server")
    await player.sees_state("Running")
    (room / "gates/slow-print").touch()
    await player.sees('print_report brought {"printed": "slow-print"}.')


async def test_while_an_answer_is_sent_the_buttons_are_off(player: Visitor) -> None:
    await player.asks(PAGE)
    on_its_way = await held_back(player, "**/api/tools/ack")
    await player.presses("Open")
    card = player.card(TITLE)
    await expect(card).to_have_attribute("data-state", "sending")
    await expect(card.get_by_text("Sending", exact=True)).to_be_visible()
    for button in await card.get_by_role("button").all():
        await expect(button).to_be_disabled()
    await expect(player.main.locator(".fh-needed")).to_have_text("Sending your answer")
    on_its_way.set()
    await player.sees("open_url brought ")


async def test_a_cut_stream_is_reported_under_the_talk_and_resumed_by_hand(guest: Visitor) -> None:
    guest.expects_to_be_cut_off()
    # before the story begins: it does not wait for anybody
    away = Away(guest, "**/api/chat/*/stream*")
    await away.begins()
    await guest.tries("A long story")
    await guest.sees("Once upon a time")
    await guest.presses("Pull the plug")
    await guest.sees("Connection lost. Trying again.")
    await away.ends()
    await guest.presses("Resume now")
    await guest.sees("this is how the story ends.")
    talk = await guest.main.inner_text()
    assert talk.count("Once upon a time") == talk.count("somebody went for lunch") == 1


async def test_an_answer_that_was_not_delivered_is_kept_and_can_be_changed(player: Visitor) -> None:
    player.expects_to_be_cut_off()
    await player.asks('ask_text {"question": "What is it called?"}')
    away = Away(player, "**/api/tools/ack")
    await away.begins()
    card = player.card("What is it called?")
    await card.get_by_role("textbox").fill("First")
    await card.get_by_role("button", name="Send answer").click()
    await expect(card).to_have_attribute("data-state", "undelivered")
    await expect(card.get_by_text("Your answer did not reach the server")).to_be_visible()
    await expect(
        card.get_by_text(re.compile(r"Still here and not lost. Trying again in \d+ s."))
    ).to_be_visible()
    await card.get_by_role("button", name="Change answer").click()
    await card.get_by_role("textbox").fill("Second")
    await card.get_by_role("button", name="Send answer").click()
    await expect(card).to_have_attribute("data-state", "undelivered")
    # it is tried again by itself, too: once the way is free, there may be no button any more
    await card.get_by_role("button", name="Try now").click()
    await expect(card).to_have_attribute("data-state", "undelivered")
    await away.ends()
    await player.sees('ask_text brought "Second".')


async def test_what_is_done_folds_into_a_row_that_unfolds(player: Visitor) -> None:
    await player.asks(PAGE)
    await player.presses("Open")
    row = player.rows.filter(has_text="Page opened")
    await expect(row).to_have_attribute("data-state", "done")
    await expect(row.get_by_text("pages.example/report").first).to_be_visible()
    await expect(row.locator(".fh-took")).to_have_text(re.compile(r"^\d+(\.\d)? (ms|s)$"))
    await expect(row.get_by_text('"viewKey"')).to_be_hidden()
    await row.get_by_text("Page opened").click()
    await expect(row.get_by_text('"viewKey"')).to_be_visible()


async def test_an_answer_from_another_tab_folds_the_card_here(player: Visitor, visitors: Visitors) -> None:
    await player.finds_other_sites()
    await player.asks(PAGE)
    await expect(player.card(TITLE)).to_be_visible()
    other = await visitors.beside(player, f"#/chat/{player.thread_id}")
    await other.presses("Open")
    await other.sees("open_url brought ")
    await player.sees("Answered in another tab")
    await player.sees("open_url brought ")
    await expect(player.page.locator("iframe")).to_have_count(0)


async def test_a_denied_call_shows_who_said_no_and_its_details(player: Visitor) -> None:
    await player.asks('send_report {"to": "nobody", "copies": 1}')
    await player.presses("Deny")
    await player.main.get_by_label("Reason (optional)").fill("Wrong address")
    await player.presses("Deny")
    card = player.card("Send report: not done")
    await expect(card).to_have_attribute("data-state", "denied")
    await card.get_by_text("Show details").click()
    await expect(card.get_by_text('"to": "nobody"')).to_be_visible()


async def test_a_parked_question_says_how_long_it_can_be_answered(
    visitors: Visitors, stage: FarhandProcess
) -> None:
    async with stage.client() as client:
        parts = [{"type": "text", "text": 'ask_text {"question": "What is it called?"}'}]
        message = {"id": "m-parked", "role": "user", "parts": parts}
        chat = {"id": "parked-chat", "trigger": "submit-message", "messages": [message]}
        assert (await client.post("/api/chat", json=chat)).status_code == 200
    player = await visitors.at(stage, "#/chat/parked-chat")
    card = player.card("What is it called?")
    await expect(card.get_by_text("Saved. You have 3 days to answer.")).to_be_visible()
    await player.sees_state("Saved for later")
    pill = player.main.locator("> header").get_by_text("Saved for later")
    await expect(pill).to_have_attribute("title", re.compile(r"^Saved\. You have until .+ to answer\.$"))
    await player.sees(re.compile(r"Saved\. You have until .+ to answer\."))
    await card.get_by_role("textbox").fill("Later")
    await card.get_by_role("button", name="Send answer").click()
    await player.sees('ask_text brought "Later".')


async def test_a_program_that_is_away_is_named_and_a_person_can_run_its_call(
    visitors: Visitors, stage: FarhandProcess
) -> None:
    schema = {"type": "object", "properties": {"sheet": {"type": "string"}}}
    scale = {"id": "scan", "description": "Scan a sheet.", "parameters": schema}
    async with stage.client() as client:
        offer = {"clientID": "studio-mac", "tools": [scale], "graceSec": 120}
        registered = await client.post("/client-tools/register", json=offer)
        assert registered.status_code == 200, registered.text
        [name] = registered.json()["registered"]
    player = await visitors.at(stage)
    await player.asks(f'{name} {{"sheet": "A4"}}')
    card = player.main.locator(".fh-card[data-state=no-client]")
    await expect(card.get_by_text(re.compile(r"“studio-mac” has not been seen for \d+ s"))).to_be_visible()
    await expect(card.get_by_text("No client", exact=True)).to_be_visible()
    await expect(card.get_by_role("button")).to_have_text(["Wait", "Run here", "Skip"])
    await card.get_by_role("button", name="Run here").click()
    await player.main.get_by_label("Answer").fill('{"pages": 1}')
    await player.presses("Send answer")
    await player.sees(f'{name} brought {{"pages": 1}}.')


async def test_the_message_box_is_off_while_answers_are_needed_and_stop_works(player: Visitor) -> None:
    await player.asks(PAGE)
    box = player.page.get_by_role("textbox", name="Message")
    await expect(box).to_be_disabled()
    await expect(box).to_have_attribute("placeholder", "Answer above to continue")
    await player.presses("Stop")
    await player.sees_state("Stopped")
    await expect(player.cards).to_have_count(0)
    await expect(box).to_be_enabled()


async def test_a_model_that_breaks_is_reported_and_can_be_tried_again(guest: Visitor) -> None:
    await guest.asks("Fail on purpose")
    await guest.sees_state("Failed")
    await expect(guest.main.get_by_role("alert")).to_contain_text("The model failed.")
    await guest.presses("Try again")
    await guest.sees_state("Failed")


COLOUR = "element => getComputedStyle(element).color"


async def held_back(visitor: Visitor, path: str) -> asyncio.Event:
    """Requests to this path leave the browser once the event is set."""
    leave = asyncio.Event()

    async def wait(route: Route) -> None:
        await leave.wait()
        await route.continue_()

    await visitor.page.route(path, wait)
    return leave


class Away:
    """A path that cannot be reached, until it can be again."""

    def __init__(self, visitor: Visitor, path: str) -> None:
        self._visitor = visitor
        self._path = path

    async def begins(self) -> None:
        await self._visitor.page.route(self._path, self._refuse)

    async def ends(self) -> None:
        await self._visitor.page.unroute(self._path, self._refuse)

    async def _refuse(self, route: Route) -> None:
        await route.abort("connectionrefused")
