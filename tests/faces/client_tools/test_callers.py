"""Callers of `execute` that time out or leave, and what happens to their calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from farhand import Agent, ScriptedModel, tool
from farhand.core.call import Call
from farhand.core.event import CallOpened
from farhand.core.principal import LOCAL
from tests.faces.client_tools.program import Json, Program, eventually, ready
from tests.faces.conftest import Serve
from tests.faces.served import Served

QUIET = ScriptedModel(lambda moment: "hm")


class Erasing:
    """A server with a tool behind an approval, which ends when the test lets it."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.was_cancelled = asyncio.Event()
        self.times = 0

        @tool(needs_approval=lambda input: input["text"] == "it")
        async def erase(text: str) -> str:
            """Erase something.

            Args:
                text: What to erase.
            """
            self.times += 1
            self.began.set()
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.was_cancelled.set()
                raise
            return f"{text} is gone"

        self.agent = Agent(QUIET, tools=[erase])


async def erase(server: Served, text: str = "it", **more: Json) -> httpx2.Response:
    body = {"toolID": "erase", "input": {"text": text}, **more}
    return await server.http.post("/client-tools/execute", json=body)


async def asked(server: Served) -> Call:
    [call] = await eventually(lambda: server.service.log.open_calls(LOCAL))
    return call


async def only_call(server: Served) -> Call:
    """Open or not."""
    [opened] = [
        news.event for news in await server.service.log.feed(LOCAL) if isinstance(news.event, CallOpened)
    ]
    call = await server.service.log.get_call(LOCAL, opened.call_id)
    assert call is not None
    return call


async def approve(server: Served, call: Call) -> tuple[int, Json]:
    assert call.approval is not None
    yes = {"approvalId": call.approval.approval_id, "approved": True}
    answer = await server.http.post("/api/tools/approve", json=yes)
    return answer.status_code, answer.json()


@asynccontextmanager
async def leaving(server: Served, **more: Json) -> AsyncIterator[asyncio.Task[httpx2.Response]]:
    """A caller whose connection is closed at the end."""
    task = asyncio.create_task(erase(server, **more))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def nothing_open(server: Served) -> None:
    async def is_empty() -> bool:
        return not await server.service.log.open_calls(LOCAL)

    await eventually(is_empty)


async def test_the_callers_time_is_over_also_while_a_person_is_asked_and_the_call_is_cancelled(
    serve: Serve, store: str
) -> None:
    scene = Erasing()
    server = await serve(scene.agent, store=store)
    since = time.monotonic()
    answer = await erase(server, timeout=300)
    assert time.monotonic() - since >= 0.3
    # afterwards: on a busy machine its time may be over before anybody has seen it open
    call = await only_call(server)
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "TIMEOUT")
    assert "callID" not in answer.json()["error"]
    assert answer.json()["error"]["message"] == (
        f"Nobody approved '{call.tool}' in time; the call was cancelled and had no effect."
    )
    status, told = await approve(server, call)
    assert (status, told["reason"]) == (410, "cancelled")
    assert scene.times == 0


async def test_a_call_that_is_kept_outlives_its_callers_time_and_is_named(serve: Serve, store: str) -> None:
    scene = Erasing()
    scene.may_end.set()
    server = await serve(scene.agent, store=store)
    late = await erase(server, timeout=50, keep=True, requestID="job-1")
    call = await asked(server)
    assert (late.status_code, late.json()["error"]["callID"]) == (504, call.call_id)
    assert call.call_id in late.json()["error"]["message"]
    assert await approve(server, call) == (200, {"ok": True})
    await nothing_open(server)
    assert (await erase(server, requestID="job-1")).json()["output"] == "it is gone"
    assert scene.times == 1


async def test_a_kept_call_without_request_id_runs_after_its_approval_too(serve: Serve) -> None:
    scene = Erasing()
    server = await serve(scene.agent)
    assert (await erase(server, timeout=50, keep=True)).status_code == 504
    assert await approve(server, await asked(server)) == (200, {"ok": True})
    await scene.began.wait()
    assert (await asked(server)).timeout_sec is None, "the tool's own time counts"
    scene.may_end.set()
    await nothing_open(server)


async def test_a_tool_that_runs_is_cancelled_when_its_callers_time_is_over(serve: Serve) -> None:
    scene = Erasing()
    server = await serve(scene.agent)
    late = await erase(server, "something", timeout=100)
    assert late.status_code == 504
    assert "the call was cancelled, but it may already have had an effect" in late.json()["error"]["message"]
    await asyncio.wait_for(scene.was_cancelled.wait(), 20)


@pytest.mark.parametrize("keep", ["yes", 1, None])
async def test_keep_is_true_or_false(serve: Serve, keep: Json) -> None:
    answer = await erase(await serve(Erasing().agent), keep=keep)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("mounted", [False, True])
async def test_a_caller_that_leaves_while_a_person_is_asked_cancels_its_call(
    serve: Serve, store: str, mounted: bool
) -> None:
    scene = Erasing()
    server = await serve(scene.agent, store=store, mounted=mounted)
    async with leaving(server):
        call = await asked(server)
    await nothing_open(server)
    assert (await approve(server, call))[0] == 410
    assert scene.times == 0


async def test_a_caller_that_leaves_while_the_tool_runs_cancels_the_tool(serve: Serve) -> None:
    scene = Erasing()
    server = await serve(scene.agent)
    async with leaving(server):
        assert (await approve(server, await asked(server)))[0] == 200
        await scene.began.wait()
    await asyncio.wait_for(scene.was_cancelled.wait(), 20)
    await nothing_open(server)


async def test_a_client_is_told_that_the_caller_left(serve: Serve) -> None:
    server = await serve(Agent(QUIET))
    async with ready(Program(server.http), "read") as notes:
        task = asyncio.create_task(notes.program.execute("read", {"text": "a"}))
        await notes.stream.request()
        task.cancel()
        event = await notes.stream.event()
        assert event is not None
        assert (event.event, '"outcome":"cancelled"' in event.data) == ("tool-settled", True)


@pytest.mark.parametrize("text", ["it", "something"], ids=["asking", "in flight"])
async def test_a_call_with_a_request_id_stays_when_its_caller_leaves_and_can_be_asked_for_again(
    serve: Serve, store: str, text: str
) -> None:
    scene = Erasing()
    server = await serve(scene.agent, store=store)
    async with leaving(server, text=text, requestID="job-1"):
        call = await asked(server)
    pending = await erase(server, text, requestID="job-1")
    assert (pending.status_code, pending.json()["error"]["code"]) == (409, "CONFLICT")
    if text == "it":
        assert await approve(server, call) == (200, {"ok": True})
    scene.may_end.set()
    await nothing_open(server)
    assert not scene.was_cancelled.is_set()
    assert (await erase(server, text, requestID="job-1")).json()["output"] == f"{text} is gone"
    assert scene.times == 1


async def test_a_server_that_stops_cancels_what_only_its_callers_could_ask_for(
    serve: Serve, file_store: str
) -> None:
    scene = Erasing()
    first = await serve(scene.agent, store=file_store)
    async with leaving(first) as called, leaving(first, requestID="job-1") as keyed:
        calls = await eventually(lambda: _two(first))
        await first.stop()
        assert {(await each).status_code for each in (called, keyed)} == {503}
    second = await serve(scene.agent, store=file_store)
    statuses = {
        call.request.request_id: (await approve(second, call))[0]
        for call in calls
        if call.request is not None
    }
    assert statuses == {None: 410, "job-1": 200}


async def _two(server: Served) -> list[Call]:
    calls = await server.service.log.open_calls(LOCAL)
    return calls if len(calls) == 2 else []
