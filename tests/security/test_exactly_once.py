"""Exactly once: duplicate, simultaneous, early and unsolicited answers change nothing."""

from __future__ import annotations

import asyncio
import json

from farhand.core.settings import Timeouts
from tests.faces.client_tools.program import eventually
from tests.faces.ui_stream.page import Page
from tests.faces.ui_stream.websocket_client import read
from tests.requirement import requirement
from tests.security.attack import attack
from tests.security.target import PATHS_OF_SOCKETS, Json, Target, serve_target

pytestmark = requirement("attack:exactly-once")

NEVER = "call_" + "0" * 32


async def bring(target: Target, face: str, page: Page, call: str, output: Json) -> str:
    """A result for Bob's call, as this face brings one; the answer as text."""
    if face == "ack":
        body: Json = {"toolCallId": call, "status": "success", "output": output}
        return (await target.send("bob", "POST", "/api/tools/ack", body)).text
    if face == "client_tools":
        body = {"requestID": call, "status": "success", "output": output}
        return (await target.send("bob", "POST", "/client-tools/result", body)).text
    if face == "awaiting":
        result = {"tool_use_id": call, "content": json.dumps(output)}
        body = {"agent_uuid": page.id, "tool_results": [result]}
        http = await target.http("bob")
        return (await http.post("/agent/tool_results", json=body)).text
    if face == "ui_stream":
        page.messages[-1]["parts"] = [part_of(call, output)]
        http = await target.http("bob")
        return (await http.post("/api/chat", json=page.body())).text
    async with target.socket(PATHS_OF_SOCKETS[face], "bob") as socket:
        if face == "live":
            await socket.send(json.dumps({"type": "tool_result", "toolCallId": call, "result": output}))
        else:
            page.messages[-1]["parts"] = [part_of(call, output)]
            await socket.send(json.dumps({"type": "send", "requestId": "r", **page.body()}))
        return await read(socket)


def part_of(call: str, output: Json) -> Json:
    return {"type": "tool-open_url", "toolCallId": call, "state": "output-available", "output": output}


async def given(target: Target) -> list[object]:
    """The outputs that the model was given, in the order of its requests."""
    return [result.outcome for prompt in target.scene.model.prompts for result in
            getattr(prompt.messages[-1], "results", ())]  # fmt: skip


def settled(page_json: Json) -> list[Json]:
    return [part.get("output") for part in page_json["messages"][-1]["parts"] if "toolCallId" in part]


async def outcome(target: Target, page: Page) -> list[Json]:
    """What the record says of the calls of this chat, once it has come to rest."""

    async def look() -> Json:
        found = (await target.send("bob", "GET", f"/api/chat/{page.id}")).json()
        return found if found["state"] == "done" else None

    return settled(await eventually(look))


@attack("ack", "client_tools", "awaiting", "ui_stream", "live", "ws")
async def test_two_different_results_at_once_have_one_winner(target: Target, face: str) -> None:
    page, call = await target.open_call("bob")
    tabs = [page, Page(page.http, page.id)]
    tabs[1].messages = json.loads(json.dumps(page.messages))
    async with asyncio.TaskGroup() as group:
        for number, tab in enumerate(tabs):
            group.create_task(bring(target, face, tab, call, {"number": number}))
    [won] = await outcome(target, page)
    assert won in ({"number": 0}, {"number": 1})
    assert len(await given(target)) == 1, "the model was given it once"


@attack("client_tools", "awaiting", "ui_stream", "live", "ws")
async def test_a_race_with_the_ack_route_has_one_winner(target: Target, face: str) -> None:
    page, call = await target.open_call("bob")
    async with asyncio.TaskGroup() as group:
        group.create_task(bring(target, "ack", page, call, {"by": "ack"}))
        group.create_task(bring(target, face, page, call, {"by": face}))
    [won] = await outcome(target, page)
    assert won in ({"by": "ack"}, {"by": face})
    assert len(await given(target)) == 1


@attack("ack", "client_tools", "awaiting", "ui_stream", "live", "ws")
async def test_another_result_after_the_first_changes_nothing(target: Target, face: str) -> None:
    page, call = await target.open_call("bob")
    before = json.loads(json.dumps(page.messages))
    await bring(target, "ack", page, call, {"first": 1})
    assert await outcome(target, page) == [{"first": 1}]
    late = Page(page.http, page.id)
    late.messages = before
    said = await bring(target, face, late, call, {"second": 2})
    assert '"ok":true' not in said
    assert await outcome(target, page) == [{"first": 1}]


@attack("ack", "client_tools")
async def test_the_same_result_a_hundred_times_is_taken_once(target: Target, face: str) -> None:
    page, call = await target.open_call("bob")
    answers = await asyncio.gather(*(bring(target, face, page, call, {"n": 1}) for _ in range(100)))
    if face == "ack":
        assert sorted(set(answers)) == ['{"ok":true,"ignored":true}', '{"ok":true}']
        assert answers.count('{"ok":true}') == 1
    assert await outcome(target, page) == [{"n": 1}]
    assert len(await given(target)) == 1


@attack("ack", "client_tools", "awaiting", "live")
async def test_a_result_for_a_call_that_never_was_leaves_no_trace(target: Target, face: str) -> None:
    page, call = await target.open_call("bob")
    for guess in (NEVER, call[:-1] + ("0" if call[-1] != "0" else "1"), call.upper(), "call_", ""):
        said = await bring(target, face, page, guess, "guessed")
        assert '"ok":true' not in said, guess
    await bring(target, "ack", page, call, {"own": 1})
    assert await outcome(target, page) == [{"own": 1}]


@attack("ack", "client_tools", "awaiting", "ui_stream", "live", "ws")
async def test_what_waits_for_an_approval_can_not_be_finished_before_it(target: Target, face: str) -> None:
    page, call = await target.open_call("bob", "take_photo")
    said = await bring(target, face, page, call, {"name": "forged"})
    assert '"ok":true' not in said
    shown = (await target.send("bob", "GET", f"/api/chat/{page.id}")).json()
    assert [each["phase"] for each in shown["openCalls"]] == ["asking"]
    assert await given(target) == []


@attack("ack")
async def test_yes_and_no_at_once_have_one_winner_and_the_tool_runs_accordingly(
    target: Target, face: str
) -> None:
    page, call = await target.open_call("bob", "delete_file")
    approval = target.approval_of(page, call)
    bodies = [{"approvalId": approval, "approved": answer} for answer in (True, False) * 5]
    answers = await asyncio.gather(
        *(target.send("bob", "POST", "/api/tools/approve", each) for each in bodies)
    )
    said = [each.json() for each in answers]
    assert said.count({"ok": True}) == 1
    await outcome(target, page)
    won = bodies[said.index({"ok": True})]["approved"]
    assert target.scene.ran == ([("delete_file", "p")] if won else [])


@attack("ack", "ui_stream", "awaiting")
async def test_an_approval_after_a_denial_runs_nothing(target: Target, face: str) -> None:
    page, call = await target.open_call("bob", "delete_file")
    approval = target.approval_of(page, call)
    no = {"approvalId": approval, "approved": False}
    assert (await target.send("bob", "POST", "/api/tools/approve", no)).json() == {"ok": True}
    await outcome(target, page)
    if face == "ack":
        late = await target.send(
            "bob", "POST", "/api/tools/approve", {"approvalId": approval, "approved": True}
        )
        assert late.status_code == 409
    elif face == "ui_stream":
        page.approve(call)
        await target.send("bob", "POST", "/api/chat", page.body())
    else:
        result = {"tool_use_id": call, "content": "", "approved": True}
        body = {"agent_uuid": page.id, "tool_results": [result]}
        assert (await target.send("bob", "POST", "/agent/tool_results", body)).status_code in (404, 409, 410)
    assert target.scene.ran == []


@attack("ack")
async def test_a_hundred_yeses_run_the_tool_once(target: Target, face: str) -> None:
    page, call = await target.open_call("bob", "delete_file")
    yes = {"approvalId": target.approval_of(page, call), "approved": True}
    answers = await asyncio.gather(
        *(target.send("bob", "POST", "/api/tools/approve", yes) for _ in range(100))
    )
    assert [each.json() for each in answers].count({"ok": True}) == 1
    await outcome(target, page)
    assert target.scene.ran == [("delete_file", "p")]


@attack("ack")
async def test_a_result_after_the_chat_was_stopped_is_told_that_it_is_too_late(
    target: Target, face: str
) -> None:
    page, call = await target.open_call("bob")
    assert (await page.stop()).body == {"ok": True}
    ack = {"toolCallId": call, "status": "success", "output": 1}
    late = await target.send("bob", "POST", "/api/tools/ack", ack)
    assert (late.status_code, late.json()["reason"]) == (410, "cancelled")


@attack("ack")
async def test_a_client_that_reports_a_timeout_extends_nothing(target: Target, face: str) -> None:
    page, call = await target.open_call("bob")
    late = {"toolCallId": call, "status": "timeout", "requestedAt": "2999-01-01T00:00:00Z"}
    assert (await target.send("bob", "POST", "/api/tools/ack", late)).json() == {"ok": True}
    again = {"toolCallId": call, "status": "success", "output": 1}
    assert (await target.send("bob", "POST", "/api/tools/ack", again)).status_code == 409
    assert await outcome(target, page) == [None]


@attack("ui_stream", "ws", "live")
async def test_the_same_message_many_times_at_once_is_one_run(target: Target, face: str) -> None:
    page = Page(await target.http("bob"), "double")
    page.messages = [{"id": "same", "role": "user", "parts": [{"type": "text", "text": "use weather"}]}]

    async def post() -> None:
        if face == "ui_stream":
            await target.send("bob", "POST", "/api/chat", page.body())
            return
        async with target.socket(PATHS_OF_SOCKETS[face], "bob") as socket:
            kind = {"ws": {"type": "send", "requestId": "r"}, "live": {"type": "message"}}[face]
            await socket.send(json.dumps({**kind, **page.body()}))
            await read(socket)

    await asyncio.gather(*(post() for _ in range(10)))
    await outcome(target, page)
    assert target.scene.ran == [("weather", "c")]


@attack("client_tools")
async def test_a_request_id_used_twice_executes_once(target: Target, face: str) -> None:
    body = {"toolID": "client_desk_lamp", "requestID": "same", "input": {}, "timeout": 2000}
    tools = [{"id": "lamp", "description": "A lamp.", "parameters": {}}]
    await target.send("bob", "POST", "/client-tools/register", {"clientID": "desk", "tools": tools})
    http = await target.http("bob")
    async with http.stream("GET", "/client-tools/pending/desk") as stream, asyncio.TaskGroup() as group:
        first = group.create_task(target.send("bob", "POST", "/client-tools/execute", body))
        heard = ""
        frames = stream.aiter_text()
        async with asyncio.timeout(15):
            while "requestID" not in heard:
                heard += await anext(frames)
        assert (await target.send("bob", "POST", "/client-tools/execute", body)).status_code == 409
        call = heard.partition('"requestID":"')[2].partition('"')[0]
        result = {"requestID": call, "status": "success", "output": "lit"}
        assert (await target.send("bob", "POST", "/client-tools/result", result)).json() is True
        assert (await first).json()["output"] == "lit"
        assert (await target.send("bob", "POST", "/client-tools/execute", body)).json()["output"] == "lit"
    assert heard.count("requestID") == 1


@attack("ack")
async def test_taking_a_call_over_and_over_keeps_nobody_from_answering(face: str) -> None:
    async with serve_target(timeouts=Timeouts()) as target:
        page, call = await target.open_call("bob")
        for number in range(20):
            body = {"toolCallId": call, "clientId": f"tab-{number}"}
            assert (await target.send("bob", "POST", "/api/tools/take", body)).status_code in (200, 409)
        await bring(target, "ack", page, call, {"own": 1})
        assert await outcome(target, page) == [{"own": 1}]
