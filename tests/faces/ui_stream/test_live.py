"""`/api/chat/live`: the held socket. One response at a time, each ended as on HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from farhand.core.decide import runs
from farhand.core.outcome import Failure, Success
from farhand.core.principal import LOCAL
from farhand.core.run import Run
from farhand.core.settings import Limits
from farhand.errors import StoreDown
from farhand.models.scripted import Ask, Fail, Moment, Step
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene, once, told
from tests.faces.ui_stream.page import Page, until
from tests.faces.ui_stream.websocket_client import Held, closed_with, read, wire
from tests.requirement import requirement

PATH = "/api/chat/live"
OPEN = Ask("open_url", {"url": "u"})
DELETE = Ask("delete_file", {"path": "a"})
PHOTO = Ask("take_photo", {"camera": "front"})
TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]


@asynccontextmanager
async def live(served: Served) -> AsyncIterator[Held]:
    async with wire(served, PATH) as socket:
        yield Held(socket, Page(served.http))


async def test_a_message_is_answered_in_whole_events_and_done(serve: Serve, store: str) -> None:
    served = await serve(Scene(["Hello.", "Bye."]).agent, store=store)
    async with live(served) as held:
        await held.message("hi")
        assert (await held.turn()).kinds == ["start", *TEXT, "finish"]
        await held.message("bye")
        assert (await held.turn()).text == "Bye."


# ------------------------------------------------------------------------------------------------- the table


@requirement("live:exchanges")
async def test_a_server_tool_behind_approval_is_asked_about_and_approved_in_two_exchanges(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(DELETE))
    async with live(await serve(scene.agent, store=store)) as held:
        await held.message("delete")
        first = await held.turn()
        assert first.kinds[-4:] == ["tool-input-available", "tool-approval-request", "finish-step", "finish"]
        assert first.finish == "tool-calls"
        held.page.approve(first.calls[0])
        await held.message()
        second = await held.turn()
    assert second.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert scene.ran == [("delete_file", "a")]


@requirement("live:exchanges")
async def test_a_denied_server_tool_is_answered_with_text(serve: Serve) -> None:
    scene = Scene(once(DELETE))
    async with live(await serve(scene.agent)) as held:
        await held.message("delete")
        [call] = (await held.turn()).calls
        held.page.approve(call, approved=False, reason="no")
        await held.message()
        assert (await held.turn()).kinds == ["start", "tool-output-denied", *TEXT, "finish"]
    assert scene.ran == []


@requirement("live:frontend-approval")
@pytest.mark.parametrize("failed", [False, True], ids=["success", "failure"])
@pytest.mark.parametrize("way", ["message", "tool_result"])
async def test_after_the_approval_to_a_frontend_tool_nothing_is_sent_until_its_output_comes(
    serve: Serve, way: str, failed: bool
) -> None:
    scene = Scene(once(PHOTO))
    async with live(await serve(scene.agent)) as held:
        await held.message("photo")
        first = await held.turn()
        assert first.kinds[-4:] == ["tool-input-delta", "tool-approval-request", "finish-step", "finish"]
        [call] = first.calls
        held.page.approve(call)
        await held.message()
        assert (await held.pong())["type"] == "pong"
        await bring(held, call, way, failed=failed)
        turn = await held.turn()
    shown = "tool-output-error" if failed else "tool-output-available"
    assert turn.kinds == ["start", shown, *TEXT, "finish"]
    assert scene.seen[0].outcome == (Failure("no camera") if failed else Success({"name": "p"}))


async def test_two_approvals_in_sequence_take_an_exchange_each(serve: Serve) -> None:
    def script(moment: Moment) -> Step:
        if moment.steps == 2:
            return told(moment.results)
        return Ask("delete_file", {"path": str(moment.steps + 1)})

    scene = Scene(script)
    async with live(await serve(scene.agent)) as held:
        await held.message("delete both")
        [one] = (await held.turn()).calls
        held.page.approve(one)
        await held.message()
        second = await held.turn()
        assert second.kinds[:2] == ["start", "tool-output-available"]
        assert second.kinds[-3:] == ["tool-approval-request", "finish-step", "finish"]
        assert second.text == ""
        held.page.approve(second.calls[-1])
        await held.message()
        assert (await held.turn()).kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert scene.ran == [("delete_file", "1"), ("delete_file", "2")]


@requirement("live:tool-result")
async def test_a_frontend_tool_is_answered_by_a_tool_result(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN))
    async with live(await serve(scene.agent, store=store)) as held:
        await held.message("open")
        first = await held.turn()
        assert first.finish == "tool-calls"
        await held.tell(type="tool_result", toolCallId=first.calls[0], result={"n": 1})
        assert (await held.turn()).kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert scene.seen[0].outcome == Success({"n": 1})


@requirement("live:tool-result")
async def test_a_result_before_the_approval_is_refused_and_the_question_is_shown_again(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    async with live(await serve(scene.agent)) as held:
        await held.message("photo")
        [call] = (await held.turn()).calls
        await held.tell(type="tool_result", toolCallId=call, result={"name": "forged"})
        assert (await held.turn()).kinds == ["start", "tool-approval-request", "finish"]
    assert len(scene.model.prompts) == 1


@requirement("live:tool-result")
async def test_a_result_again_shows_the_stored_outcome(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    async with live(await serve(scene.agent)) as held:
        await held.message("open")
        [call] = (await held.turn()).calls
        await held.tell(type="tool_result", toolCallId=call, result={"n": 1})
        await held.turn()
        await held.tell(type="tool_result", toolCallId=call, result={"n": 2}, status="error")
        again = await held.turn()
    assert again.one("tool-output-available")["output"] == {"n": 1}
    assert len(scene.model.prompts) == 2


@requirement("live:tool-result")
async def test_a_result_for_nothing_is_an_error_and_the_exchange_is_over(serve: Serve) -> None:
    async with live(await serve(Scene(["Hello."]).agent)) as held:
        await held.tell(type="tool_result", toolCallId="call_" + "0" * 32, result=1)
        assert (await held.chunk())["type"] == "error"
        assert await read(held.socket) == "data: [DONE]\n\n"
        await held.message("hi")
        assert (await held.turn()).text == "Hello."


# --------------------------------------------------------------------------------------------- the connection


def slow_scene() -> Scene:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "Once "
        await scene.gate("go").wait()
        yield "upon a time."

    scene = Scene(script)
    return scene


@requirement("live:one-at-a-time")
async def test_a_second_message_meanwhile_gets_an_error_and_the_first_continues(serve: Serve) -> None:
    scene = slow_scene()
    async with live(await serve(scene.agent)) as held:
        await held.message("tell")
        await held.until("text-delta")
        await held.tell(type="message", id="another", messages=[], trigger="submit-message")
        error = await held.chunk()
        assert error["type"] == "error"
        assert "[DONE]" in error["errorText"]
        scene.gate("go").set()
        assert (await held.until("finish"))["finishReason"] == "stop"
    assert len(scene.model.prompts) == 1


@requirement("live:one-at-a-time")
async def test_an_interrupt_stops_the_run_and_ends_the_exchange(serve: Serve) -> None:
    scene = slow_scene()
    served = await serve(scene.agent)
    async with live(served) as held:
        await held.message("tell")
        await held.until("text-delta")
        await held.tell(type="interrupt", reason="enough")
        assert (await held.until("finish"))["finishReason"] == "other"
        assert await read(held.socket) == "data: [DONE]\n\n"
        run = await served.service.last_run(LOCAL, held.page.id)
        assert run.state == "stopped"


@requirement("live:one-at-a-time")
async def test_an_interrupt_of_a_waiting_run_cancels_its_open_calls(serve: Serve) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    async with live(served) as held:
        await held.tell(type="interrupt")
        await held.message("open")
        [call] = (await held.turn()).calls
        await held.tell(type="interrupt")
        assert (await held.pong())["type"] == "pong"
        ack = await served.http.post("/api/tools/ack", json={"toolCallId": call, "status": "success"})
    assert ack.status_code == 410


async def test_a_ping_is_answered_with_its_timestamp_also_in_an_exchange(serve: Serve) -> None:
    scene = slow_scene()
    async with live(await serve(scene.agent)) as held:
        for timestamp in (1763208896, "2026-11-15T12:00:00Z", None, 1.5):
            await held.tell(type="ping", timestamp=timestamp)
            assert json.loads(await read(held.socket)) == {"type": "pong", "timestamp": timestamp}
        await held.message("tell")
        await held.until("text-delta")
        assert (await held.pong())["type"] == "pong"
        scene.gate("go").set()
        await held.until("finish")


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "hello",
        "[]",
        '{"type":"dance"}',
        '{"type":"message"}',
        '{"type":"message","id":"x","messages":"y"}',
        '{"type":"tool_result"}',
        '{"type":"ping","type":"ping"}',
        '{"type":"ping","timestamp":1e999}',
        '{"type":"ping","timestamp":' + "[" * 100 + "]" * 100 + "}",
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_malformed_frame_gets_an_error_and_the_socket_stays(serve: Serve, frame: str) -> None:
    async with live(await serve(Scene(["Hello."]).agent)) as held:
        await held.socket.send(frame)
        assert (await held.chunk())["type"] == "error"
        await held.message("hi")
        assert (await held.turn()).text == "Hello."


@pytest.mark.parametrize(
    "wrong",
    [{"id": "a b"}, {"messages": []}, {"messages": [{"id": "m", "role": "user", "parts": []}]}],
    ids=str,
)
async def test_a_message_that_cannot_be_is_an_error_and_the_exchange_is_over(
    serve: Serve, wrong: dict[str, object]
) -> None:
    async with live(await serve(Scene(["Hello."]).agent)) as held:
        await held.tell(**{"type": "message", "id": "x", "messages": [], **wrong})
        assert (await held.chunk())["type"] == "error"
        assert await read(held.socket) == "data: [DONE]\n\n"
        await held.message("hi")
        assert (await held.turn()).text == "Hello."


async def test_a_fault_of_the_model_is_an_error_and_done(serve: Serve) -> None:
    async with live(await serve(Scene([Fail("Gone."), "Back."]).agent)) as held:
        await held.message("hi")
        assert (await held.turn()).kinds == ["start", "error"]
        await held.message("again")
        assert (await held.turn()).text == "Back."


@requirement("ui-stream:dropped")
async def test_a_dropped_socket_does_not_stop_the_run_and_its_answer_can_be_resumed(serve: Serve) -> None:
    scene = slow_scene()
    served = await serve(scene.agent)
    async with live(served) as held:
        await held.message("tell")
        await held.until("text-delta")
        held.socket.transport.abort()
        page = held.page
    run = await served.service.last_run(LOCAL, page.id)
    await until(lambda: served.service.log.broker.count(run.run_id) == 0)
    scene.gate("go").set()
    assert (await page.resume()).text == "Once upon a time."
    assert len(scene.model.prompts) == 1


@requirement("ui-stream:dropped")
async def test_what_waits_is_answered_on_another_socket_or_by_http(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent)
    async with live(served) as held:
        await held.message("open")
        [call] = (await held.turn()).calls
        page = held.page
    async with wire(served, PATH) as socket:
        again = Held(socket, page)
        page.output(call, {"n": 1})
        await again.message()
        assert (await again.turn()).finish == "stop"
    assert (await page.resume()).finish == "stop"


async def test_a_frame_too_large_and_too_many_frames_close_the_socket(serve: Serve) -> None:
    served = await serve(Scene(["Hello."]).agent)
    async with live(served) as held:
        await held.socket.send("x" * (Limits().socket_frame + 1))
        assert await closed_with(held.socket) == 1009
    async with live(served) as held:
        for _ in range(200):
            await held.tell(type="ping", timestamp=1)
        assert await closed_with(held.socket) == 4429


async def bring(held: Held, call: str, way: str, *, failed: bool) -> None:
    if way == "tool_result":
        result: dict[str, object] = {"status": "error", "result": "no camera"} if failed else {}
        await held.tell(**{"type": "tool_result", "toolCallId": call, "result": {"name": "p"}, **result})
        return
    if failed:
        held.page.fail(call, "no camera")
    else:
        held.page.output(call, {"name": "p"})
    await held.message()


@requirement("live:one-at-a-time")
async def test_a_message_right_behind_done_is_answered_whatever_is_still_noted_down(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await serve(Scene(["Hello.", "Bye."]).agent)
    noting = asyncio.Event()

    async def mark_delivered(run: Run) -> None:
        await noting.wait()

    # as when an answer has ended before its reader came: that it was told after all is noted down
    monkeypatch.setattr(served.service.log.broker, "count", lambda topic: 0)
    monkeypatch.setattr(served.service, "mark_delivered", mark_delivered)
    async with live(served) as held:
        await held.message("hi")
        await held.turn()
        await held.message("bye")
        assert (await held.turn()).text == "Bye."
        noting.set()


@requirement("live:one-at-a-time")
async def test_a_note_that_cannot_be_stored_adds_nothing_to_a_response_that_has_ended(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await serve(Scene(["Hello.", "Bye."]).agent)

    def fail(*command: object) -> None:
        raise StoreDown("The store is away.")

    # as above
    monkeypatch.setattr(served.service.log.broker, "count", lambda topic: 0)
    monkeypatch.setattr(runs, "deliver", fail)
    async with live(served) as held:
        await held.message("hi")
        assert (await held.turn()).text == "Hello."
        assert (await held.pong())["type"] == "pong"
        await held.message("bye")
        assert (await held.turn()).text == "Bye."
