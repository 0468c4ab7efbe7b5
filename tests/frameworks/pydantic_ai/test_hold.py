"""Pydantic AI with far hands, while its run waits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel

from farhand import Answer, Owner, Principal, Toolbox, create_app, current
from farhand.bridges.pydantic_ai import FarhandToolset, approved
from farhand.errors import BadTool
from tests.frameworks.pydantic_ai.scripted import PAY, make_agent, scripted
from tests.frameworks.stage import PATIENCE_SEC, YES, Stage
from tests.requirement import requirement

OPEN = ToolCallPart("open_url", {"url": "https://example.org"}, "call_1")


@requirement("bridges:tools")
async def test_the_model_is_offered_every_tool_with_schema_and_description(stage: Stage) -> None:
    model = TestModel(call_tools=[])
    await Agent(model, toolsets=[FarhandToolset(stage.hands, thread="t")]).run("Hello")
    parameters = model.last_model_request_parameters
    assert parameters is not None
    pay = next(tool for tool in parameters.function_tools if tool.name == "pay")
    assert pay.description == "Pay an invoice."
    assert pay.parameters_json_schema["properties"]["amount"]["description"] == "In euros."
    assert [tool.name for tool in parameters.function_tools] == ["pay", "open_url", "ask_quickly"]


@requirement("bridges:tools")
async def test_a_frontend_call_is_answered_by_a_page(stage: Stage) -> None:
    agent = make_agent(FarhandToolset(stage.hands, thread="t"), [OPEN])
    async with asyncio.TaskGroup() as group:
        run = group.create_task(agent.run("Open it"))
        [call] = await stage.open_calls()
        assert call.thread_id == "t"
        await stage.answer(call, {"viewKey": "v1"})
    assert run.result().output == '{"viewKey":"v1"}'


@pytest.mark.parametrize(
    ("answer", "told", "paid"),
    [
        (YES, "paid 3", ["paid 3"]),
        (
            Answer(approved=False, reason="too much"),
            "failed: The user denied this call; it was not executed. They gave this reason: too much",
            [],
        ),
        (
            Answer(approved=True, input={"amount": 2}),
            'The user edited the input before approving it, to {"amount":2}.\npaid 2',
            ["paid 2"],
        ),
    ],
    ids=["yes", "no", "edited"],
)
@requirement("bridges:approval")
async def test_the_model_is_told_what_the_person_decided(
    stage: Stage, answer: Answer, told: str, paid: list[str]
) -> None:
    agent = make_agent(FarhandToolset(stage.hands, thread="t"), [PAY])
    async with asyncio.TaskGroup() as group:
        run = group.create_task(agent.run("Pay"))
        await stage.approve_next(answer)
    assert run.result().output == told
    assert stage.paid == paid


@requirement("bridges:deadline")
async def test_a_deadline_is_told_to_the_model_in_words(stage: Stage) -> None:
    quick = ToolCallPart("ask_quickly", {"question": "Now?"}, "call_0")
    result = await make_agent(FarhandToolset(stage.hands, thread="t"), [quick]).run("Ask")
    assert result.output == "failed: Nobody answered within 1 s. This call has no result."


@requirement("bridges:deadline")
async def test_bad_input_goes_back_to_the_model_before_anyone_is_asked(stage: Stage) -> None:
    bad = ToolCallPart("pay", {"amount": "much"}, "call_0")
    result = await make_agent(FarhandToolset(stage.hands, thread="t"), [bad]).run("Pay")
    assert str(result.output).startswith("failed: ")
    assert "amount" in str(result.output)
    assert await stage.hands.service.log.open_calls(Owner("local", "me")) == []


async def test_two_calls_of_one_step_wait_side_by_side_and_keep_their_results(stage: Stage) -> None:
    agent = make_agent(FarhandToolset(stage.hands, thread="t"), [PAY, OPEN])
    async with asyncio.TaskGroup() as group:
        run = group.create_task(agent.run("Both"))
        pay, page = await stage.open_calls(2)
        await stage.answer(page, {"viewKey": "v1"})
        await stage.approve(pay)
    assert run.result().output == 'paid 3 | {"viewKey":"v1"}'


@requirement("bridges:cancel")
async def test_a_cancelled_run_cancels_its_held_call(stage: Stage) -> None:
    run = asyncio.create_task(make_agent(FarhandToolset(stage.hands, thread="t"), [PAY]).run("Pay"))
    [call] = await stage.open_calls()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await stage.no_open_call()
    settled = await stage.hands.service.log.get_call(call.owner, call.call_id)
    assert settled is not None
    assert "the run that asked for it was cancelled" in repr(settled.outcome)
    assert stage.paid == []


@requirement("bridges:once")
async def test_a_provider_may_repeat_its_ids_in_every_step(stage: Stage) -> None:
    steps = [[ToolCallPart("pay", {"amount": amount}, "call_0")] for amount in (1, 2, 2)]
    agent = make_agent(FarhandToolset(stage.hands, thread="t"), *steps)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(agent.run("Pay"))
        for _ in steps:
            await stage.approve_next()
    assert run.result().output == "paid 1 | paid 2 | paid 2"
    assert stage.paid == ["paid 1", "paid 2", "paid 2"]


async def test_parameters_may_have_any_name(stage: Stage) -> None:
    schema = {"type": "object", "properties": {"ctx": {"type": "string"}, "self": {"type": "string"}}}
    stage.hands.spec.toolbox.add("odd", "Odd names.", schema, lambda **input: sorted(input.items()))
    call = ToolCallPart("odd", {"ctx": "1", "self": "2"}, "call_0")
    result = await make_agent(FarhandToolset(stage.hands, thread="t"), [call]).run("Go")
    assert result.output == '[["ctx","1"],["self","2"]]'


@requirement("bridges:deadline")
@pytest.mark.parametrize("text", ['{"amount": ', "[3]", "3"])
async def test_input_that_is_no_json_object_goes_back_to_the_model(stage: Stage, text: str) -> None:
    agent = make_agent(FarhandToolset(stage.hands, thread="t"), [ToolCallPart("pay", text, "call_0")])
    assert str((await agent.run("Pay")).output).startswith(("retried: ", "failed: "))
    assert stage.paid == []


@dataclass
class Deps:
    thread: str
    person: Principal


async def test_thread_and_owner_are_those_of_the_run(stage: Stage) -> None:
    toolset = FarhandToolset[Deps](
        stage.hands, thread=lambda ctx: ctx.deps.thread, owner=lambda ctx: ctx.deps.person, only=["pay"]
    )
    agent = Agent(scripted([PAY]), deps_type=Deps, toolsets=[toolset])
    ann = Principal("acme", "ann")
    async with asyncio.TaskGroup() as group:
        run = group.create_task(agent.run("Pay", deps=Deps("of-ann", ann)))
        [call] = await stage.open_calls(owner=ann.owner)
        assert call.thread_id == "of-ann"
        await stage.approve(call)
    assert run.result().output == "paid 3"


@requirement("bridges:once")
@pytest.mark.timeout(120)
async def test_two_hundred_runs_at_once_each_get_their_own_answer(stage: Stage) -> None:
    async def one(number: int) -> str:
        pay = ToolCallPart("pay", {"amount": number}, "call_0")
        result = await make_agent(FarhandToolset(stage.hands, thread=f"t{number}"), [pay]).run("Pay")
        return str(result.output)

    async with asyncio.timeout(3 * PATIENCE_SEC), asyncio.TaskGroup() as group:
        runs = [group.create_task(one(number)) for number in range(200)]
        await stage.approve_next(count=200)
    assert [run.result() for run in runs] == [f"paid {number}" for number in range(200)]
    assert len(stage.paid) == 200


class File(BaseModel):
    path: str
    force: bool = False


@requirement("bridges:approved")
async def test_a_tool_of_the_agent_s_own_runs_behind_approval_with_its_own_types(stage: Stage) -> None:
    deleted: list[tuple[File, str]] = []

    def delete_file(file: File) -> str:
        deleted.append((file, current().thread_id))
        return f"deleted {file.path}"

    own: Tool[None] = approved(stage.hands, delete_file, thread="t")
    call = ToolCallPart("delete_file", {"path": "a"}, "call_0")
    agent = Agent(scripted([call]), tools=[own], toolsets=[FarhandToolset(stage.hands, thread="t")])
    async with asyncio.TaskGroup() as group:
        run = group.create_task(agent.run("Delete"))
        [waiting] = await stage.open_calls()
        assert deleted == []
        await stage.approve(waiting)
    assert run.result().output == "deleted a"
    assert deleted == [(File(path="a"), "t")]


async def test_a_tool_that_takes_the_run_s_context_cannot_wait_for_days(stage: Stage) -> None:
    def delete_file(ctx: RunContext[None], path: str) -> str:
        return path

    with pytest.raises(BadTool, match="delete_file` takes a RunContext"):
        approved(stage.hands, delete_file, thread="t")


async def test_a_tool_that_is_registered_later_is_offered_at_the_next_step(tmp_path: Path) -> None:
    toolbox = Toolbox()

    @toolbox.tool
    def one() -> str:
        """Register another tool."""
        hands.spec.toolbox.add("two", "The second.", {"type": "object"}, lambda: "second")
        return "first"

    hands = create_app(toolbox, store="memory:")
    async with hands:
        steps = [[ToolCallPart(name, {}, "call_0")] for name in ("one", "two")]
        result = await make_agent(FarhandToolset(hands, thread="t"), *steps).run("Go")
    assert result.output == "first | second"
