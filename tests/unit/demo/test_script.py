"""The demo's script, played against the schemas of its real tools: every prompt, every way a call can end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

import pytest

from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.thread import (
    AssistantMessage,
    Message,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
from farhand.demo import lamp
from farhand.demo.agent import SCRIPT, STARTERS, toolbox
from farhand.demo.browser import FRONTEND_TOOLS
from farhand.errors import ModelFault
from farhand.models.base import CallDone, CallStart, Prompt
from farhand.models.scripted import ScriptedModel
from farhand.tools.check import compile_schema
from farhand.tools.toolbox import make_toolbox
from tests.unit.models.conversation import text_in

# no pauses here, not even in the long story
MODEL = ScriptedModel.from_yaml(SCRIPT.read_text(encoding="utf-8").replace("delay: 0.05", "delay: 0"))
TOOLS = make_toolbox([toolbox, lamp.toolbox], [*FRONTEND_TOOLS, lamp.photograph])
FILE = {"name": "a.png", "type": "image/png", "size": 9, "ref": "blob_1"}

OUTPUTS: dict[str, object] = {
    "get_current_weather": {
        "location": "Oslo",
        "temperature": 70,
        "unit": "Fahrenheit",
        "condition": "Sunny",
    },
    "delete_file": {"deleted": "old-draft.txt"},
    "open_url": {"url": "https://example.com", "viewKey": "v1"},
    "user_confirm": "yes",
    "ask_text": "Ada",
    "select_option": "Soup",
    "pick_file": FILE,
    "pick_color": {"hex": "#AABBCC"},
    "get_location": {"lat": 59.9, "lon": 10.7, "accuracy": 20},
    "copy_to_clipboard": True,
    "take_photo": FILE,
    "read_thermometer": 21.5,
    "find_lamp_owner": {"name": "Northgate", "email": "a@b.example", "form": "http://127.0.0.1:1/demo"},
    "photograph": FILE,
    "send_report": {"reference": "NG-000001"},
}

PROMPTS = {
    "The street lamp outside number 14 is dead. Can you report it for me?": (
        [
            "find_lamp_owner",
            "get_location",
            "photograph",
            "open_url",
            "select_option",
            "ask_text",
            "open_url",
            "send_report",
        ],
        "Sent. The reference is NG-000001",
    ),
    "What is the weather in Oslo?": (["get_current_weather"], "It is Sunny in Oslo: 70 degrees Fahrenheit."),
    "Compare the weather in Oslo and Rome": (
        ["get_current_weather", "get_current_weather"],
        "Oslo has 70 °F and Oslo 70 °F. Both are Sunny.",
    ),
    "What is the weather here?": (["get_location", "get_current_weather"], "you are it is Sunny and 70 °F"),
    "Please open https://example.com/a?b=1.": (
        ["open_url"],
        "The page is open beside us: https://example.com (view v1)",
    ),
    "open https://example.com quickly": (["open_url"], "(view v1)"),
    "Open the lamp form": (["find_lamp_owner", "open_url"], "it needs no internet"),
    "Ask me something and give me ten seconds": (["ask_text"], "Ada: a fine word, and in time."),
    "Open example.com": (["open_url"], "(view v1)"),
    "Delete old-draft.txt": (["delete_file"], "old-draft.txt is gone."),
    'remove the file "photos/holiday.txt".': (["delete_file"], "is gone."),
    "Clean up, please": (["user_confirm", "delete_file"], "old-draft.txt is gone; the rest stays."),
    "Take a photo": (["take_photo"], "Got it: a.png, 9 bytes of image/png."),
    "take a picture with the back camera": (["take_photo"], "Got it"),
    "Where am I?": (["get_location"], "You are at 59.9, 10.7, give or take 20 metres."),
    'Copy "hello from far away"': (["copy_to_clipboard"], "Copied."),
    "Pick a file": (["pick_file"], "a.png has 9 bytes and says it is image/png."),
    "Pick a colour": (["pick_color"], "#AABBCC it is."),
    "Ask me my name": (["ask_text"], "Nice to meet you, Ada."),
    "Help me choose lunch": (["select_option"], "Soup, then."),
    "Ask me yes or no": (["user_confirm"], "You said yes"),
    "Read the thermometer": (["read_thermometer"], "21.5 °C in the kitchen, then."),
    "Two things at once": (["ask_text", "pick_color"], "Thank you, Ada. #AABBCC suits you."),
}

Answer: TypeAlias = Callable[[ToolCallPart], Outcome]


class Play:
    """One run of the demo's model: what it asked for, and its last words."""

    def __init__(self, prompt: str) -> None:
        self.messages: list[Message] = [UserMessage("m1", (Text(prompt),))]
        self.asked: list[ToolCallPart] = []

    async def until_answered(self, answer: Answer) -> str:
        for step in range(1, 9):
            text, asked = await self._step(step)
            if not asked:
                return text
            self.messages.append(AssistantMessage("run_1", step, asked))
            results = tuple(
                ToolResultPart(call.call_id, call.tool, call.input, answer(call)) for call in asked
            )
            self.messages.append(ResultsMessage("run_1", step, results))
        raise AssertionError("the script never comes to an end")

    async def _step(self, step: int) -> tuple[str, tuple[ToolCallPart, ...]]:
        events = [event async for event in MODEL.stream(Prompt(self.messages))]
        names = {event.index: event.tool for event in events if isinstance(event, CallStart)}
        done = [event for event in events if isinstance(event, CallDone)]
        asked = tuple(
            ToolCallPart(f"call_{step}_{call.index}", names[call.index], json.loads(call.input))
            for call in done
        )
        self.asked += asked
        return text_in(events), asked


def succeed(call: ToolCallPart) -> Outcome:
    return Success(OUTPUTS[call.tool])


def test_the_outputs_used_here_are_outputs_of_the_real_tools() -> None:
    assert {tool.name for tool in TOOLS} == set(OUTPUTS)
    for tool in TOOLS:
        if tool.output_schema is not None:
            assert compile_schema(tool.output_schema).mismatch(OUTPUTS[tool.name]) is None


@pytest.mark.parametrize("prompt", PROMPTS)
async def test_a_natural_prompt_leads_to_its_tools_and_a_closing_sentence(prompt: str) -> None:
    tools, closing = PROMPTS[prompt]
    play = Play(prompt)
    said = await play.until_answered(succeed)
    assert [call.tool for call in play.asked] == tools
    assert closing in said
    assert [TOOLS.check(call.tool, call.input) for call in play.asked] == [None] * len(tools)


def test_every_tool_of_the_demo_has_a_prompt() -> None:
    assert {tool for tools, _ in PROMPTS.values() for tool in tools} == set(OUTPUTS)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize(
    "outcome",
    [
        Failure("it broke"),
        Denied("not now"),
        Denied(),
        TimedOut(60),
        TimedOut(),
        Cancelled("the user moved on"),
    ],
    ids=str,
)
async def test_however_a_call_ends_the_model_has_something_to_say(prompt: str, outcome: Outcome) -> None:
    first = Play(prompt)
    assert await first.until_answered(lambda _: outcome)
    last = Play(prompt)
    failing = PROMPTS[prompt][0][-1]
    assert await last.until_answered(lambda call: outcome if call.tool == failing else succeed(call))


async def test_the_words_of_the_user_become_the_input() -> None:
    inputs = {
        "weather in St. Louis, please!": {"location": "St. Louis, please"},
        'Copy "hello from far away"': {"text": "hello from far away"},
        "Delete the file notes.md.": {"path": "notes.md"},
        "open https://example.com quickly": {"url": "https://example.com", "timeout_sec": 10},
        "Open https://example.com/a?b=1.": {"url": "https://example.com/a?b=1"},
        "open example.com": {"url": "https://example.com"},
        "delete {results[0].output}": {"path": "{results[0].output}"},
    }
    for prompt, input in inputs.items():
        play = Play(prompt)
        await play.until_answered(succeed)
        assert play.asked[0].input == input


@pytest.mark.parametrize(
    ("prompt", "said"), [("Clean up", "everything stays"), ("yes or no?", "so I stopped")]
)
async def test_a_denial_changes_how_the_talk_continues(prompt: str, said: str) -> None:
    play = Play(prompt)
    assert said in await play.until_answered(lambda _: Success("no"))
    assert [call.tool for call in play.asked] == ["user_confirm"]


async def test_a_place_that_was_typed_is_taken_instead_of_coordinates() -> None:
    def typed(call: ToolCallPart) -> Outcome:
        return Success({"place": "Bergen"}) if call.tool == "get_location" else succeed(call)

    play = Play("weather here")
    await play.until_answered(typed)
    assert play.asked[1].input == {"location": "Bergen"}
    assert "in Bergen" in await Play("where am I").until_answered(typed)


LAMP = "The street lamp outside number 14 is dead."


def opened(call: ToolCallPart) -> Outcome:
    """The page answers with the address that it opened."""
    assert isinstance(call.input, dict)
    return Success({"url": call.input["url"], "viewKey": "v1"})


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ({"place": "14 Northgate Road"}, "14 Northgate Road"),
        ({"lat": 54.9, "lon": -1.6, "accuracy": 20}, "14 Mill Lane, 54.9, -1.6"),
    ],
)
@pytest.mark.parametrize("photo", [Success(FILE), Failure("skipped by the user")], ids=["photo", "no photo"])
async def test_the_lamp_report_has_the_place_as_typed_and_a_photo_only_if_there_is_one(
    location: dict[str, object], place: str, photo: Outcome
) -> None:
    def answer(call: ToolCallPart) -> Outcome:
        match call.tool:
            case "get_location":
                return Success(location)
            case "photograph":
                return photo
            case "open_url":
                return opened(call)
            case _:
                return succeed(call)

    play = Play(LAMP)
    assert (await play.until_answered(answer)).startswith("Sent.")
    assert play.asked[-1].input == {
        "to": "a@b.example",
        "place": place,
        "problem": "The lamp does not come on. Ada",
        "urgency": "Soup",
        "photo": "a.png" if isinstance(photo, Success) else "none",
    }
    forms = [str(call.input) for call in play.asked if call.tool == "open_url"]
    assert ["urgency=Soup" in form for form in forms] == [False, True]


async def test_a_form_that_is_not_opened_again_does_not_stop_the_report() -> None:
    def answer(call: ToolCallPart) -> Outcome:
        is_again = call.tool == "open_url" and "urgency=" in str(call.input)
        return Failure("skipped by the user") if is_again else succeed(call)

    assert (await Play(LAMP).until_answered(answer)).startswith("Sent.")


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Make me a coffee", "There is no tool `make_coffee`"),
        ("bad input", "Invalid input for `get_current_weather`"),
    ],
)
async def test_a_wrong_call_is_told_by_the_tools_and_passed_on(prompt: str, answer: str) -> None:
    def checked(call: ToolCallPart) -> Outcome:
        return TOOLS.check(call.tool, call.input) or succeed(call)

    assert answer in await Play(prompt).until_answered(checked)


async def test_the_model_breaks_when_it_is_asked_to() -> None:
    with pytest.raises(ModelFault, match="failed on purpose"):
        await Play("please fail on purpose").until_answered(succeed)


async def test_whatever_the_help_suggests_works() -> None:
    text = await Play("hello").until_answered(succeed)
    suggestions = [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- ")]
    assert len(suggestions) > 10
    known = {**OUTPUTS, "make_coffee": "nobody"}
    for suggestion in suggestions:
        said = await Play(suggestion).until_answered(lambda call: Success(known[call.tool]))
        assert "I am a scripted model" not in said


@pytest.mark.parametrize("starter", STARTERS, ids=lambda starter: str(starter[0]))
async def test_whatever_the_page_offers_to_try_is_understood_and_needs_no_internet(
    starter: tuple[str, str, str],
) -> None:
    play = Play(starter[1])
    said = await play.until_answered(succeed)
    assert "I am a scripted model" not in said
    urls = [
        str(call.input.get("url"))
        for call in play.asked
        if isinstance(call.input, dict) and "url" in call.input
    ]
    assert all(url.startswith("http://127.0.0.1:") for url in urls)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Failure("skipped by the user"), "I continued without it: skipped by the user."),
        (TimedOut(10), "There was no answer in time, so I continued without it."),
        (Denied(), "You denied it, so I did nothing."),
    ],
)
async def test_a_skip_a_denial_and_a_timeout_are_told_plainly(outcome: Outcome, words: str) -> None:
    prompt = "Delete old-draft.txt" if isinstance(outcome, Denied) else "Help me choose lunch"
    assert words in await Play(prompt).until_answered(lambda _: outcome)
