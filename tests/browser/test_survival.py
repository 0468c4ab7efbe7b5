"""Failures while a card is open: of the page, the connection, the server; and answers from several tabs."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Route, expect

from tests.browser.conftest import EVERYTHING
from tests.browser.lamp import lamp_picture
from tests.browser.test_states import Away
from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess, farhand_process
from tests.requirement import requirement

pytestmark = requirement("page:survival")


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[FarhandProcess]:
    """A demo of the test's own, to be killed."""
    async with farhand_process("demo", env={"FARHAND_DEMO_FOLDER": str(tmp_path / "scratch")}) as server:
        yield server


async def test_a_card_is_there_again_after_a_reload_and_can_be_answered(guest: Visitor) -> None:
    await guest.tries("Yes or no")
    await expect(guest.card("Shall I go on?")).to_be_visible()
    chat = guest.thread_id
    await guest.page.reload()
    await expect(guest.card("Shall I go on?").get_by_role("button", name="Yes")).to_be_visible()
    assert guest.thread_id == chat
    await guest.presses("Yes")
    await guest.sees("You said yes, so I went on.")
    assert (await guest.main.inner_text()).count("You said yes, so I went on.") == 1


async def test_an_approval_is_there_again_after_a_reload_and_shows_the_true_input(player: Visitor) -> None:
    await player.asks('send_report {"to": "reload@example", "copies": 4}')
    await expect(player.card("Send report?")).to_be_visible()
    await player.page.reload()
    await expect(player.card("Send report?").get_by_role("row", name="copies 4")).to_be_visible()
    await player.presses("Allow once")
    await player.sees('send_report brought {"sent": "reload@example"}.')


async def test_the_list_of_chats_survives_a_reload(guest: Visitor) -> None:
    await guest.asks("What is the weather in Reykjavik?")
    await guest.sees("degrees Fahrenheit")
    await guest.new_chat()
    await guest.page.reload()
    await guest.page.get_by_role("link", name="What is the weather in Reykjavik?").first.click()
    await guest.sees("degrees Fahrenheit")


async def test_an_answer_given_while_the_server_is_dead_is_delivered_when_it_is_back(
    visitors: Visitors, own: FarhandProcess
) -> None:
    guest = await visitors.at(own)
    guest.expects_to_be_cut_off()
    await guest.tries("My name")
    await expect(guest.card("What is your name?")).to_be_visible()
    await own.kill()
    await guest.sees("Connection lost. Trying again.")
    await guest.sees_state("Connection lost")
    await guest.main.get_by_role("textbox", name="What is your name?").fill("Grace")
    await guest.presses("Send answer")
    await guest.sees("Your answer did not reach the server")
    await own.start()
    await guest.sees("Nice to meet you, Grace.")
    await guest.sees_state("Done")
    assert (await guest.main.inner_text()).count("Nice to meet you, Grace.") == 1


async def test_a_card_outlives_the_death_of_the_server(visitors: Visitors, own: FarhandProcess) -> None:
    guest = await visitors.at(own)
    guest.expects_to_be_cut_off()
    await guest.tries("Delete an old draft")
    await expect(guest.card("Delete old-draft.txt?")).to_be_visible()
    await own.restart()
    await expect(guest.page.get_by_text("This browser is connected")).to_be_visible()
    await guest.presses("Allow once")
    await guest.sees("old-draft.txt is gone.")


async def test_each_card_that_outlives_the_death_of_the_server_brings_one_result(
    visitors: Visitors, tmp_path: Path
) -> None:
    room = tmp_path / "room"
    room.mkdir()
    async with farhand_process("tests.browser.stage:agent", env={"TEST_ROOM": str(room)}) as server:
        player = await visitors.at(server, allowed=EVERYTHING)
        player.expects_to_be_cut_off()
        await player.asks(
            'copy_to_clipboard {"text": "once"}\nsend_report {"to": "nobody", "copies": 1}\ntake_photo {}'
        )
        photo = player.main.locator(".fh-card", has_text="Take a photo")
        await photo.get_by_role("button", name="Allow once").click()
        await expect(photo.get_by_role("button", name="Take photo")).to_be_visible()
        await server.restart()
        await expect(player.page.get_by_text("This browser is connected")).to_be_visible()
        await player.cards.get_by_role("button", name="Copy", exact=True).click()
        await player.cards.get_by_role("button", name="Deny", exact=True).click()
        await player.cards.get_by_role("button", name="Deny", exact=True).click()
        picture = {"name": "lamp.png", "mimeType": "image/png", "buffer": lamp_picture()}
        await photo.locator("input[type=file]").set_input_files(picture)  # type: ignore[arg-type]
        await player.sees_state("Done")
        said = await player.main.inner_text()
        for result in (
            "copy_to_clipboard brought true.",
            "send_report brought nothing: denied",
            "take_photo brought {",
        ):
            assert said.count(result) == 1, result
        await player.main.get_by_role("link", name="Inspect run").click()
        settled = player.page.get_by_role("button", name=re.compile(r"call-settled"))
        for tool in ("copy_to_clipboard, success", "send_report, denied", "take_photo, success"):
            await expect(settled.filter(has_text=tool)).to_have_count(1)
        await expect(settled).to_have_count(3)


async def test_the_head_of_a_saved_chat_says_that_the_server_is_away(
    visitors: Visitors, own: FarhandProcess
) -> None:
    async with own.client() as client:
        parts = [{"type": "text", "text": "Ask me my name"}]
        message = {"id": "m-saved", "role": "user", "parts": parts}
        chat = {"id": "saved-chat", "trigger": "submit-message", "messages": [message]}
        assert (await client.post("/api/chat", json=chat)).status_code == 200
    guest = await visitors.at(own, "#/chat/saved-chat")
    guest.expects_to_be_cut_off()
    await guest.sees_state("Saved for later")
    await own.kill()
    await guest.sees_state("Connection lost")
    await own.start()
    await guest.sees_state("Saved for later")


async def test_a_message_that_was_refused_is_back_in_the_box_and_leaves_no_error_after_the_next_sign_in(
    visitors: Visitors, own: FarhandProcess
) -> None:
    guest = await visitors.at(own)
    guest.expects_to_be_cut_off()
    guest.forgives("401")
    guest.forgives("WebSocket")
    await own.restart_with_another_token()
    await guest.says("Ask me my name")
    box = guest.page.get_by_role("textbox", name="Message")
    await expect(box).to_have_value("Ask me my name")
    await guest.page.get_by_label("Token", exact=True).fill(own.token)
    await guest.page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(guest.page.get_by_text("This browser is connected")).to_be_visible()
    await expect(guest.main.locator(".fh-red")).to_have_count(0)
    await expect(box).to_have_value("Ask me my name")
    await box.press("Enter")
    await expect(guest.card("What is your name?")).to_be_visible()


async def test_an_answer_while_offline_is_kept_over_a_reload_and_delivered_later(guest: Visitor) -> None:
    guest.expects_to_be_cut_off()
    await guest.tries("My name")
    await guest.main.get_by_role("textbox", name="What is your name?").fill("Joan")

    async def refuse(route: Route) -> None:
        await route.abort("internetdisconnected")

    await guest.page.context.set_offline(True)
    await guest.presses("Send answer")
    await guest.sees("Your answer did not reach the server")
    # the page comes from somewhere even so, as it does from a cache; the answers' way stays cut
    await guest.page.route("**/api/tools/ack", refuse)
    await guest.page.context.set_offline(False)
    await guest.page.reload()
    await guest.sees("Your answer did not reach the server")
    # it is tried again by itself, too: once the way is free, there may be no button any more
    await guest.presses("Try now")
    await guest.sees("Your answer did not reach the server")
    await guest.page.unroute("**/api/tools/ack", refuse)
    await guest.sees("Nice to meet you, Joan.")


async def test_an_answer_while_offline_is_sent_automatically_when_the_line_is_back(guest: Visitor) -> None:
    guest.expects_to_be_cut_off()
    await guest.tries("My name")
    await guest.main.get_by_role("textbox", name="What is your name?").fill("Mary")
    corner = guest.page.get_by_role("navigation", name="Chats").get_by_role("status")
    await expect(corner).to_have_text("This browser is connected")
    await guest.page.context.set_offline(True)
    await guest.presses("Send answer")
    await guest.sees("Your answer did not reach the server")
    await expect(corner).to_have_text("Not connected. Trying again.")
    await guest.page.context.set_offline(False)
    await guest.sees("Nice to meet you, Mary.")
    await expect(corner).to_have_text("This browser is connected")


async def test_a_pulled_plug_costs_no_word_and_no_call(guest: Visitor) -> None:
    await guest.tries("Yes or no")
    await expect(guest.card("Shall I go on?")).to_be_visible()
    await guest.presses("Pull the plug")
    await guest.presses("Yes")
    await guest.sees("You said yes, so I went on. And here I am.")
    assert (await guest.main.inner_text()).count("You said yes, so I went on.") == 1


async def test_the_corner_says_that_the_plug_is_pulled_also_after_a_reload_and_in_a_tab_without_the_feed(
    visitors: Visitors, own: FarhandProcess
) -> None:
    guest = await visitors.at(own)
    guest.expects_to_be_cut_off()
    await guest.tries("Delete an old draft")
    await expect(guest.card("Delete old-draft.txt?")).to_be_visible()
    await guest.page.reload()
    await expect(guest.card("Delete old-draft.txt?")).to_be_visible()
    second = await visitors.beside(guest, f"#/chat/{guest.thread_id}")
    second.expects_to_be_cut_off()
    for tab in (guest, second):
        corner = tab.page.get_by_role("navigation", name="Chats").get_by_role("status")
        await expect(corner).to_have_text("This browser is connected")
        # the plug is out for a moment only: the page notes what it shows then, however late the test looks
        await tab.page.evaluate(NOTES_THE_CUT)
        await tab.presses("Pull the plug")
        await tab.page.wait_for_function("window.cut === true")
        await expect(corner).to_have_text("This browser is connected")
    await guest.presses("Allow once")
    await guest.sees("old-draft.txt is gone.")
    await second.sees("old-draft.txt is gone.")


NOTES_THE_CUT = """() => {
    const look = () => {
        const corner = document.querySelector("nav [role=status]")?.textContent;
        const talk = document.querySelector("main");
        const hasPlug = talk.querySelector("header [aria-label='Pull the plug']") !== null;
        const isLost = talk.textContent.includes("Connection lost. Trying again.");
        window.cut ||= corner === "Not connected. Trying again." && isLost && !hasPlug;
    };
    window.cut = false;
    const everything = { subtree: true, childList: true, characterData: true, attributes: true };
    new MutationObserver(look).observe(document.body, everything);
}"""


async def test_the_corner_says_that_a_stream_is_lost(guest: Visitor) -> None:
    guest.expects_to_be_cut_off()
    away = Away(guest, "**/api/chat/*/stream*")
    await away.begins()
    await guest.tries("A long story")
    await guest.sees("Once upon a time")
    await guest.presses("Pull the plug")
    corner = guest.page.get_by_role("navigation", name="Chats").get_by_role("status")
    # the feed is back, and the story's stream is not
    async with guest.page.expect_response("**/api/events*"):
        pass
    await expect(corner).to_have_text("Not connected. Trying again.")
    await away.ends()
    await expect(corner).to_have_text("This browser is connected")
    await guest.sees("this is how the story ends.")


async def test_a_message_that_is_sent_the_moment_an_answer_is_there_is_not_lost(player: Visitor) -> None:
    await player.asks('send_report {"to": "0", "copies": 1}')
    await player.allows_always()
    for turn in range(1, 6):
        await player.sees(f'send_report brought {{"sent": "{turn - 1}"}}.')
        await player.says(f'send_report {{"to": "{turn}", "copies": 1}}')
    await player.sees('send_report brought {"sent": "5"}.')


async def test_a_message_that_is_sent_before_an_answer_is_over_goes_out_when_it_is(
    player: Visitor, room: Path
) -> None:
    await player.asks('print_report {"name": "before-it-is-over"}')
    await player.presses("Allow once")
    await player.sees_state("Running")
    await player.says('send_report {"to": "next", "copies": 1}')
    await player.sees("Sent when this answer is complete")
    (room / "gates/before-it-is-over").touch()
    await expect(player.card("Send report?")).to_be_visible()
    await player.sees('print_report brought {"printed": "before-it-is-over"}.')


async def test_a_message_that_waits_for_its_turn_is_kept_and_not_sent_after_a_stop(
    player: Visitor, room: Path
) -> None:
    await player.asks('print_report {"name": "stopped-before"}')
    await player.presses("Allow once")
    await player.sees_state("Running")
    await player.says("print_report {}")
    await player.presses("Stop")
    await player.sees("Stopped. Nothing more happens in this answer.")
    (room / "gates/stopped-before").touch()
    await expect(player.page.get_by_role("textbox", name="Message")).to_have_value("print_report {}")


async def test_a_message_said_while_the_record_of_the_last_answer_is_on_its_way_is_not_lost(
    player: Visitor,
) -> None:
    """The page asks what the server keeps when an answer ends; the person may be faster than that."""
    await player.asks('send_report {"to": "old", "copies": 1}')
    await expect(player.card("Send report?")).to_be_visible()
    go_on = asyncio.Event()

    async def late(route: Route) -> None:
        await go_on.wait()
        await route.continue_()

    await player.page.route(f"**/api/chat/{player.thread_id}", late)
    await player.presses("Allow once")
    await player.sees('send_report brought {"sent": "old"}.')
    await player.says('send_report {"to": "new", "copies": 1}')
    go_on.set()
    await expect(player.card("Send report?")).to_be_visible()
    await player.sees('send_report {"to": "new", "copies": 1}')
    await player.presses("Allow once")
    await player.sees('send_report brought {"sent": "new"}.')


async def test_a_page_that_is_cut_off_before_all_of_it_is_here_asks_for_the_rest_again(
    guest: Visitor,
) -> None:
    guest.expects_to_be_cut_off()
    cut = [f"**/assets/{name}-*.js" for name in ("chat-view", "message-list")]
    for path in cut:
        await guest.page.route(path, _refuse)
    await guest.page.reload()
    await expect(guest.page.get_by_text("This browser is connected")).to_have_count(1)
    for path in cut:
        await guest.page.unroute(path, _refuse)
    await guest.asks("Ask me my name")
    await expect(guest.card("What is your name?")).to_be_visible()


async def _refuse(route: Route) -> None:
    await route.abort("connectionrefused")


async def test_a_message_that_never_reached_the_server_is_given_back_when_it_is_stopped(
    guest: Visitor,
) -> None:
    guest.expects_to_be_cut_off()
    await guest.new_chat()
    # the part of the page that shows a talk is loaded after the first paint
    await guest.page.wait_for_function(
        "performance.getEntriesByType('resource').some((each) => each.name.includes('/message-list-'))"
    )
    await guest.page.context.set_offline(True)
    await guest.says("A long thought")
    await guest.presses("Stop")
    await guest.sees("Stopped on this page. The server is not responding")
    await expect(guest.page.get_by_role("textbox", name="Message")).to_have_value("A long thought")
    await expect(guest.main.locator("p", has_text="A long thought")).to_have_count(0)


async def test_a_double_click_is_one_answer(guest: Visitor) -> None:
    answers: list[object] = []
    guest.page.on(
        "request", lambda each: answers.append(each.post_data) if each.url.endswith("/ack") else None
    )
    await guest.tries("Yes or no")
    await guest.main.get_by_role("button", name="Yes", exact=True).dblclick()
    await guest.sees("You said yes, so I went on.")
    assert len(answers) == 1
    assert json.loads(str(answers[0]))["output"] == "yes"


async def test_two_tabs_show_one_question_and_the_first_answer_counts(
    guest: Visitor, visitors: Visitors
) -> None:
    await guest.tries("Yes or no")
    await expect(guest.card("Shall I go on?")).to_be_visible()
    other = await visitors.beside(guest, f"#/chat/{guest.thread_id}")
    await other.presses("No")
    for each in (guest, other):
        await each.sees("You said no, so I stopped right there.")
    await guest.sees("Answered in another tab")
    await expect(other.rows.get_by_text("No", exact=True)).to_be_visible()


async def test_of_two_tabs_one_opens_the_page_and_the_other_shows_that_it_was(
    guest: Visitor, visitors: Visitors
) -> None:
    await guest.finds_other_sites()
    await guest.asks("Open https://pages.example/one")
    await guest.presses("Open")
    await guest.sees("The page is open beside us: https://pages.example/one")
    other = await visitors.beside(guest, f"#/chat/{guest.thread_id}")
    await other.sees("The page is open beside us: https://pages.example/one")
    await guest.page.bring_to_front()
    for each in (guest, other):
        # whoever wants to take the call second is told so
        each.forgives("409")
    await guest.says("Open https://pages.example/two")
    for each in (guest, other):
        await each.sees("The page is open beside us: https://pages.example/two")
    frames = [each.page.locator('iframe[src="https://pages.example/two"]') for each in (guest, other)]
    shown: list[int] = []
    async with asyncio.timeout(20):
        # the part of the page that shows it is loaded when it is first needed, in whichever tab that is
        while not any(shown):
            shown = [await frame.count() for frame in frames]
    assert sum(shown) == 1


async def test_another_profile_of_the_same_person_can_answer(
    visitors: Visitors, demo: FarhandProcess
) -> None:
    first = await visitors.at(demo)
    await first.tries("My name")
    await expect(first.card("What is your name?")).to_be_visible()
    second = await visitors.at(demo, f"#/chat/{first.thread_id}")
    await second.main.get_by_role("textbox", name="What is your name?").fill("Ada")
    await second.presses("Send answer")
    await first.sees("Nice to meet you, Ada.")
