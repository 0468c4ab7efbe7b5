"""CopilotKit's own React page on farhand: tools, cards and approvals, whatever is reloaded or killed.

The page is that of `examples/copilotkit`, built and served as its README says; nothing in it knows farhand.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.async_api import Browser, expect

from tests.browser.copilotkit import (
    CopilotPage,
    build_page,
    copilot_page,
    copy_page,
    served_folder,
    serving,
)
from tests.browser.visitor import Visitors
from tests.process import MANY_RUNS, FarhandProcess, farhand_process
from tests.requirement import requirement

# the first one builds the page, which is large
pytestmark = pytest.mark.timeout(180)

LIST, TIME, INVITE = "Put the room on my list", "Find a time to meet", "Invite Ada"
BOTH = "Invite Ada and put the room on my list"
QUESTION, SLOT = "When shall we meet?", "Tuesday at 10:00"
LISTED, MET = "It is on your list: Book a room.", f"Then we meet on {SLOT}."
SENT = f"ada@example.com is invited for {SLOT}."
STAGES = ("before the card", "with the card open", "after the answer")
FOUND_WITHIN_SEC = 20
FULL_DISK = "() => { Storage.prototype.setItem = () => { throw new Error('the disk is full'); }; }"


class Site(NamedTuple):
    """farhand with the agent of the example, and the page in front of it."""

    server: FarhandProcess
    url: str
    room: Path

    def lets_through(self, gate: str) -> None:
        (self.room / "gates" / gate).touch()

    def invitations(self, thread: str) -> int:
        """How often the tool behind the approval has run."""
        notes = self.room / "notes.jsonl"
        lines = notes.read_text().splitlines() if notes.exists() else []
        return sum(json.loads(line)["thread"] == thread for line in lines)

    async def open_call(self, thread: str, tool: str) -> dict[str, str]:
        """What the inbox has about this tool, once it has it."""
        async with self.server.client() as http, asyncio.timeout(FOUND_WITHIN_SEC):
            while True:
                calls = (await http.get("/api/inbox", params={"thread": thread})).json()["calls"]
                if found := [call for call in calls if call["tool"] == tool]:
                    return dict(found[0])
                await asyncio.sleep(0.05)

    async def post(self, path: str, body: Mapping[str, object]) -> object:
        async with self.server.client() as http:
            return (await http.post(path, json=body)).json()


@pytest.fixture(scope="module")
async def built_page(built: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copilotkit")
    await build_page(folder)
    return folder


@asynccontextmanager
async def site_of(page: Path, room: Path) -> AsyncIterator[Site]:
    (room / "gates").mkdir()
    environment = {"TEST_ROOM": str(room), **MANY_RUNS}
    async with (
        farhand_process("tests.browser.copilotkit_agent:agent", env=environment) as server,
        serving(page, server) as url,
    ):
        yield Site(server, url, room)


@pytest.fixture(scope="module")
async def site(built_page: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """Shared: every test has a thread of its own."""
    async with site_of(built_page, tmp_path_factory.mktemp("room")) as site:
        yield site


@pytest.fixture
async def guest(browser: Browser, site: Site) -> AsyncIterator[CopilotPage]:
    async with copilot_page(browser, site.url) as guest:
        yield guest


# ------------------------------------------------------------------------------------------ tools of the page


@requirement("copilotkit:frontend-tool")
async def test_a_frontend_tool_runs_once_in_the_page_and_the_model_is_told(guest: CopilotPage) -> None:
    await guest.says(LIST)
    await guest.reads(LISTED)
    await expect(guest.todos).to_have_text(["Book a room"])
    await guest.reloads()
    await guest.reads(LISTED)
    await expect(guest.todos).to_have_count(1)


@requirement("copilotkit:reload")
async def test_a_frontend_tool_that_a_reload_left_open_does_not_hold_up_the_next_message(
    guest: CopilotPage, site: Site
) -> None:
    await guest.says(f"after {guest.thread}: {LIST}")
    await guest.reads("One moment.")
    await guest.reloads()
    site.lets_through(guest.thread)
    await site.open_call(guest.thread, "add_todo")
    await guest.says(LIST)
    await guest.reads(LISTED)
    # CopilotKit runs no plain tool on a reload: only the second one ran
    await expect(guest.todos).to_have_count(1)


@requirement("copilotkit:reload")
async def test_a_result_that_a_reload_lost_does_not_hold_up_the_next_message(guest: CopilotPage) -> None:
    await guest.says("Put the room on my list and find a time")
    # its result would go out with the answer to the card
    await expect(guest.todos).to_have_count(1)
    await expect(guest.card(QUESTION).get_by_role("button", name=SLOT)).to_be_enabled()
    await guest.reloads()
    await guest.presses(SLOT)
    await expect(guest.card(QUESTION).get_by_text(f"You chose {SLOT}.")).to_be_visible()
    await guest.says(LIST)
    await guest.reads(LISTED)
    await expect(guest.todos).to_have_count(2)


@requirement("copilotkit:frontend-tool")
async def test_a_frontend_tool_that_throws_does_not_hold_up_the_next_message(
    guest: CopilotPage, site: Site
) -> None:
    await guest.page.evaluate(FULL_DISK)
    guest.forgives("the disk is full")
    await guest.says(LIST)
    await guest.shows_result("add_todo", "Error: the disk is full")
    # CopilotKit keeps the error until the user says something
    await guest.says(TIME)
    await guest.presses(SLOT)
    await guest.reads(MET)
    async with site.server.client() as http:
        assert "Error: the disk is full" in (await http.get(f"/api/chat/{guest.thread}")).text


@requirement("copilotkit:reload")
@pytest.mark.parametrize("stage", STAGES)
async def test_a_human_in_the_loop_card_is_answered_whenever_the_page_is_reloaded(
    guest: CopilotPage, site: Site, stage: str
) -> None:
    await guest.says(f"after {guest.thread}: {TIME}")
    await guest.reads("One moment.")
    await reload_at("before the card", stage, guest)
    site.lets_through(guest.thread)
    await expect(guest.card(QUESTION).get_by_role("button", name=SLOT)).to_be_enabled()
    await reload_at("with the card open", stage, guest)
    await guest.presses(SLOT)
    await guest.reads(MET)
    await reload_at("after the answer", stage, guest)
    await guest.reads(MET)
    await expect(guest.card(QUESTION)).to_have_count(1)
    await expect(guest.card(QUESTION).get_by_text(f"You chose {SLOT}.")).to_be_visible()


async def test_a_new_message_while_a_card_is_open_moves_on(guest: CopilotPage) -> None:
    await guest.says(TIME)
    await expect(guest.card(QUESTION).get_by_role("button", name=SLOT)).to_be_enabled()
    await guest.says(LIST)
    await guest.reads(LISTED)
    await guest.reloads()
    await guest.reads(LISTED)
    await expect(guest.card(QUESTION).get_by_role("button", name=SLOT)).to_have_count(0)


# -------------------------------------------------------------------------------------------------- approvals


@requirement("copilotkit:reload")
@pytest.mark.parametrize("stage", STAGES)
async def test_an_approval_is_given_whenever_the_page_is_reloaded_and_the_tool_runs_once(
    guest: CopilotPage, site: Site, stage: str
) -> None:
    await guest.says(f"after {guest.thread}: {INVITE}")
    await guest.reads("One moment.")
    await reload_at("before the card", stage, guest)
    site.lets_through(guest.thread)
    await expect(guest.approval).to_contain_text("ada@example.com")
    await reload_at("with the card open", stage, guest)
    assert site.invitations(guest.thread) == 0
    await guest.presses("Approve")
    await guest.reads(SENT)
    # CopilotKit takes the answer for the tool's result until it is told otherwise
    await guest.shows_result("send_invitation", SENT)
    await reload_at("after the answer", stage, guest)
    await guest.reads(SENT)
    await guest.shows_result("send_invitation", SENT)
    await expect(guest.approval).to_have_count(0)
    assert site.invitations(guest.thread) == 1


@requirement("copilotkit:approval")
async def test_a_declined_tool_does_not_run_and_the_model_is_told_why(guest: CopilotPage, site: Site) -> None:
    await guest.says(INVITE)
    await guest.presses("Decline")
    await guest.reads("I did not do it (denied: the user declined).")
    await expect(guest.approval).to_have_count(0)
    assert site.invitations(guest.thread) == 0


@requirement("copilotkit:approval")
async def test_a_frontend_tool_of_the_same_step_runs_after_the_approval(
    guest: CopilotPage, site: Site
) -> None:
    await guest.says(BOTH)
    await expect(guest.approval).to_be_visible()
    await expect(guest.todos).to_have_count(0)
    await guest.presses("Approve")
    await guest.reads(f"{LISTED} {SENT}")
    await expect(guest.todos).to_have_count(1)
    assert site.invitations(guest.thread) == 1


@requirement("copilotkit:approval")
async def test_of_two_approvals_in_one_step_each_gets_its_own_answer(guest: CopilotPage, site: Site) -> None:
    await guest.says("Invite Ada and Bob")
    await expect(guest.approval).to_have_count(2)
    await guest.approval.filter(has_text="ada@").get_by_role("button", name="Decline").click()
    # CopilotKit sends the answers together, and a reload forgets those that were not sent
    await guest.reloads()
    await guest.approval.filter(has_text="ada@").get_by_role("button", name="Decline").click()
    assert site.invitations(guest.thread) == 0
    await guest.approval.filter(has_text="bob@").get_by_role("button", name="Approve").click()
    await guest.reads(f"I did not do it (denied: the user declined). bob@example.com is invited for {SLOT}.")
    assert site.invitations(guest.thread) == 1


@requirement("copilotkit:approval")
async def test_a_message_that_waits_for_an_approval_is_answered_after_it(
    guest: CopilotPage, site: Site
) -> None:
    await guest.says(INVITE)
    await expect(guest.approval).to_be_visible()
    # CopilotKit keeps it back, and says so
    guest.forgives("pending interrupt")
    await guest.says(LIST)
    await guest.presses("Approve")
    await guest.reads(SENT)
    await guest.reads(LISTED)
    await guest.has_said(INVITE, LIST)
    await expect(guest.todos).to_have_count(1)
    assert site.invitations(guest.thread) == 1


@requirement("copilotkit:approval")
async def test_two_tabs_that_approve_the_same_run_the_tool_once(
    browser: Browser, guest: CopilotPage, site: Site
) -> None:
    await guest.says(INVITE)
    await expect(guest.approval).to_be_visible()
    async with copilot_page(browser, site.url, thread=guest.thread) as other:
        await expect(other.approval).to_be_visible()
        await asyncio.gather(guest.presses("Approve"), other.presses("Approve"))
        await guest.reads(SENT)
        await other.reads(SENT)
    assert site.invitations(guest.thread) == 1


# -------------------------------------------------------------------------------------------------- questions


@requirement("copilotkit:question")
@pytest.mark.parametrize("is_reloaded", [False, True])
async def test_what_a_tool_asks_has_a_card_with_its_fields(guest: CopilotPage, *, is_reloaded: bool) -> None:
    await guest.says("Book a room")
    card = guest.card("Which room do you need?")
    await expect(card).to_be_visible()
    if is_reloaded:
        await guest.reloads()
    await expect(guest.approval).to_have_count(0)
    await card.get_by_label("How many people?").fill("6")
    await card.get_by_label("Floor").select_option("First floor")
    await guest.presses("Send")
    await guest.reads(f"A room for 6 is booked for {SLOT}. First floor.")
    await expect(card).to_have_count(0)


@requirement("copilotkit:question")
async def test_a_question_of_a_tool_can_be_declined(guest: CopilotPage) -> None:
    await guest.says("Book a room")
    await guest.presses("Decline")
    await guest.reads("No room is booked.")


# --------------------------------------------------------------------------------------- the server is killed


@requirement("copilotkit:restart")
async def test_a_card_and_an_approval_outlive_the_death_of_the_server(
    browser: Browser, built_page: Path, tmp_path: Path
) -> None:
    async with site_of(built_page, tmp_path) as own, copilot_page(browser, own.url) as guest:
        await guest.says(TIME)
        await expect(guest.card(QUESTION).get_by_role("button", name=SLOT)).to_be_enabled()
        await own.server.restart()
        await guest.presses(SLOT)
        await guest.reads(MET)
        await guest.says(BOTH)
        await expect(guest.approval).to_be_visible()
        await own.server.restart()
        await guest.presses("Approve")
        # the tool of the page, brought before the restart, is still known
        await guest.reads(f"{LISTED} {SENT}")
        await expect(guest.todos).to_have_count(1)
        assert own.invitations(guest.thread) == 1


@requirement("copilotkit:restart")
async def test_an_answer_that_the_death_of_the_server_cut_is_whole_after_a_reload(
    browser: Browser, built_page: Path, tmp_path: Path
) -> None:
    async with site_of(built_page, tmp_path) as own, copilot_page(browser, own.url) as guest:
        await guest.says("tell tale")
        await guest.reads("The tale of tale begins.")
        await own.server.restart()
        await guest.reloads()
        own.lets_through("tale")
        await guest.reads("The tale of tale begins. The tale of tale ends.")


# ------------------------------------------------------------------------------------------------------- stop


@requirement("copilotkit:stop")
async def test_a_stopped_answer_ends_and_the_next_message_is_answered(guest: CopilotPage, site: Site) -> None:
    await guest.says(f"tell {guest.thread}")
    await guest.reads(f"The tale of {guest.thread} begins.")
    await guest.stops()
    await guest.says(LIST)
    await guest.reads(LISTED)
    site.lets_through(guest.thread)
    await guest.reloads()
    await guest.reads(LISTED)
    await expect(guest.page.get_by_text(f"The tale of {guest.thread} ends.")).to_have_count(0)


@requirement("copilotkit:stop")
async def test_an_answer_is_stopped_after_a_reload(guest: CopilotPage) -> None:
    await guest.says(f"tell {guest.thread}")
    await guest.reads(f"The tale of {guest.thread} begins.")
    await guest.reloads()
    await guest.reads(f"The tale of {guest.thread} begins.")
    await guest.stops()
    await guest.says(LIST)
    await guest.reads(LISTED)


# -------------------------------------------------------------------------------------------------- elsewhere


@requirement("copilotkit:elsewhere")
async def test_a_card_that_was_answered_elsewhere_shows_that_answer(guest: CopilotPage, site: Site) -> None:
    await guest.says(TIME)
    await expect(guest.card(QUESTION).get_by_role("button", name=SLOT)).to_be_enabled()
    call = await site.open_call(guest.thread, "choose_time")
    answer = {"toolCallId": call["callId"], "status": "success", "output": "Wednesday at 14:00"}
    assert await site.post("/api/tools/ack", answer) == {"ok": True}
    # the page does not know yet, and its answer comes too late
    await guest.presses(SLOT)
    await guest.reads("Then we meet on Wednesday at 14:00.")
    await expect(guest.card(QUESTION).get_by_text("You chose Wednesday at 14:00.")).to_be_visible()
    await guest.reloads()
    await guest.reads("Then we meet on Wednesday at 14:00.")


@requirement("copilotkit:elsewhere")
async def test_an_approval_that_was_denied_elsewhere_stays_denied(guest: CopilotPage, site: Site) -> None:
    await guest.says(INVITE)
    await expect(guest.approval).to_be_visible()
    call = await site.open_call(guest.thread, "send_invitation")
    denial = {"approvalId": call["approvalId"], "approved": False, "reason": "not today"}
    assert await site.post("/api/tools/approve", denial) == {"ok": True}
    await guest.presses("Approve")
    await guest.reads("I did not do it (denied: not today).")
    assert site.invitations(guest.thread) == 0


@requirement("copilotkit:elsewhere")
async def test_an_approval_that_was_asked_on_another_wire_is_given_here(browser: Browser, site: Site) -> None:
    thread = "asked-elsewhere"
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": INVITE}]}
    async with site.server.client() as http:
        await http.post("/api/chat", json={"id": thread, "messages": [message]})
    async with copilot_page(browser, site.url, thread=thread) as guest:
        await guest.presses("Approve")
        await guest.reads(SENT)
    assert site.invitations(thread) == 1


@requirement("copilotkit:elsewhere")
async def test_a_question_of_the_page_is_answered_on_farhands_chat_page(
    guest: CopilotPage, site: Site, visitors: Visitors
) -> None:
    await guest.says(TIME)
    await expect(guest.card(QUESTION).get_by_role("button", name=SLOT)).to_be_enabled()
    other = await visitors.at(site.server, f"#/chat/{guest.thread}")
    card = other.card("Choose time")
    await card.get_by_role("textbox", name="Answer as JSON").fill(json.dumps(SLOT))
    await card.get_by_role("button", name="Send answer").click()
    await other.sees(MET)
    await guest.reloads()
    await guest.reads(MET)
    await expect(guest.card(QUESTION).get_by_text(f"You chose {SLOT}.")).to_be_visible()


@requirement("copilotkit:elsewhere")
async def test_an_approval_is_given_in_farhands_inbox(
    browser: Browser, built_page: Path, tmp_path: Path, visitors: Visitors
) -> None:
    async with site_of(built_page, tmp_path) as own, copilot_page(browser, own.url) as guest:
        await guest.says(BOTH)
        await expect(guest.approval).to_be_visible()
        inbox = await visitors.at(own.server, "#/inbox")
        await inbox.card("Send invitation?").get_by_role("button", name="Allow once").click()
        # what the page itself executes waits there, too
        await expect(inbox.card("Send invitation?")).to_have_count(0)
        await inbox.card("Add todo").get_by_role("textbox", name="Answer as JSON").fill('"Book a room"')
        await inbox.presses("Send answer")
        await inbox.sees("All caught up.")
        await inbox.page.close()
        await guest.reloads()
        await guest.reads(f"{LISTED} {SENT}")
        assert own.invitations(guest.thread) == 1


@requirement("copilotkit:elsewhere")
async def test_the_chat_page_and_the_inspector_show_a_run_of_copilotkit(
    guest: CopilotPage, site: Site, visitors: Visitors
) -> None:
    await guest.says(LIST)
    await guest.reads(LISTED)
    await guest.says(INVITE)
    await expect(guest.approval).to_be_visible()
    other = await visitors.at(site.server, f"#/chat/{guest.thread}")
    await other.sees(LISTED)
    await expect(other.card("Send invitation?")).to_be_visible()
    await other.presses("Allow once")
    await other.sees(SENT)
    await other.main.get_by_role("link", name="Inspect run").last.click()
    await expect(other.main.get_by_text("Done", exact=True)).to_be_visible()
    await guest.reloads()
    await guest.reads(SENT)
    await expect(guest.approval).to_have_count(0)
    assert site.invitations(guest.thread) == 1


# ------------------------------------------------------------------------ the single endpoint, another origin


@requirement("copilotkit:single-endpoint")
async def test_a_page_of_another_origin_uses_the_single_endpoint_with_a_header_of_its_own(
    browser: Browser, built_page: Path, tmp_path: Path
) -> None:
    room, folder = tmp_path / "room", tmp_path / "built"
    (room / "gates").mkdir(parents=True)
    environment = {"TEST_ROOM": str(room), **MANY_RUNS}
    with served_folder(folder) as origin:
        arguments = ("--allow-origin", origin, "--allow-header", "X-Tenant")
        agent = "tests.browser.copilotkit_agent:agent"
        async with farhand_process(agent, *arguments, env=environment) as server:
            headers = json.dumps({"Authorization": f"Bearer {server.token}", "X-Tenant": "acme"})
            address = f'runtimeUrl: "{server.url}/copilotkit"'
            copy_page(built_page, folder, f"{address}, useSingleEndpoint: true, headers: {headers}")
            async with copilot_page(browser, origin) as guest:
                posted: list[tuple[str, str | None]] = []
                guest.page.on("request", lambda sent: posted.append((sent.url, sent.headers.get("x-tenant"))))
                await guest.says(LIST)
                await guest.reads(LISTED)
                await guest.says(INVITE)
                await guest.reloads()
                await guest.presses("Approve")
                await guest.reads(SENT)
                await guest.says("tell tale")
                await guest.reads("The tale of tale begins.")
                await guest.stops()
                await guest.says(TIME)
                await guest.presses(SLOT)
                await guest.reads(MET)
            to_server = {each for each in posted if each[0].startswith(server.url)}
            assert to_server == {(f"{server.url}/copilotkit", "acme")}
            assert Site(server, origin, room).invitations(guest.thread) == 1


async def reload_at(here: str, stage: str, guest: CopilotPage) -> None:
    if here == stage:
        await guest.reloads()
