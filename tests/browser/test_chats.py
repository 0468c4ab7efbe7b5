"""Around the messages: the agent's branding, the list of chats, notifications, theme, texts, signing out."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.async_api import Route, expect

from tests.browser.axe import findings
from tests.browser.conftest import EVERYTHING
from tests.browser.lamp import lamp_picture
from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess, farhand_process
from tests.requirement import requirement

CHOICE = '{"question": "Which one?", "options": ["red", "blue"]}'
GROUND = "() => getComputedStyle(document.body).backgroundColor"
CARD = "() => getComputedStyle(document.querySelector('.fh-card')).backgroundColor"
SAY = """async (count) => {
    const headers = { "content-type": "application/json" };
    for (let n = 0; n < count; n += 1) {
        const parts = [{ type: "text", text: `write Chat ${n}.` }];
        const body = JSON.stringify({ id: `chat-${n}`, messages: [{ id: `m${n}`, role: "user", parts }] });
        await (await fetch("/api/chat", { method: "POST", body, headers })).text();
    }
}"""
NOTIFICATIONS = """
    window.notes = [];
    window.Notification = class {
        static permission = "default";
        static async requestPermission() { return (Notification.permission = "granted"); }
        constructor(title, options) { window.notes.push([title, options.body]); }
        close() {}
    };
    window.away = false;
    Object.defineProperty(document, "visibilityState", { get: () => (window.away ? "hidden" : "visible") });
"""


# named before `visitors`: the server leaves after its guests
@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[FarhandProcess]:
    """A stage on which nobody else has open questions."""
    async with farhand_process("tests.browser.stage:agent", env={"TEST_ROOM": str(tmp_path)}) as server:
        yield server


def fresh(name: str) -> str:
    return f"{name}-{uuid4().hex[:6]}"


async def test_the_buttons_of_a_chat_cover_no_part_of_its_title(player: Visitor) -> None:
    name = fresh("a title that is as long as the list of chats is wide")
    await player.asks(f"write {name}")
    await player.sees_state("Done")
    row = player.page.get_by_role("navigation", name="Chats").get_by_role("listitem").filter(has_text=name)
    title = row.locator("a > span").first
    faded = "(each) => getComputedStyle(each).maskImage"
    assert await title.evaluate(faded) == "none"
    await row.hover()
    rename = row.get_by_role("button", name="Rename")
    await expect(rename).to_have_css("opacity", "1")
    assert "linear-gradient(270deg, rgba(0, 0, 0, 0) 58px" in await title.evaluate(faded)
    words, button = await title.bounding_box(), await rename.bounding_box()
    assert words is not None
    assert button is not None
    assert words["x"] + words["width"] - 58 <= button["x"]
    await player.page.mouse.move(600, 300)
    assert await title.evaluate(faded) == "none"


async def test_the_demo_offers_beside_its_chats_only_what_is_not_among_them(
    visitors: Visitors, demo: FarhandProcess
) -> None:
    guest = await visitors.at(demo)
    await guest.tries("Where am I?")
    await guest.presses("No")
    await guest.sees_state("Done")
    trials = guest.page.get_by_role("region", name="Try one").get_by_role("button")
    await expect(trials).to_have_count(3)
    await expect(trials.filter(has_text="Where am I?")).to_have_count(0)


@requirement("ui:own-agent")
async def test_an_agent_has_its_own_title_welcome_starters_and_words_and_nothing_of_the_demo(
    player: Visitor, room: Path
) -> None:
    await player.new_chat()
    await expect(player.main.get_by_role("heading", name="The stage")).to_be_visible()
    await player.sees("It plays whatever it is told to.")
    await expect(player.main.get_by_role("list", name="Try one").get_by_role("button")).to_have_count(2)
    await expect(player.main.get_by_placeholder("Tell it what to play")).to_be_visible()
    chats = player.page.get_by_role("navigation", name="Chats")
    name = await chats.get_by_text("The stage").bounding_box()
    theme = await chats.get_by_role("button", name="Theme").bounding_box()
    assert name is not None
    assert theme is not None
    # a long name has the width of the list to itself
    assert theme["y"] > name["y"] + name["height"]
    # chats of others on this stage may have questions, and those are counted first
    await expect(player.page).to_have_title(re.compile(r"^(\(\d+\) )?The stage$"))
    await player.main.get_by_role("button", name="Choose").click()
    await expect(player.card("Which?").get_by_text("Take your pick")).to_be_visible()
    assert await player.page.get_by_role("button", name="Pull the plug").count() == 0
    await expect(chats.get_by_text("Try one")).to_have_count(0)
    await player.card("Which?").get_by_text("a", exact=True).click()
    await player.presses("Send answer")
    await player.sees_state("Done")


@requirement("ui:chats")
async def test_a_chat_that_a_starter_began_is_not_asked_again_when_it_is_returned_to(player: Visitor) -> None:
    posts: list[str] = []
    card = player.main.locator(".fh-card[data-kind=select]")
    player.page.on("request", lambda each: posts.append(each.url) if each.method == "POST" else None)
    await player.new_chat()
    await player.main.get_by_role("button", name="Choose").click()
    await expect(card).to_be_visible()
    sent = [url for url in posts if url.endswith("/api/chat")]
    for _ in range(2):
        await player.page.evaluate("location.hash = '#/inbox'")
        await expect(player.main.get_by_role("heading", name="Inbox", level=1)).to_be_visible()
        await player.page.go_back()
        await expect(card).to_be_visible()
    await player.page.reload()
    await expect(card).to_be_visible()
    assert await player.main.get_by_text("the user moved on").count() == 0
    assert [url for url in posts if url.endswith("/api/chat")] == sent
    await card.get_by_text("a", exact=True).click()
    await player.presses("Send answer")
    await player.sees_state("Done")


@requirement("ui:chats")
async def test_a_chat_is_renamed_found_by_its_words_and_deleted(player: Visitor) -> None:
    secret, title = fresh("walnut"), fresh("Breakfast")
    await player.asks(f"write Fine.\n\n`{secret}`")
    await player.sees_state("Done")
    await player.asks("write Something else.")
    await player.sees_state("Done")
    chats = player.page.get_by_role("navigation", name="Chats")
    search = chats.get_by_role("searchbox", name="Search chats")
    await search.fill(secret.upper())
    found = chats.locator("a[href^='#/chat/']")
    await expect(found).to_have_count(1)
    await found.hover()
    await chats.get_by_role("button", name="Rename").click()
    field = chats.get_by_role("textbox", name="New title")
    await expect(field).to_be_focused()
    assert await findings(player.page) == []
    await field.fill(title)
    await field.press("Enter")
    await expect(found).to_have_text(title)
    await found.click()
    await expect(player.main.get_by_role("heading", name=title, level=1)).to_be_visible()
    await expect(player.page).to_have_title(re.compile(rf"^(\(\d+\) )?{title} · The stage$"))
    await search.fill(title[:9].lower())
    await expect(chats.get_by_role("link", name=title)).to_be_visible()
    await search.fill(fresh("nothing"))
    await expect(chats.get_by_text("No chat has these words.")).to_be_visible()
    await search.fill("")
    player.page.once("dialog", lambda dialog: dialog.accept())
    await chats.get_by_role("link", name=title).hover()
    await chats.get_by_role("button", name=f"Delete {title}").click()
    await expect(chats.get_by_role("link", name=title)).to_have_count(0)
    await player.is_welcome()


@requirement("ui:chats")
async def test_a_title_of_two_lines_is_whole_and_nothing_moves_under_the_pointer(player: Visitor) -> None:
    title = f"write The lamp outside number {uuid4().int % 90 + 10}"
    await player.asks(title)
    await player.sees_state("Done")
    row = player.page.get_by_role("navigation", name="Chats").get_by_role("link", name=title).first
    await expect(row).to_be_visible()
    cut = (
        "(row) => [...row.querySelectorAll('span')].some((each) => each.scrollHeight > each.clientHeight + 1)"
    )
    assert not await row.evaluate(cut)
    before = await row.bounding_box()
    assert before is not None
    assert before["height"] > 40, "two lines"
    await row.hover()
    assert await row.bounding_box() == before


@requirement("ui:chats")
async def test_older_chats_come_as_one_scrolls(visitors: Visitors, tmp_path: Path) -> None:
    env = {"TEST_ROOM": str(tmp_path)}
    async with farhand_process("tests.browser.stage:agent", env=env) as server:
        player = await visitors.at(server, size=(1326, 500))
        await player.page.evaluate(SAY, 60)
        await player.page.reload()
        links = player.page.get_by_role("navigation", name="Chats").locator("a[href^='#/chat/']")
        await expect(links).to_have_count(50)
        await links.last.scroll_into_view_if_needed()
        await player.page.mouse.move(100, 400)
        await player.page.mouse.wheel(0, 3_000)
        await expect(links).to_have_count(60)
        await player.page.close()


@requirement("ui:attention")
async def test_a_question_shows_in_the_title_on_the_icon_and_if_wanted_as_a_notification(
    alone: FarhandProcess, visitors: Visitors
) -> None:
    player = await visitors.at(alone, allowed=EVERYTHING)
    page = player.page
    await page.add_init_script(NOTIFICATIONS)
    await page.reload()
    await page.get_by_role("button", name="Notify me when an answer is needed").click()
    await expect(page.get_by_role("button", name="Stop notifications")).to_be_visible()
    icon = page.locator("link[rel=icon]")
    before = await icon.get_attribute("href")
    assert before is not None
    await player.new_chat()
    await expect(page).to_have_title("The stage")
    await page.evaluate("() => { window.away = true; }")
    await player.says(f"choose {CHOICE}")
    await expect(player.card("Which one?").first).to_be_visible()
    await expect(page).to_have_title(re.compile(r"^\(1\) "))
    assert await icon.get_attribute("href") != before
    await page.wait_for_function("() => window.notes.length > 0")
    assert (await page.evaluate("window.notes"))[0][0] == "An answer is needed"
    await page.evaluate("() => { window.away = false; }")
    await player.cards.get_by_text("red").click()
    await player.presses("Send answer")
    await player.sees_state("Done")
    await expect(page).to_have_title(re.compile(r"^[^(]"))
    await expect(icon).to_have_attribute("href", before)


@requirement("ui:theme")
async def test_the_theme_follows_the_system_until_somebody_chooses_and_the_choice_stays(
    visitors: Visitors, stage: FarhandProcess
) -> None:
    player = await visitors.at(stage, scheme="dark", allowed=EVERYTHING)
    page = player.page
    await player.asks(f"choose {CHOICE}")
    await expect(player.card("Which one?").first).to_be_visible()
    dark = [await page.evaluate(each) for each in (GROUND, CARD)]
    await page.get_by_role("button", name="Theme: as the system").click()
    light = [await page.evaluate(each) for each in (GROUND, CARD)]
    assert all(one != other for one, other in zip(dark, light, strict=True))
    assert await findings(page) == []
    await page.reload()
    await expect(player.card("Which one?").first).to_be_visible()
    assert [await page.evaluate(each) for each in (GROUND, CARD)] == light
    await page.emulate_media(color_scheme="light")
    await page.get_by_role("button", name="Theme: light").click()
    assert [await page.evaluate(each) for each in (GROUND, CARD)] == dark
    await page.get_by_role("button", name="Theme: dark").click()
    assert await page.evaluate(GROUND) == light[0]
    await player.cards.get_by_text("red").click()
    await player.presses("Send answer")
    await player.sees_state("Done")


@requirement("ui:signed-out")
async def test_signed_out_is_a_banner_with_a_field_and_nothing_is_sent_without_another_press(
    player: Visitor,
) -> None:
    page = player.page
    player.forgives("401")
    await player.asks(f"choose {CHOICE}")
    await player.cards.get_by_text("blue").click()
    kept = await page.context.cookies()
    await page.context.clear_cookies()
    sent: list[str] = []
    page.on("request", lambda each: sent.append(each.url) if each.url.endswith("/api/tools/ack") else None)
    await player.presses("Send answer")
    banner = player.main.get_by_role("region", name="You are signed out.")
    await expect(banner).to_be_visible()
    answers = player.main.get_by_role("region", name="Answers not delivered")
    await expect(answers.get_by_text("Your answer: blue")).to_be_visible()
    await expect(answers.get_by_role("button", name="Send")).to_be_disabled()
    assert await findings(page) == []
    token = banner.get_by_role("textbox", name="Token")
    await token.fill("wrong-wrong-wrong")
    await banner.get_by_role("button", name="Sign in").click()
    await expect(banner.get_by_text("The server did not accept this token.")).to_be_visible()
    await token.fill(f"{player.server.url}/?token={player.server.token}")
    await token.press("Enter")
    await expect(banner).to_have_count(0)
    assert {each["name"] for each in await page.context.cookies()} == {each["name"] for each in kept}
    # signed in again: the answer waits for a press
    await expect(answers.get_by_text("Your answer: blue")).to_be_visible()
    await page.reload()
    await expect(answers.get_by_text("Your answer: blue")).to_be_visible()
    assert len(sent) == 1
    await answers.get_by_role("button", name="Send").click()
    await player.sees('choose brought "blue".')
    await expect(answers).to_have_count(0)
    assert len(sent) == 2


@requirement("ui:signed-out")
async def test_a_kept_answer_that_is_discarded_can_be_given_again(player: Visitor) -> None:
    refusals: list[str] = []

    async def refuse(route: Route) -> None:
        refusals.append(route.request.url)
        body = {"error": {"code": "unauthenticated", "message": "No valid credential was sent."}}
        await route.fulfill(status=401, body=json.dumps(body), content_type="application/json")

    player.forgives("401")
    await player.asks(f"choose {CHOICE}")
    await player.page.route("**/api/tools/ack", refuse)
    await player.cards.get_by_text("blue").click()
    await player.presses("Send answer")
    answers = player.main.get_by_role("region", name="Answers not delivered")
    await answers.get_by_role("button", name="Discard").click()
    await expect(answers).to_have_count(0)
    await player.page.unroute("**/api/tools/ack")
    await player.cards.get_by_text("red").click()
    await player.presses("Send answer")
    await player.sees('choose brought "red".')
    assert len(refusals) == 1


async def test_the_icon_of_the_tab_is_the_agent_s_logo_with_a_dot_while_an_answer_is_needed(
    player: Visitor,
) -> None:
    async def with_logo(route: Route) -> None:
        about = await (await route.fetch()).json()
        await route.fulfill(json={**about, "logo": "/logo"})

    async def logo(route: Route) -> None:
        await route.fulfill(body=lamp_picture(), content_type="image/png")

    await player.page.route("**/api/about", with_logo)
    await player.page.route("**/logo", logo)
    await player.page.reload()
    icon = player.page.locator("link[rel=icon]")
    await player.page.goto(f"{player.server.url}/_farhand")
    await expect(icon).to_have_attribute("href", "/logo")
    await player.new_chat()
    await player.says(f"choose {CHOICE}")
    await expect(icon).to_have_attribute("href", re.compile("^blob:"))
    await player.cards.get_by_text("red").click()
    await player.presses("Send answer")
    await player.sees_state("Done")
