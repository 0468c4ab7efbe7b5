"""Google ADK with far hands."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Content, FunctionResponse, Part
from pydantic import BaseModel

from farhand import Principal, current
from farhand.bridges.google_adk import approved, farhand_tools, hands_responses
from farhand.errors import BadTool, Misuse
from tests.frameworks.google_adk.loop import APP, USER, AdkLoop, Scripted
from tests.frameworks.laws import HoldLaws, ParkLaws, RepeatedIdLaws
from tests.frameworks.loop import CHARGE, PAY, Ask, note_charges
from tests.frameworks.stage import Stage
from tests.requirement import requirement

# it says so itself, once for each process
pytestmark = pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning")


class TestHold(HoldLaws):
    loop_class = AdkLoop


class TestPark(ParkLaws):
    loop_class = AdkLoop


class TestRepeatedIds(RepeatedIdLaws):
    loop_class = AdkLoop


@requirement("bridges:tools")
async def test_the_model_is_offered_every_tool_with_schema_and_description(stage: Stage) -> None:
    async with AdkLoop(stage.hands, stage.effects.parent, []) as loop:
        assert await loop.run() == ""
        declared = loop.model.declared
    assert [each.name for each in declared] == ["pay", "open_url", "ask_quickly"]
    assert declared[0].description == "Pay an invoice."
    assert (declared[0].parameters_json_schema or {})["properties"]["amount"]["description"] == "In euros."


async def test_hold_for_in_an_app_that_is_not_resumable_is_refused_before_the_model_is_asked(
    stage: Stage,
) -> None:
    """The test below shows why."""
    model = Scripted(steps=[[PAY]])
    agent = LlmAgent(name="clerk", model=model, tools=[*farhand_tools(stage.hands, hold_for=0.05)])
    with pytest.raises(Misuse, match="`hold_for` needs a resumable app"):
        await InMemoryRunner(agent, app_name=APP).run_debug("Pay", quiet=True)
    assert model.declared == []


async def test_adk_alone_asks_the_model_before_all_answers_are_there_where_it_is_not_resumable() -> None:
    model = Scripted(steps=[[Ask("start_charge", {"amount": 3}, "call_0"), Ask("look_up", {}, "call_1")]])
    agent = LlmAgent(name="clerk", model=model, tools=[LongRunningFunctionTool(start_charge), look_up])
    await InMemoryRunner(agent, app_name=APP).run_debug("Charge", quiet=True)
    assert model.asked > 1


@pytest.mark.parametrize("output", [None, "", 0, False, [], {}], ids=repr)
async def test_an_empty_output_is_an_answer_too(stage: Stage, output: object) -> None:
    parking = AdkLoop(stage.hands, stage.effects.parent, [[Ask("anything", {}, "call_0")]], hold_for=30.0)
    stage.hands.spec.toolbox.add("anything", "Anything.", {"type": "object"}, executor="frontend")
    async with parking as loop, asyncio.TaskGroup() as group:
        run = group.create_task(loop.run())
        [call] = await stage.open_calls()
        await stage.answer(call, output)
    assert run.result() == (output if isinstance(output, str) else json.dumps(output))


async def test_an_invocation_that_was_paused_is_resumed_after_another_one(stage: Stage) -> None:
    async with AdkLoop(stage.hands, stage.effects.parent, [[PAY]], hold_for=0.05) as loop:
        assert await loop.run() is None
        loop.model.steps = []
        assert await loop.say("Are you there?") is not None
        loop.model.steps = [[PAY]]
        await stage.approve_next()
        assert await loop.resume() == "paid 3"
        assert await hands_responses(stage.hands, await loop.session()) is None


async def test_the_long_running_tools_of_others_are_left_to_them(stage: Stage) -> None:
    steps = [[PAY, Ask("start_charge", {"amount": 3}, "call_1")]]
    parking = AdkLoop(stage.hands, stage.effects.parent, steps, hold_for=0.05)
    parking.tools = [*farhand_tools(stage.hands, hold_for=0.05), LongRunningFunctionTool(start_charge)]
    async with parking as loop:
        assert await loop.run() is None
        await stage.approve_next()
        message = await hands_responses(stage.hands, await loop.session())
    assert message is not None
    assert [part.function_response.name for part in message.parts or [] if part.function_response] == ["pay"]


async def test_a_call_that_was_not_opened_before_a_crash_is_opened_by_the_one_who_resumes(
    stage: Stage, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    async with (
        Stage("memory:", folder) as lost,
        AdkLoop(lost.hands, stage.effects.parent, [[PAY]], hold_for=0.05) as loop,
    ):
        assert await loop.run() is None
    # these hands have never heard of the call, as if the process had died just before
    async with AdkLoop(stage.hands, stage.effects.parent, [[PAY]], hold_for=0.05) as loop:
        async with asyncio.TaskGroup() as group:
            resumed = group.create_task(loop.resume())
            await stage.approve_next()
        assert resumed.result() == "paid 3"
    assert stage.paid == ["paid 3"]


async def test_the_owner_is_that_of_the_session(stage: Stage) -> None:
    holding = AdkLoop(stage.hands, stage.effects.parent, [[PAY]])
    holding.tools = farhand_tools(stage.hands, owner=lambda session: Principal("acme", session.user_id))
    async with holding as loop, asyncio.TaskGroup() as group:
        run = group.create_task(loop.run())
        [call] = await stage.open_calls(owner=Principal("acme", USER).owner)
        await stage.approve(call)
    assert run.result() == "paid 3"


class File(BaseModel):
    path: str
    force: bool = False


@requirement("bridges:approved")
async def test_an_own_tool_gets_its_own_types_and_knows_for_whom_it_works(stage: Stage) -> None:
    deleted: list[tuple[File, str]] = []

    def delete_file(file: File) -> str:
        deleted.append((file, current().thread_id))
        return f"deleted {file.path}"

    steps = [[Ask("delete_file", {"file": {"path": "a"}}, "call_0")]]
    holding = AdkLoop(stage.hands, stage.effects.parent, steps)
    holding.tools = [approved(stage.hands, FunctionTool(delete_file))]
    async with holding as loop, asyncio.TaskGroup() as group:
        run = group.create_task(loop.run())
        await stage.approve_next()
    assert run.result() == "deleted a"
    assert deleted == [(File(path="a"), "t")]


async def test_an_own_tool_that_takes_the_run_s_context_cannot_wait_for_days(stage: Stage) -> None:
    def delete_file(path: str, tool_context: ToolContext) -> str:
        return path

    with pytest.raises(BadTool, match="delete_file` takes `tool_context`, which no longer exists"):
        approved(stage.hands, FunctionTool(delete_file))


async def test_adk_alone_runs_a_confirmed_tool_once_for_each_resume(tmp_path: Path) -> None:
    """What the bridge is compared with in docs/explanation/bridges.md."""
    effects = tmp_path / "effects.txt"
    gated = FunctionTool(note_charges(effects), require_confirmation=True)
    agent = LlmAgent(name="clerk", model=Scripted(steps=[[CHARGE]]), tools=[gated])
    app = App(name=APP, root_agent=agent, resumability_config=ResumabilityConfig(is_resumable=True))
    sessions = InMemorySessionService()
    session = await sessions.create_session(app_name=APP, user_id=USER)
    runner = Runner(app=app, session_service=sessions)
    ask = Content(role="user", parts=[Part(text="Charge")])
    events = [event async for event in runner.run_async(user_id=USER, session_id=session.id, new_message=ask)]
    [wanted] = [
        call
        for event in events
        for call in event.get_function_calls()
        if call.name == "adk_request_confirmation"
    ]
    yes = FunctionResponse(id=wanted.id, name=wanted.name, response={"confirmed": True})
    message = Content(role="user", parts=[Part(function_response=yes)])

    async def resume() -> None:
        async for _ in runner.run_async(user_id=USER, session_id=session.id, new_message=message):
            pass

    await asyncio.gather(resume(), resume())
    assert effects.read_text().splitlines() == ["charged 3", "charged 3"]


def look_up() -> str:
    """Look something up."""
    return "found"


def start_charge(amount: int) -> None:
    """Start a charge that ends later."""
