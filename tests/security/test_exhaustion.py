"""Exhaustion: excessive requests are refused, and everybody else continues."""

from __future__ import annotations

import asyncio
import json

from farhand.core.settings import Limits
from tests.faces.ui_stream.page import Page
from tests.faces.ui_stream.websocket_client import read
from tests.requirement import requirement
from tests.security.attack import ALL, HTTP, attack
from tests.security.target import (
    NOBODY,
    PATHS_OF_SOCKETS,
    TYPICAL,
    Json,
    Target,
    credential,
    heard_until,
    holds_soon,
    serve_target,
)

pytestmark = requirement("attack:exhaustion")

WITH_BODY = ("ack", "awaiting", "ui_stream", "agui", "threads", "client_tools", "inspector", "files")


async def raw(target: Target, face: str, *pieces: bytes, length: int | None = None) -> bytes:
    """The typical request with a body of our own, piece by piece; the answer as it comes."""
    method, path, _ = TYPICAL[face]
    kind = "text/plain\r\nX-Farhand: 1" if face == "files" else "application/json"
    sized = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n{sized}\r\n"
    head += f"Authorization: {credential('bob')['authorization']}\r\n\r\n"
    port = int(target.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode())
        for piece in pieces:
            writer.write(piece if length is not None else b"%x\r\n%b\r\n" % (len(piece), piece))
        async with asyncio.timeout(15):
            return await reader.readline()
    finally:
        writer.close()


@attack(*WITH_BODY)
async def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(target: Target, face: str) -> None:
    assert b" 413 " in await raw(target, face, length=10**9)
    assert b" 413 " in await raw(target, face, length=10**18)


@attack(*WITH_BODY)
async def test_a_body_that_turns_out_too_large_is_refused(face: str) -> None:
    small = Limits(result_body=2_000, chat_body=2_000, register_body=2_000)
    async with serve_target(small) as target:
        size = 11 * 1024 * 1024 if face == "files" else 5_000
        assert b" 413 " in await raw(target, face, b"x" * size, b"x")


@attack(*WITH_BODY)
async def test_a_body_that_never_arrives_is_given_up(face: str) -> None:
    async with serve_target(Limits(body_within_sec=0.2)) as target:
        assert b" 408 " in await raw(target, face, b'{"a"', length=100)


@attack(*WITH_BODY)
async def test_a_connection_that_breaks_in_the_middle_of_a_body_applies_nothing(
    target: Target, face: str
) -> None:
    method, path, _ = TYPICAL[face]
    port = int(target.url.rpartition(":")[2])
    for _ in range(10):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        kind = "text/plain\r\nX-Farhand: 1" if face == "files" else "application/json"
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: 900\r\n"
        )
        writer.write(f"{head}Authorization: {credential('bob')['authorization']}\r\n\r\n{{".encode())
        await writer.drain()
        writer.transport.abort()
    assert await target.knock("threads", "bob") == 404


@attack("ack", "awaiting", "client_tools")
async def test_results_that_come_too_fast_are_told_when_to_come_back(face: str) -> None:
    async with serve_target(Limits(results_per_sec=1, results_burst=5)) as target:
        path, body = {
            "ack": ("/api/tools/ack", {"toolCallId": "call_0", "status": "success"}),
            "awaiting": ("/agent/tool_results", {"agent_uuid": "x", "tool_results": []}),
            "client_tools": ("/client-tools/result", {"requestID": "x", "status": "success"}),
        }[face]
        answers = [await target.send("bob", "POST", path, body) for _ in range(8)]
        late = answers[-1]
        assert (late.status_code, late.headers["retry-after"]) == (429, "1")
        assert (await target.send("eve", "POST", path, body)).status_code != 429


@attack("client_tools")
async def test_registrations_that_come_too_fast_are_told_when_to_come_back(face: str) -> None:
    body = {"clientID": "desk", "tools": []}
    # the next one is free after twelve seconds, however slow the machine is
    async with serve_target(Limits(registrations_per_min=5)) as target:
        answers = [await target.send("bob", "POST", "/client-tools/register", body) for _ in range(6)]
        assert [each.status_code for each in answers] == [200] * 5 + [429]
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert (await target.send("eve", "POST", "/client-tools/register", body)).status_code == 200


@attack("client_tools")
async def test_one_client_or_one_tool_too_many_is_refused(face: str) -> None:
    async with serve_target(Limits(clients_per_principal=2, tools_per_client=3)) as target:
        tools = [{"id": f"t{n}", "description": "A tool.", "parameters": {}} for n in range(4)]

        async def register(client: str, count: int) -> int:
            body = {"clientID": client, "tools": tools[:count]}
            return int((await target.send("bob", "POST", "/client-tools/register", body)).status_code)

        assert [await register("a", 3), await register("b", 1), await register("c", 1)] == [200, 200, 429]
        assert await register("a", 4) == 400


@attack("client_tools")
async def test_calls_that_nobody_answers_are_bounded(face: str) -> None:
    async with serve_target(Limits(open_calls_per_thread=3)) as target:
        tools = [{"id": "lamp", "description": "A lamp.", "parameters": {}}]
        await target.send("bob", "POST", "/client-tools/register", {"clientID": "desk", "tools": tools})
        body = {"toolID": "client_desk_lamp", "input": {}, "timeout": 1500}
        asked = [target.send("bob", "POST", "/client-tools/execute", body) for _ in range(6)]
        answers = await asyncio.gather(*asked)
        assert [each.status_code for each in answers].count(429) == 3
        target.statuses[:] = [each for each in target.statuses if each[1] != 504]


@attack(*ALL)
async def test_guessing_is_slowed_down_and_whoever_is_known_still_comes_in(face: str) -> None:
    async with serve_target(Limits(failed_sign_ins_per_min=3)) as target:
        known = await target.knock(face, "bob")
        guesses = [await target.knock(face, NOBODY, {"authorization": f"Bearer {n}"}) for n in range(6)]
        assert guesses[-1] == (403 if face in PATHS_OF_SOCKETS else 429)
        assert await target.knock(face, "bob") == known


@attack("ack", "awaiting", "ui_stream", "ws", "live", "client_tools")
async def test_an_error_longer_than_anybody_reads_is_refused(target: Target, face: str) -> None:
    page, call = await target.open_call("bob")
    error = "x" * 4097
    page.fail(call, error)
    match face:
        case "ack":
            body: Json = {"toolCallId": call, "status": "failed", "errorText": error}
            assert (await target.send("bob", "POST", "/api/tools/ack", body)).status_code == 413
        case "awaiting":
            result = {"tool_use_id": call, "content": error, "is_error": True}
            body = {"agent_uuid": page.id, "tool_results": [result]}
            assert (await target.send("bob", "POST", "/agent/tool_results", body)).status_code == 413
        case "client_tools":
            body = {"requestID": call, "status": "error", "error": error}
            assert (await target.send("bob", "POST", "/client-tools/result", body)).status_code == 413
        case "ui_stream":
            assert (await page.refused()).status == 413
        case _:
            kind = {"ws": {"type": "send", "requestId": "r"}, "live": {"type": "message"}}[face]
            async with target.socket(PATHS_OF_SOCKETS[face], "bob") as socket:
                await socket.send(json.dumps({**kind, **page.body()}))
                assert "larger than 4096 bytes" in await read(socket)
    shown = (await target.send("bob", "GET", f"/api/chat/{page.id}")).json()
    assert [each["callId"] for each in shown["openCalls"]] == [call]


@attack("ack", "awaiting", "ui_stream")
async def test_a_reason_longer_than_anybody_reads_is_refused(target: Target, face: str) -> None:
    page, call = await target.open_call("bob", "delete_file")
    reason = "x" * 4097
    page.approve(call, approved=False, reason=reason)
    if face == "ack":
        body: Json = {"approvalId": target.approval_of(page, call), "approved": False, "reason": reason}
        assert (await target.send("bob", "POST", "/api/tools/approve", body)).status_code == 413
    elif face == "ui_stream":
        assert (await page.refused()).status == 413
    else:
        result = {"tool_use_id": call, "content": reason, "approved": False}
        body = {"agent_uuid": page.id, "tool_results": [result]}
        assert (await target.send("bob", "POST", "/agent/tool_results", body)).status_code == 413


@attack("client_tools")
async def test_a_title_or_metadata_that_is_too_large_is_refused(target: Target, face: str) -> None:
    _, call = await target.open_call("bob")
    for more in ({"title": "x" * 257}, {"metadata": {"x": "y" * 17_000}}):
        body = {"requestID": call, "status": "success", "output": 1, **more}
        assert (await target.send("bob", "POST", "/client-tools/result", body)).status_code == 413


@attack("threads")
async def test_a_title_that_is_too_large_is_refused(target: Target, face: str) -> None:
    await target.open_call("bob", chat="titled")
    for title in ("x" * 257, "é" * 200):
        assert (await target.send("bob", "PATCH", "/api/chat/titled", {"title": title})).status_code == 413


@attack(*HTTP)
async def test_a_query_of_a_thousand_parameters_is_refused_or_ignored(target: Target, face: str) -> None:
    method, path, body = TYPICAL[face]
    query = "&".join(f"p{n}={n}" for n in range(1_000))
    answer = await target.send("bob", method, f"{path}?{query}", body)
    assert answer.status_code < 500
    doubled = await target.send(
        "bob", method, f"{path}?limit=1&limit=2&after=1.0&after=2.0&format=xml&format=raw", body
    )
    assert doubled.status_code < 500


@attack("threads", "ui_stream", "awaiting", "files", "client_tools", "inspector")
async def test_an_id_of_any_length_and_any_letters_finds_nothing(target: Target, face: str) -> None:
    path = {
        "threads": "/api/chat/{}", "ui_stream": "/api/chat/{}/stream", "awaiting": "/agent/{}/stream",
        "files": "/api/files/{}", "client_tools": "/client-tools/tools/{}",
        "inspector": "/api/inspect/runs/{}",
    }[face]  # fmt: skip
    for name in (
        "x" * 5_000,
        "%00",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "%ff",
        "'--",
        "%F0%9F%98%80",
        "{}",
        "*",
    ):
        answer = await target.send("bob", "GET", path.format(name.replace("{", "%7B").replace("}", "%7D")))
        assert answer.status_code in (200, 204, 400, 404), name
        assert "passwd" not in answer.text.replace(name, "")


@attack("ui_stream")
async def test_a_conversation_sent_whole_again_and_again_costs_what_it_weighs(
    target: Target, face: str
) -> None:
    page = Page(await target.http("bob"), "long")
    words = [{"type": "text", "text": "x" * 500}]
    old: list[Json] = [{"id": f"m{n}", "role": "user", "parts": words} for n in range(2_000)]
    page.messages = [*old, {"id": "new", "role": "user", "parts": [{"type": "text", "text": "hello"}]}]
    assert (await page.send()).text == "hello"
    shown = (await target.send("bob", "GET", "/api/chat/long")).json()
    assert len(shown["messages"]) == 2


@attack("ui_stream")
async def test_a_conversation_that_is_too_large_is_told_how_to_send_less(target: Target, face: str) -> None:
    body = {
        "id": "x",
        "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "x" * 4_200_000}]}],
    }
    answer = await target.send("bob", "POST", "/api/chat", body)
    assert answer.status_code == 413
    assert "prepareSendMessagesRequest" in answer.text


@attack("events")
async def test_a_hundred_streams_that_come_and_go_leave_nothing_behind(target: Target, face: str) -> None:
    http = await target.http("bob")
    for _ in range(100):
        async with http.stream("GET", "/api/events") as response:
            assert response.status_code == 200
            await heard_until(response.aiter_text(), "\n\n")
    # the victim's own is left; the server hears of the others in its own time
    await holds_soon(lambda: len(target.app.state.streams) == 1)


@attack("awaiting", "ui_stream")
async def test_a_hundred_chats_at_once_are_all_answered(target: Target, face: str) -> None:
    async def chat(number: int) -> int:
        if face == "awaiting":
            return (await target.send("bob", "POST", "/agent/run", {"user_prompt": "hi"})).status_code
        message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
        return (
            await target.send("bob", "POST", "/api/chat", {"id": f"c{number}", "messages": [message]})
        ).status_code

    statuses = await asyncio.gather(*(chat(number) for number in range(100)))
    assert set(statuses) <= {200, 429}
