from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from farhand.core.outcome import Success
from farhand.core.run import Usage
from farhand.errors import BadSetting, ModelFault
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    Model,
    ReasoningDelta,
    ReasoningDone,
    TextDelta,
)
from farhand.models.scripted import Ask, Begin, Fail, Moment, Say, ScriptedModel, Stop, Think
from tests.unit.models.conversation import Talk, collect, text_in


async def test_a_function_answers_with_text_in_deltas_of_a_word_each() -> None:
    model = ScriptedModel(lambda moment: f"You said {moment.text}.")
    assert await collect(model, Talk("good day")) == [
        TextDelta("You "),
        TextDelta("said "),
        TextDelta("good "),
        TextDelta("day."),
        Stop("end"),
    ]


def test_it_is_a_model_named_scripted() -> None:
    model: Model = ScriptedModel([])
    assert model.name == "scripted"


async def test_a_function_may_be_async() -> None:
    async def script(moment: Moment) -> str:
        await asyncio.sleep(0)
        return moment.text.upper()

    assert text_in(await collect(ScriptedModel(script), Talk("loud"))) == "LOUD"


async def test_a_generator_of_items_is_spoken_while_it_is_written() -> None:
    gate = asyncio.Event()

    async def script(_: Moment) -> AsyncGenerator[Say | Ask, None]:
        yield Say("first")
        await gate.wait()
        yield Ask("look")

    events = ScriptedModel(script).stream(Talk("go").prompt())
    assert await anext(events) == TextDelta("first")
    gate.set()
    assert [event async for event in events][-1] == Stop("calls")


async def test_a_stream_that_is_given_up_closes_the_generator_behind_it() -> None:
    closed: list[str] = []

    async def script(_: Moment) -> AsyncGenerator[str, None]:
        try:
            yield "one two three"
        finally:
            closed.append("closed")

    events = ScriptedModel(script).stream(Talk("go").prompt())
    await anext(events)
    assert isinstance(events, AsyncGenerator)
    await events.aclose()
    assert closed == ["closed"]


async def test_one_step_may_mix_words_and_several_calls() -> None:
    model = ScriptedModel([[Say("Looking."), Ask("weather", {"city": "Oslo"}, id="c1"), Ask("clock")]])
    assert await collect(model, Talk("go")) == [
        TextDelta("Looking."),
        CallStart(0, "weather", "c1"),
        InputDelta(0, '{"city": '),
        InputDelta(0, '"Oslo"}'),
        CallDone(0, '{"city": "Oslo"}'),
        CallStart(1, "clock", None),
        InputDelta(1, "{}"),
        CallDone(1, "{}"),
        Stop("calls"),
    ]


@pytest.mark.parametrize("raw", ["", "not json", '{"city": ', "[1]", "NaN"])
async def test_an_input_given_as_text_is_sent_as_it_stands(raw: str) -> None:
    events = await collect(ScriptedModel([Ask("weather", raw)]), Talk("go"))
    assert CallDone(0, raw) in events


async def test_an_input_json_cannot_hold_is_a_fault_that_names_the_tool() -> None:
    with pytest.raises(ModelFault, match="calls weather with an input that JSON cannot represent"):
        await collect(ScriptedModel([Ask("weather", {"at": object()})]), Talk("go"))


async def test_reasoning_comes_with_the_item_to_echo() -> None:
    events = await collect(ScriptedModel([[Think("Hm, hm.", echo={"sig": 1}), "Yes."]]), Talk("go"))
    assert events == [
        ReasoningDelta("Hm, "),
        ReasoningDelta("hm."),
        ReasoningDone({"sig": 1}),
        TextDelta("Yes."),
        Stop("end"),
    ]


async def test_a_call_that_is_only_begun_ends_the_step_for_its_length() -> None:
    events = await collect(ScriptedModel([[Ask("clock"), Begin("weather", '{"ci', id="c2")]]), Talk("go"))
    assert events[-3:] == [CallStart(1, "weather", "c2"), InputDelta(1, '{"ci'), Stop("length")]


async def test_a_stop_in_the_step_says_why_it_ends() -> None:
    stop = Stop("refusal", Usage(7, 3))
    assert (await collect(ScriptedModel([["I would rather not.", stop]]), Talk("go")))[-1] == stop
    assert await collect(ScriptedModel([Stop("pause")]), Talk("go")) == [Stop("pause")]


async def test_a_fail_breaks_off_after_what_was_said_before_it() -> None:
    stream = ScriptedModel([["Half an", Fail("overloaded")]]).stream(Talk("go").prompt())
    events = [await anext(stream), await anext(stream)]
    with pytest.raises(ModelFault, match="overloaded"):
        await anext(stream)
    assert text_in(events) == "Half an"


async def test_a_list_is_played_one_step_per_request_and_then_is_used_up() -> None:
    model = ScriptedModel(["one", lambda moment: moment.text, ["three"]])
    texts = [text_in(await collect(model, Talk("two"))) for _ in range(3)]
    assert texts == ["one", "two", "three"]
    with pytest.raises(ModelFault, match=r"has 3 steps, but"):
        await collect(model, Talk("two"))


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([None], "cannot be None"),
        ([3], "cannot be a value of type int"),
        ([["fine", 3]], "cannot contain a value of type int"),
        ([[Stop("end"), "more"]], "must be the last item"),
        ("a bare text", "cannot be created from a value of type str"),
    ],
)
def test_what_is_no_script_is_refused_when_it_is_written(steps: list[str], why: str) -> None:
    with pytest.raises(BadSetting, match=why):
        ScriptedModel(steps)


async def test_a_function_that_answers_with_no_step_breaks_the_model_not_the_program() -> None:
    forgetful: list[str] = []
    # the fault under test is one that mypy would have found
    model = ScriptedModel(lambda _: forgetful.append("x"))  # type: ignore[arg-type, return-value]
    with pytest.raises(ModelFault, match="cannot be None"):
        await collect(model, Talk("go"))


async def test_a_fault_of_a_script_names_the_function_its_file_and_its_line() -> None:
    def forgetful(moment: Moment) -> str:
        return moment.results[-1].output if moment.results else None  # type: ignore[return-value]

    line = forgetful.__code__.co_firstlineno
    with pytest.raises(ModelFault, match=rf"returned by forgetful\(\) \(test_model\.py:{line}\)"):
        await collect(ScriptedModel(forgetful), Talk("go"))
    # a list of steps has no line of its own
    with pytest.raises(ModelFault, match=r"cannot be None\. Use"):
        await collect(ScriptedModel([forgetful]), Talk("go"))


async def test_deltas_can_be_given_one_by_one() -> None:
    pieces = await collect(ScriptedModel([Say(["Hel", "lo"])]), Talk("go"))
    assert pieces[:-1] == [TextDelta("Hel"), TextDelta("lo")]


@pytest.mark.parametrize("text", ["", " ", " two  blanks\nand lines\n", "one"])
async def test_the_deltas_of_a_text_always_add_up_to_it(text: str) -> None:
    assert text_in(await collect(ScriptedModel([text]), Talk("go"))) == text


async def test_delays_are_slept_before_each_delta_and_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(delay: float) -> None:
        slept.append(delay)
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await collect(ScriptedModel([[Say("a b", delay=2.5), "c"]]), Talk("go"))
    await collect(ScriptedModel(["d"], delay=0.5), Talk("go"))
    assert slept == [2.5, 2.5, 0.0, 0.5]


async def test_the_loop_gets_a_turn_before_every_event() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        counter = group.create_task(count())
        await collect(ScriptedModel(["word " * 50]), Talk("go"))
        counter.cancel()
    assert turns >= 50


async def test_it_remembers_the_newest_requests_as_they_were() -> None:
    model = ScriptedModel(lambda _: "ok", keep_prompts=2)
    talk = Talk("one")
    for word in ("two", "three"):
        await collect(model, talk)
        talk.said("ok").user(word)
    await collect(model, talk)
    assert [len(prompt.messages) for prompt in model.prompts] == [3, 5]


async def test_a_history_without_a_call_s_result_is_refused_and_recorded() -> None:
    model = ScriptedModel(["never said"])
    talk = Talk("go").asked("look").user("and now?")
    with pytest.raises(ModelFault, match=r"no result for call_0 \(look\)"):
        await collect(model, talk)
    assert len(model.prompts) == 1


async def test_a_function_sees_results_and_continues() -> None:
    def script(moment: Moment) -> str | Ask:
        return f"It is {moment.results[-1].output}." if moment.steps else Ask("look")

    model = ScriptedModel(script)
    talk = Talk("go")
    assert (await collect(model, talk))[-1] == Stop("calls")
    assert text_in(await collect(model, talk.asked("look").got(Success("sunny")))) == "It is sunny."


async def test_an_error_of_the_script_itself_is_told_as_the_models_fault() -> None:
    with pytest.raises(ModelFault, match="ZeroDivisionError"):
        await collect(ScriptedModel(lambda moment: "x" * (1 // moment.steps)), Talk("go"))
