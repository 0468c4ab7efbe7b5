"""The record of a chat while its answer is being written: what a page shows before it resumes the stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from farhand.models.scripted import Ask, Moment, Say, Step, Think
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any


async def record(page: Page, query: str = "") -> Json:
    response = await page.http.get(f"/api/chat/{page.id}{query}")
    assert response.status_code == 200, response.text
    return response.json()


async def record_with(page: Page, text: str) -> Json:
    """The record once it has this text: words are stored a moment after they are told."""
    async with asyncio.timeout(30):
        # looked at again and again: the fact has no event to wait for
        while text not in str(found := await record(page)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


def roles(chat: Json) -> list[str]:
    return [message["role"] for message in chat["messages"]]


def story() -> Scene:
    """A first step with a server tool, a second one that stops in the middle of its text."""

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        if moment.steps == 0:
            yield [Say("First the weather. "), Ask("weather", {"city": "Oslo"})]
            return
        yield [Think("Hm."), Say("It is ")]
        await scene.gate("end").wait()
        yield "sunny."

    scene = Scene(script)
    return scene


async def test_the_record_has_what_is_being_written_once_and_marked_as_unfinished(
    serve: Serve, store: str
) -> None:
    scene = story()
    page = Page((await serve(scene.agent, store=store)).http)
    async with page.saying("weather?") as live:
        chat = await record_with(page, "It is ")
        assert (chat["state"], chat["resume"], roles(chat)) == ("running", True, ["user", "assistant"])
        parts = chat["messages"][1]["parts"]
        assert [(part["type"], part.get("text"), part.get("state")) for part in parts] == [
            ("step-start", None, None),
            ("text", "First the weather. ", "done"),
            ("tool-weather", None, "output-available"),
            ("step-start", None, None),
            ("reasoning", "Hm.", "done"),
            ("text", "It is ", "streaming"),
        ]
        scene.gate("end").set()
        turn = await live.rest()
    chat = await record(page)
    assert chat["resume"] is False
    assert chat["messages"][1]["id"] == turn.message_id
    assert [part["text"] for part in chat["messages"][1]["parts"] if part["type"] == "text"] == [
        "First the weather. ",
        "It is sunny.",
    ]


async def test_a_page_that_resumes_gets_the_messages_before_the_answer_and_the_stream_tells_all_of_it(
    serve: Serve, store: str
) -> None:
    scene = story()
    page = Page((await serve(scene.agent, store=store)).http)
    async with page.saying("weather?") as live:
        await record_with(page, "It is ")
        chat = await record(page, "?resume=true")
        assert (chat["resume"], roles(chat)) == (True, ["user"])
        second = Page(page.http, page.id)
        async with second.resuming() as replay:
            scene.gate("end").set()
            turn = await replay.rest()
        await live.rest()
    assert turn.text == "First the weather. It is sunny."
    chat = await record(page, "?resume=true")
    assert (chat["resume"], roles(chat)) == (False, ["user", "assistant"])


@pytest.mark.parametrize("ask", [Ask("open_url", {"url": "u"}), Ask("delete_file", {"path": "a"})])
async def test_at_a_pause_the_record_and_the_stream_tell_the_answer_once_between_them(
    serve: Serve, store: str, ask: Ask
) -> None:
    page = Page((await serve(Scene(once(ask)).agent, store=store)).http)
    opened = (await page.say("go")).calls
    chat = await record(page, "?resume=true")
    assert (chat["state"], chat["resume"], roles(chat)) == ("waiting", True, ["user"])
    assert [each["callId"] for each in chat["openCalls"]] == opened
    assert (await Page(page.http, page.id).resume()).calls == opened
    whole = await record(page)
    assert (whole["resume"], roles(whole)) == (True, ["user", "assistant"])


async def test_what_is_neither_true_nor_false_is_refused(serve: Serve) -> None:
    page = Page((await serve(Scene(["x"]).agent)).http)
    await page.say("hi")
    response = await page.http.get(f"/api/chat/{page.id}?resume=1")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid")
