"""A tool that asks, on every wire: its question is in every stream and in the inbox, but not sent to the
model.

With a database there are two workers: the tool asks at one, and the answer arrives at the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx2
import pytest

from farhand import Agent, Principal, ScriptedModel, ask, current, tool
from farhand.core.outcome import Cancelled
from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.agui import page as agui
from tests.faces.awaiting.client import Page as Pausing
from tests.faces.awaiting.client import result
from tests.faces.client_tools.program import Program, ready
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.page import Page, until, user_message
from tests.faces.ui_stream.websocket_client import Held, Shared, wire
from tests.postgres import Cluster
from tests.requirement import requirement

ServeTwo = Callable[[Agent], Awaitable[tuple[Served, Served]]]

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


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def serve_two(request: pytest.FixtureRequest, serve: Serve, file_store: str) -> ServeTwo:
    """Where the tool asks, and where it is answered: two workers if they can share the store, else one."""
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("cluster")
        address = cluster.address()
    else:
        address = "memory:" if request.param == "memory" else file_store

    async def start(agent: Agent) -> tuple[Served, Served]:
        one = await serve(agent, store=address)
        return one, await serve(agent, store=address) if request.param == "postgres" else one

    return start


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
async def test_a_page_of_the_ai_sdk_answers_each_question_with_its_next_post(serve_two: ServeTwo) -> None:
    one, other = await serve_two(_agent())
    page = Page(one.http)
    first = await page.say("twice")
    assert first.finish == "tool-calls"
    asked = first.of("tool-input-available")
    assert [chunk["toolName"] for chunk in asked] == ["ask_twice", "user_confirm"]
    page.output(asked[1]["toolCallId"], "one")
    page.http = other.http
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
async def test_a_held_chat_continues_in_the_same_response(serve_two: ServeTwo) -> None:
    one, other = await serve_two(_agent())
    page = Page(one.http, wait="hold")
    async with page.saying("go") as live:
        asked = await live.until("tool-input-available")
        while asked["toolName"] != "user_confirm":
            asked = await live.until("tool-input-available")
        await _ack(other.http, asked["toolCallId"])
        turn = await live.rest()
    assert (turn.finish, turn.text) == ("stop", "['told yes']")


@requirement("hands:question-on-the-wire")
async def test_a_pause_names_the_question_and_is_answered_like_any_other(serve_two: ServeTwo) -> None:
    one, other = await serve_two(_agent())
    page = Pausing(one.http)
    first = await page.run("twice")
    assert [entry["name"] for entry in first.pause] == ["user_confirm"]
    page.http = other.http
    second = await page.answer(result(first.pause[0], "one"))
    assert [entry["input"] for entry in second.pause] == [{"message": "second?"}]
    last = await page.answer(result(second.pause[0], "two"))
    assert last.text == "['one and two']"


@requirement("hands:question-on-the-wire")
async def test_an_interrupt_of_ag_ui_names_the_question_and_is_answered_by_a_resume(
    serve_two: ServeTwo,
) -> None:
    one, other = await serve_two(_agent())
    page = agui.Page(one.http)
    run, answers = await page.send("twice"), ["one", "two"]
    page.http = other.http
    for question in ("first?", "second?"):
        [asked] = run.interrupts
        assert (asked["reason"], asked["message"]) == ("input_required", question)
        answer = {"interruptId": asked["id"], "status": "resolved", "payload": answers.pop(0)}
        run = await page.resume(answer)
    assert run.text == "['one and two']"


@requirement("hands:question-on-the-wire")
async def test_the_held_socket_answers_a_question(serve_two: ServeTwo) -> None:
    one, other = await serve_two(_agent())
    async with wire(one, "/api/chat/live") as there, wire(other, "/api/chat/live") as here:
        held = Held(there, Page(one.http))
        await held.message("go")
        asked = (await held.turn()).of("tool-input-available")[-1]
        held.page.output(asked["toolCallId"], "yes")
        held.socket = here
        await held.message()
        assert (await held.turn()).text == "['told yes']"


@requirement("hands:question-on-the-wire")
async def test_the_shared_socket_answers_a_question(serve_two: ServeTwo) -> None:
    one, other = await serve_two(_agent())
    async with wire(one, "/api/chat/ws") as there, wire(other, "/api/chat/ws") as here:
        asking, answering, page = Shared(there), Shared(here), Page(one.http)
        page.messages.append(user_message("go"))
        turn = await asking.turn(await asking.send(page), page)
        page.output(turn.of("tool-input-available")[-1]["toolCallId"], "yes")
        assert (await answering.turn(await answering.send(page), page)).text == "['told yes']"


@requirement("hands:question-on-the-wire")
async def test_a_registered_program_answers_a_question_and_the_response_waits_for_it(
    serve_two: ServeTwo,
) -> None:
    one, other = await serve_two(_agent())
    program = Program(other.http)
    async with ready(program, "lookup") as hand, asyncio.TaskGroup() as group:
        turn = group.create_task(Page(one.http).say("lookup"))
        request = await hand.answer(status="success", output="found")
        assert request["input"] == {"text": "order 7"}
    assert (turn.result().finish, turn.result().text) == ("stop", "['found']")


@requirement("hands:question-on-the-wire")
async def test_an_answer_from_the_inbox_lets_a_chat_continue_that_was_paused(serve_two: ServeTwo) -> None:
    one, other = await serve_two(_agent())
    page = Page(one.http)
    assert (await page.say("go")).finish == "tool-calls"
    page.http = other.http
    record = (await other.http.get(f"/api/chat/{page.id}")).json()
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
    call = await _say_yes(other.http)
    assert (call["tool"], call["card"]) == ("user_confirm", "confirm")
    async with asyncio.timeout(20):
        # the record is all that tells
        while (record := (await other.http.get(f"/api/chat/{page.id}")).json())["state"] != "done":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert "told yes" in str(record["messages"])
    tools = [part["type"] for part in record["messages"][1]["parts"] if part["type"].startswith("tool-")]
    assert tools == ["tool-clean_up"], "a question is in the stream and not in the record"


@requirement("hands:question-gives-way")
async def test_a_new_message_while_a_tool_asks_cancels_the_tool_and_its_question(serve_two: ServeTwo) -> None:
    one, other = await serve_two(_agent())
    GONE.clear()
    page = Page(one.http)
    first = await page.say("go")
    tool_id, question_id = (chunk["toolCallId"] for chunk in first.of("tool-input-available"))
    page.http = other.http
    assert (await page.say("never mind")).text == "You said: never mind"
    late = {"toolCallId": question_id, "status": "success", "output": "yes"}
    assert (await one.http.post("/api/tools/ack", json=late)).json()["reason"] == "cancelled"
    calls = [await other.service.log.get_call(LOCAL, each) for each in (tool_id, question_id)]
    assert [call and call.outcome for call in calls] == [Cancelled("the user moved on")] * 2
    await until(lambda: GONE == ["clean_up was cancelled"])


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
