"""Reload, second tab, return: stored messages are shown before anything is resumed, and once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from playwright.async_api import Request, Route, expect

from tests.browser.visitor import Visitor, Visitors

STREAM = re.compile(r"/api/chat/[^/]+/stream")

WATCH = """
    const seen = {};
    const look = () => {
        const text = document.querySelector("main")?.innerText ?? "";
        for (const words of WORDS) {
            const was = (seen[words] ??= { now: 0, lost: 0, most: 0 });
            const now = text.split(words).length - 1;
            was.lost += was.now > now ? 1 : 0;
            was.most = Math.max(was.most, now);
            was.now = now;
        }
        requestAnimationFrame(look);
    };
    window.seenOf = (words) => seen[words];
    requestAnimationFrame(look);
"""
"""Counts in every frame how often the page shows each of the words."""


def fresh(name: str) -> str:
    return f"{name}-{uuid4().hex[:6]}"


async def has_begun(player: Visitor, room: Path) -> tuple[str, str]:
    """A chat with an answer that is over, and one in the middle of its text."""
    old, new = fresh("old"), fresh("new")
    (room / "gates" / old).touch()
    await player.asks(f"tell {old}")
    await player.sees(f"The tale of {old} ends.")
    await player.sees_state("Done")
    await player.says(f"tell {new}")
    await player.sees(f"The tale of {new} begins.")
    # words are stored a moment after they are told
    is_stored = """async ([id, words]) => (await (await fetch(`/api/chat/${id}`)).text()).includes(words)"""
    await player.page.wait_for_function(is_stored, arg=[player.thread_id, f"The tale of {new} begins."])
    return old, new


@asynccontextmanager
async def nothing_resumed(visitor: Visitor) -> AsyncIterator[None]:
    """As long as this lasts, the stream of an answer in progress does not come."""
    go_on = asyncio.Event()

    async def late(route: Route) -> None:
        await go_on.wait()
        await route.continue_()

    await visitor.page.route(STREAM, late)
    try:
        yield
    finally:
        go_on.set()


async def watches(visitor: Visitor, *words: str) -> None:
    await visitor.page.add_init_script(f"const WORDS = {list(words)!r};{WATCH}")


async def never_lost_nor_doubled(visitor: Visitor, *words: str) -> None:
    for each in words:
        seen = await visitor.page.evaluate("(words) => window.seenOf(words)", each)
        assert (seen["now"], seen["lost"], seen["most"]) == (1, 0, 1), (each, seen)


async def test_a_reload_while_the_model_writes_shows_all_of_it_before_anything_is_resumed(
    player: Visitor, room: Path
) -> None:
    old, new = await has_begun(player, room)
    texts = (f"The tale of {old} ends.", f"tell {new}", f"The tale of {new} begins.")
    await watches(player, *texts)
    async with nothing_resumed(player):
        await player.page.reload()
        for text in texts:
            await player.sees(text)
    (room / "gates" / new).touch()
    await player.sees(f"The tale of {new} ends.")
    await player.sees_state("Done")
    await never_lost_nor_doubled(player, *texts)


async def test_a_second_tab_shows_what_was_said_and_then_continues_with_the_first(
    player: Visitor, visitors: Visitors, room: Path
) -> None:
    old, new = await has_begun(player, room)
    other = await visitors.beside(player)
    texts = (f"The tale of {old} ends.", f"tell {new}", f"The tale of {new} begins.")
    async with nothing_resumed(other):
        await other.page.goto(f"{player.server.url}/#/chat/{player.thread_id}")
        for text in texts:
            await other.sees(text)
    (room / "gates" / new).touch()
    for each in (player, other):
        await each.sees(f"The tale of {new} ends.")
        await each.sees_state("Done")
        for text in (*texts, f"The tale of {new} ends."):
            assert (await each.main.inner_text()).count(text) == 1, text


async def test_away_and_back_shows_what_was_said_and_leaves_no_connection_behind(
    player: Visitor, room: Path
) -> None:
    old, new = await has_begun(player, room)
    chat = player.thread_id
    texts = (f"The tale of {old} ends.", f"tell {new}", f"The tale of {new} begins.")
    for _ in range(3):

        def is_stream(request: Request) -> bool:
            return request.url.endswith("/api/chat?after=0.0") or STREAM.search(request.url) is not None

        async with player.page.expect_event("requestfailed", is_stream):
            await player.new_chat()
        async with nothing_resumed(player):
            await player.page.goto(f"{player.server.url}/#/chat/{chat}")
            for text in texts:
                await player.sees(text)
        await player.page.wait_for_event("response", lambda each: STREAM.search(each.url) is not None)
    (room / "gates" / new).touch()
    await player.sees(f"The tale of {new} ends.")
    await player.sees_state("Done")
    for text in (*texts, f"The tale of {new} ends."):
        assert (await player.main.inner_text()).count(text) == 1, text


async def test_a_reload_while_a_server_tool_runs_shows_the_chat_and_its_steps(
    player: Visitor, room: Path
) -> None:
    old, cake, bread = fresh("old"), fresh("cake"), fresh("bread")
    for each in (old, bread):
        (room / "gates" / each).touch()
    await player.asks(f"tell {old}")
    await player.sees(f"The tale of {old} ends.")
    await player.sees_state("Done")
    await player.says(f'bake {{"name": "{bread}"}}\n---\nbake {{"name": "{cake}"}}')
    await player.sees_state("Running")
    async with nothing_resumed(player):
        await player.page.reload()
        await player.sees(f"The tale of {old} ends.")
        await player.sees(f'bake {{"name": "{bread}"}}')
        # of the two steps the first is done, and the second runs
        await expect(player.rows).to_have_count(1)
        await player.sees_state("Running")
    (room / "gates" / cake).touch()
    await player.sees(f'bake brought {{"baked": "{cake}"}}.')
    await player.sees_state("Done")
    await expect(player.rows).to_have_count(2)
    text = await player.main.inner_text()
    brought = f'bake brought {{"baked": "{cake}"}}.'
    assert [text.count(f"The tale of {old} ends."), text.count(brought)] == [1, 1]
    assert (room / "notes.jsonl").read_text().count(cake) == 1


async def test_a_reload_while_a_call_waits_shows_the_chat_and_the_card(player: Visitor, room: Path) -> None:
    old = fresh("old")
    (room / "gates" / old).touch()
    await player.asks(f"tell {old}")
    await player.sees(f"The tale of {old} ends.")
    await player.sees_state("Done")
    await player.says('choose {"question": "Which one?", "options": ["red", "blue"]}')
    await expect(player.cards.filter(has_text="Which one?")).to_be_visible()
    async with nothing_resumed(player):
        await player.page.reload()
        await player.sees(f"The tale of {old} ends.")
        await expect(player.cards.filter(has_text="Which one?")).to_be_visible()
    await player.cards.get_by_text("blue").click()
    await player.presses("Send answer")
    await player.sees('choose brought "blue".')
    text = await player.main.inner_text()
    assert [text.count(f"The tale of {old} ends."), text.count("choose brought")] == [1, 1]


async def test_a_chat_has_its_title_while_it_is_loaded(player: Visitor) -> None:
    title = f"write {fresh('title')}."
    await player.asks(title)
    await player.sees_state("Done")
    record = f"**/api/chat/{player.thread_id}"
    await player.new_chat()
    go_on = asyncio.Event()

    async def late(route: Route) -> None:
        await go_on.wait()
        await route.continue_()

    await player.page.route(record, late)
    heading = player.main.locator("> header").get_by_role("heading")
    await expect(heading).to_have_text("New chat")
    await player.page.get_by_role("navigation", name="Chats").get_by_role("link", name=title).click()
    await expect(heading).to_have_text(title)
    go_on.set()
    await player.sees_state("Done")
    await expect(heading).to_have_text(title)


async def opens_while_it_hangs(visitor: Visitor, chat: str) -> None:
    await visitor.page.goto(f"{visitor.server.url}/#/chat/{chat}")
    await visitor.sees("The server does not answer.")
    await expect(visitor.main.locator("[data-welcome]")).to_have_count(0)


async def test_a_chat_says_that_the_server_hangs_and_appears_when_it_answers(player: Visitor) -> None:
    words = fresh("hang")
    await player.asks(f"write {words}")
    await player.sees_state("Done")
    chat = player.thread_id
    await player.new_chat()
    go_on = asyncio.Event()

    async def late(route: Route) -> None:
        await go_on.wait()
        await route.continue_()

    await player.page.route(f"**/api/chat/{chat}", late)
    await opens_while_it_hangs(player, chat)
    box = player.page.get_by_role("textbox", name="Message")
    await box.fill("typed meanwhile")
    go_on.set()
    await player.sees(f"write {words}")
    await player.sees_state("Done")
    await expect(box).to_have_value("typed meanwhile")
    await expect(player.main.get_by_text("The server does not answer.")).to_have_count(0)


async def test_a_chat_that_hangs_can_be_tried_again_on_a_new_connection(player: Visitor) -> None:
    words = fresh("again")
    await player.asks(f"write {words}")
    await player.sees_state("Done")
    chat = player.thread_id
    await player.new_chat()
    hung: list[Route] = []

    async def first_hangs(route: Route) -> None:
        if hung:
            await route.continue_()
        else:
            hung.append(route)

    await player.page.route(f"**/api/chat/{chat}", first_hangs)
    await opens_while_it_hangs(player, chat)
    # the browser's few connections are not used up by requests that nobody waits for
    async with player.page.expect_event("requestfailed", lambda each: each.url.endswith(chat)):
        await player.presses("Try again")
    await player.sees(f"write {words}")
    await player.sees_state("Done")
