"""The message box: what is in it outlives another chat and a reload. And files that are dropped."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from playwright.async_api import Locator, Route, expect

from tests.browser.visitor import Visitor
from tests.requirement import requirement

pytestmark = requirement("page:drafts")

SENDS = "**/api/chat?after=*"
UNSENT = "Object.keys(sessionStorage).filter((key) => /^farhand:(message|composer):/.test(key)).length"
MAKE_OLDER = """() => {
    const key = Object.keys(sessionStorage).find((each) => each.startsWith("farhand:message:"));
    const kept = JSON.parse(sessionStorage.getItem(key));
    sessionStorage.setItem(key, JSON.stringify({ ...kept, at: kept.at - 61_000 }));
}"""


def box(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("textbox", name="Message")


async def add_file(visitor: Visitor, name: str) -> None:
    picked = {"name": name, "mimeType": "text/plain", "buffer": b"words"}
    await visitor.main.locator("form input[type=file]").set_input_files(picked)  # type: ignore[arg-type]
    await expect(visitor.main.get_by_text(name)).to_be_visible()
    await expect(visitor.main.get_by_role("progressbar")).to_have_count(0)


async def test_text_and_files_of_each_chat_are_there_after_another_chat_and_after_a_reload(
    player: Visitor,
) -> None:
    await player.asks("write First.")
    await player.sees_state("Done")
    first = player.page.url
    await box(player).fill("for the first")
    await add_file(player, "first.txt")
    await player.new_chat()
    await expect(box(player)).to_have_value("")
    await box(player).fill("for a new one")
    await player.page.goto(first)
    await expect(box(player)).to_have_value("for the first")
    await expect(player.main.get_by_text("first.txt")).to_be_visible()
    await player.page.reload()
    await expect(box(player)).to_have_value("for the first")
    await expect(player.main.get_by_text("first.txt")).to_be_visible()
    await player.new_chat()
    await player.page.reload()
    await expect(box(player)).to_have_value("for a new one")
    await player.page.goto(first)
    await box(player).fill("write Second.")
    await box(player).press("Enter")
    await player.sees("Second.")
    await expect(player.main.get_by_role("link", name="first.txt")).to_be_visible()
    await player.new_chat()
    await box(player).fill("")
    await player.page.wait_for_function(f"() => {UNSENT} === 0")


class Held:
    """Keeps messages from the server, or its answers from the page."""

    def __init__(self, visitor: Visitor, *, arrives: bool) -> None:
        self._visitor = visitor
        self._arrives = arrives
        self.ids: list[str] = []
        self.began = asyncio.Event()

    async def begins(self) -> None:
        await self._visitor.page.route(SENDS, self._cut)

    async def ends(self) -> None:
        await self._visitor.page.unroute(SENDS)

    async def _cut(self, route: Route) -> None:
        body = route.request.post_data or "{}"
        self.ids.append(json.loads(body)["messages"][0]["id"])
        if self._arrives:
            async with self._visitor.server.client() as client:
                headers = {"content-type": "application/json"}
                async with client.stream("POST", "/api/chat", content=body, headers=headers) as reply:
                    assert reply.status_code == 200
        await route.abort()
        self.began.set()


async def test_a_message_that_was_being_sent_at_a_reload_is_sent_once(player: Visitor) -> None:
    player.expects_to_be_cut_off()
    # the server does not know the chat yet
    player.forgives("404")
    held = Held(player, arrives=False)
    await held.begins()
    await player.asks("write It arrived.")
    await asyncio.wait_for(held.began.wait(), 25)
    # what the first life of the page would send again must not get through, either
    await player.page.reload()
    await expect(player.main.locator("[data-scrolls]").get_by_text("write It arrived.")).to_have_count(1)
    await held.ends()
    await player.sees("It arrived.")
    await player.sees_state("Done")
    await expect(player.main.locator("[data-scrolls]").get_by_text("write It arrived.")).to_have_count(1)
    await expect(box(player)).to_have_value("")
    assert len(set(held.ids)) == 1
    await player.page.wait_for_function(f"() => {UNSENT} === 0")


async def test_a_message_that_had_arrived_before_the_reload_is_answered_once(
    player: Visitor, room: Path
) -> None:
    player.expects_to_be_cut_off()
    await player.asks("write Hello.")
    await player.sees_state("Done")
    held = Held(player, arrives=True)
    await held.begins()
    await player.says('bake {"name": "arrived-once"}')
    await asyncio.wait_for(held.began.wait(), 25)
    await player.page.reload()
    await held.ends()
    (room / "gates/arrived-once").touch()
    await player.sees('bake brought {"baked": "arrived-once"}.')
    baked = [each for each in (room / "notes.jsonl").read_text().splitlines() if "arrived-once" in each]
    assert len(baked) == 1
    await expect(
        player.main.locator("[data-scrolls]").get_by_text('bake {"name": "arrived-once"}')
    ).to_have_count(1)
    await expect(box(player)).to_have_value("")


async def test_a_message_that_was_left_for_longer_is_back_in_the_box_and_not_sent(player: Visitor) -> None:
    player.expects_to_be_cut_off()
    # the server does not know the chat yet
    player.forgives("404")
    held = Held(player, arrives=False)
    await held.begins()
    await player.asks("write Too late.")
    await asyncio.wait_for(held.began.wait(), 25)
    await player.page.evaluate(MAKE_OLDER)
    sent = len(held.ids)
    await player.page.reload()
    await expect(box(player)).to_have_value("write Too late.")
    assert len(held.ids) == sent
    await held.ends()
    await box(player).press("Enter")
    await player.sees("Too late.")
    await player.sees_state("Done")


async def test_a_queued_message_survives_a_reload(player: Visitor, room: Path) -> None:
    await player.asks("tell queue-tale")
    await player.sees("The tale of queue-tale begins.")
    await player.says("write After the tale.")
    await player.sees("Sent when this answer is complete")
    await player.page.reload()
    await expect(box(player)).to_have_value("write After the tale.")
    await player.sees("Sent when this answer is complete")
    (room / "gates/queue-tale").touch()
    await player.sees("The tale of queue-tale ends.")
    await expect(player.main.get_by_text("After the tale.", exact=True)).to_be_visible()
    await expect(box(player)).to_have_value("")


async def test_a_first_file_that_finds_no_server_is_shown_and_can_be_removed(player: Visitor) -> None:
    await player.new_chat()
    await player.page.wait_for_function(HAS_LIST_OF_FILES)
    player.expects_to_be_cut_off()
    await player.page.route("**/*", hang)
    picked = {"name": "slow.txt", "mimeType": "text/plain", "buffer": b"words"}
    await player.main.locator("form input[type=file]").set_input_files(picked)  # type: ignore[arg-type]
    await expect(player.main.get_by_role("progressbar", name="Uploading slow.txt")).to_be_visible()
    await player.main.get_by_role("button", name="Remove slow.txt").click()
    await expect(player.main.get_by_text("slow.txt")).to_have_count(0)
    await player.page.unroute_all(behavior="ignoreErrors")


HAS_LIST_OF_FILES = """() => performance.getEntriesByType("resource").some(
    ({ name }) => name.includes("/attachment-list"),
)"""


async def hang(route: Route) -> None:
    await asyncio.Event().wait()


NOTE_DROPS = """() => {
    window.leaves = [];
    for (const kind of ["dragover", "drop"]) {
        addEventListener(kind, (event) => event.defaultPrevented || window.leaves.push(kind));
    }
}"""
DROPPED = """() => {
    const dropped = new DataTransfer();
    dropped.items.add(new File(["words"], "invoice.txt", { type: "text/plain" }));
    return dropped;
}"""


async def drop(visitor: Visitor, target: Locator) -> None:
    """As a person does; a browser that is driven by a test does not open what is dropped."""
    dropped = await visitor.page.evaluate_handle(DROPPED)
    for kind in ("dragenter", "dragover", "drop"):
        await target.dispatch_event(kind, {"dataTransfer": dropped})


async def test_a_file_that_is_dropped_beside_its_card_does_not_leave_the_page(player: Visitor) -> None:
    await player.asks('pick_file {"prompt": "Pick the invoice"}')
    card = player.card("Pick the invoice")
    await expect(card).to_be_visible()
    await player.page.evaluate(NOTE_DROPS)
    for place in (player.main.locator(".fh-needed"), player.main.locator("> header"), box(player)):
        await drop(player, place)
    # nobody takes files while an answer is needed
    await expect(player.main.get_by_text("invoice.txt")).to_have_count(0)
    await player.page.goto(f"{player.server.url}/#/inbox")
    await drop(player, player.main.locator("> header"))
    assert await player.page.evaluate("window.leaves") == []
    await player.page.goto(f"{player.server.url}/_farhand")
    await player.page.evaluate(NOTE_DROPS)
    await drop(player, player.page.locator("header").first)
    assert await player.page.evaluate("window.leaves") == []


async def test_a_file_that_is_dropped_on_the_chat_goes_into_the_message(player: Visitor) -> None:
    await player.new_chat()
    await drop(player, player.main.locator("> header"))
    await expect(player.main.get_by_text("invoice.txt")).to_be_visible()
