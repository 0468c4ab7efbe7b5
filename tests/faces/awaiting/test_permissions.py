"""Permissions on the awaiting wire, and invalid bodies."""

from __future__ import annotations

import json

from starlette.requests import HTTPConnection

from farhand.core.principal import SCOPES, Principal
from farhand.core.settings import Limits, Settings
from farhand.models.scripted import Ask, ScriptedModel
from tests.faces.awaiting.agents import agent_with
from tests.faces.awaiting.client import Page, result
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.requirement import requirement

CONFIRM = Ask("user_confirm", {"message": "Sure?"})


def by_header(request: HTTPConnection) -> Principal | None:
    """Who asks, and with which scopes, as two headers say."""
    who = request.headers.get("x-who")
    scopes = request.headers.get("x-scopes")
    return (
        Principal("acme", who, frozenset(scopes.split()) if scopes is not None else SCOPES) if who else None
    )


@requirement("awaiting:early-errors")
async def test_what_belongs_to_somebody_else_does_not_exist(serve: Serve, store: str) -> None:
    server = await serve(
        agent_with(ScriptedModel([[CONFIRM], "Thanks."])), store=store, authenticate=by_header
    )
    server.http.headers["x-who"] = "ann"
    mine = Page(server.http)
    turn = await mine.run("hi")
    server.stranger.headers["x-who"] = "bob"
    theirs = Page(server.stranger, mine.agent_uuid)
    nobodys = Page(server.stranger, "never-made")
    for page in (theirs, nobodys):
        answers = [await page.run("x"), await page.answer(result(turn.pause[0], "no")), await page.stream()]
        assert [each.status for each in answers] == [404] * 3
    refused = [await server.stranger.post(f"/agent/{each}/abort") for each in (mine.agent_uuid, "never-made")]
    assert refused[0].status_code == refused[1].status_code == 404
    assert refused[0].json() == refused[1].json()
    assert (await mine.answer(result(turn.pause[0], "yes"))).text == "Thanks."


async def test_each_route_asks_for_its_scope(serve: Serve) -> None:
    server = await serve(agent_with(lambda moment: "Hi."), authenticate=by_header)
    page = Page(server.http, "t1")
    needed = {"run": "chat", "stream": "chat", "abort": "chat", "answer": "answer"}
    for route, scope in needed.items():
        server.http.headers.update({"x-who": "ann", "x-scopes": " ".join(SCOPES - {scope})})
        assert await _status(server, page, route) == 403
        server.http.headers["x-scopes"] = scope
        assert await _status(server, page, route) == 404


async def test_who_may_only_bring_results_cannot_say_yes(serve: Serve, store: str) -> None:
    agent = agent_with([[Ask("take_photo", {"camera": "front"})], "Nice."])
    server = await serve(agent, store=store, authenticate=by_header)
    page = Page(server.http)
    server.http.headers["x-who"] = "ann"
    turn = await page.run("a photo")
    server.http.headers["x-scopes"] = "answer"
    refused = await page.answer(result(turn.pause[0], "blob_1", approved=True))
    assert (refused.status, refused.body["error"]["code"]) == (403, "forbidden")
    server.http.headers["x-scopes"] = "answer approve"
    assert (await page.answer(result(turn.pause[0], "blob_1", approved=True))).text == "Nice."


async def test_hostile_bodies_are_refused_in_our_words_and_the_call_still_completes(
    serve: Serve, store: str
) -> None:
    server = await serve(agent_with([[CONFIRM], "Thanks."]), store=store)
    page = Page(server.http)
    turn = await page.run("hi")
    good = {"agent_uuid": turn.agent_uuid, "tool_results": [result(turn.pause[0], "yes")]}
    for path in ("/agent/run", "/agent/tool_results"):
        for body in _hostile(json.dumps({**good, "user_prompt": "x"})):
            response = await server.http.post(
                path, content=body, headers={"content-type": "application/json"}
            )
            assert response.status_code in {400, 413}, body[:80]
            assert set(response.json()["error"]) == {"code", "message"}
    assert (await page.answer(result(turn.pause[0], "yes"))).text == "Thanks."


@requirement("awaiting:early-errors")
async def test_what_is_wrong_before_the_stream_opens_is_a_status_and_json(serve: Serve) -> None:
    limits = Limits(chat_body=1000, result_body=1000)
    server = await serve(agent_with(lambda moment: "Hi."), settings=Settings(limits=limits))
    big = {"user_prompt": "x" * 1000, "agent_uuid": "t", "tool_results": []}
    answers = {
        401: await server.stranger.post("/agent/run", json={"user_prompt": "hi"}),
        405: await server.http.get("/agent/run"),
        413: await server.http.post("/agent/run", json=big),
        415: await server.http.post("/agent/run", content=b"{}", headers={"content-type": "text/plain"}),
        400: await server.http.post("/agent/tool_results", json={"agent_uuid": "t"}),
        404: await server.http.post("/agent/tool_results", json={"agent_uuid": "t", "tool_results": []}),
    }
    for status, response in answers.items():
        assert response.status_code == status
        assert response.headers["content-type"] == "application/json"
        error = response.json()["error"]
        assert set(error) == {"code", "message"}
        assert "Error" not in error["message"]
    assert (await server.http.post("/agent/tool_results", json=big)).status_code == 413


@requirement("awaiting:early-errors")
async def test_more_entries_than_a_step_can_have_calls_are_refused(serve: Serve) -> None:
    server = await serve(agent_with([[CONFIRM], "Thanks."]))
    page = Page(server.http)
    turn = await page.run("hi")
    many: list[dict[str, object]] = [
        {"tool_use_id": f"call_{number:032x}", "content": "x"} for number in range(33)
    ]
    assert (await page.answer(*many)).status == 400
    assert (await page.answer({"tool_use_id": "call <script>", "content": "x"})).status == 400
    assert (await page.answer(result(turn.pause[0], "yes"))).text == "Thanks."


async def _status(server: Served, page: Page, route: str) -> int:
    match route:
        case "run":
            return (await page.run("hi")).status
        case "stream":
            return (await page.stream()).status
        case "answer":
            return (await page.answer()).status
        case _:
            return (await server.http.post(f"/agent/{page.agent_uuid}/abort")).status_code


def _hostile(good: str) -> list[bytes]:
    return [
        *(b"", b" ", b"null", b"[]", b'"x"', b"7", b"{", b'{"user_prompt":'),
        b'{"user_prompt":NaN,"agent_uuid":"t","tool_results":NaN}',
        good.replace("{", '{"agent_uuid":"t",', 1).encode(),
        good.replace("{", '{"deep":' + "[" * 65 + "]" * 65 + ",", 1).encode(),
        good.replace("{", '{"deep":' + "[" * 100_000 + ",", 1).encode(),
        good.replace("{", '{"wide":[' + "0," * 100_000 + "0],", 1).encode(),
        good.replace("{", '{"long":' + "9" * 65 + ",", 1).encode(),
        good.replace("{", '{"half":"\\ud83d",', 1).encode(),
        good.replace("{", '{"large":1e999,', 1).encode(),
        good.encode("utf-16"),
        b"\xef\xbb\xbf" + good.encode(),
        good.encode().replace(b'"x"', b'"\xff"') + b"\xff",
        b'{"user_prompt":' + b"x" * 5_000_000,
    ]
