"""A tool that asks, on the wires: its question is in every stream and in the inbox, and not for the model."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest

from farhand import Agent, Principal, ScriptedModel, ask, current, tool
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.conftest import Serve
from tests.requirement import requirement

CHAT = {"id": "t1", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]}


@tool(executor="frontend", card="confirm")
def user_confirm(message: str) -> str:
    """Ask the user.

    Args:
        message: What.

    Returns:
        yes or no.
    """
    raise AssertionError("a frontend tool never runs here")


@tool
async def clean_up() -> str:
    """Delete old files once the user has confirmed."""
    return f"told {await ask('user_confirm', {'message': 'Delete 14 files?'})}"


@tool(needs_approval=True)
def list_orders() -> str:
    """List the orders of whoever asks."""
    context = current()
    assert context.approval is not None
    return f"orders of {context.claims['name']}, allowed by {context.approval.claims['name']}"


def _agent() -> Agent:
    def script(moment: Moment) -> Step:
        if moment.results:
            return str([each.output for each in moment.results])
        return Ask("list_orders" if "orders" in moment.text else "clean_up")

    return Agent(ScriptedModel(script), tools=[clean_up, list_orders], frontend_tools=[user_confirm])


async def _waiting(http: httpx2.AsyncClient) -> dict[str, str]:
    while True:
        calls = (await http.get("/api/inbox")).json()["calls"]
        if calls:
            return dict(calls[0])
        await asyncio.sleep(0.01)


async def _say_yes(http: httpx2.AsyncClient) -> dict[str, str]:
    call = await _waiting(http)
    sent = {"toolCallId": call["callId"], "status": "success", "output": "yes"}
    assert (await http.post("/api/tools/ack", json=sent)).json() == {"ok": True}
    return call


WIRES = [("/api/chat", CHAT), ("/agent/run", {"user_prompt": "hi"})]


@pytest.mark.parametrize(("path", "body"), WIRES, ids=["ui_stream", "awaiting"])
@requirement("hands:question-on-the-wire")
async def test_a_question_that_is_answered_from_the_inbox_lets_the_stream_go_on(
    serve: Serve, store: str, path: str, body: dict[str, object]
) -> None:
    server = await serve(_agent(), store=store)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        answered = group.create_task(_say_yes(server.http))
        response = await server.http.post(path, json=body)
    assert (answered.result()["tool"], answered.result()["card"]) == ("user_confirm", "confirm")
    assert "told yes" in response.text
    assert "error" not in response.text


@requirement("hands:question-on-the-wire")
async def test_the_question_is_in_the_stream_and_not_in_the_record(serve: Serve, store: str) -> None:
    server = await serve(_agent(), store=store)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(_say_yes(server.http))
        response = await server.http.post("/api/chat", json=CHAT)
    frames = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    shown = [frame for frame in frames if frame["type"] == "tool-input-available"]
    assert [frame["toolName"] for frame in shown] == ["clean_up", "user_confirm"]
    record = (await server.http.get("/api/chat/t1")).json()
    tools = [part["type"] for part in record["messages"][1]["parts"] if part["type"].startswith("tool-")]
    assert tools == ["tool-clean_up"]


@requirement("hands:who-asks")
async def test_two_people_share_a_space_and_a_tool_tells_them_apart(serve: Serve, store: str) -> None:
    def who(request: object) -> Principal:
        name = request.headers["x-name"]  # type: ignore[attr-defined]
        return Principal("acme", "orders", claims={"name": name})

    server = await serve(_agent(), store=store, authenticate=who)
    asked = {**CHAT, "messages": [{**CHAT["messages"][0], "parts": [{"type": "text", "text": "orders"}]}]}  # type: ignore[dict-item]

    async def allow() -> None:
        async with httpx2.AsyncClient(base_url=server.url, headers={"x-name": "mia"}) as manager:
            call = await _waiting(manager)
            sent = {"approvalId": call["approvalId"], "approved": True}
            assert (await manager.post("/api/tools/approve", json=sent)).json() == {"ok": True}

    ann = {"x-name": "ann"}
    await server.http.post("/api/chat", json=asked, headers=ann)
    await allow()
    async with asyncio.timeout(20):
        # the record is all that tells
        while (record := (await server.http.get("/api/chat/t1", headers=ann)).json())["state"] != "done":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert "orders of ann, allowed by mia" in str(record["messages"])


@pytest.mark.parametrize("claims", [{"when": object()}, {"text": "x" * 5000}, ["a"]])
@requirement("hands:who-asks")
async def test_claims_that_cannot_be_kept_let_nobody_in(serve: Serve, claims: object) -> None:
    server = await serve(_agent(), authenticate=lambda _: Principal("acme", "ann", claims=claims))  # type: ignore[arg-type]
    assert (await server.http.get("/api/inbox")).status_code == 503
