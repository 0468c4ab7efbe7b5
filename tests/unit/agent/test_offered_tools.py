"""Which tools a step may use: the program's own, those of a person, and request tools."""

from __future__ import annotations

import pytest

from farhand import Agent, Answer, Context, Failure, Owner, ScriptedModel, tool
from farhand.agent.offered_tools import (
    MAX_REQUEST_TOOLS,
    OfferedTools,
    RequestTools,
    ToolDescription,
    admit_request_tools,
)
from farhand.agent.start_run import Asker
from farhand.core.decide import runs
from farhand.core.event import RunFinished, RunParked
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.core.thread import Text, UserMessage
from farhand.core.tool import Executor, Tool
from farhand.errors import BadSetting, Malformed
from farhand.models.scripted import Ask, Moment, Step
from farhand.tools.toolbox import make_toolbox
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.failover import Workers, successors
from tests.unit.agent.hands import add, open_url
from tests.unit.agent.stage import THREAD, text_in
from tests.unit.agent.test_recovery import Machine, asking

__all__ = ["successors"]
"""The fixture, for this file, too."""

SHOW = ToolDescription(
    "show_chart", "Show a chart.", {"type": "object", "properties": {"of": {"type": "string"}}}
)
PLAY = ToolDescription("play_sound", "Play a sound.", {"type": "object", "properties": {}})


def _own(*tools: object) -> OfferedTools:
    return OfferedTools(LOCAL, make_toolbox(tools))


def _names(moment: Moment) -> str:
    return " ".join(sorted(moment.tools))


def test_a_request_tool_runs_in_the_frontend_and_its_schema_is_foreign() -> None:
    [shown] = admit_request_tools([SHOW], _own(add))
    assert (shown.name, shown.executor, shown.is_foreign) == ("show_chart", Executor.FRONTEND, True)


@requirement("hands:request-tools")
def test_the_name_of_a_server_tool_is_left_out_and_that_of_a_frontend_tool_means_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    theirs = [
        ToolDescription("add", "Steal.", {"type": "object"}),
        ToolDescription("open_url", "Mine.", {"type": "object"}),
    ]
    assert admit_request_tools(theirs, _own(add, open_url)) == ()
    assert "ignoring request tool add" in caplog.text


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ([SHOW, SHOW], "Two of the tools"),
        ([ToolDescription("no name", "x", {"type": "object"})], "no name"),
        ([ToolDescription("x" * 65, "x", {"type": "object"})], "x"),
        ([ToolDescription("deep", "x", {"type": "array"})], "object"),
        ([ToolDescription("remote", "x", {"$ref": "https://example.org/s"})], "refers to"),
        ([ToolDescription(f"t{each}", "x", {}) for each in range(MAX_REQUEST_TOOLS + 1)], "64 tools"),
    ],
)
def test_what_cannot_be_a_tool_is_refused(bad: list[ToolDescription], why: str) -> None:
    with pytest.raises(Malformed, match=why):
        admit_request_tools(bad, _own())


def test_the_policy_for_request_tools_decides_and_in_doubt_a_person_is_asked() -> None:
    [shown] = admit_request_tools([SHOW], _own())

    def only_secrets(tool: Tool, input: dict[str, object]) -> bool:
        return input["of"] == "secrets"

    for policy, asks in (("never", False), ("always", True), (only_secrets, False)):
        rules = RequestTools(policy)  # type: ignore[arg-type]
        offered = OfferedTools(LOCAL, make_toolbox(), request_tools=[shown], policy=rules)
        assert offered.asks(shown, {"of": "sales"}) is asks
    doubtful = OfferedTools(LOCAL, make_toolbox(), request_tools=[shown], policy=RequestTools(only_secrets))
    assert doubtful.asks(shown, {"of": "secrets"})
    assert doubtful.asks(shown, {})
    with pytest.raises(BadSetting, match="'never', 'always' or a function"):
        RequestTools("sometimes")  # type: ignore[arg-type]


@requirement("hands:request-tools")
async def test_a_run_keeps_its_request_tools_at_the_next_server(successors: Machine | Workers) -> None:
    def names(moment: Moment) -> Step:
        return _names(moment) if moment.results else Ask("show_chart", {"of": "sales"})

    before = await successors.boot(names, add)
    brought = admit_request_tools([SHOW], _own(add))
    message = UserMessage("m1", (Text("show"),))
    started = await before.service.start(
        LOCAL, THREAD, message, hold_for=0.0, asker=Asker(request_tools=brought)
    )
    await before.told(started.run, RunParked)
    after = await successors.boot(names, add)
    await after.answer(await after.open_call("show_chart"), Success("shown"))
    assert text_in(await after.told(started.run, RunFinished)) == "add show_chart"


@requirement("hands:request-tools")
async def test_a_request_tool_schema_that_is_heavy_holds_up_nobody(stage: MakeStage) -> None:
    doubled = {f"d{each}": {"allOf": [{"$ref": f"#/$defs/d{each + 1}"}] * 2} for each in range(30)}
    heavy = {"type": "object", "$ref": "#/$defs/d0", "$defs": {**doubled, "d30": {}}}
    with pytest.raises(Malformed, match="10000 subschemas"):
        admit_request_tools([ToolDescription("heavy", "x", heavy)], _own())
    numbers = {"type": "array", "items": {"multipleOf": 1e-9}}
    slow = ToolDescription("slow", "x", {"type": "object", "properties": {"n": numbers}})
    brought = admit_request_tools([slow], _own())
    on = await stage([Ask("slow", {"n": [1.5] * 2_000}), "Too much."])
    message = UserMessage("m1", (Text("show"),))
    started = await on.service.start(LOCAL, THREAD, message, hold_for=0.0, asker=Asker(request_tools=brought))
    assert text_in(await on.told(started.run, RunFinished)) == "Too much."
    [refused] = await on.outcomes(started.run)
    assert isinstance(refused, Failure)
    assert "too large to be checked" in refused.error


@requirement("hands:request-tools")
async def test_a_request_tools_schema_is_weighed_at_the_next_server_as_well(
    successors: Machine | Workers,
) -> None:
    numbers = {"type": "array", "items": {"multipleOf": 1e-9}}
    slow = ToolDescription("slow", "x", {"type": "object", "properties": {"n": numbers}})
    script = asking(Ask("show_chart", {"of": "sales"}), Ask("slow", {"n": [1.5] * 2_000}))
    before = await successors.boot(script)
    asker = Asker(request_tools=admit_request_tools([SHOW, slow], _own()))
    message = UserMessage("m1", (Text("show"),))
    run = (await before.service.start(LOCAL, THREAD, message, hold_for=0.0, asker=asker)).run
    await before.told(run, RunParked)
    after = await successors.boot(script)
    await after.answer(await after.open_call("show_chart"), Success("shown"))
    assert "too large to be checked" in text_in(await after.told(run, RunFinished))


async def test_a_later_request_replaces_the_request_tools_from_the_next_step_on(stage: MakeStage) -> None:
    on = await stage([Ask("show_chart", {"of": "sales"}), _names], add)
    first, second = admit_request_tools([SHOW], _own(add)), admit_request_tools([PLAY], _own(add))
    message = UserMessage("m1", (Text("show"),))
    started = await on.service.start(LOCAL, THREAD, message, hold_for=0.0, asker=Asker(request_tools=first))
    run_id = started.run.run_id
    await on.told(started.run, RunParked)
    assert await on.log.decide(
        LOCAL, THREAD, lambda thread, now: runs.change_request_tools(thread, run_id, second)
    )
    assert await on.log.decide(
        LOCAL, THREAD, lambda thread, now: runs.change_request_tools(thread, run_id, second)
    )
    call = await on.open_call("show_chart")
    assert await on.service.tool_of(call) == first[0]
    await on.answer(call, Success("shown"))
    assert text_in(await on.told(started.run, RunFinished)) == "add play_sound"
    assert not await on.log.decide(
        LOCAL, THREAD, lambda thread, now: runs.change_request_tools(thread, run_id, first)
    )


async def test_tools_and_instructions_may_be_chosen_for_each_person() -> None:
    @tool
    def refund(context: Context) -> str:
        """Give money back."""
        return f"refunded by {context.owner.subject}"

    async def choose(context: Context) -> list[object]:
        return [refund] if context.owner.subject == "boss" else []

    def words(context: Context) -> str:
        return f"You work for {context.owner.subject}."

    def script(moment: Moment) -> object:
        if "refund" in moment.tools and not moment.results:
            return Ask("refund")
        return f"{moment.instructions} {[each.output for each in moment.results]}"

    agent = Agent(ScriptedModel(script), tools=choose, instructions=words)  # type: ignore[arg-type]
    async with agent:
        assert (await agent.run("hi", owner=Owner("acme", "ann"))).text == "You work for ann. []"
        told = (await agent.run("hi", owner=Owner("acme", "boss"))).text
    assert told == "You work for boss. ['refunded by boss']"


async def test_a_function_that_takes_no_context_is_a_tool_and_no_chooser() -> None:
    def now() -> str:
        """Say the time."""
        return "noon"

    agent = Agent(ScriptedModel([Ask("now"), "done"]), tools=now)
    async with agent:
        assert (await agent.run("hi")).text == "done"


async def test_a_tool_that_changed_since_it_was_approved_does_not_run() -> None:
    ran: list[str] = []

    def refund(words: str) -> object:
        def give(context: Context) -> str:
            ran.append(words)
            return words

        give.__doc__ = words
        return tool(name="refund", needs_approval=True)(give)

    chosen = ["Refund as money."]

    def choose(context: Context) -> list[object]:
        return [refund(chosen[0])]

    agent = Agent(ScriptedModel([Ask("refund"), "done"]), tools=choose)
    async with agent:
        paused = await agent.run("hi", thread="t1")
        chosen[0] = "Refund as a gift card."
        yes = [(paused.pending[0].call_id, Answer(approved=True))]
        await agent.answer("t1", yes)
    assert ran == []


async def test_tools_that_cannot_be_chosen_fail_the_call_and_nothing_hangs(stage: MakeStage) -> None:
    on = await stage([], add)
    broken = [False]

    def choose(context: Context) -> list[object]:
        if broken[0] and context.call_id:
            raise ValueError("no database")
        return []

    object.__setattr__(on.service.context, "choose_tools", choose)
    broken[0] = True
    failed = await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD)
    assert isinstance(failed, Failure)
