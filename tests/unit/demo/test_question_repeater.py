"""A question that timed out is asked again unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping

from farhand.core.outcome import Outcome, Success, TimedOut
from farhand.core.thread import (
    AssistantMessage,
    Message,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
from farhand.demo.agent import SCRIPT
from farhand.demo.question_repeater import QuestionRepeater
from farhand.models.base import CallDone, CallStart, Prompt
from farhand.models.scripted import ScriptedModel
from tests.unit.models.conversation import text_in

MODEL = QuestionRepeater(ScriptedModel.from_yaml(SCRIPT))
LATE = TimedOut(10.0)
WORD = {"question": "Quick: what is your favourite word?", "timeout_sec": 10}


class Chat:
    """A conversation with the demo's model, answered by the names of its tools."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._calls = 0

    async def says(self, text: str, answers: Mapping[str, Outcome]) -> tuple[list[tuple[str, object]], str]:
        """All calls of the turn, and its last words."""
        self._messages.append(UserMessage(f"m{len(self._messages)}", (Text(text),)))
        asked: list[tuple[str, object]] = []
        for step in range(1, 9):
            words, calls = await self._step()
            asked += [(call.tool, call.input) for call in calls]
            parts = calls or (Text(words),)
            self._messages.append(AssistantMessage("run", step, parts))
            if not calls:
                return asked, words
            results = [
                ToolResultPart(each.call_id, each.tool, each.input, answers[each.tool]) for each in calls
            ]
            self._messages.append(ResultsMessage("run", step, tuple(results)))
        raise AssertionError("the script never comes to an end")

    async def _step(self) -> tuple[str, tuple[ToolCallPart, ...]]:
        events = [event async for event in MODEL.stream(Prompt(tuple(self._messages)))]
        names = {event.index: event.tool for event in events if isinstance(event, CallStart)}
        calls = []
        for event in events:
            if isinstance(event, CallDone):
                self._calls += 1
                calls.append(ToolCallPart(f"call_{self._calls}", names[event.index], json.loads(event.input)))
        return text_in(events), tuple(calls)


async def test_a_question_that_timed_out_is_asked_again_as_it_was_and_answered() -> None:
    chat = Chat()
    asked, words = await chat.says("Ask me something and give me ten seconds", {"ask_text": LATE})
    assert asked == [("ask_text", WORD)]
    assert words.startswith("There was no answer in time")
    asked, words = await chat.says("Please ask me again.", {"ask_text": Success("Lamp")})
    assert asked == [("ask_text", WORD)]
    assert words == "Lamp: a fine word, and in time."


async def test_it_is_asked_as_often_as_it_times_out() -> None:
    chat = Chat()
    await chat.says("Ask me something and give me ten seconds", {"ask_text": LATE})
    for _ in range(2):
        asked, words = await chat.says("Please ask me again.", {"ask_text": LATE})
        assert asked == [("ask_text", WORD)]
        assert words.startswith("There was no answer in time")
    _, words = await chat.says("ask again", {"ask_text": Success("Lamp")})
    assert words == "Lamp: a fine word, and in time."


async def test_of_two_questions_only_the_one_without_an_answer_is_asked_again() -> None:
    chat = Chat()
    await chat.says("Two things at once", {"ask_text": Success("Ada"), "pick_color": LATE})
    asked, words = await chat.says("Please ask me again.", {"pick_color": Success({"hex": "#AABBCC"})})
    assert asked == [("pick_color", {"prompt": "Pick your favourite colour"})]
    assert words == "Thank you, Ada. #AABBCC suits you."


async def test_a_story_continues_where_a_question_had_timed_out() -> None:
    file = {"name": "lamp.png", "type": "image/png", "size": 9, "ref": "blob_1"}
    owner = {"name": "Northgate", "email": "a@b.example", "form": "http://127.0.0.1:1/demo"}
    answers: dict[str, Outcome] = {
        "find_lamp_owner": Success(owner),
        "get_location": Success({"lat": 54.9, "lon": -1.6, "accuracy": 20}),
        "open_url": Success({"url": "http://127.0.0.1:1/demo", "viewKey": "v1"}),
        "photograph": LATE,
        "select_option": Success("Low"),
        "ask_text": Success("Dead"),
        "send_report": Success({"reference": "NG-000001"}),
    }
    chat = Chat()
    await chat.says("The street lamp outside number 14 is dead.", answers)
    asked, words = await chat.says("Please ask me again.", {**answers, "photograph": Success(file)})
    assert [tool for tool, _ in asked] == [
        "photograph",
        "open_url",
        "select_option",
        "ask_text",
        "open_url",
        "send_report",
    ]
    assert words.startswith("Sent. The reference is NG-000001")


async def test_with_nothing_to_ask_again_it_says_so() -> None:
    asked, words = await Chat().says("Please ask me again.", {})
    assert (asked, words) == ([], "All my questions are answered. What would you like to do?")
