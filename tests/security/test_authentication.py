"""Authentication: no access without a credential, and what belongs to somebody else does not exist."""

from __future__ import annotations

import json

import pytest

from tests.faces.ui_stream.page import Page, user_message
from tests.faces.ui_stream.websocket_client import closed_with, read
from tests.requirement import requirement
from tests.security.attack import ALL, HTTP, attack
from tests.security.target import (
    NEEDS,
    NOBODY,
    OTHERS,
    PATHS_OF_SOCKETS,
    TYPICAL,
    WELCOME,
    Target,
    heard_until,
    token_of,
)

pytestmark = requirement("attack:who-you-are")


def turned_away(face: str) -> int:
    """Servers answer an upgrade that is refused with 403, whatever the reason."""
    return 403 if face in PATHS_OF_SOCKETS else 401


@attack(*ALL)
async def test_nobody_comes_in_without_a_credential(target: Target, face: str) -> None:
    for route, status in (await target.knock_everywhere(face)).items():
        assert status == turned_away(face), route
    assert await target.knock(face, "bob") == WELCOME[face]


@attack(*ALL)
async def test_a_credential_that_is_not_one_opens_nothing(target: Target, face: str) -> None:
    known = token_of("ada")
    for said in (
        f"Bearer {known}x",
        f"Bearer {known[:-1]}",
        f"Basic {known}",
        "Bearer",
        "Bearer null",
        known,
    ):
        found = await target.knock_everywhere(face, NOBODY, {"authorization": said})
        assert set(found.values()) == {turned_away(face)}, (said, found)


@attack(*ALL)
async def test_two_credentials_at_once_are_refused(target: Target, face: str) -> None:
    both = [("authorization", f"Bearer {token_of(who)}") for who in ("bob", "ada")]
    found = await target.knock_everywhere(face, NOBODY, both)
    assert set(found.values()) == {403}, found


@attack(*ALL)
async def test_a_credential_in_the_address_counts_for_nothing(target: Target, face: str) -> None:
    for name in ("token", "access_token", "authorization", "api_key"):
        query = f"?{name}={token_of('ada')}"
        if face in PATHS_OF_SOCKETS:
            path, PATHS_OF_SOCKETS[face] = PATHS_OF_SOCKETS[face], PATHS_OF_SOCKETS[face] + query
            try:
                assert await target.knock(face) == 403
            finally:
                PATHS_OF_SOCKETS[face] = path
        else:
            method, path, _ = TYPICAL[face]
            assert (await target.send(NOBODY, method, path + query)).status_code == 401


@attack(*ALL)
async def test_a_name_that_is_not_the_servers_is_not_answered_for(target: Target, face: str) -> None:
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "a b",
        "evil.example:80",
    ):
        found = await target.knock_everywhere(face, "bob", {"host": host})
        assert set(found.values()) <= {400, 403}, (host, found)


@attack(*ALL)
async def test_a_sign_in_without_the_scope_may_not(target: Target, face: str) -> None:
    for lacking in missing(target, face):
        target.people.may_not("bob", *lacking)
        found = await target.knock_everywhere(face, "bob")
        closed = {
            f"{route.method} {route.path}" for route in target.routes(face) if fails(route.scope, lacking)
        } if face not in PATHS_OF_SOCKETS else {face}  # fmt: skip
        assert closed, "a scope that opens nothing"
        assert {route for route, status in found.items() if status == 403} == closed, lacking
    assert await target.knock(face, "eve") == WELCOME[face]


def missing(target: Target, face: str) -> set[tuple[str, ...]]:
    """What may be lacking so that some route of this face is closed: one scope, or all that would do."""
    if face in PATHS_OF_SOCKETS:
        return {(NEEDS[face],)}
    needs = {route.scope for route in target.routes(face)}
    return {tuple(part.split("|")) for scope in needs for part in scope.split("&")}


def fails(scope: str, lacking: tuple[str, ...]) -> bool:
    return any(set(part.split("|")) <= set(lacking) for part in scope.split("&"))


@attack(*ALL)
async def test_a_sign_in_that_was_taken_back_is_nobody_at_once(target: Target, face: str) -> None:
    assert await target.knock(face, "bob") == WELCOME[face]
    target.people.forget("bob")
    assert await target.knock(face, "bob") == turned_away(face)


@attack(*HTTP)
async def test_a_refusal_tells_nothing_of_the_inside(target: Target, face: str) -> None:
    method, path, body = TYPICAL[face]
    for who in (NOBODY, "bob"):
        answer = await target.send(who, method, f"{path}%00'--", body)
        said = answer.text if answer.headers.get("content-type") != "text/event-stream" else ""
        for word in ("Traceback", "File ", "site-packages", "sqlite", "SELECT", "/work", "line "):
            assert word not in said, said


# ------------------------------------------------------------------------------------- what belongs to others


async def same_as_nothing(target: Target, method: str, path: str, theirs: str, body: object = None) -> None:
    """The others are answered for Ada's thing exactly what they are answered for a thing that never was."""
    kind, _, rest = theirs.partition("_")
    nothing = f"{kind}_{'0' * len(rest)}" if rest else "n" * len(theirs)
    told = json.dumps(body) if body is not None else None
    for who in OTHERS:
        answers = []
        for name in (theirs, nothing):
            text = None if told is None else json.loads(told.replace("THEIRS", name))
            answer = await target.send(who, method, path.replace("THEIRS", name), text)
            answers.append((answer.status_code, answer.text.replace(name, "…")))
        assert answers[0] == answers[1], f"{who} can tell"
        assert answers[0][0] in (204, 404) or "[]" in answers[0][1], answers[0]


@attack("ack")
async def test_a_result_for_anothers_call_is_a_result_for_nothing(target: Target, face: str) -> None:
    body = {"toolCallId": "THEIRS", "status": "success", "output": "forged"}
    await same_as_nothing(target, "POST", "/api/tools/ack", target.call, body)
    await same_as_nothing(target, "POST", "/ai/tools/ack", target.call, body)


@attack("ack")
async def test_anothers_call_can_not_be_taken(target: Target, face: str) -> None:
    body = {"toolCallId": "THEIRS", "clientId": "tab"}
    await same_as_nothing(target, "POST", "/api/tools/take", target.call, body)


@attack("ack")
async def test_anothers_question_can_not_be_answered(target: Target, face: str) -> None:
    body = {"approvalId": "THEIRS", "approved": True}
    await same_as_nothing(target, "POST", "/api/tools/approve", target.approval, body)


@attack("awaiting")
async def test_results_for_anothers_thread_are_for_nothing(target: Target, face: str) -> None:
    body = {"agent_uuid": "THEIRS", "tool_results": [{"tool_use_id": target.call, "content": "forged"}]}
    await same_as_nothing(target, "POST", "/agent/tool_results", "victim", body)


@attack("awaiting")
async def test_anothers_thread_can_be_neither_read_nor_stopped_nor_gone_on_with(
    target: Target, face: str
) -> None:
    await same_as_nothing(target, "GET", "/agent/THEIRS/stream", "victim")
    await same_as_nothing(target, "POST", "/agent/THEIRS/abort", "victim")
    await same_as_nothing(
        target, "POST", "/agent/run", "victim", {"user_prompt": "hi", "agent_uuid": "THEIRS"}
    )


@attack("ui_stream")
async def test_anothers_answer_can_be_neither_read_nor_stopped(target: Target, face: str) -> None:
    await same_as_nothing(target, "GET", "/api/chat/THEIRS/stream", "victim")
    await same_as_nothing(target, "GET", "/api/chat/THEIRS/stream?after=0.0", "victim")
    await same_as_nothing(target, "POST", "/api/chat/THEIRS/stop", "victim")


@attack("ui_stream")
async def test_the_same_id_of_a_chat_is_another_chat_for_another(target: Target, face: str) -> None:
    for who in OTHERS:
        turn = await Page(await target.http(who), "victim").say("hello")
        assert turn.text == "hello"
        shown = (await target.send(who, "GET", "/api/chat/victim")).json()
        assert [part["text"] for part in shown["messages"][0]["parts"]] == ["hello"]


@attack("ui_stream", "ws", "live")
async def test_an_output_for_anothers_call_in_a_message_of_ones_own_has_no_effect(
    target: Target, face: str
) -> None:
    part = {
        "type": "tool-open_url",
        "toolCallId": target.call,
        "state": "output-available",
        "output": "forged",
    }
    for who in OTHERS:
        page, own = await target.open_call(who)
        page.messages[-1]["parts"] += [part]
        if face == "ui_stream":
            assert (await page.send()).status == 200
        else:
            async with target.socket(PATHS_OF_SOCKETS[face], who) as socket:
                kind = {"ws": {"type": "send", "requestId": "r"}, "live": {"type": "message"}}[face]
                await socket.send(json.dumps({**kind, **page.body()}))
                assert "forged" not in await read(socket)
        found = (await target.send(who, "GET", f"/api/chat/{page.id}")).json()
        assert [each["callId"] for each in found["openCalls"]] == [own]


@attack("ws")
async def test_anothers_chat_can_not_be_resumed_on_a_socket(target: Target, face: str) -> None:
    for who in OTHERS:
        async with target.socket("/api/chat/ws", who) as socket:
            for chat in ("victim", "nothing"):
                await socket.send(json.dumps({"type": "resume", "requestId": chat, "id": chat}))
                assert json.loads(await read(socket)) == {"type": "no-active", "requestId": chat}


@attack("live")
async def test_a_result_for_anothers_call_on_a_socket_is_for_nothing(target: Target, face: str) -> None:
    for who in OTHERS:
        answers = []
        for call in (target.call, "call_" + "0" * 32):
            async with target.socket("/api/chat/live", who) as socket:
                await socket.send(json.dumps({"type": "tool_result", "toolCallId": call, "result": "forged"}))
                answers.append(await read(socket))
        assert answers[0] == answers[1]
        assert "error" in answers[0]


@attack("live")
async def test_an_interrupt_stops_nothing_of_anybody_else(target: Target, face: str) -> None:
    for who in OTHERS:
        async with target.socket("/api/chat/live", who) as socket:
            await socket.send(json.dumps({"type": "interrupt", "id": "victim", "threadId": "victim"}))
            await socket.send(json.dumps({"type": "ping", "timestamp": 1}))
            assert "pong" in await read(socket)


@attack("threads")
async def test_anothers_chat_is_not_there(target: Target, face: str) -> None:
    await same_as_nothing(target, "GET", "/api/chat/THEIRS", "victim")


@attack("threads")
async def test_anothers_chat_can_be_neither_renamed_nor_removed(target: Target, face: str) -> None:
    await same_as_nothing(target, "PATCH", "/api/chat/THEIRS", "victim", {"title": "mine now"})
    await same_as_nothing(target, "DELETE", "/api/chat/THEIRS", "victim")


@attack("threads")
async def test_lists_and_inboxes_show_what_is_ones_own(target: Target, face: str) -> None:
    for who in OTHERS:
        assert (await target.send(who, "GET", "/api/chat")).json() == {"threads": []}
        assert (await target.send(who, "GET", "/api/inbox")).json() == {"calls": []}
        after = await target.send(who, "GET", "/api/chat?after=victim")
        assert after.text == (await target.send(who, "GET", "/api/chat?after=nothing")).text
    assert len((await target.send("ada", "GET", "/api/inbox")).json()["calls"]) == 2


@attack("files")
async def test_anothers_file_is_not_there(target: Target, face: str) -> None:
    ref = await upload(target, "ada")
    for method in ("GET", "HEAD"):
        await same_as_nothing(target, method, "/api/files/THEIRS", ref)
    assert (await target.send("ada", "GET", f"/api/files/{ref}")).text == "secret"


@attack("files")
async def test_a_result_that_names_anothers_file_does_not_show_it(target: Target, face: str) -> None:
    ref = await upload(target, "ada")
    for who in OTHERS:
        _, call = await target.open_call(who)
        ack = {"toolCallId": call, "status": "success", "output": {"ref": ref}}
        assert (await target.send(who, "POST", "/api/tools/ack", ack)).json() == {"ok": True}
        assert (await target.send(who, "GET", f"/api/files/{ref}")).status_code == 404
    assert "secret" not in repr(target.scene.model.prompts)


async def upload(target: Target, who: str) -> str:
    http = await target.http(who)
    heads = {"content-type": "text/plain", "x-farhand": "1"}
    return str((await http.post("/api/files", content=b"secret", headers=heads)).json()["ref"])


DESK = {"clientID": "desk", "tools": [{"id": "lamp", "description": "A lamp.", "parameters": {}}]}


async def register(target: Target, who: str) -> None:
    assert (await target.send(who, "POST", "/client-tools/register", DESK)).status_code == 200


@attack("client_tools")
async def test_anothers_tools_are_not_there(target: Target, face: str) -> None:
    await register(target, "ada")
    for who in OTHERS:
        assert (await target.send(who, "GET", "/client-tools/tools")).json() == {}
        assert (await target.send(who, "GET", "/client-tools/tools/desk")).json() == []
        shown = (await target.send(who, "GET", "/api/tools")).text
        assert "client_desk_lamp" not in shown


@attack("client_tools")
async def test_anothers_client_can_not_be_unregistered(target: Target, face: str) -> None:
    await register(target, "ada")
    for who in OTHERS:
        gone = await target.send(who, "DELETE", "/client-tools/unregister", {"clientID": "desk"})
        assert gone.json() == {"success": True, "unregistered": []}
    assert "client_desk_lamp" in (await target.send("ada", "GET", "/client-tools/tools")).json()


@attack("client_tools")
async def test_anothers_tool_can_not_be_executed(target: Target, face: str) -> None:
    await register(target, "ada")
    for who in OTHERS:
        answers = [
            await target.send(
                who, "POST", "/client-tools/execute", {"toolID": tool, "input": {}, "timeout": 100}
            )
            for tool in ("client_desk_lamp", "client_desk_none")
        ]
        assert {each.status_code for each in answers} == {404}


@attack("client_tools")
async def test_whoever_takes_anothers_client_id_neither_hears_nor_ends_its_stream(
    target: Target, face: str
) -> None:
    await register(target, "ada")
    ada = await target.http("ada")
    async with ada.stream("GET", "/client-tools/pending/desk") as theirs:
        frames = theirs.aiter_text()
        for who in OTHERS:
            assert await target.knock("events", who) == 200
            assert (await target.send(who, "GET", "/client-tools/pending/desk")).status_code == 200
        page = Page(ada, "asks-the-desk", wait="hold")
        async with page.saying("use client_desk_lamp"):
            heard = await heard_until(frames, "tool-request")
            assert "superseded" not in heard


@attack("client_tools")
async def test_a_result_or_progress_for_anothers_request_is_for_nothing(target: Target, face: str) -> None:
    for body in (
        {"requestID": "THEIRS", "status": "success", "output": "forged"},
        {"requestID": "THEIRS", "result": {"status": "success", "title": "", "output": "forged"}},
    ):
        await same_as_nothing(target, "POST", "/client-tools/result", target.call, body)
    progress = {"clientID": "desk", "requestID": "THEIRS", "text": "x"}
    await same_as_nothing(target, "POST", "/client-tools/progress", target.call, progress)


@attack("client_tools")
async def test_a_sign_in_for_clients_alone_answers_for_no_page(target: Target, face: str) -> None:
    _, call = await target.open_call("bob")
    target.people.may("bob", "client")
    body = {"requestID": call, "status": "success", "output": "forged"}
    assert (await target.send("bob", "POST", "/client-tools/result", body)).status_code == 404


@attack("events")
async def test_nothing_of_another_is_told_in_a_feed(target: Target, face: str) -> None:
    for who in OTHERS:
        http = await target.http(who)
        async with http.stream("GET", "/api/events?after=0.0") as response:
            frames = response.aiter_text()
            await Page(http, f"own-{who}").say("hello")
            heard = await heard_until(frames, "run-finished")
        assert target.call not in heard
        assert "victim" not in heard


@attack("inspector")
@pytest.mark.parametrize("path", ["calls/{call}", "runs/{run}", "runs/{run}/events", "runs/{run}/test"])
async def test_what_another_did_can_not_be_inspected(target: Target, face: str, path: str) -> None:
    mine = (await target.send("ada", "GET", "/api/inspect/runs")).json()["runs"]
    run = mine[0]["runId"]
    theirs = target.call if "call" in path else run
    await same_as_nothing(target, "GET", f"/api/inspect/{path.format(call='THEIRS', run='THEIRS')}", theirs)


@attack("inspector")
async def test_anothers_answer_can_not_be_sent_again(target: Target, face: str) -> None:
    await same_as_nothing(target, "POST", "/api/inspect/calls/THEIRS/again", target.call, {})


@attack("inspector")
async def test_lists_of_the_inspector_show_what_is_ones_own(target: Target, face: str) -> None:
    await register(target, "ada")
    for who in OTHERS:
        for path in ("runs", "inbox", "clients", "events", "runs?search=victim"):
            shown = (await target.send(who, "GET", f"/api/inspect/{path}")).text
            assert "victim" not in shown
            assert target.call not in shown
            assert "desk" not in shown


@attack("awaiting", "ui_stream", "live", "ws")
async def test_whoever_may_chat_but_not_answer_brings_no_result(target: Target, face: str) -> None:
    page, call = await target.open_call("bob")
    target.people.may("bob", "chat")
    page.output(call, "forged")
    if face == "ui_stream":
        assert (await page.refused()).status == 403
    elif face == "awaiting":
        body = {"agent_uuid": page.id, "tool_results": [{"tool_use_id": call, "content": "forged"}]}
        assert (await target.send("bob", "POST", "/agent/tool_results", body)).status_code == 403
    else:
        await refused_on_socket(target, face, page)


@attack("ack", "awaiting", "ui_stream", "live", "ws")
async def test_whoever_may_answer_but_not_approve_says_no_yes(target: Target, face: str) -> None:
    page, call = await target.open_call("bob", "delete_file")
    target.people.may("bob", "chat", "answer")
    page.approve(call)
    approval = target.approval_of(page, call)
    if face == "ack":
        body = {"approvalId": approval, "approved": True}
        assert (await target.send("bob", "POST", "/api/tools/approve", body)).status_code == 403
    elif face == "ui_stream":
        assert (await page.refused()).status == 403
    elif face == "awaiting":
        result = {"tool_use_id": call, "content": "", "approved": True}
        body = {"agent_uuid": page.id, "tool_results": [result]}
        assert (await target.send("bob", "POST", "/agent/tool_results", body)).status_code == 403
    else:
        await refused_on_socket(target, face, page)
    assert target.scene.ran == []


async def refused_on_socket(target: Target, face: str, page: Page) -> None:
    kind = {"ws": {"type": "send", "requestId": "r"}, "live": {"type": "message"}}[face]
    async with target.socket(PATHS_OF_SOCKETS[face], "bob") as socket:
        await socket.send(json.dumps({**kind, **page.body()}))
        assert "may not" in await read(socket)


@attack("ui_stream")
async def test_a_message_id_of_another_is_a_message_of_ones_own(target: Target, face: str) -> None:
    for who in OTHERS:
        page = Page(await target.http(who), f"fresh-{who}")
        page.messages = [user_message("hello", "the-same-id")]
        assert (await page.send()).text == "hello"


@attack("ws", "live")
async def test_a_socket_of_a_sign_in_that_ended_is_closed_with_4401(target: Target, face: str) -> None:
    async with target.socket(PATHS_OF_SOCKETS[face], "bob") as socket:
        target.people.forget("bob")
        # asked about as if half a minute had passed
        for opened in target.app.state.streams.due(target.app.state.now() + 60):
            if not await target.app.auth.still_accepts(opened.scope, opened.needs, opened.principal):
                await opened.cut()
        assert await closed_with(socket) == 4401
