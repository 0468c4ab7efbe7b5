"""Stop: a request that ends whatever runs or waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from farhand.core.outcome import Cancelled
from farhand.core.thread import ResultsMessage
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page, until
from tests.requirement import requirement

OPEN = Ask("open_url", {"url": "u"})
OK = {"ok": True}
IGNORED = {"ok": True, "ignored": True}
STOPPED = "Cancelled: stopped by the user."


def talking() -> Scene:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        if moment.text != "talk":
            yield "As you like."
            return
        yield "Once upon "
        await scene.gate("never").wait()
        yield "a time."

    scene = Scene(script)
    return scene


@requirement("ui-stream:stop")
async def test_stop_in_mid_word_ends_the_response_and_keeps_what_was_said(serve: Serve, store: str) -> None:
    scene = talking()
    page = Page((await serve(scene.agent, store=store)).http)
    async with page.saying("talk") as live:
        await live.until("text-delta")
        stopped = await page.stop()
        assert (stopped.status, stopped.body) == (200, OK)
        turn = await live.rest()
    assert turn.kinds[-3:] == ["text-end", "finish-step", "finish"]
    assert (turn.text, turn.finish) == ("Once upon ", "other")
    assert (await page.say("thanks")).text == "As you like."
    assert "Once upon " in str(scene.model.prompts[-1].messages)


@requirement("ui-stream:stop")
async def test_stop_while_parked_cancels_the_open_calls(serve: Serve, store: str) -> None:
    scene = Scene([[OPEN, Ask("take_photo", {"camera": "front"})], "As you like."])
    page = Page((await serve(scene.agent, store=store)).http)
    opened, photo = (await page.say("open")).calls
    assert (await page.stop()).body == OK
    again = await page.resume()
    assert again.kinds[-2:] == ["tool-output-error", "finish"]
    assert {chunk["toolCallId"]: chunk["errorText"] for chunk in again.of("tool-output-error")} == {
        opened: STOPPED,
        photo: STOPPED,
    }
    assert again.finish == "other"
    late = await page.http.post("/api/tools/ack", json={"toolCallId": opened, "status": "success"})
    assert (late.status_code, late.json()) == (
        410,
        {"ok": False, "reason": "cancelled", "status": "cancelled"},
    )
    assert (await page.say("thanks")).text == "As you like."
    results = [each for each in scene.model.prompts[-1].messages if isinstance(each, ResultsMessage)]
    assert [each.outcome for each in results[0].results] == [Cancelled("stopped by the user")] * 2


@requirement("ui-stream:stop")
async def test_stop_while_held_ends_the_held_response(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    page = Page((await serve(scene.agent)).http, wait="hold")
    async with page.saying("open") as live:
        await live.until("finish-step")
        assert (await page.stop()).body == OK
        turn = await live.rest()
    assert turn.kinds[-2:] == ["tool-output-error", "finish"]
    assert (turn.one("tool-output-error")["errorText"], turn.finish) == (STOPPED, "other")
    assert len(scene.model.prompts) == 1


@requirement("ui-stream:stop")
async def test_stop_cancels_an_async_tool_and_the_model_is_not_asked_again(serve: Serve) -> None:
    scene = Scene(once(Ask("slow", {"subject": "tea"})))
    page = Page((await serve(scene.agent)).http)
    async with page.saying("tea") as live:
        await until(lambda: bool(scene.ran))
        assert (await page.stop()).body == OK
        turn = await live.rest()
    scene.gate("tea").set()
    assert turn.one("tool-output-error")["errorText"] == STOPPED
    assert len(scene.model.prompts) == 1


@requirement("ui-stream:stop")
async def test_stopping_again_or_what_has_ended_is_ignored(serve: Serve) -> None:
    scene = Scene([OPEN, "Done."])
    page = Page((await serve(scene.agent)).http)
    await page.say("open")
    bodies = [(await page.stop()).body for _ in range(3)]
    assert bodies == [OK, IGNORED, IGNORED]
    await page.say("done?")
    assert (await page.stop()).body == IGNORED


@requirement("ui-stream:stop")
async def test_eight_stops_at_once_are_one(serve: Serve, store: str) -> None:
    page = Page((await serve(Scene(once(OPEN)).agent, store=store)).http)
    await page.say("open")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(page.stop()) for _ in range(8)]
    bodies = [task.result().body for task in tasks]
    assert sorted(map(str, bodies)) == sorted(map(str, [OK, *[IGNORED] * 7]))


@requirement("ui-stream:stop")
async def test_stopping_an_unknown_chat_is_not_found(serve: Serve) -> None:
    stopped = await Page((await serve(Scene(["x"]).agent)).http, "never-seen").stop()
    assert (stopped.status, stopped.body["error"]["code"]) == (404, "unknown")
