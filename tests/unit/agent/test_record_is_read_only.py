"""A model cannot change the record: changes to the messages that it gets stay local."""

from __future__ import annotations

from functools import partial

import pytest

from farhand import Agent, ScriptedModel
from farhand.core.event import CallOpened, RunFinished
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.core.thread import AssistantMessage, Reasoning, ResultsMessage, ToolCallPart
from farhand.models.scripted import Ask, Moment, Step, Think
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add, open_url
from tests.unit.agent.stage import THREAD, Stage, comes_true

NUMBERS, PAGE, VIEW, THOUGHT = {"a": 2, "b": 3}, {"url": "https://a.example"}, {"viewKey": "v1"}, {"id": "r"}


def spoiling(moment: Moment) -> Step:
    """Empties whatever it can reach, then asks; after two rounds it is done."""
    for message in moment.messages:
        spoil(message)
    if moment.steps < 2:
        thought = Think("Hm.", echo=dict(THOUGHT))
        return [thought, Ask("add", dict(NUMBERS)), Ask("open_url", dict(PAGE))]
    return "Done."


def spoil(message: object) -> None:
    values: list[object] = []
    if isinstance(message, AssistantMessage):
        values += [part.input for part in message.parts if isinstance(part, ToolCallPart)]
        values += [part.echo for part in message.parts if isinstance(part, Reasoning)]
    if isinstance(message, ResultsMessage):
        values += [each.input for each in message.results]
        values += [each.outcome.output for each in message.results if isinstance(each.outcome, Success)]
    for value in values:
        if isinstance(value, dict):
            value.clear()


@pytest.mark.parametrize("hold_for", [0.0, 60.0])
async def test_a_model_that_changes_what_it_is_shown_changes_no_record(
    stage: MakeStage, hold_for: float
) -> None:
    on = await stage(spoiling, add, open_url)
    run = await on.say("go", hold_for=hold_for)
    for _ in range(2):
        await comes_true(partial(_is_asked, on))
        await on.answer(await on.open_call("open_url"), Success(dict(VIEW)))
    await on.told(run, RunFinished)

    calls = await on.calls(run)
    assert [call.input for call in calls] == [NUMBERS, PAGE] * 2
    assert [call.outcome for call in calls] == [Success(5), Success(VIEW)] * 2
    opened = [event.input for event in await on.journal(run) if isinstance(event, CallOpened)]
    assert opened == [NUMBERS, PAGE] * 2
    _, *steps, _ = await on.messages()
    for said, results in zip(steps[::2], steps[1::2], strict=True):
        assert isinstance(said, AssistantMessage)
        assert [part.echo for part in said.parts if isinstance(part, Reasoning)] == [THOUGHT]
        assert [asked.input for asked in said.tool_calls] == [NUMBERS, PAGE]
        assert isinstance(results, ResultsMessage)
        assert [(each.input, each.outcome) for each in results.results] == [
            (NUMBERS, Success(5)),
            (PAGE, Success(VIEW)),
        ]


async def _is_asked(on: Stage) -> bool:
    return any(call.tool == "open_url" for call in await on.log.open_calls(LOCAL, THREAD))


async def test_whoever_changes_a_pending_input_changes_no_record() -> None:
    async with Agent(
        ScriptedModel([Ask("open_url", dict(PAGE)), "Done."]), frontend_tools=[open_url]
    ) as agent:
        paused = await agent.run("go", thread="t1")
        [pending] = paused.pending
        assert isinstance(pending.input, dict)
        pending.input.clear()
        again = await agent.answer("t1", [(pending.call_id, Success(dict(VIEW)))])
        assert again.stop_reason == "end"
        service = await agent._open()
        [call] = await service.calls(await service.last_run(LOCAL, "t1"))
        assert call.input == PAGE
