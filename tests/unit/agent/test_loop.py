"""The loop: ask the model, run its tools, return their outcomes, repeat."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest

from farhand.core.call import Phase
from farhand.core.event import (
    CallBegun,
    CallOpened,
    CallRejected,
    CallSettled,
    InputAdded,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Failure, Success
from farhand.core.run import RunState, Usage
from farhand.core.settings import Limits, Settings, Timeouts
from farhand.core.thread import AssistantMessage, Reasoning, ResultsMessage, Text, text_of
from farhand.models.base import ModelEvent, Prompt, TextDelta
from farhand.models.scripted import Ask, Begin, Fail, Moment, Say, Step, Stop, Think
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import a_set, add, broken, open_url
from tests.unit.agent.stage import kinds, text_in, the


async def test_a_plain_answer_is_told_stored_and_ends_the_run(stage: MakeStage) -> None:
    on = await stage(["Hello you."])
    run = await on.say("hi", message_id="m1")
    events = await on.told(run)
    assert events[0] == RunStarted(run.run_id, "m1")
    assert text_in(events) == "Hello you."
    finished = the(RunFinished, events)
    assert (finished.state, finished.reason) == (RunState.DONE, "end")
    assert (await on.stored(run)).state is RunState.DONE
    assert [text_of(message) for message in await on.messages()] == ["hi", "Hello you."]


async def test_a_server_tool_runs_and_the_model_gets_its_result_once(stage: MakeStage) -> None:
    on = await stage([["I add.", Ask("add", {"a": 2, "b": 3}, id="call_0")], _sum], add)
    run = await on.say("2 + 3?")
    events = await on.told(run)
    assert text_in(events) == "I add.It is 5."
    settled = the(CallSettled, events)
    assert settled.outcome == Success(5)
    assert len(on.model.prompts) == 2
    [results] = [each for each in on.model.prompts[1].messages if isinstance(each, ResultsMessage)]
    [resolved] = results.results
    assert (resolved.call_id, resolved.model_call_id) == (settled.call_id, "call_0")
    assert resolved.outcome == Success(5)


@requirement("runs:journal")
async def test_the_journal_tells_a_step_in_order(stage: MakeStage) -> None:
    on = await stage([[Think("Hm."), "I add.", Ask("add", {"a": 2, "b": 3})], "Done."], add)
    run = await on.say("go")
    await on.told(run)
    assert kinds(await on.journal(run)) == [
        *("RunStarted", "StepStarted", "ReasoningAdded", "TextAdded", "CallBegun", "InputAdded"),
        *("CallOpened", "StepFinished", "CallSettled"),
        *("StepStarted", "TextAdded", "StepFinished", "RunFinished"),
    ]


async def test_server_tools_of_one_step_run_at_the_same_time(stage: MakeStage) -> None:
    met = asyncio.Barrier(2)
    also = threading.Barrier(2)

    @tool
    async def meet(name: str) -> str:
        """Meet the other one.

        Args:
            name: Who.
        """
        await met.wait()
        return name

    @tool
    def meet_in_thread(name: str) -> str:
        """Meet the other one, blocking.

        Args:
            name: Who.
        """
        also.wait(10)
        return name

    asks = [Ask(name, {"name": who}) for name in ("meet", "meet_in_thread") for who in ("a", "b")]
    on = await stage([asks, "Met."], meet, meet_in_thread)
    run = await on.say("go")
    await on.told(run)
    assert await on.outcomes(run) == [Success("a"), Success("b")] * 2


async def test_results_are_handed_over_in_the_order_of_the_calls(stage: MakeStage) -> None:
    first_may_end = asyncio.Event()

    @tool
    async def slow(name: str) -> str:
        """Wait for the fast one.

        Args:
            name: Who.
        """
        await first_may_end.wait()
        return name

    @tool
    async def fast(name: str) -> str:
        """End at once.

        Args:
            name: Who.
        """
        first_may_end.set()
        return name

    on = await stage([[Ask("slow", {"name": "1"}), Ask("fast", {"name": "2"})], "Done."], slow, fast)
    run = await on.say("go")
    await on.told(run)
    [results] = [each for each in await on.messages() if isinstance(each, ResultsMessage)]
    assert [each.outcome for each in results.results] == [Success("1"), Success("2")]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (Ask("broken", {"why": "no disk"}), ["ValueError", "no disk"]),
        (Ask("a_set", {}), ["a_set", "JSON"]),
        (Ask("add", {"a": 1}), ["b"]),
        (Ask("add", {"a": 1, "b": "x"}), ["b"]),
        (Ask("add", '{"a": 1, "b"'), ["not valid JSON"]),
        (Ask("add", "[1, 2]"), ["add"]),
        (Ask("subtract", {"a": 1}), ["no tool", "subtract", "add"]),
        (Ask("add", '{"a": 1, "b": "\ud800"}'), ["not valid JSON"]),
        (Ask("add\ud800", {"a": 1}, id="\ud800"), ["no tool"]),
        (Ask("add", {"a": 1, "b": 2, "c": "x" * 300_000}), ["larger than"]),
    ],
)
async def test_whatever_goes_wrong_with_a_call_is_a_failure_and_the_run_continues(
    stage: MakeStage, ask: Ask, words: list[str]
) -> None:
    on = await stage([ask, _tell_failure], add, broken, a_set)
    run = await on.say("go")
    events = await on.told(run)
    assert (await on.stored(run)).state is RunState.DONE
    assert [word for word in words if word not in text_in(events)] == []
    assert all(isinstance(outcome, Failure) for outcome in await on.outcomes(run))


async def test_a_rejected_call_is_never_opened(stage: MakeStage) -> None:
    on = await stage([Ask("subtract", {"a": 1}), "Sorry."], add)
    run = await on.say("go")
    events = await on.told(run)
    rejected = the(CallRejected, events)
    assert (rejected.tool, rejected.input) == ("subtract", {"a": 1})
    assert not any(isinstance(event, CallOpened) for event in events)
    [call] = await on.calls(run)
    assert call.phase is Phase.SETTLED


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_tool_that_never_returns_fails_after_its_time(stage: MakeStage, kind: str) -> None:
    over = threading.Event()

    @tool(timeout_sec=1)
    async def hang_async() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return ""

    @tool(timeout_sec=1)
    def hang_thread() -> str:
        """Hang."""
        over.wait(30)
        return ""

    on = await stage([Ask(f"hang_{kind}"), _tell_failure], hang_async, hang_thread)
    run = await on.say("go")
    assert "did not finish within 1 s" in text_in(await on.told(run))
    over.set()


async def test_a_server_tool_without_a_limit_of_its_own_gets_the_general_one(stage: MakeStage) -> None:
    @tool
    async def hang() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return ""

    hasty = Settings(timeouts=Timeouts(server_tool=0.05))
    on = await stage([Ask("hang"), _tell_failure], hang, settings=hasty)
    run = await on.say("go")
    assert "did not finish within 0.05 s" in text_in(await on.told(run))


@requirement("tools:exception")
async def test_the_model_is_told_that_an_output_was_larger_than_the_setting_allows(stage: MakeStage) -> None:
    @tool
    def shout() -> str:
        """Shout."""
        return "x" * 5_000

    small = Settings(limits=Limits(tool_output=2048))
    on = await stage([Ask("shout"), _tell_failure], shout, settings=small)
    run = await on.say("go")
    assert "The output of `shout` is 5,002 bytes; the limit is 2 KiB." in text_in(await on.told(run))


@requirement("runs:max-steps")
async def test_a_model_that_never_answers_is_asked_so_often_and_no_more(stage: MakeStage) -> None:
    on = await stage(
        lambda moment: Ask("add", {"a": moment.steps, "b": 1}),
        add,
        settings=Settings(limits=Limits(max_steps=4)),
    )
    run = await on.say("go")
    failed = the(RunFailed, await on.told(run))
    assert (failed.code, "after 4 steps" in failed.message) == ("max_steps", True)
    assert len(on.model.prompts) == 4
    assert (await on.stored(run)).state is RunState.FAILED
    assert isinstance((await on.messages())[-1], ResultsMessage)


async def test_the_same_call_failing_three_times_in_a_row_ends_the_run(stage: MakeStage) -> None:
    on = await stage(lambda moment: Ask("broken", {"why": "no disk"}), broken)
    run = await on.say("go")
    failed = the(RunFailed, await on.told(run))
    assert (failed.code, "'broken'" in failed.message) == ("stuck", True)
    assert len(on.model.prompts) == 3


async def test_other_inputs_or_a_success_in_between_are_no_loop(stage: MakeStage) -> None:
    steps: list[Step] = [
        Ask("broken", {"why": "1"}),
        Ask("broken", {"why": "1"}),
        Ask("broken", {"why": "2"}),
        Ask("broken", {"why": "1"}),
        Ask("add", {"a": 1, "b": 1}),
        Ask("broken", {"why": "1"}),
        "I give up.",
    ]
    on = await stage(steps, broken, add)
    run = await on.say("go")
    assert text_in(await on.told(run)) == "I give up."


@pytest.mark.parametrize("after", [[], ["Half an "], [Ask("add", {"a": 1, "b": 1})]])
async def test_a_model_that_fails_ends_the_run_with_what_to_do_and_a_valid_history(
    stage: MakeStage, after: list[Step]
) -> None:
    on = await stage([[*after, Fail("The provider is overloaded.", "Try again.")], "Now."], add)
    run = await on.say("go")
    failed = the(RunFailed, await on.told(run))
    assert failed.code == "model_fault"
    assert (failed.message, failed.detail) == (
        "The model failed. Try again later. The server's log has the details.",
        "The provider is overloaded. Try again.",
    )
    stored = await on.stored(run)
    assert (stored.state, stored.error) == (RunState.FAILED, failed.message)
    assert text_in(await on.told(await on.say("again"))) == "Now."


async def test_a_fault_after_a_tool_ran_keeps_the_tools_result_in_the_history(stage: MakeStage) -> None:
    on = await stage([Ask("add", {"a": 2, "b": 3}), Fail("Overloaded."), _sum], add)
    await on.told(await on.say("go"))
    assert text_in(await on.told(await on.say("again"))) == "It is ."
    [results] = [each for each in on.model.prompts[2].messages if isinstance(each, ResultsMessage)]
    assert results.results[0].outcome == Success(5)


@pytest.mark.parametrize("tools_first", [True, False])
async def test_a_model_that_breaks_in_an_unforeseen_way_ends_its_run_and_leaves_a_valid_history(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch, tools_first: bool
) -> None:
    def script(moment: Moment) -> Step:
        if moment.text == "again":
            return "Now."
        return Ask("add", {"a": 2, "b": 3}) if tools_first and not moment.results else "never heard"

    on = await stage(script, add)
    speak = on.model.stream

    async def stream(prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        async for event in speak(prompt):
            if event == TextDelta("never "):
                raise KeyError("a bug in the adapter")
            yield event

    monkeypatch.setattr(on.model, "stream", stream)
    run = await on.say("go")
    failed = the(RunFailed, await on.told(run))
    assert failed.code == "broken"
    assert "KeyError" not in failed.message
    assert text_in(await on.told(await on.say("again"))) == "Now."


async def test_a_call_whose_input_was_cut_is_closed_as_an_error_and_not_run(stage: MakeStage) -> None:
    on = await stage([["I add.", Ask("add", {"a": 1, "b": 2}), Begin("add", '{"a": 1')], "Now."], add)
    run = await on.say("go")
    events = await on.told(run)
    finished = the(RunFinished, events)
    assert (finished.state, finished.reason) == (RunState.DONE, "length")
    rejected = [event for event in events if isinstance(event, CallRejected)]
    assert "ended early (length)" in rejected[0].error
    assert "cut off" in rejected[1].error
    assert not any(isinstance(event, CallSettled) for event in events)
    assert text_in(await on.told(await on.say("again"))) == "Now."


@pytest.mark.parametrize("reason", ["end", "length", "refusal", "other"])
async def test_calls_of_an_answer_that_did_not_end_with_calls_are_not_executed(
    stage: MakeStage, reason: str
) -> None:
    on = await stage([[Ask("add", {"a": 1, "b": 2}), Stop(reason)], "Now."], add)  # type: ignore[arg-type]
    run = await on.say("go")
    assert the(RunFinished, await on.told(run)).reason == reason
    assert len(on.model.prompts) == 1
    assert text_in(await on.told(await on.say("again"))) == "Now."


async def test_a_turn_that_the_provider_pauses_is_sent_back_unchanged(stage: MakeStage) -> None:
    on = await stage([[Think("Hm.", echo={"sig": "x"}), "So far.", Stop("pause")], " And on."])
    run = await on.say("go")
    assert text_in(await on.told(run)) == "So far. And on."
    last = on.model.prompts[1].messages[-1]
    assert isinstance(last, AssistantMessage)
    assert last.parts == (Reasoning("Hm.", {"sig": "x"}), Text("So far."))


async def test_a_pause_with_a_call_in_it_answers_the_call_as_not_executed(stage: MakeStage) -> None:
    on = await stage([[Ask("add", {"a": 1, "b": 2}), Stop("pause")], _tell_failure], add)
    run = await on.say("go")
    assert "not executed" in text_in(await on.told(run))


@requirement("runs:max-steps")
async def test_a_step_that_asks_for_too_many_calls_gets_so_many(stage: MakeStage) -> None:
    few = Settings(limits=Limits(open_calls_per_run=2))
    asks = [Ask("add", {"a": number, "b": 0}) for number in range(4)]
    on = await stage([asks, "Done."], add, settings=few)
    run = await on.say("go")
    await on.told(run)
    outcomes = await on.outcomes(run)
    assert outcomes[:2] == [Success(0), Success(1)]
    assert outcomes[2:] == [Failure("Not executed: a step may ask for 2 calls at most.")] * 2


@requirement("runs:journal")
async def test_blocks_of_text_and_reasoning_are_told_apart_and_kept(stage: MakeStage) -> None:
    step = [Think("a", echo=1), Think("b"), Say(["c", "", "d"]), Ask("add", {"a": 1, "b": 1}), Say("e")]
    on = await stage([step, "Done."], add)
    run = await on.say("go")
    events = await on.told(run, StepFinished)
    said = [event for event in events if isinstance(event, TextAdded | ReasoningAdded)]
    assert len({(type(event), event.part) for event in said}) == 4
    [first, *_] = [each for each in await on.messages() if isinstance(each, AssistantMessage)]
    assert first.parts[:3] == (Reasoning("a", 1), Reasoning("b"), Text("cd"))
    assert first.parts[4] == Text("e")


@requirement("runs:journal")
async def test_readers_see_a_call_being_written(stage: MakeStage) -> None:
    on = await stage([Ask("add", {"a": 1, "b": 2}), "Done."], add)
    run = await on.say("go")
    events = await on.told(run)
    begun, opened = the(CallBegun, events), the(CallOpened, events)
    assert begun.call_id == opened.call_id
    written = "".join(event.text for event in events if isinstance(event, InputAdded))
    assert written == '{"a": 1, "b": 2}'


async def test_usage_and_stop_reason_of_a_step_are_told(stage: MakeStage) -> None:
    on = await stage([["Hi.", Stop("end", Usage(7, 3))]])
    run = await on.say("go")
    assert the(StepFinished, await on.told(run)) == StepFinished(1, "end", Usage(7, 3))


async def test_the_model_is_offered_the_tools_the_instructions_and_the_thread(stage: MakeStage) -> None:
    on = await stage(["Hi."], add, open_url)
    await on.told(await on.say("go"))
    [prompt] = on.model.prompts
    assert [each.name for each in prompt.tools] == ["add", "open_url"]
    assert prompt.thread_id == "t1"


async def test_steps_are_numbered(stage: MakeStage) -> None:
    on = await stage([Ask("add", {"a": 1, "b": 1}), Ask("add", {"a": 1, "b": 2}), "Done."], add)
    run = await on.say("go")
    events = await on.told(run)
    assert [event.step for event in events if isinstance(event, StepStarted)] == [1, 2, 3]
    assert (await on.stored(run)).step == 3


def _sum(moment: Moment) -> Step:
    return f"It is {''.join(str(each.output) for each in moment.last)}."


def _tell_failure(moment: Moment) -> Step:
    return " ".join(each.error for each in moment.last)
