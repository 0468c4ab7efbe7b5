"""LangChain and LangGraph with far hands."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from farhand import Principal, SettledCall, current
from farhand.bridges.langgraph import approved, farhand_tools
from farhand.errors import BadTool, Misuse
from tests.frameworks.langgraph.loop import GraphLoop, Scripted, config
from tests.frameworks.laws import HoldLaws, ParkLaws, RepeatedIdLaws, key_of
from tests.frameworks.loop import CHARGE, OPEN, PAY, Ask, Steps, note_charges
from tests.frameworks.stage import Stage
from tests.requirement import requirement

# Any, here and below: each kind of graph has a type for this
GO: Any = {"messages": [("user", "Go")]}
Graph = CompiledStateGraph[Any, Any, Any, Any]


class TestHold(HoldLaws):
    loop_class = GraphLoop


class TestPark(ParkLaws):
    loop_class = GraphLoop


class TestRepeatedIds(RepeatedIdLaws):
    loop_class = GraphLoop


@requirement("bridges:tools")
async def test_the_model_is_offered_every_tool_with_schema_and_description(stage: Stage) -> None:
    model = Scripted(steps=[])
    await create_agent(model, farhand_tools(stage.hands)).ainvoke(GO, config("t"))
    assert [each["name"] for each in model.offered] == ["pay", "open_url", "ask_quickly"]
    assert model.offered[0]["description"] == "Pay an invoice."
    assert model.offered[0]["parameters"]["properties"]["amount"]["description"] == "In euros."


class TestToolNode:
    """A graph of one's own, in which all calls of a step are one task."""

    async def test_two_calls_of_one_task_keep_their_results(self, stage: Stage) -> None:
        graph = own_graph(farhand_tools(stage.hands), [[PAY, OPEN]])
        async with asyncio.TaskGroup() as group:
            run = group.create_task(graph.ainvoke(GO, config("t")))
            pay, page = await stage.open_calls(2)
            await stage.answer(page, {"viewKey": "v1"})
            await stage.approve(pay)
        assert last(run.result()) == 'paid 3 | {"viewKey":"v1"}'

    @requirement("bridges:once")
    async def test_two_calls_of_one_task_may_have_the_same_id(self, stage: Stage) -> None:
        steps = [[Ask("pay", {"amount": amount}, "call_0") for amount in (1, 2)]]
        graph = own_graph(farhand_tools(stage.hands), steps)
        async with asyncio.TaskGroup() as group:
            run = group.create_task(graph.ainvoke(GO, config("t")))
            await stage.approve_next(count=2)
        assert last(run.result()) == "paid 1 | paid 2"
        assert sorted(stage.paid) == ["paid 1", "paid 2"]

    async def test_two_equal_calls_of_one_task_are_two_calls(self, stage: Stage) -> None:
        graph = own_graph(farhand_tools(stage.hands), [[PAY, PAY._replace(call_id="call_1")]])
        async with asyncio.TaskGroup() as group:
            run = group.create_task(graph.ainvoke(GO, config("t")))
            await stage.approve_next(count=2)
        assert last(run.result()) == "paid 3 | paid 3"
        assert stage.paid == ["paid 3", "paid 3"]

    @requirement("bridges:park")
    async def test_a_task_that_is_resumed_early_is_interrupted_for_what_is_still_open(
        self, stage: Stage
    ) -> None:
        graph = own_graph(farhand_tools(stage.hands, hold_for=0.05), [[PAY, OPEN]])
        paused = await graph.ainvoke(GO, config("t"), version="v2")
        assert paused.interrupts
        pay, page = await stage.open_calls(2)
        await stage.answer(page, {"viewKey": "v1"})
        for _ in range(3):
            paused = await resume(graph, "t")
            assert [each.value["tool"] for each in paused.interrupts] == ["pay"]
            assert paused.interrupts[0].value["farhand"] == key_of(pay)
        await stage.approve(pay)
        await stage.no_open_call()
        assert last((await resume(graph, "t")).value) == 'paid 3 | {"viewKey":"v1"}'
        assert stage.paid == ["paid 3"]


@requirement("hands:told-of-settled-calls")
async def test_a_graph_resumes_automatically_when_its_call_is_settled(stage: Stage) -> None:
    graph = create_agent(
        Scripted(steps=[[PAY, OPEN]]), farhand_tools(stage.hands, hold_for=0.05), checkpointer=InMemorySaver()
    )
    told: asyncio.Queue[str] = asyncio.Queue()

    async def go_on(settled: SettledCall) -> None:
        resumed = await resume(graph, settled.thread_id)
        if not resumed.interrupts:
            await told.put(last(resumed.value))

    stage.hands.on_settled("t:", go_on)
    await graph.ainvoke(GO, config("t"))
    pay, page = await stage.open_calls(2)
    await stage.answer(page, {"viewKey": "v1"})
    await stage.approve(pay)
    async with asyncio.timeout(30):
        assert await told.get() == 'paid 3 | {"viewKey":"v1"}'
    assert stage.paid == ["paid 3"]


async def test_an_input_may_have_members_that_langchain_uses_itself(stage: Stage) -> None:
    names = ("config", "run_manager", "runtime", "self", "input", "callbacks", "args", "kwargs")
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    stage.hands.spec.toolbox.add("echo", "Echo.", schema, lambda **input: input)
    ask = Ask("echo", dict.fromkeys(names, "x"), "call_0")
    for graph in (
        create_agent(Scripted(steps=[[ask]]), farhand_tools(stage.hands)),
        own_graph(farhand_tools(stage.hands), [[ask]]),
    ):
        told = last(await graph.ainvoke(GO, config("t")))
        assert sorted(names) == [each.split('"')[1] for each in told.strip("{}").split(",")]


async def test_thread_and_owner_may_depend_on_the_run(stage: Stage) -> None:
    tools = farhand_tools(
        stage.hands,
        thread=lambda runtime: f"of-{runtime.context.subject}",
        owner=lambda runtime: runtime.context,
        only=["pay"],
    )
    ann = Principal("acme", "ann")
    agent = create_agent(Scripted(steps=[[PAY]]), tools, context_schema=Principal)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(agent.ainvoke(GO, context=ann))
        [call] = await stage.open_calls(owner=ann.owner)
        assert call.thread_id == "of-ann"
        await stage.approve(call)
    assert last(run.result()) == "paid 3"


async def test_a_run_without_a_thread_is_told_what_is_missing(stage: Stage) -> None:
    with pytest.raises(Misuse, match="This run has no thread_id"):
        await create_agent(Scripted(steps=[[PAY]]), farhand_tools(stage.hands)).ainvoke(GO)
    assert await stage.hands.service.log.open_calls(Principal("local", "me").owner) == []


async def test_a_tool_outside_a_graph_is_told_where_it_belongs(stage: Stage) -> None:
    [pay] = farhand_tools(stage.hands, only=["pay"])
    with pytest.raises(Misuse, match="`pay` runs only in a graph"):
        await pay.ainvoke({"amount": 3})


class File(BaseModel):
    path: str
    force: bool = False


@requirement("bridges:approved")
async def test_an_own_tool_gets_its_own_types_and_knows_for_whom_it_works(stage: Stage) -> None:
    deleted: list[tuple[File, str]] = []

    @tool
    async def delete_file(file: File) -> str:
        """Delete a file."""
        deleted.append((file, current().thread_id))
        return f"deleted {file.path}"

    ask = Ask("delete_file", {"file": {"path": "a"}}, "call_0")
    agent = create_agent(Scripted(steps=[[ask]]), [approved(stage.hands, delete_file)])
    async with asyncio.TaskGroup() as group:
        run = group.create_task(agent.ainvoke(GO, config("t")))
        await stage.approve_next()
    assert last(run.result()) == "deleted a"
    assert deleted == [(File(path="a"), "t")]


async def test_an_own_tool_that_takes_a_part_of_the_graph_cannot_wait_for_days(stage: Stage) -> None:
    # Any: the state of any graph
    @tool
    def delete_file(path: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Delete a file."""
        return path

    with pytest.raises(BadTool, match="delete_file` takes `state`, which no longer exists"):
        approved(stage.hands, delete_file)


async def test_langgraph_alone_runs_a_tool_once_for_each_resume(tmp_path: Path) -> None:
    """What the bridge is compared with in docs/explanation/bridges.md."""
    effects = tmp_path / "effects.txt"
    own = note_charges(effects)

    @tool
    async def charge(amount: int) -> str:
        """Charge the customer."""
        interrupt("May I?")
        return own(amount)

    agent = create_agent(Scripted(steps=[[CHARGE]]), [charge], checkpointer=InMemorySaver())
    await agent.ainvoke(GO, config("t"))
    await asyncio.gather(*(agent.ainvoke(Command(resume=True), config("t")) for _ in range(2)))
    assert effects.read_text().splitlines() == ["charged 3", "charged 3"]


def own_graph(tools: list[BaseTool], steps: Steps) -> Graph:
    model = Scripted(steps=steps)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode(tools))
    graph.set_entry_point("think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile(checkpointer=InMemorySaver())


# Any: the values of any graph
async def resume(graph: Any, thread: str) -> Any:
    state = await graph.aget_state(config(thread))
    return await graph.ainvoke(
        Command(resume={each.id: True for each in state.interrupts}), config(thread), version="v2"
    )


def last(values: Any) -> str:
    return str(values["messages"][-1].text)
