"""Messages: Markdown, actions, files, reasoning, progress."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.async_api import Route, expect

from tests.browser.axe import findings
from tests.browser.conftest import EVERYTHING
from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess
from tests.requirement import requirement

MARKDOWN = """write # Plan

Some **bold** words, `code`, and [a link](https://example.org/page).

| Item | Price |
|---|---|
| Lamp | 12 |

- [x] found
- [ ] sent

```python
def lamp(number: int) -> str:
    return f"lamp {number}"  # dark
```

<b>not bold</b> <img src="x" onerror="document.title='hacked'">"""

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100"
    "c9fe92ef0000000049454e44ae426082"
)

DROP = """([name, at]) => {
    const files = new DataTransfer();
    files.items.add(new File(["dropped"], name, { type: "text/plain" }));
    const target = document.querySelector(at);
    for (const kind of ["dragover", "drop"]) {
        target.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: files }));
    }
}"""
PASTE = """(name) => {
    const files = new DataTransfer();
    files.items.add(new File(["pasted"], name, { type: "text/plain" }));
    const event = new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: files });
    document.querySelector("textarea").dispatchEvent(event);
}"""


def fresh(name: str) -> str:
    return f"{name}-{uuid4().hex[:6]}"


@requirement("ui:markdown")
async def test_an_answer_is_read_as_markdown_and_its_html_stays_text(player: Visitor) -> None:
    await player.asks(MARKDOWN)
    await player.sees_state("Done")
    answer = player.main.locator(".prose").last
    await expect(answer.get_by_role("heading", name="Plan")).to_be_visible()
    await expect(answer.get_by_role("cell", name="Lamp")).to_be_visible()
    await expect(answer.get_by_role("checkbox")).to_have_count(2)
    await expect(answer.locator(".hljs-keyword").first).to_have_text("def")
    await expect(answer.get_by_text("<b>not bold</b>")).to_be_visible()
    await expect(answer.locator("b, img")).to_have_count(0)
    link = answer.get_by_role("link", name="a link")
    await expect(link).to_have_text("a link example.org")
    assert [await link.get_attribute(each) for each in ("rel", "target")] == ["noopener noreferrer", "_blank"]
    assert await findings(player.page) == []

    await answer.get_by_role("button", name="Copy code").click()
    await expect(answer.get_by_role("button", name="Copied")).to_be_visible()
    copied = await player.page.evaluate("navigator.clipboard.readText()")
    assert copied == 'def lamp(number: int) -> str:\n    return f"lamp {number}"  # dark'
    await player.main.get_by_role("button", name="Copy", exact=True).last.click()
    await expect(player.main.get_by_role("button", name="Copied")).to_have_count(2)
    whole = await player.page.evaluate("navigator.clipboard.readText()")
    assert whole == MARKDOWN.removeprefix("write ")


@requirement("ui:markdown")
@pytest.mark.parametrize(
    ("mark", "depth"),
    [
        ("> ", 6_000),
        pytest.param("> ", 300, marks=pytest.mark.sweep),
        pytest.param("- ", 300, marks=pytest.mark.sweep),
        pytest.param("- ", 6_000, marks=pytest.mark.sweep),
    ],
)
async def test_an_answer_that_nests_without_end_takes_nothing_with_it(
    player: Visitor, mark: str, depth: int
) -> None:
    # what is deeper than the renderer can go is caught, and noted by React
    player.forgives("Maximum call stack size exceeded")
    await player.asks(f"write Before.\n\n{mark * depth}deep")
    await player.sees_state("Done")
    await player.sees("Before.")
    await player.page.reload()
    await player.sees("Before.")
    await expect(player.main.get_by_text("deep").last).to_be_visible()
    await player.says("write After.")
    await player.sees("After.")


@requirement("ui:markdown")
async def test_markdown_is_rendered_while_it_streams(player: Visitor, room: Path) -> None:
    name = fresh("**tale**")
    await player.asks(f"tell {name}")
    await expect(player.main.locator(".prose strong", has_text="tale")).to_be_visible()
    await player.sees_state("Thinking")
    (room / "gates" / name).touch()
    await player.sees_state("Done")
    await expect(player.main.locator(".prose strong", has_text="tale")).to_have_count(2)


@requirement("ui:regenerate-edit")
async def test_the_last_answer_is_given_again_and_a_message_is_changed_in_its_place(player: Visitor) -> None:
    await player.asks("write One.")
    await player.sees_state("Done")
    await player.says("write Two.")
    await player.sees("Two.")
    await player.sees_state("Done")
    await expect(player.main.get_by_role("button", name="Regenerate")).to_have_count(1)
    first_run = await player.page.get_by_role("link", name="Inspect run").get_attribute("href")
    await player.presses("Regenerate")
    await expect(player.page.get_by_role("link", name="Inspect run")).not_to_have_attribute(
        "href", str(first_run)
    )
    await player.sees_state("Done")
    await expect(player.main.get_by_text("Two.", exact=True)).to_have_count(1)

    # the chat keeps its title
    talk = player.main.locator("[data-scrolls]")
    said = talk.get_by_text("write One.")
    await said.hover()
    await player.main.get_by_role("button", name="Edit").first.click()
    box = player.main.get_by_role("textbox", name="Edit message")
    await expect(box).to_be_focused()
    assert await findings(player.page) == []
    await box.press("Escape")
    await player.sees("Two.")
    await said.hover()
    await player.main.get_by_role("button", name="Edit").first.click()
    await box.fill("write Three.")
    await box.press("Enter")
    await player.sees("Three.")
    await player.sees_state("Done")
    for gone in ("One.", "Two."):
        await expect(talk.get_by_text(gone)).to_have_count(0)
    # the record says the same
    await player.page.reload()
    await player.sees("Three.")
    await expect(player.main.get_by_text("Two.")).to_have_count(0)


@requirement("ui:regenerate-edit")
async def test_what_can_be_done_with_a_message_is_whole_where_nothing_hovers(player: Visitor) -> None:
    browser = await player.page.context.new_cdp_session(player.page)
    phone = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    await browser.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    await browser.send("Emulation.setDeviceMetricsOverride", phone)
    assert await player.page.evaluate("matchMedia('(hover: none)').matches")
    await player.asks('approve_plan {"message": "Go on?"}')
    await player.card("Go on?").get_by_role("button", name="Yes").click()
    await player.sees('approve_plan brought "yes".')
    copy = await player.page.get_by_role("button", name="Copy").first.bounding_box()
    row = await player.rows.first.bounding_box()
    assert copy is not None
    assert row is not None
    assert copy["y"] + copy["height"] <= row["y"]


@requirement("ui:jump")
async def test_who_scrolls_up_is_left_there_and_can_jump_to_the_latest(player: Visitor, room: Path) -> None:
    await player.asks("write " + "\n\n".join(f"Line {number}." for number in range(80)))
    await player.sees_state("Done")
    jump = player.main.get_by_role("button", name="Jump to latest")
    await expect(jump).to_have_count(0)
    await player.main.get_by_text("Line 79.", exact=True).hover()
    await player.page.mouse.wheel(0, -2_000)
    await expect(jump).to_be_visible()
    assert await findings(player.page) == []
    await jump.click()
    await expect(jump).to_have_count(0)
    await expect(player.main.get_by_text("Line 79.", exact=True)).to_be_in_viewport()


@requirement("ui:attachments")
async def test_files_come_by_button_by_drop_and_by_paste_and_go_with_the_message(player: Visitor) -> None:
    await player.new_chat()
    async with player.page.expect_file_chooser() as chooser:
        await player.presses("Add files")
    await (await chooser.value).set_files({"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL})
    await player.page.evaluate(DROP, ["dropped.txt", "main"])
    await player.page.evaluate(PASTE, "pasted.txt")
    for name in ("dot.png", "dropped.txt", "pasted.txt"):
        await expect(player.main.get_by_role("button", name=f"Remove {name}")).to_be_visible()
    await player.presses("Remove pasted.txt")
    await expect(player.main.locator("form progress")).to_have_count(0)
    assert await findings(player.page) == []
    await player.says("write Thanks.")
    await player.sees("Thanks.")
    await player.sees_state("Done")
    for _ in range(2):
        await expect(player.main.get_by_role("img", name="dot.png")).to_be_visible()
        await expect(player.main.get_by_role("link", name="dropped.txt")).to_be_visible()
        await expect(player.main.get_by_text("pasted.txt")).to_have_count(0)
        wide = "(image) => image.complete && image.naturalWidth"
        assert await player.main.get_by_role("img", name="dot.png").evaluate(wide) == 1
        await player.page.reload()


@requirement("ui:reasoning")
async def test_a_thought_is_open_while_it_lasts_and_then_folds_to_how_long_it_took(
    player: Visitor, room: Path
) -> None:
    name = fresh("lamps")
    await player.asks(f"think {name}")
    thought = player.main.get_by_text(f"About {name}.", exact=True)
    await expect(thought).to_be_visible()
    (room / "gates" / name).touch()
    await player.sees(f"I have thought about {name}.")
    await player.sees_state("Done")
    await expect(thought).to_be_hidden()
    await player.main.get_by_text(re.compile(r"^Thought for \d+ s$")).click()
    await expect(thought).to_be_visible()
    await player.page.reload()
    await player.sees("Reasoning")


@requirement("ui:progress")
async def test_a_tool_that_runs_says_how_far_it_is_with_a_bar(player: Visitor, room: Path) -> None:
    name = fresh("bread")
    await player.asks(f'bake {{"name": "{name}"}}')
    await player.sees(f"3 of 12 trays of {name}")
    # in the card of the call that it is about
    bar = player.card("Bake").get_by_role("progressbar")
    assert await bar.evaluate("(each) => each.value") == 0.25
    assert await findings(player.page) == []
    (room / "gates" / name).touch()
    await player.sees_state("Done")
    await expect(bar).to_have_count(0)
    await expect(player.rows.locator(".fh-took")).to_have_count(1)


async def test_what_a_tool_said_before_its_talk_was_loaded_is_shown(player: Visitor, room: Path) -> None:
    name, later = fresh("cake"), fresh("later")
    loads = asyncio.Event()

    async def hold(route: Route) -> None:
        await loads.wait()
        await route.continue_()

    await player.page.route("**/assets/message-list-*.js", hold)
    await player.page.reload()
    await expect(player.page.get_by_text("This browser is connected")).to_have_count(1)
    await player.asks(f'bake {{"name": "{name}"}}')
    await player.sees_state("Running")
    # news come in their order: whoever has heard of this chat has heard of the trays
    async with player.server.client() as client:
        message = {"id": later, "role": "user", "parts": [{"type": "text", "text": f"write {later}"}]}
        await client.post("/api/chat", json={"id": later, "messages": [message]})
    await expect(player.page.locator(f"a[href='#/chat/{later}']")).to_be_visible()
    loads.set()
    await player.sees(f"3 of 12 trays of {name}")
    (room / "gates" / name).touch()
    await player.sees_state("Done")


async def test_messages_fit_on_a_narrow_screen_in_both_schemes(
    visitors: Visitors, stage: FarhandProcess, tmp_path: Path
) -> None:
    player = await visitors.at(stage, size=(390, 844), allowed=EVERYTHING)
    await player.asks(MARKDOWN)
    await player.sees_state("Done")
    for scheme in ("light", "dark"):
        await player.page.emulate_media(color_scheme=scheme)
        assert await player.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await findings(player.page) == []
        await player.page.screenshot(path=tmp_path / f"messages-{scheme}.png")


async def test_a_message_of_the_person_has_a_frame_in_a_high_contrast_theme(player: Visitor) -> None:
    await player.asks("write Hello.")
    await player.sees_state("Done")
    message = player.main.locator("p", has_text="write Hello.").first
    await player.page.emulate_media(forced_colors="active")
    frame = await message.evaluate(FRAME)
    # of two colours only: that of the text, and nothing else is left of the tint
    assert frame == ["solid", "1px", await message.evaluate("each => getComputedStyle(each).color")]


async def test_the_main_button_stands_out_in_a_high_contrast_theme(player: Visitor) -> None:
    await player.page.emulate_media(forced_colors="active")
    await player.new_chat()
    await player.page.get_by_role("textbox", name="Message").fill("write Hello.")
    send = player.main.get_by_role("button", name="Send", exact=True)
    attach = player.main.get_by_role("button", name="Add files")
    assert await send.evaluate(GROUND) != await attach.evaluate(GROUND)
    await player.page.context.clear_cookies()
    await player.page.goto(f"{player.server.url}/_farhand")
    enter = player.page.get_by_role("button", name="Sign in")
    assert await enter.evaluate(GROUND) != await player.page.locator("body").evaluate(GROUND)


GROUND = "(element) => getComputedStyle(element).backgroundColor"

FRAME = """(message) => {
    const { borderTopStyle, borderTopWidth, borderTopColor } = getComputedStyle(message);
    return [borderTopStyle, borderTopWidth, borderTopColor];
}"""


async def test_the_end_of_a_chat_stays_in_sight_when_the_window_gets_narrower(player: Visitor) -> None:
    await player.asks("write " + "word " * 300 + "\n\nThe end.")
    await player.sees_state("Done")
    end = player.main.get_by_text("The end.", exact=True).last
    await expect(end).to_be_in_viewport()
    await player.page.set_viewport_size({"width": 390, "height": 700})
    await expect(end).to_be_in_viewport()
