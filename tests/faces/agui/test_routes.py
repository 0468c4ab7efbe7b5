"""Requests that AG-UI refuses before they have an effect, and the routes of CopilotKit's runtime."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator

import httpx2
import pytest

from farhand import Principal, create_app
from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask, Moment, Step
from farhand.tools.toolbox import make_toolbox
from tests.faces.agui.page import Json, Page, yes
from tests.faces.conftest import Serve
from tests.faces.served import listening
from tests.faces.ui_stream.agents import Scene, once
from tests.requirement import requirement
from tests.unit.agent.hands import add

OPEN = Ask("open_url", {"url": "a.example"})
DELETE = Ask("delete_file", {"path": "a.txt"})
GOOD: Json = {"threadId": "t1", "runId": "r1", "messages": [{"id": "m1", "role": "user", "content": "hi"}]}
PATHS = ["/ag-ui", "/copilotkit/agent/default/run"]


def _user(content: Json, message_id: str = "m1") -> Json:
    return {**GOOD, "messages": [{"id": message_id, "role": "user", "content": content}]}


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {**GOOD, "threadId": "no spaces"},
        {**GOOD, "threadId": 7},
        {**GOOD, "runId": ""},
        {**GOOD, "runId": "r" * 201},
        {**GOOD, "messages": None},
        {**GOOD, "tools": [{}]},
        {**GOOD, "resume": [{"interruptId": "a", "status": "maybe"}]},
        {**GOOD, "context": [{"value": "x"}]},
        _user(""),
        _user([]),
        _user(7),
        _user("hi", "no spaces"),
        _user([{"type": "image", "source": {"type": "url", "value": "http://a.example/x.png"}}]),
        _user([{"type": "document", "source": {"type": "file", "value": "file-1"}}]),
        _user([{"type": "image", "source": {"type": "data", "value": "%%", "mimeType": "image/png"}}]),
        _user([{"type": "image", "source": {"type": "data", "value": "AAAA"}}]),
        _user([{"type": "hologram"}]),
    ],
)
async def test_a_malformed_input_is_refused_in_words(serve: Serve, body: Json) -> None:
    scene = Scene(["x"])
    server = await serve(scene.agent)
    for path in PATHS:
        response = await server.http.post(path, json=body)
        assert response.status_code == 400
        assert response.json()["error"] == "invalid"
        assert response.json()["message"]
    assert scene.model.prompts == []


async def test_a_body_that_is_no_json_or_too_large_is_refused(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent)
    assert (await server.http.post("/ag-ui", content=b"{}")).status_code == 415
    headers = {"content-type": "application/json"}
    assert (await server.http.post("/ag-ui", content=b"{", headers=headers)).status_code == 400
    large = _user("x" * (4 * 1024 * 1024))
    assert (await server.http.post("/ag-ui", json=large)).status_code == 413


async def test_bytes_in_a_message_become_a_file(serve: Serve) -> None:
    scene = Scene(["Nice."])
    server = await serve(scene.agent)
    data = base64.b64encode(b"hello").decode()
    source = {"type": "data", "value": data, "mimeType": "text/plain"}
    page = Page(server.http)
    await page.send([{"type": "text", "text": "look"}, {"type": "document", "source": source}])
    await page.connect()
    words, file = page.messages[0]["content"]
    assert words == {"type": "text", "text": "look"}
    assert (file["type"], file["source"]["mimeType"]) == ("document", "text/plain")
    assert (await server.http.get(file["source"]["value"])).content == b"hello"


@pytest.mark.slow
@requirement("agui:refused")
async def test_a_message_that_is_refused_as_busy_leaves_no_file(serve: Serve, store: str) -> None:
    gate = asyncio.Event()

    async def slowly(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "One, "
        await gate.wait()

    server = await serve(Scene([slowly, "Next."]).agent, store=store)
    page, other = Page(server.http), Page(server.http)
    source = {"type": "data", "value": base64.b64encode(b"hello").decode(), "mimeType": "text/plain"}
    page.says("go")
    async with page.live() as live:
        await live.until("TEXT_MESSAGE_CONTENT")
        other.says([{"type": "document", "source": source}], "m9")
        assert (await other.run()).code == "busy"
    files = server.service.log.files
    assert (await files.kept(LOCAL.tenant, LOCAL.subject)).files == 0


@requirement("agui:refused")
@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        ({"chat"}, (False, False)),
        ({"chat", "answer"}, (True, False)),
        ({"chat", "approve"}, (False, True)),
        ({"chat", "answer", "approve"}, (True, True)),
    ],
)
async def test_results_and_answers_need_scopes_of_their_own(
    serve: Serve, scopes: set[str], allowed: tuple[bool, bool]
) -> None:
    def who(request: object) -> Principal:
        return Principal("acme", "ann", scopes=frozenset(scopes))

    scene = Scene(lambda moment: once(DELETE if "delete" in moment.text else OPEN)(moment))
    server = await serve(scene.agent, authenticate=who)
    page, other = Page(server.http), Page(server.http, "t2")
    page.finds(next(iter((await page.send("open")).calls)), "{}")
    assert (await page.run()).status == (200 if allowed[0] else 403)
    [asked] = (await other.send("delete")).interrupts
    assert (await other.resume(yes(asked))).status == (200 if allowed[1] else 403)
    assert scene.ran == ([("delete_file", "a.txt")] if allowed[1] else [])


async def test_nobody_comes_in_without_the_scope_to_chat_or_a_credential(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent)
    assert (await server.stranger.post("/ag-ui", json=GOOD)).status_code == 401
    assert (await server.stranger.get("/copilotkit/info")).status_code == 401
    headers = {"origin": "http://evil.example"}
    assert (await server.http.post("/ag-ui", json=GOOD, headers=headers)).status_code == 403

    def who(request: object) -> Principal:
        return Principal("acme", "ann", scopes=frozenset({"answer"}))

    server = await serve(Scene(["x"]).agent, authenticate=who)
    assert (await server.http.post("/ag-ui", json=GOOD)).status_code == 403


@requirement("agui:copilotkit")
async def test_the_runtime_says_who_it_is(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent)
    info = (await server.http.get("/copilotkit/info")).json()
    assert (info["version"], info["mode"], list(info["agents"])) == ("1.75.0", "sse", ["default"])
    assert info["agents"]["default"]["className"] == "farhand"
    off = ("audioFileTranscriptionEnabled", "suggestions", "telemetryDisabled")
    assert [info[name] for name in off] == [False, False, True]
    same = await server.http.post("/copilotkit", json={"method": "info"})
    assert same.json() == info


@requirement("agui:copilotkit")
async def test_the_single_endpoint_does_what_the_other_routes_do(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    server = await serve(scene.agent)
    page = Page(server.http)
    params = {"agentId": "default"}
    page.says("go")
    run = await page.post("/copilotkit", {"method": "agent/run", "params": params, "body": page.input()})
    assert [name for name, _ in run.calls.values()] == ["open_url"]
    page.messages = []
    same = await page.post("/copilotkit", {"method": "agent/connect", "params": params, "body": page.input()})
    assert same.calls == run.calls
    stop = {"method": "agent/stop", "params": {**params, "threadId": "t1"}}
    other = {**stop, "body": {"runId": "other"}}
    assert (await server.http.post("/copilotkit", json=other)).json()["stopped"] is False
    assert (await server.http.post("/copilotkit", json=stop)).json()["stopped"] is True


@pytest.mark.parametrize(
    "body",
    [
        {"method": "agent/fly"},
        {"method": "agent/run", "body": {}},
        {"method": "agent/run"},
        {"method": "agent/stop", "body": {}},
        {"method": "agent/stop", "params": {"threadId": "no spaces"}},
        {"method": "agent/stop", "params": {"threadId": "t1"}, "body": {"runId": 7}},
    ],
)
async def test_a_malformed_envelope_is_refused(serve: Serve, body: Json) -> None:
    server = await serve(Scene(["x"]).agent)
    response = await server.http.post("/copilotkit", json=body)
    assert (response.status_code, response.json()["error"]) == (400, "invalid")


async def test_another_agent_is_not_found(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent)
    for path in ("run", "connect", "stop/t1"):
        response = await server.http.post(f"/copilotkit/agent/other/{path}", json=GOOD)
        assert response.status_code == 404
        assert set(response.json()) == {"error", "message"}
    envelope = {"method": "agent/run", "params": {"agentId": "other"}, "body": GOOD}
    assert (await server.http.post("/copilotkit", json=envelope)).status_code == 404


async def test_an_app_without_a_model_says_so() -> None:
    app = create_app(make_toolbox([add]), store="memory:")
    async with listening(app) as url, httpx2.AsyncClient(base_url=url, trust_env=False, verify=False) as http:
        response = await http.post("/ag-ui", json=GOOD, headers={"authorization": f"Bearer {app.auth.token}"})
    assert (response.status_code, response.json()["error"]) == (404, "no_agent")
