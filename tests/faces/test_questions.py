"""A tool that asks, on the wires: its question is in every stream and in the inbox, and not for the model."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from farhand import Agent, Principal, ScriptedModel, ask, current, tool
from farhand.core.outcome import Cancelled
from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.awaiting.client import Page as Pausing
from tests.faces.awaiting.client import result
from tests.faces.client_tools.program import Program, ready
from tests.faces.conftest import Serve
from tests.faces.ui_stream.page import Page, user_message
from tests.faces.ui_stream.wires import Held, Shared, wire
from tests.requirement import requirement

GONE: list[str] = []
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
    try:
        return f"told {await ask('user_confirm', {'message': 'Delete 14 files?'})}"
    except asyncio.CancelledError:
        GONE.append("clean_up was cancelled")
        raise


@tool
async def ask_twice() -> str:
    """Ask two questions."""
    first = await ask("user_confirm", {"message": "first?"})
    return f"{first} and {await ask('user_confirm', {'message': 'second?'})}"


@tool
async def ask_program() -> str:
    """Ask a program that is registered."""
    return str(await ask("client_notes_lookup", {"text": "order 7"}))


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
        said = {"orders": "list_orders", "twice": "ask_twice", "lookup": "ask_program", "go": "clean_up"}
        return Ask(said[moment.text]) if moment.text in said else f"You said: {moment.text}"

    tools = [clean_up, list_orders, ask_twice, ask_program]
    return Agent(ScriptedModel(script), tools=tools, frontend_tools=[user_confirm])


async def _waiting(http: httpx2.AsyncClient) -> dict[str, str]:
    while True:
        calls = (await http.get("/api/inbox")).json()["calls"]
        if calls:
            return dict(calls[0])
        await asyncio.sleep(0.01)


async def _ack(http: httpx2.AsyncClient, call_id: str) -> None:
    sent = {"toolCallId": call_id, "status": "success", "output": "yes"}
    assert (await http.post("/api/tools/ack", json=sent)).json() == {"ok": True}


async def _say_yes(http: httpx2.AsyncClient) -> dict[str, str]:
    call = await _waiting(http)
    await _ack(http, call["callId"])
    return call


@requirement("hands:question-on-the-wire")
async def test_a_page_of_the_ai_sdk_answers_each_question_with_its_next_post(
    serve: Serve, store: str
) -> None:
    page = Page((await serve(_agent(), store=store)).http)
    first = await page.say("twice")
    assert first.finish == "tool-calls"
    asked = first.of("tool-input-available")
    assert [chunk["toolName"] for chunk in asked] == ["ask_twice", "user_confirm"]
    page.output(asked[1]["toolCallId"], "one")
    second = await page.send()
    assert second.finish == "tool-calls"
    [again] = second.of("tool-input-available")
    assert again["input"] == {"message": "second?"}, "what was answered is not executed again"
    page.output(again["toolCallId"], "two")
    last = await page.send()
    assert (last.finish, last.text) == ("stop", "['one and two']")
    assert last.of("tool-input-available") == []
    outputs = {chunk["toolCallId"]: chunk["output"] for chunk in last.of("tool-output-available")}
    assert outputs[asked[0]["toolCallId"]] == "one and two"


@requirement("hands:question-on-the-wire")
async def test_a_held_chat_goes_on_in_the_same_response(serve: Serve, store: str) -> None:
    server = await serve(_agent(), store=store)
    page = Page(server.http, wait="hold")
    async with page.saying("go") as live:
        asked = await live.until("tool-input-available")
        while asked["toolName"] != "user_confirm":
            asked = await live.until("tool-input-available")
        await _ack(server.http, asked["toolCallId"])
        turn = await live.rest()
    assert (turn.finish, turn.text) == ("stop", "['told yes']")


@requirement("hands:question-on-the-wire")
async def test_a_pause_names_the_question_and_is_answered_like_any_other(serve: Serve, store: str) -> None:
    page = Pausing((await serve(_agent(), store=store)).http)
    first = await page.run("twice")
    assert [entry["name"] for entry in first.pause] == ["user_confirm"]
    second = await page.answer(result(first.pause[0], "one"))
    assert [entry["input"] for entry in second.pause] == [{"message": "second?"}]
    last = await page.answer(result(second.pause[0], "two"))
    assert last.text == "['one and two']"


@requirement("hands:question-on-the-wire")
async def test_both_sockets_answer_a_question(serve: Serve, store: str) -> None:
    server = await serve(_agent(), store=store)
    async with wire(server, "/api/chat/live") as socket:
        held = Held(socket, Page(server.http))
        await held.message("go")
        asked = (await held.turn()).of("tool-input-available")[-1]
        held.page.output(asked["toolCallId"], "yes")
        await held.message()
        assert (await held.turn()).text == "['told yes']"
    async with wire(server, "/api/chat/ws") as socket:
        shared, page = Shared(socket), Page(server.http)
        page.messages.append(user_message("go"))
        turn = await shared.turn(await shared.send(page), page)
        page.output(turn.of("tool-input-available")[-1]["toolCallId"], "yes")
        assert (await shared.turn(await shared.send(page), page)).text == "['told yes']"


@requirement("hands:question-on-the-wire")
async def test_a_registered_program_answers_a_question_and_the_response_waits_for_it(serve: Serve) -> None:
    server = await serve(_agent())
    program = Program(server.http)
    async with ready(program, "lookup") as hand, asyncio.TaskGroup() as group:
        turn = group.create_task(Page(server.http).say("lookup"))
        request = await hand.answer(status="success", output="found")
        assert request["input"] == {"text": "order 7"}
    assert (turn.result().finish, turn.result().text) == ("stop", "['found']")


@requirement("hands:question-on-the-wire")
async def test_an_answer_from_the_inbox_lets_a_chat_go_on_that_was_paused(serve: Serve, store: str) -> None:
    server = await serve(_agent(), store=store)
    page = Page(server.http)
    assert (await page.say("go")).finish == "tool-calls"
    record = (await server.http.get(f"/api/chat/{page.id}")).json()
    assert (record["state"], [call["tool"] for call in record["openCalls"]]) == (
        "waiting",
        ["clean_up", "user_confirm"],
    )
    again = await page.resume()
    assert again.finish == "tool-calls", "a page that was reloaded gets the card again"
    assert [part["type"] for part in page.messages[-1]["parts"] if "toolCallId" in part] == [
        "tool-clean_up",
        "tool-user_confirm",
    ]
    call = await _say_yes(server.http)
    assert (call["tool"], call["card"]) == ("user_confirm", "confirm")
    async with asyncio.timeout(20):
        # the record is all that tells
        while (record := (await server.http.get(f"/api/chat/{page.id}")).json())["state"] != "done":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert "told yes" in str(record["messages"])
    tools = [part["type"] for part in record["messages"][1]["parts"] if part["type"].startswith("tool-")]
    assert tools == ["tool-clean_up"], "a question is in the stream and not in the record"


@requirement("hands:question-gives-way")
async def test_a_new_message_while_a_tool_asks_cancels_the_tool_and_its_question(
    serve: Serve, store: str
) -> None:
    server = await serve(_agent(), store=store)
    page = Page(server.http)
    first = await page.say("go")
    tool_id, question_id = (chunk["toolCallId"] for chunk in first.of("tool-input-available"))
    assert (await page.say("never mind")).text == "You said: never mind"
    late = {"toolCallId": question_id, "status": "success", "output": "yes"}
    assert (await server.http.post("/api/tools/ack", json=late)).json()["reason"] == "cancelled"
    calls = [await server.service.context.log.get_call(LOCAL, each) for each in (tool_id, question_id)]
    assert [call and call.outcome for call in calls] == [Cancelled("the user moved on")] * 2
    assert "clean_up was cancelled" in GONE


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
