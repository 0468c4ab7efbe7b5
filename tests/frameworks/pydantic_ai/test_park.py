"""Pydantic AI with far hands, when its run does not wait: parked, answered meanwhile, resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, Tool
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolCallPart

from farhand import Answer
from farhand.bridges.pydantic_ai import FarhandToolset, approved, hands_results
from tests.frameworks.processes import run_to_end, run_until
from tests.frameworks.pydantic_ai.scripted import PAY, make_agent, scripted
from tests.frameworks.stage import YES, Stage
from tests.requirement import requirement

PROGRAM = "tests.frameworks.pydantic_ai.program"
OPEN = ToolCallPart("open_url", {"url": "https://example.org"}, "call_1")
Parked = AgentRunResult[str | DeferredToolRequests]
Both = Agent[None, str | DeferredToolRequests]


def parking(stage: Stage, *steps: list[ToolCallPart]) -> Both:
    return make_agent(FarhandToolset(stage.hands, thread="t", hold_for=0.05), *steps)


async def resume(stage: Stage, agent: Both, parked: Parked) -> object:
    assert isinstance(parked.output, DeferredToolRequests)
    results = await hands_results(stage.hands, parked.output)
    resumed = await agent.run(message_history=parked.all_messages(), deferred_tool_results=results)
    return resumed.output


@requirement("bridges:park")
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (YES, "paid 3"),
        (
            Answer(approved=False, reason="not now"),
            "failed: The user denied this call; it was not executed. They gave this reason: not now",
        ),
    ],
    ids=["yes", "no"],
)
async def test_a_call_is_answered_while_nobody_runs_and_the_resumed_run_is_told(
    stage: Stage, answer: Answer, told: str
) -> None:
    agent = parking(stage, [PAY])
    parked = await agent.run("Pay")
    await stage.approve_next(answer)
    await stage.no_open_call()
    assert await resume(stage, agent, parked) == told


async def test_an_agent_whose_output_cannot_be_a_deferred_call_is_refused_parking(stage: Stage) -> None:
    agent = Agent(scripted([PAY]), toolsets=[FarhandToolset(stage.hands, thread="t", hold_for=0.05)])
    with pytest.raises(UserError, match="DeferredToolRequests"):
        await agent.run("Pay")
    assert stage.paid == []


async def test_a_run_that_is_resumed_early_waits_for_all_its_calls(stage: Stage) -> None:
    agent = parking(stage, [PAY, OPEN])
    parked = await agent.run("Both")
    async with asyncio.TaskGroup() as group:
        resumed = group.create_task(resume(stage, agent, parked))
        pay, page = await stage.open_calls(2)
        await stage.approve(pay)
        await stage.answer(page, {"viewKey": "v1"})
    assert resumed.result() == 'paid 3 | {"viewKey":"v1"}'


@requirement("bridges:once")
async def test_two_resumes_race_and_the_tool_runs_once(stage: Stage) -> None:
    agent = parking(stage, [PAY])
    parked = await agent.run("Pay")
    async with asyncio.TaskGroup() as group:
        resumed = [group.create_task(resume(stage, agent, parked)) for _ in range(2)]
        await stage.approve_next()
    assert [each.result() for each in resumed] == ["paid 3", "paid 3"]
    assert stage.paid == ["paid 3"]


@requirement("bridges:once")
async def test_an_own_tool_behind_approval_runs_once_when_two_resumes_race(stage: Stage) -> None:
    own = note_payments(stage.effects)
    gated: Tool[None] = approved(stage.hands, own, thread="t", hold_for=0.05)
    charge = ToolCallPart("charge", {"amount": 3}, "call_0")
    agent: Both = Agent(scripted([charge]), tools=[gated], output_type=[str, DeferredToolRequests])
    parked = await agent.run("Charge")
    await stage.approve_next()
    async with asyncio.TaskGroup() as group:
        resumed = [group.create_task(resume(stage, agent, parked)) for _ in range(2)]
    assert [each.result() for each in resumed] == ["charged 3", "charged 3"]
    assert stage.paid == ["charged 3"]


async def test_pydantic_ai_alone_runs_an_approved_tool_once_for_each_resume(tmp_path: Path) -> None:
    """What the bridge is compared with in docs/explanation/bridges.md."""
    effects = tmp_path / "effects.txt"
    charge = ToolCallPart("charge", {"amount": 3}, "call_0")
    agent: Both = Agent(
        scripted([charge]),
        tools=[Tool(note_payments(effects), requires_approval=True)],
        output_type=[str, DeferredToolRequests],
    )
    parked = await agent.run("Charge")
    assert isinstance(parked.output, DeferredToolRequests)
    results = parked.output.build_results(approve_all=True)
    history = parked.all_messages()
    await asyncio.gather(
        *(agent.run(message_history=history, deferred_tool_results=results) for _ in range(2))
    )
    assert effects.read_text().splitlines() == ["charged 3", "charged 3"]


@requirement("bridges:cancel")
async def test_a_parked_call_is_cancelled_by_its_key(stage: Stage) -> None:
    agent = parking(stage, [PAY])
    parked = await agent.run("Pay")
    assert isinstance(parked.output, DeferredToolRequests)
    key = parked.output.metadata["call_0"]["farhand"]
    assert await stage.hands.cancel(key=key)
    assert await resume(stage, agent, parked) == (
        "failed: This call was cancelled and has no result: cancelled by the program."
    )
    assert stage.paid == []


@requirement("bridges:once")
async def test_parked_runs_with_the_same_ids_of_a_provider_are_told_apart(stage: Stage) -> None:
    agents = [parking(stage, [ToolCallPart("pay", {"amount": amount}, "call_0")]) for amount in (1, 2)]
    parked = [await agent.run("Pay") for agent in agents]
    await stage.approve_next(count=2)
    told = [await resume(stage, agent, each) for agent, each in zip(agents, parked, strict=True)]
    assert told == ["paid 1", "paid 2"]


@requirement("bridges:restart")
async def test_a_parked_call_survives_the_death_of_its_process(tmp_path: Path) -> None:
    await run_until("parked", PROGRAM, str(tmp_path), "park")
    async with Stage(f"sqlite:///{tmp_path}/hands.db", tmp_path) as stage:
        await stage.approve_next()
        await stage.no_open_call()
    assert await run_to_end(PROGRAM, str(tmp_path), "resume") == "paid 3"
    assert await run_to_end(PROGRAM, str(tmp_path), "resume") == "paid 3"
    assert stage.paid == ["paid 3"]


def note_payments(effects: Path) -> Callable[[int], str]:
    def charge(amount: int) -> str:
        """Charge the customer."""
        with effects.open("a") as file:
            file.write(f"charged {amount}\n")
        return f"charged {amount}"

    return charge
