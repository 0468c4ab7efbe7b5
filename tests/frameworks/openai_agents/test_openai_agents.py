"""The OpenAI Agents SDK with far hands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunContextWrapper, Runner, RunState, function_tool
from agents.exceptions import ModelBehaviorError
from agents.testing import ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from farhand import Principal, current
from farhand.bridges.openai_agents import approved, farhand_tools
from farhand.errors import BadTool
from tests.frameworks.laws import HoldLaws, ParkLaws
from tests.frameworks.loop import CHARGE, PAY, Ask, note_charges
from tests.frameworks.openai_agents.loop import OFFLINE, AgentsLoop, Scripted
from tests.frameworks.stage import Stage
from tests.requirement import requirement


class TestHold(HoldLaws):
    loop_class = AgentsLoop


class TestPark(ParkLaws):
    loop_class = AgentsLoop


@requirement("bridges:tools")
async def test_the_model_is_offered_every_tool_with_schema_and_description(stage: Stage) -> None:
    model = Scripted([])
    agent = Agent("clerk", model=model, tools=[*farhand_tools(stage.hands, thread="t")])
    await Runner.run(agent, "Hello", run_config=OFFLINE)
    pay, page, quick = farhand_tools(stage.hands, thread="t")
    assert [tool.name for tool in model.tools] == [pay.name, page.name, quick.name]
    assert pay.description == "Pay an invoice."
    assert pay.params_json_schema["properties"]["amount"]["description"] == "In euros."


@requirement("bridges:once")
async def test_an_id_that_comes_again_with_another_input_is_another_call(stage: Stage) -> None:
    for amount in (1, 2):
        loop = AgentsLoop(stage.hands, stage.effects.parent, [[Ask("pay", {"amount": amount}, "call_0")]])
        async with asyncio.TaskGroup() as group:
            run = group.create_task(loop.run())
            await stage.approve_next()
        assert run.result() == f"paid {amount}"
    assert stage.paid == ["paid 1", "paid 2"]


@requirement("bridges:once")
async def test_an_id_that_comes_again_with_the_same_input_is_the_same_call(stage: Stage) -> None:
    loop = AgentsLoop(stage.hands, stage.effects.parent, [[PAY]])
    async with asyncio.TaskGroup() as group:
        first = group.create_task(loop.run())
        await stage.approve_next()
    assert await loop.run() == first.result() == "paid 3"
    assert stage.paid == ["paid 3"]


async def test_the_sdk_refuses_an_id_that_comes_again_in_one_run(stage: Stage) -> None:
    """So a provider that repeats its ids cannot be used with it at all."""
    steps = [[Ask("pay", {"amount": amount}, "call_0")] for amount in (1, 2)]
    async with asyncio.TaskGroup() as group:
        group.create_task(stage.approve_next())
        with pytest.raises(ModelBehaviorError, match="reused"):
            await AgentsLoop(stage.hands, stage.effects.parent, steps).run()
    assert stage.paid == ["paid 1"]


@pytest.mark.parametrize("arguments", ["not JSON", "[3]", '{"amount": 3'])
@pytest.mark.parametrize("hold_for", [None, 0.05])
@requirement("bridges:deadline")
async def test_arguments_that_are_no_object_go_back_to_the_model(
    stage: Stage, arguments: str, hold_for: float | None
) -> None:
    model = ScriptedModel([[function_call("pay", arguments, call_id="call_0")], [assistant_message("Done")]])
    agent = Agent("clerk", model=model, tools=[*farhand_tools(stage.hands, thread="t", hold_for=hold_for)])
    result = await Runner.run(agent, "Pay", run_config=OFFLINE)
    if hold_for is not None:
        # the SDK asks for an approval of its own before it lets anyone look at them
        state = result.to_state()
        state.approve(result.interruptions[0])
        result = await Runner.run(agent, state, run_config=OFFLINE)
    assert "The input is not a JSON object" in json.dumps(result.to_input_list())
    assert stage.paid == []


@requirement("bridges:deadline")
async def test_bad_input_does_not_pause_a_run_that_can_park(stage: Stage) -> None:
    steps = [[Ask("pay", {"amount": "much"}, "call_0")]]
    told = await AgentsLoop(stage.hands, stage.effects.parent, steps, hold_for=0.05).run()
    assert told is not None
    assert "amount" in told


async def test_thread_and_owner_are_those_of_the_run(stage: Stage) -> None:
    # Any: the context of this program's runs
    def thread(run: RunContextWrapper[Any]) -> str:
        return f"of-{run.context.subject}"

    tools = farhand_tools(stage.hands, thread=thread, owner=lambda run: run.context, only=["pay"])
    agent: Agent[Principal] = Agent("clerk", model=Scripted([[PAY]]), tools=[*tools])
    ann = Principal("acme", "ann")
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Runner.run(agent, "Pay", context=ann, run_config=OFFLINE))
        [call] = await stage.open_calls(owner=ann.owner)
        assert call.thread_id == "of-ann"
        await stage.approve(call)
    assert run.result().final_output == "paid 3"


class File(BaseModel):
    path: str
    force: bool = False


@requirement("bridges:approved")
async def test_an_own_tool_gets_its_own_types_and_knows_for_whom_it_works(stage: Stage) -> None:
    deleted: list[tuple[File, str]] = []

    @function_tool
    def delete_file(file: File) -> str:
        deleted.append((file, current().thread_id))
        return f"deleted {file.path}"

    ask = Ask("delete_file", {"file": {"path": "a", "force": True}}, "call_0")
    agent = Agent("clerk", model=Scripted([[ask]]), tools=[approved(stage.hands, delete_file, thread="t")])
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Runner.run(agent, "Delete", run_config=OFFLINE))
        await stage.approve_next()
    assert run.result().final_output == "deleted a"
    assert deleted == [(File(path="a", force=True), "t")]


async def test_an_own_tool_that_takes_the_run_s_context_cannot_wait_for_days(stage: Stage) -> None:
    @function_tool
    def delete_file(run: RunContextWrapper[None], path: str) -> str:
        return path

    with pytest.raises(BadTool, match="delete_file` takes `run`, which no longer exists"):
        approved(stage.hands, delete_file, thread="t")
    with pytest.raises(BadTool, match="has no function of its own"):
        approved(stage.hands, Agent("other").as_tool("other", "Another agent."), thread="t")


async def test_the_sdk_alone_runs_an_approved_tool_once_for_each_resume(tmp_path: Path) -> None:
    """What the bridge is compared with in docs/explanation/bridges.md."""
    effects = tmp_path / "effects.txt"
    agent = gated_agent(note_charges(effects))
    paused = await Runner.run(agent, "Charge", run_config=OFFLINE)
    stored = json.dumps(paused.to_state().to_json())

    async def resume() -> None:
        state = await RunState.from_json(agent, json.loads(stored))
        for interruption in state.get_interruptions():
            state.approve(interruption)
        await Runner.run(agent, state, run_config=OFFLINE)

    await asyncio.gather(resume(), resume())
    assert effects.read_text().splitlines() == ["charged 3", "charged 3"]


def gated_agent(charge: Callable[[int], str]) -> Agent[None]:
    return Agent("clerk", model=Scripted([[CHARGE]]), tools=[function_tool(charge, needs_approval=True)])
