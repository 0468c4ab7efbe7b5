"""A run that was copied as a test passes under pytest in a separate process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from farhand.models.scripted import Ask, Fail, Moment, Say, Step, Think
from tests.faces.conftest import Serve
from tests.faces.inspector.inspector_requests import look
from tests.faces.ui_stream.agents import Scene
from tests.faces.ui_stream.page import Page

OPEN = Ask("open_url", {"url": "https://example.org/?q='\"\\n"})
SECOND = Ask("open_url", {"url": "two"})
PHOTO = Ask("take_photo", {"camera": "front"})
DELETE = Ask("delete_file", {"path": "a"})
WEATHER = Ask("weather", {"city": "Oslo"})

Play = Callable[[Page], Awaitable[None]]


async def nothing(page: Page) -> None:
    await page.say("What about \"this\" 'one'?\nYes.")


async def both_pages_in_the_other_order(page: Page) -> None:
    first, second = (await page.say("two at once")).calls
    page.output(second, {"url": "two", "viewKey": "v" * 200, "none": None, "many": [1.5, True, {"a": "ü"}]})
    await page.send()
    page.fail(first, "the pop-up was blocked")
    await page.send()


async def a_yes_then_a_photo(page: Page) -> None:
    photo, delete = (await page.say("Take a photo")).calls
    page.approve(photo)
    page.approve(delete, approved=False, reason="it's mine")
    await page.send()
    page.output(photo, {"name": "lamp.jpg"})
    await page.send()


async def an_edited_yes_for_the_whole_chat(page: Page) -> None:
    delete = (await page.say("delete twice")).one("tool-approval-request")
    body = {"approvalId": delete["approvalId"], "approved": True, "scope": "thread", "input": {"path": "b"}}
    assert (await page.http.post("/api/tools/approve", json=body)).status_code == 200
    await page.resume()


async def nobody(page: Page) -> None:
    await page.say("quick", wait="hold")


async def stopped_at_a_question(page: Page) -> None:
    await page.say("stop me")
    await page.stop()


async def stopped_while_it_speaks(page: Page) -> None:
    async with page.saying("speak") as live:
        await live.until("text-delta")
        await page.stop()
        await live.rest()


async def left_open(page: Page) -> None:
    await page.say("wait")


SCENES: dict[str, tuple[list[Step], Play]] = {
    "a plain answer": ([[Think("Hm."), "Nothing to do."]], nothing),
    "a server tool": ([["Let me see. ", WEATHER, Ask("broken", {"subject": "x"})], "Sunny."], nothing),
    "calls that did not pass": ([[Ask("nothing", {}), Ask("weather", {"town": 1})], "Sorry."], nothing),
    "two calls of one tool": ([[OPEN, SECOND], "Both."], both_pages_in_the_other_order),
    "a yes and a no": ([[PHOTO, DELETE], "Done."], a_yes_then_a_photo),
    "a changed input": ([[DELETE], [DELETE], "Gone."], an_edited_yes_for_the_whole_chat),
    "nobody answers": ([[Ask("pick_quickly", {"label": "x"})], "I went on."], nobody),
    "stopped at a question": ([[OPEN, DELETE]], stopped_at_a_question),
    "stopped while it speaks": (
        [Say(["One ", "two ", *["more "] * 400], delay=0.05)],
        stopped_while_it_speaks,
    ),
    "a provider that fails": ([[WEATHER], Fail("the provider is away", hint="Wait.")], nothing),
    "the same failure over and over": ([[Ask("broken", {"subject": "x"})]] * 3, nothing),
    "still open": ([[OPEN, DELETE]], left_open),
    "secrets": ([[Ask("open_url", {"url": "https://ann:hunter2@example.org"})]], left_open),
}


@pytest.mark.tools
@pytest.mark.timeout(180)
async def test_copied_tests_pass_when_they_are_saved_and_run(serve: Serve, tmp_path: Path) -> None:
    for number, (script, play) in enumerate(SCENES.values()):
        page = Page((await serve(Scene(_in_order(script)).agent)).http)
        await play(page)
        run_id = (await look(page.http, "/runs"))["runs"][0]["runId"]
        written = await look(page.http, f"/runs/{run_id}/test")
        assert "hunter2" not in written["text"]
        assert written["name"].startswith("test_")
        assert f"pip install 'farhand[testing]'\n    pytest {written['name']}\n" in written["text"]
        file = tmp_path / f"{Path(written['name']).stem}_{number}.py"
        file.write_text(written["text"], encoding="utf-8")
    said, code = await _pytest(tmp_path)
    assert (code, f"{len(SCENES)} passed" in said) == (0, True), said


@pytest.mark.tools
async def test_a_copied_test_fails_where_the_run_goes_another_way(serve: Serve, tmp_path: Path) -> None:
    page = Page((await serve(Scene([[OPEN], "Done."]).agent)).http)
    [call] = (await page.say("open")).calls
    page.output(call, 1)
    await page.send()
    run_id = (await look(page.http, "/runs"))["runs"][0]["runId"]
    written = await look(page.http, f"/runs/{run_id}/test")
    file = tmp_path / written["name"]
    file.write_text(written["text"].replace("'Done.'", "'Else.'", 1), encoding="utf-8")
    said, code = await _pytest(tmp_path)
    assert (code, "1 failed" in said) == (1, True), said


def _in_order(steps: list[Step]) -> Callable[[Moment], Step]:
    return lambda moment: steps[moment.steps]


async def _pytest(place: Path) -> tuple[str, int | None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(place), str(place),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd="/",
    )  # fmt: skip
    said, _ = await process.communicate()
    return said.decode(), process.returncode
