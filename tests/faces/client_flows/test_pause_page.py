"""The page that pauses: it streams to a pause, asks the person, posts all results and streams on."""

from __future__ import annotations

from typing import Any

import pytest

from farhand.agent.agent import Agent
from farhand.core.thread import ResultsMessage, ToolResultPart
from farhand.models.scripted import Ask, Fail, Moment, Say, ScriptedModel, Step, Think
from farhand.tools.decorate import tool
from tests.faces.client_flows.pause_page import PausePage, nodes_of_messages
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.header_auth import check, person
from tests.requirement import requirement

# Any: bodies of a wire
Json = Any
BOTH = pytest.mark.parametrize("query", ["?format=xml", "?format=raw"])
PATTERN = r'Search C:\new for "\d+"' + "\nand <b>more</b>"


@tool(executor="frontend")
def user_confirm(message: str) -> str:
    """Ask the user for a yes/no confirmation in the browser.

    Args:
        message: The prompt to show the user.

    Returns:
        "yes" or "no"
    """
    raise AssertionError(f"never executed here: {message}")


@tool(executor="frontend")
def pick_color() -> dict[str, object]:
    """Prompt the user to pick a color.

    Returns:
        JSON string: {"hex": "#RRGGBB"}
    """
    raise AssertionError("never executed here")


@tool
def add(a: int, b: int) -> str:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return f"{a} + {b} = {a + b}"


def agent_of(script: object) -> tuple[Agent, ScriptedModel]:
    # a list of steps or a function of the moment, as the model takes them
    model = ScriptedModel(script)  # type: ignore[arg-type]
    return Agent(model, tools=[add], frontend_tools=[user_confirm, pick_color]), model


def results_seen(model: ScriptedModel) -> tuple[ToolResultPart, ...]:
    last = model.prompts[-1].messages[-1]
    assert isinstance(last, ResultsMessage)
    return last.results


def yes(input: Json) -> str:
    return "yes"


# ------------------------------------------------------------------------------------------- pause and resume


@requirement("awaiting:first-page")
@BOTH
async def test_server_tools_run_first_and_the_page_shows_their_results_at_the_pause(
    serve: Serve, store: str, query: str
) -> None:
    first: Step = [
        Think("hm"),
        Say(PATTERN),
        Ask("add", {"a": 15, "b": 27}),
        Ask("user_confirm", {"message": PATTERN}),
    ]
    agent, model = agent_of([first, "Done."])
    served = await serve(agent, store=store)
    page = PausePage(served.http, {"user_confirm": yes})
    await page.run("Calculate, then ask me", query=query)
    assert page.status == "awaiting_tools"
    assert page.pending == [
        {"tool_use_id": page.pending[0]["tool_use_id"], "name": "user_confirm", "input": {"message": PATTERN}}
    ]
    assert (page.of("thinking"), page.text) == (["hm"], PATTERN)
    assert page.of("tool_result") == ["15 + 27 = 42"]
    await page.answer(query=query)
    assert (page.status, page.of("tool_result")) == ("complete", ["15 + 27 = 42", "yes"])
    assert page.text == f"{PATTERN}Done."
    # all results of the step, in the order of its calls
    assert [each.tool for each in results_seen(model)] == ["add", "user_confirm"]


@requirement("awaiting:first-page")
@BOTH
async def test_a_conversation_may_pause_twice_and_json_strings_are_read(serve: Serve, query: str) -> None:
    agent, model = agent_of(
        [[Ask("pick_color", {})], [Ask("user_confirm", {"message": "Sure?"})], "Painted."]
    )
    served = await serve(agent)
    page = PausePage(served.http, {"pick_color": lambda _: '{"hex":"#336699"}', "user_confirm": yes})
    await page.run("Paint", query=query)
    assert [each["name"] for each in page.pending] == ["pick_color"]
    await page.answer(query=query)
    # a tool that does not return text gets the value, not the string
    assert getattr(results_seen(model)[0].outcome, "output", None) == {"hex": "#336699"}
    assert [each["name"] for each in page.pending] == ["user_confirm"]
    await page.answer(query=query)
    assert (page.status, page.text) == ("complete", "Painted.")


@requirement("awaiting:first-page")
@BOTH
async def test_a_page_without_a_handler_answers_with_an_error_and_the_model_continues(
    serve: Serve, query: str
) -> None:
    agent, model = agent_of([[Ask("user_confirm", {"message": "Sure?"})], "Never mind."])
    served = await serve(agent)
    page = PausePage(served.http, {})
    await page.run("Ask me", query=query)
    await page.answer(query=query)
    assert page.text == "Never mind."
    assert getattr(results_seen(model)[0].outcome, "error", "") == "Unknown frontend tool: user_confirm"


@requirement("awaiting:first-page")
async def test_results_must_be_those_of_the_pause_and_are_taken_once(serve: Serve) -> None:
    both: Step = [Ask("user_confirm", {"message": "One?"}), Ask("pick_color", {})]
    agent, model = agent_of([both, "Done."])
    served = await serve(agent)
    page = PausePage(served.http, {"user_confirm": yes, "pick_color": lambda _: "{}"})
    await page.run("Both")
    pause = page.pending
    page.pending = pause[:1]
    await page.answer()
    # a status of its own before the stream opens: the first server raised a ValueError
    assert page.status == "HTTP 409"
    page.pending = pause
    await page.answer()
    assert page.text == "Done."
    page.pending = pause
    await page.answer()
    assert (page.status, len(model.prompts)) == ("HTTP 409", 2)


@requirement("awaiting:first-page")
@BOTH
async def test_an_error_of_the_run_is_shown_and_the_page_continues(serve: Serve, query: str) -> None:
    agent, _ = agent_of([[Fail("The provider is down.")], "Better."])
    served = await serve(agent)
    page = PausePage(served.http, {})
    await page.run("hi", query=query)
    assert page.status == "complete"
    assert page.of("error") == ["The model failed. Try again later. The server's log has the details."]
    await page.run("again", query=query)
    assert page.text == "Better."


# ------------------------------------------------------------------------------------------------- the reload


async def sessions(served: Served, query: str = "") -> Json:
    return (await served.http.get(f"/agent/sessions{query}")).json()


async def conversations(served: Served, agent_uuid: str | None, query: str = "") -> Json:
    return (await served.http.get(f"/agent/{agent_uuid}/conversations{query}")).json()


@BOTH
async def test_a_reloaded_page_finds_its_session_and_shows_what_it_showed(
    serve: Serve, store: str, query: str
) -> None:
    steps: list[Step] = [
        [Think("hm"), "I ask. ", Ask("add", {"a": 1, "b": 2}), Ask("user_confirm", {"message": "Sure?"})],
        "You said yes.",
        "Again.",
    ]
    agent, _ = agent_of(steps)
    served = await serve(agent, store=store)
    page = PausePage(served.http, {"user_confirm": yes})
    await page.run("Clean up", query=query)
    await page.answer(query=query)
    before = sorted(map(repr, page.nodes))
    await page.run("And again", query=query)

    listed = await sessions(served, "?limit=50&offset=0&agent_type=agent_frontend_tools")
    assert listed["total"] == 1
    [row] = listed["sessions"]
    assert (row["agent_uuid"], row["title"], row["total_runs"]) == (page.agent_uuid, "Clean up", 2)
    assert row["created_at"] <= row["updated_at"]
    assert row["updated_at"].endswith("Z")

    history = await conversations(served, page.agent_uuid, "?limit=20&agent_type=agent_frontend_tools")
    assert (history["has_more"], history["title"]) == (False, "Clean up")
    second, first = history["conversations"]
    assert (first["sequence_number"], second["sequence_number"]) == (1, 2)
    assert (first["user_message"], first["final_response"]) == ("Clean up", "You said yes.")
    assert (first["stop_reason"], first["total_steps"]) == ("end_turn", 2)
    assert first["started_at"] <= first["completed_at"] <= second["started_at"]
    assert first["run_id"] != second["run_id"]
    assert first["messages"][0] == {"role": "user", "content": [{"type": "text", "text": "Clean up"}]}
    assert sorted(map(repr, nodes_of_messages(first["messages"]))) == before
    assert second["final_response"] == "Again."


async def test_a_page_reloaded_at_a_pause_finds_what_is_pending_and_answers_it(
    serve: Serve, file_store: str
) -> None:
    def script(moment: Moment) -> Step:
        return (
            f"You said {moment.last[0].output}." if moment.last else Ask("user_confirm", {"message": "Sure?"})
        )

    agent, _ = agent_of(script)
    served = await serve(agent, store=file_store)
    before = PausePage(served.http, {})
    await before.run("Clean up")
    await served.stop()

    served = await serve(agent_of(script)[0], store=file_store)
    [row] = (await sessions(served))["sessions"]
    [paused] = (await conversations(served, row["agent_uuid"]))["conversations"]
    assert (paused["stop_reason"], paused["final_response"]) == ("awaiting_frontend_tools", None)
    assert paused["completed_at"] is None
    assert paused["pending_frontend_tools"] == before.pending
    page = PausePage(served.http, {"user_confirm": yes})
    page.agent_uuid, page.pending = row["agent_uuid"], paused["pending_frontend_tools"]
    await page.answer()
    assert page.text == "You said yes."
    [done] = (await conversations(served, row["agent_uuid"]))["conversations"]
    assert (done["stop_reason"], done["pending_frontend_tools"]) == ("end_turn", [])


async def test_long_histories_come_in_pages_from_the_newest_on(serve: Serve) -> None:
    agent, _ = agent_of(lambda moment: f"Heard {moment.text}.")
    served = await serve(agent)
    page = PausePage(served.http, {})
    for number in range(1, 6):
        await page.run(f"m{number}")
    newest = await conversations(served, page.agent_uuid, "?limit=2")
    assert [each["sequence_number"] for each in newest["conversations"]] == [5, 4]
    assert newest["has_more"] is True
    older = await conversations(served, page.agent_uuid, "?limit=3&before=4")
    assert [each["user_message"] for each in older["conversations"]] == ["m3", "m2", "m1"]
    assert older["has_more"] is False
    for _ in range(2):
        await PausePage(served.http, {}).run("elsewhere")
    pages = [await sessions(served, f"?limit=2&offset={offset}") for offset in (0, 2, 4)]
    assert [len(each["sessions"]) for each in pages] == [2, 1, 0]
    assert {each["total"] for each in pages} == {3}
    assert pages[1]["sessions"][0]["agent_uuid"] == page.agent_uuid


async def test_a_failed_and_a_stopped_run_are_told_apart(serve: Serve) -> None:
    agent, _ = agent_of([Fail("down"), [Ask("user_confirm", {"message": "?"})]])
    served = await serve(agent)
    page = PausePage(served.http, {})
    await page.run("one")
    await page.run("two")
    await served.http.post(f"/agent/{page.agent_uuid}/abort")
    stopped, failed = (await conversations(served, page.agent_uuid))["conversations"]
    assert (failed["stop_reason"], failed["final_response"], failed["run_id"]) == (None, None, None)
    assert (stopped["stop_reason"], stopped["pending_frontend_tools"]) == ("aborted", [])
    [result] = stopped["messages"][-1]["content"]
    assert (result["type"], result["is_error"]) == ("tool_result", True)


async def test_nobody_else_sees_a_session_or_its_conversations(serve: Serve) -> None:
    agent, _ = agent_of(lambda moment: "Hello.")
    served = await serve(agent, authenticate=check)
    async with person(served, "ada") as ada, person(served, "bob") as bob:
        page = PausePage(ada, {})
        await page.run("hi")
        assert (await bob.get("/agent/sessions")).json() == {"sessions": [], "total": 0}
        foreign = await bob.get(f"/agent/{page.agent_uuid}/conversations")
        unknown = await bob.get("/agent/never/conversations")
        assert (foreign.status_code, foreign.content) == (404, unknown.content)
        assert (await served.stranger.get("/agent/sessions")).status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "/agent/sessions?limit=0",
        "/agent/sessions?limit=101",
        "/agent/sessions?offset=-1",
        "/agent/sessions?offset=10001",
        "/agent/sessions?limit=ten",
        "/agent/never/conversations?limit=101",
        "/agent/never/conversations?before=0",
        "/agent/never/conversations?before=x",
    ],
)
async def test_a_page_that_cannot_be_is_refused(serve: Serve, path: str) -> None:
    served = await serve(agent_of(["Hello."])[0])
    response = await served.http.get(path)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid")
    assert "must be a number from" in response.json()["error"]["message"]
