"""`/api/chat/ws`: AI SDK's own WebSocket transport. Many requests share a connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from farhand.core.principal import LOCAL
from farhand.core.settings import Limits, Settings
from farhand.models.scripted import Ask, Fail, Moment, Step
from farhand.store.open import open_store
from farhand.testing import FakeClock
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page, until, user_message
from tests.faces.ui_stream.websocket_client import Shared, closed_with, read, wire
from tests.requirement import requirement

PATH = "/api/chat/ws"
OPEN = Ask("open_url", {"url": "u"})
DELETE = Ask("delete_file", {"path": "a"})
TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]


def slow_scene() -> Scene:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "Once "
        await scene.gate(moment.thread_id).wait()
        yield "upon a time."

    scene = Scene(script)
    return scene


def said(served: Served, text: str) -> Page:
    page = Page(served.http)
    page.messages = [user_message(text)]
    return page


async def test_a_message_is_answered_in_numbered_chunks_and_an_end(serve: Serve, store: str) -> None:
    served = await serve(Scene(["Hello."]).agent, store=store)
    page = said(served, "hi")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        turn = await shared.turn(await shared.send(page, metadata={"x": 1}), page)
    assert turn.kinds == ["start", *TEXT, "finish"]


async def test_a_frontend_tool_and_an_approval_are_answered_on_the_same_socket(serve: Serve) -> None:
    scene = Scene(once(OPEN, DELETE))
    served = await serve(scene.agent)
    page = said(served, "both")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        first = await shared.turn(await shared.send(page), page)
        assert first.finish == "tool-calls"
        opened, delete = first.calls
        page.output(opened, {"n": 1})
        page.approve(delete)
        second = await shared.turn(await shared.send(page), page)
    assert second.message_id == first.message_id
    assert second.finish == "stop"
    assert scene.ran == [("delete_file", "a")]


async def test_a_held_request_continues_when_the_ack_is_accepted(serve: Serve) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    page = said(served, "open")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        request = await shared.send(page, body={"wait": "hold", "other": 1})
        call = (await shared.until(request, "tool-input-available"))["toolCallId"]
        ack = {"toolCallId": call, "status": "success", "output": {"n": 1}}
        assert (await served.http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
        assert (await shared.until(request, "finish"))["finishReason"] == "stop"


@requirement("socket:shared")
async def test_many_chats_share_a_socket_and_none_waits_for_another(serve: Serve) -> None:
    scene = slow_scene()
    served = await serve(scene.agent)
    pages = [said(served, f"tell {number}") for number in range(5)]
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        requests = [await shared.send(page) for page in pages]
        for page, request in reversed(list(zip(pages, requests, strict=True))):
            scene.gate(page.id).set()
            assert (await shared.turn(request, page)).text == "Once upon a time."


@requirement("socket:shared")
async def test_a_resume_is_accepted_with_a_start_and_replays_the_message(serve: Serve, store: str) -> None:
    scene = slow_scene()
    served = await serve(scene.agent, store=store)
    page = said(served, "tell")
    async with wire(served, PATH) as first:
        shared = Shared(first)
        await shared.until(await shared.send(page), "text-delta")
    async with wire(served, PATH) as second:
        shared = Shared(second)
        request = await shared.resume(page.id)
        assert await shared.frame(request) == {"type": "start", "requestId": request}
        scene.gate(page.id).set()
        assert (await shared.turn(request, page)).text == "Once upon a time."
    assert len(scene.model.prompts) == 1


@requirement("socket:shared")
async def test_where_nothing_is_active_a_resume_is_told_so(serve: Serve) -> None:
    clock = FakeClock()
    served = await serve(Scene(["Hello."]).agent, store=await open_store("memory:", clock))
    page = said(served, "hi")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        unknown = await shared.resume("never-seen")
        assert await shared.frame(unknown) == {"type": "no-active", "requestId": unknown}
        await shared.turn(await shared.send(page), page)
        clock.advance(61)
        ended = await shared.resume(page.id)
        assert await shared.frame(ended) == {"type": "no-active", "requestId": ended}


async def test_an_abort_closes_the_request_and_not_the_run(serve: Serve) -> None:
    scene = slow_scene()
    served = await serve(scene.agent)
    page, other = said(served, "tell"), said(served, "tell")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        request = await shared.send(page)
        await shared.until(request, "text-delta")
        await shared.abort(request)
        await _nobody_reads(served, page)
        scene.gate(page.id).set()
        await _ended(served, page)
        # whatever the aborted request still had to say would be told before this one's answer
        scene.gate(other.id).set()
        await shared.turn(await shared.send(other), other)
        assert request not in {frame["requestId"] for frame in shared.unread}
        again = await shared.resume(page.id)
        assert (await shared.frame(again))["type"] == "start"
        assert (await shared.turn(again, page)).text == "Once upon a time."


async def test_an_abort_of_nothing_is_passed_over(serve: Serve) -> None:
    served = await serve(Scene(["Hello."]).agent)
    page = said(served, "hi")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        await shared.abort("never-sent")
        assert (await shared.turn(await shared.send(page), page)).text == "Hello."


@requirement("ui-stream:dropped")
async def test_a_dropped_socket_does_not_stop_the_run(serve: Serve, store: str) -> None:
    scene = slow_scene()
    served = await serve(scene.agent, store=store)
    page = said(served, "tell")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        await shared.until(await shared.send(page), "text-delta")
        socket.transport.abort()
    await _nobody_reads(served, page)
    scene.gate(page.id).set()
    assert (await page.resume()).text == "Once upon a time."
    assert len(scene.model.prompts) == 1


async def test_a_ping_is_answered_also_while_a_request_is_in_progress(serve: Serve) -> None:
    scene = slow_scene()
    served = await serve(scene.agent)
    page = said(served, "hi")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        request = await shared.send(page)
        await socket.send(json.dumps({"type": "ping", "timestamp": 7}))
        async with asyncio.timeout(20):
            while (frame := json.loads(await socket.recv()))["type"] != "pong":
                assert frame["requestId"] == request
        assert frame == {"type": "pong", "timestamp": 7}


@pytest.mark.parametrize(
    ("frame", "request_id"),
    [
        ("", ""),
        ("hello", ""),
        ("[]", ""),
        ("null", ""),
        ('{"type":"send"', ""),
        ('{"type":"dance","requestId":"r"}', "r"),
        ('{"requestId":"r"}', "r"),
        ('{"type":"send","requestId":"r"}', "r"),
        ('{"type":"send","requestId":"r","id":"x","messages":[]}', "r"),
        ('{"type":"send","requestId":"r","id":"a b","messages":[]}', "r"),
        ('{"type":"send","requestId":1,"id":"x","messages":[]}', ""),
        ('{"type":"resume","requestId":"r"}', "r"),
        ('{"type":"resume","requestId":"r","requestId":"r","id":"x"}', ""),
        ('{"type":"abort"}', ""),
        ('{"type":"abort","requestId":"r","x":' + "[" * 100 + "]" * 100 + "}", ""),
        ('{"type":"abort","requestId":"r","x":NaN}', ""),
        ('{"type":"abort","requestId":"r","x":"\\ud800"}', ""),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_malformed_frame_gets_an_error_and_the_socket_stays(
    serve: Serve, frame: str, request_id: str
) -> None:
    served = await serve(Scene(["Hello."]).agent)
    page = said(served, "hi")
    async with wire(served, PATH) as socket:
        await socket.send(frame)
        told = json.loads(await read(socket))
        assert (told["type"], told["requestId"]) == ("error", request_id)
        assert told["errorText"]
        shared = Shared(socket)
        assert (await shared.turn(await shared.send(page), page)).text == "Hello."


async def test_bytes_that_are_no_text_get_an_error_and_the_socket_stays(serve: Serve) -> None:
    served = await serve(Scene(["Hello."]).agent)
    page = said(served, "hi")
    async with wire(served, PATH) as socket:
        await socket.send(b"\xff\xfe{}")
        assert json.loads(await read(socket))["type"] == "error"
        shared = Shared(socket)
        assert (await shared.turn(await shared.send(page), page)).text == "Hello."


async def test_a_refused_request_gets_an_error_of_its_own_and_the_others_continue(serve: Serve) -> None:
    scene = slow_scene()
    served = await serve(scene.agent)
    page = said(served, "tell")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        request = await shared.send(page)
        await shared.until(request, "text-delta")
        late = Page(served.http, page.id)
        late.messages = [user_message("and?")]
        refused = await shared.send(late)
        told = await shared.frame(refused)
        assert (told["type"], told["requestId"]) == ("error", refused)
        assert "still working" in told["errorText"]
        scene.gate(page.id).set()
        assert (await shared.until(request, "finish"))["finishReason"] == "stop"


async def test_a_fault_of_the_model_is_an_error_chunk_and_an_end(serve: Serve) -> None:
    served = await serve(Scene([Fail("Gone.")]).agent)
    page = said(served, "hi")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        turn = await shared.turn(await shared.send(page), page)
    assert turn.kinds == ["start", "error"]


async def test_a_drain_ends_every_request_resumably(serve: Serve) -> None:
    scene = slow_scene()
    served = await serve(scene.agent)
    page = said(served, "tell")
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        request = await shared.send(page)
        await shared.until(request, "text-delta")
        await served.app.drain()
        assert "resume" in (await shared.until(request, "error"))["errorText"]
        assert await shared.frame(request) == {"type": "end", "requestId": request}


async def test_a_history_that_a_post_may_have_comes_through_the_socket_too(serve: Serve) -> None:
    served = await serve(Scene(["Hello."]).agent)
    page = said(served, "hi")
    # what the client claims to be history is not believed, but it is sent with every message
    page.messages = [user_message("x" * 1_000_000), user_message("y" * 2_500_000), *page.messages]
    async with wire(served, PATH) as socket:
        shared = Shared(socket)
        turn = await shared.turn(await shared.send(page), page)
    assert turn.finish == "stop"
    assert Limits().socket_frame == Limits().chat_body


async def test_a_frame_that_is_too_large_closes_the_socket(serve: Serve) -> None:
    served = await serve(Scene(["Hello."]).agent)
    async with wire(served, PATH) as socket:
        await socket.send("x" * (Limits().socket_frame + 1))
        assert await closed_with(socket) == 1009


async def test_too_many_frames_close_the_socket(serve: Serve) -> None:
    served = await serve(Scene(["Hello."]).agent)
    async with wire(served, PATH) as socket:
        for _ in range(200):
            await socket.send('{"type":"abort","requestId":"x"}')
        assert await closed_with(socket) == 4429


async def test_a_silent_socket_is_closed_but_not_while_a_request_is_in_progress(
    serve: Serve,
) -> None:
    scene = slow_scene()
    served = await serve(scene.agent, settings=Settings(limits=Limits(socket_idle_sec=0.2)))
    page = said(served, "tell")
    async with wire(served, PATH) as silent, wire(served, PATH) as busy:
        shared = Shared(busy)
        request = await shared.send(page)
        await shared.until(request, "text-delta")
        assert await closed_with(silent) == 4408
        scene.gate(page.id).set()
        assert (await shared.until(request, "finish"))["finishReason"] == "stop"
        assert await closed_with(busy) == 4408


@pytest.mark.parametrize("path", ["/api/chat/ws", "/api/chat/live"])
async def test_without_a_credential_or_from_a_foreign_page_nobody_connects(serve: Serve, path: str) -> None:
    served = await serve(Scene(["Hello."]).agent)
    address = served.url.replace("http", "ws", 1) + path
    known = {"authorization": f"Bearer {served.token}"}
    for headers in ({}, {"authorization": "Bearer wrong"}):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(address, additional_headers=headers, proxy=None):
                pass
        assert refused.value.response.status_code == 403
    foreign = {**known, "origin": "https://evil.example"}
    async with connect(address, additional_headers=foreign, proxy=None) as socket:
        assert await closed_with(socket) == 4403


@pytest.mark.parametrize("path", ["/api/chat/ws", "/api/chat/live"])
async def test_a_page_is_told_why_its_socket_is_closed(serve: Serve, path: str) -> None:
    limits = Limits(streams_per_principal=1, failed_sign_ins_per_min=2)
    served = await serve(Scene(["Hello."]).agent, settings=Settings(limits=limits))
    address = served.url.replace("http", "ws", 1) + path
    own = {"origin": served.url}
    known = {"authorization": f"Bearer {served.token}"}

    async def told(**headers: str) -> tuple[int, str]:
        async with connect(address, additional_headers=headers, proxy=None) as socket:
            await socket.wait_closed()
            return socket.close_code or 0, socket.close_reason or ""

    code, reason = await told(**known, origin="https://evil.example")
    assert code == 4403
    assert "evil.example" in reason
    async with connect(address, additional_headers=own | known, proxy=None):
        code, reason = await told(**own, **known)
        assert code == 4429
        assert reason
    assert await told(**own) == (4401, "No valid credential was sent.")
    await told(**own, authorization="Bearer wrong")
    await told(**own, authorization="Bearer wrong")
    code, reason = await told(**own, authorization="Bearer wrong")
    assert code == 4429
    assert "failed sign-ins" in reason


async def _nobody_reads(served: Served, page: Page) -> None:
    run = await served.service.last_run(LOCAL, page.id)
    await until(lambda: served.service.log.broker.count(run.run_id) == 0)


async def _ended(served: Served, page: Page) -> None:
    async with asyncio.timeout(20):
        # looked at again and again: the end of a run that nobody reads has no event to wait for
        while (await served.service.last_run(LOCAL, page.id)).active:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
