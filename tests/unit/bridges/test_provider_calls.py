"""Far hands in loops written by hand: Anthropic, OpenAI's Responses, Chat Completions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from farhand import Answer, Owner
from farhand.bridges.anthropic import anthropic_results, anthropic_tools
from farhand.bridges.openai import chat_results, chat_tools, responses_outputs, responses_tools
from farhand.bridges.provider_calls import ModelCall, call_all
from farhand.core.outcome import Success
from farhand.core.thread import ResultsMessage
from farhand.errors import Misuse
from farhand.models.scripted import Ask, Moment, Step
from tests.frameworks.stage import PATIENCE_SEC, YES, Stage
from tests.requirement import requirement
from tests.unit.bridges.loops import AnthropicLoop, ChatLoop, History, Loop, ResponsesLoop

LOOPS = (AnthropicLoop, ResponsesLoop, ChatLoop)
PAY = Ask("pay", {"amount": 3}, id="call_0")
OPEN = Ask("open_url", {"url": "https://example.org"}, id="call_1")

pytestmark = pytest.mark.parametrize("kind", LOOPS, ids=["anthropic", "responses", "chat"])


def tell(moment: Moment) -> str:
    """The model repeats the results of its last step."""
    last = moment.messages[-1]
    assert isinstance(last, ResultsMessage)
    outcomes = [each.outcome for each in last.results]
    return " | ".join(str(each.output if isinstance(each, Success) else each) for each in outcomes)


@asynccontextmanager
async def looping(kind: type[Loop], stage: Stage, *steps: Step) -> AsyncIterator[Loop]:
    # a second answer for a second resume
    async with kind.fake([*steps, tell, tell]) as fake:
        loop = kind(fake.url, stage.hands)
        async with loop.client:
            yield loop
        assert fake.refused == []


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with Stage("memory:", tmp_path) as stage:
        yield stage


@requirement("bridges:approval")
@pytest.mark.parametrize(
    ("answer", "expected", "paid"),
    [
        (YES, "paid 3", ["paid 3"]),
        (Answer(approved=False, reason="too much"), "They gave this reason: too much", []),
        (Answer(approved=True, input={"amount": 2}), 'to {"amount":2}.\npaid 2', ["paid 2"]),
    ],
    ids=["yes", "no", "edited"],
)
async def test_the_model_is_told_what_the_person_decided(
    kind: type[Loop], stage: Stage, answer: Answer, expected: str, paid: list[str]
) -> None:
    async with looping(kind, stage, PAY) as loop, asyncio.TaskGroup() as group:
        run = group.create_task(loop.run(["Pay"], thread="t"))
        await stage.approve_next(answer)
        assert expected in await run
    assert stage.paid == paid


@requirement("bridges:tools")
async def test_two_calls_of_one_message_wait_side_by_side(kind: type[Loop], stage: Stage) -> None:
    async with looping(kind, stage, [PAY, OPEN]) as loop, asyncio.TaskGroup() as group:
        run = group.create_task(loop.run(["Both"], thread="t"))
        pay, page = await stage.open_calls(2)
        await stage.answer(page, {"viewKey": "v1"})
        await stage.approve(pay)
        text = await run
    assert text.startswith("paid 3 | ")
    assert "v1" in text


@requirement("bridges:deadline")
async def test_a_deadline_is_told_to_the_model_in_words(kind: type[Loop], stage: Stage) -> None:
    async with looping(kind, stage, Ask("ask_quickly", {"question": "Now?"})) as loop:
        assert "Nobody answered within 1 s." in await loop.run(["Ask"], thread="t")


@requirement("bridges:deadline")
@pytest.mark.parametrize("ask", [Ask("pay", {"amount": "much"}), Ask("play", {})], ids=["input", "tool"])
async def test_bad_input_goes_back_to_the_model_before_anyone_is_asked(
    kind: type[Loop], stage: Stage, ask: Ask
) -> None:
    async with looping(kind, stage, ask) as loop:
        text = await loop.run(["Pay"], thread="t")
    assert "amount" in text or "There is no tool 'play'" in text
    assert await stage.hands.service.log.open_calls(Owner("local", "me")) == []


@requirement("bridges:cancel")
async def test_a_cancelled_loop_cancels_its_held_call(kind: type[Loop], stage: Stage) -> None:
    async with looping(kind, stage, PAY) as loop:
        run = asyncio.create_task(loop.run(["Pay"], thread="t"))
        await stage.open_calls()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await stage.no_open_call()
    assert stage.paid == []


@requirement("bridges:once")
async def test_a_provider_may_repeat_its_ids_in_every_run_of_a_thread(kind: type[Loop], stage: Stage) -> None:
    for amount in (1, 2, 2):
        async with (
            looping(kind, stage, Ask("pay", {"amount": amount}, id="call_0")) as loop,
            asyncio.TaskGroup() as group,
        ):
            run = group.create_task(loop.run(["Pay"], thread="t"))
            await stage.approve_next()
            assert await run == f"paid {amount}"
    assert stage.paid == ["paid 1", "paid 2", "paid 2"]


@requirement("bridges:park")
@requirement("bridges:once")
async def test_a_loop_parks_is_answered_meanwhile_and_two_resumes_race_for_one_effect(
    kind: type[Loop], stage: Stage
) -> None:
    async with looping(kind, stage, PAY) as loop:
        history: History = ["Pay"]
        with pytest.raises(TimeoutError, match="1 call is still open"):
            await loop.run(history, thread="t", hold_for=0.05)
        saved = json.dumps(history)
        await stage.approve_next()
        async with asyncio.timeout(PATIENCE_SEC), asyncio.TaskGroup() as group:
            resumed = [group.create_task(loop.run(json.loads(saved), thread="t")) for _ in range(2)]
        assert [each.result() for each in resumed] == ["paid 3", "paid 3"]
    assert stage.paid == ["paid 3"]


@requirement("bridges:once")
async def test_two_hundred_loops_at_once_each_get_their_own_answer(kind: type[Loop], stage: Stage) -> None:
    answers = {AnthropicLoop: _of_anthropic, ResponsesLoop: _of_responses, ChatLoop: _of_chat}

    async with asyncio.timeout(3 * PATIENCE_SEC), asyncio.TaskGroup() as group:
        runs = [group.create_task(answers[kind](stage, number)) for number in range(200)]
        await stage.approve_next(count=200)
    assert [run.result() for run in runs] == [f"paid {number}" for number in range(200)]
    assert len(stage.paid) == 200


async def test_a_message_that_was_cut_off_runs_nothing_and_own_tools_are_left_to_the_program(
    kind: type[Loop], stage: Stage
) -> None:
    cut = {AnthropicLoop: _of_anthropic, ResponsesLoop: _of_responses, ChatLoop: _of_chat}[kind]
    assert "was not executed" in str(await cut(stage, 1, is_whole=False))
    assert await cut(stage, 1, own=["pay"]) is None
    assert stage.paid == []


async def test_the_tools_are_those_of_the_hands(kind: type[Loop], stage: Stage) -> None:
    listed = {
        AnthropicLoop: [each["name"] for each in anthropic_tools(stage.hands)],
        ResponsesLoop: [each["name"] for each in responses_tools(stage.hands)],
        ChatLoop: [each["function"]["name"] for each in chat_tools(stage.hands)],
    }
    assert listed[kind] == ["pay", "open_url", "ask_quickly"]


async def _of_anthropic(
    stage: Stage, number: int, *, is_whole: bool = True, own: Sequence[str] = ()
) -> object:
    call = {"type": "tool_use", "id": "toolu_0", "name": "pay", "input": {"amount": number}}
    stop = "tool_use" if is_whole else "max_tokens"
    message = {"id": "msg_0", "role": "assistant", "stop_reason": stop, "content": [call]}
    answer = await anthropic_results(stage.hands, message, own=own, thread=f"t{number}")
    # Any: the library types every kind of block here
    content: list[Any] = list(answer["content"])
    return next((each["content"] for each in content), None)


async def _of_responses(
    stage: Stage, number: int, *, is_whole: bool = True, own: Sequence[str] = ()
) -> object:
    arguments = json.dumps({"amount": number})
    call = {"type": "function_call", "call_id": "call_0", "name": "pay", "arguments": arguments}
    response = {"id": "resp_0", "status": "completed" if is_whole else "incomplete", "output": [call]}
    outputs = await responses_outputs(stage.hands, response, own=own, thread=f"t{number}")
    return next((each["output"] for each in outputs), None)


async def _of_chat(stage: Stage, number: int, *, is_whole: bool = True, own: Sequence[str] = ()) -> object:
    function = {"name": "pay", "arguments": json.dumps({"amount": number})}
    message = {
        "role": "assistant",
        "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
    }
    choice = {"finish_reason": "tool_calls" if is_whole else "length", "message": message}
    results = await chat_results(
        stage.hands, {"id": "c_0", "choices": [choice]}, own=own, thread=f"t{number}"
    )
    return next((each["content"] for each in results), None)


ODD = {
    AnthropicLoop: (anthropic_results, "content", "Message"),
    ResponsesLoop: (responses_outputs, "output", "Response"),
    ChatLoop: (chat_results, "choices", "ChatCompletion"),
}
"""By loop: what asks for the results, the list in a message that has the calls, and what a message is."""


@pytest.mark.parametrize("message", [None, "hello", 3, {}, {"id": "m"}, []])
async def test_what_is_no_message_is_refused_in_words(kind: type[Loop], stage: Stage, message: Any) -> None:
    ask: Any
    ask, name, what = ODD[kind]
    with pytest.raises(Misuse, match=f"is not a {what}: it has no list `{name}`"):
        await ask(stage.hands, message, thread="t")


async def test_a_message_without_calls_or_with_odd_parts_asks_for_nothing(
    kind: type[Loop], stage: Stage
) -> None:
    ask: Any
    ask, name, _ = ODD[kind]
    odd: list[list[object]] = [[], [None], ["text"], [{}]]
    for parts in odd:
        text = await ask(stage.hands, {"id": "m", name: parts}, thread="t")
        assert (text["content"] if isinstance(text, dict) else text) == []


async def test_odd_options_are_refused_in_words(kind: type[Loop], stage: Stage) -> None:
    ask: Any
    answers = {AnthropicLoop: _of_anthropic, ResponsesLoop: _of_responses, ChatLoop: _of_chat}
    ask, own = answers[kind], None
    with pytest.raises(Misuse, match="`own` must be a list of tool names, not 'pay'"):
        await ask(stage, 1, own="pay")
    with pytest.raises(Misuse, match="`own` must be a list of tool names, not None"):
        await ask(stage, 1, own=own)
    assert stage.paid == []


@pytest.mark.parametrize("call", [ModelCall("", "pay", {}), ModelCall("call_0", "", {})])
async def test_a_call_without_an_id_or_a_name_is_refused_in_words(
    kind: type[Loop], stage: Stage, call: ModelCall
) -> None:
    with pytest.raises(Misuse, match="A call of this message has no id or no name"):
        await call_all(stage.hands, [call], f"m-{kind.__name__}", (), {"thread": "t"})


async def test_a_message_without_an_id_is_refused_since_its_calls_could_be_those_of_another(
    kind: type[Loop],
    stage: Stage,
) -> None:
    message_id: Any
    for message_id in ("", None, 7):
        with pytest.raises(Misuse, match="This message has no id"):
            await call_all(
                stage.hands, [ModelCall("call_0", "pay", {"amount": 1})], message_id, (), {"thread": "t"}
            )
    assert await call_all(stage.hands, [], "", (), {"thread": "t"}) == []
