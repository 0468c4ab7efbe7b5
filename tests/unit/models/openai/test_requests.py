from __future__ import annotations

from farhand.core.outcome import Success
from farhand.core.thread import (
    AssistantMessage,
    File,
    Reasoning,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
from farhand.core.tool import Tool
from farhand.models.base import Image, Prompt
from farhand.models.openai import chat, responses
from farhand.models.prompt_encoding import PromptEncoder
from tests.requirement import requirement

THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
HELLO = UserMessage("m1", (Text("hello"),))
ASKED = ToolCallPart("call_1", "look", {"at": "sea"}, "c1")
REF = f"blob_{'1' * 32}"
NOTED = f'{{"ref":"{REF}"}}\n[{REF}: image: image/png, 3 bytes]'
PHOTO = {REF: Image("image/png", b"png")}
URL = "data:image/png;base64,cG5n"


def said(*parts: Text | Reasoning | ToolCallPart) -> AssistantMessage:
    return AssistantMessage("run_1", 1, parts)


def found(output: object) -> ResultsMessage:
    return ResultsMessage(
        "run_1", 1, (ToolResultPart("call_1", "look", {"at": "sea"}, Success(output), "c1"),)
    )


def test_reasoning_goes_back_before_what_it_led_to() -> None:
    message = said(Reasoning("hm", {"openai": THOUGHT}), Text("Look:"), ASKED)
    items = responses.input_of(PromptEncoder(Prompt((HELLO, message, found("blue")))))
    assert items[1:] == [
        THOUGHT,
        {"role": "assistant", "content": "Look:"},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":"sea"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "blue"},
    ]


def test_reasoning_that_led_to_nothing_and_that_of_others_stays_away() -> None:
    message = said(
        Reasoning("", {"anthropic": {"type": "thinking"}}),
        Text("Well."),
        Reasoning("hm", {"openai": THOUGHT}),
    )
    items = responses.input_of(PromptEncoder(Prompt((HELLO, message, HELLO))))
    assert items[1:2] == [{"role": "assistant", "content": "Well."}]
    assert len(items) == 3


def test_the_phase_of_a_text_goes_back_with_it() -> None:
    phase = Reasoning("", {"openai": {"type": "phase", "phase": "commentary"}})
    items = responses.input_of(
        PromptEncoder(Prompt((HELLO, said(phase, Text("First"), phase, Text("Then")))))
    )
    assert items[1:] == [
        {"role": "assistant", "content": "First", "phase": "commentary"},
        {"role": "assistant", "content": "Then"},
    ]


@requirement("models:images")
def test_images_stand_in_messages_and_in_results_of_a_response() -> None:
    sent = UserMessage("m1", (Text("See"), File(REF, "a.png", "image/png", 3)))
    prompt = Prompt((sent, said(ASKED), found({"ref": REF})), images=PHOTO)
    first, _, last = responses.input_of(PromptEncoder(prompt))
    image = {"type": "input_image", "image_url": URL, "detail": "auto"}
    assert first["content"] == [{"type": "input_text", "text": "See"}, image]
    assert last["output"] == [{"type": "input_text", "text": NOTED}, image]


@requirement("models:images")
def test_images_stand_in_messages_of_a_chat_and_follow_the_results_that_brought_them() -> None:
    sent = UserMessage("m1", (Text("See"), File(REF, "a.png", "image/png", 3)))
    prompt = Prompt((sent, said(ASKED), found({"ref": REF})), images=PHOTO)
    first, _, result, last = chat.messages_of(PromptEncoder(prompt), "m")
    image = {"type": "image_url", "image_url": {"url": URL}}
    assert first["content"] == [{"type": "text", "text": "See"}, image]
    assert result["content"] == NOTED
    # tool messages are text, so what is to be seen follows them
    assert last == {"role": "user", "content": [{"type": "text", "text": "The images of look (c1):"}, image]}


def test_a_chat_has_one_tool_message_for_each_call_and_no_empty_content() -> None:
    prompt = Prompt(
        (HELLO, said(Text(" "), ASKED), found("blue"), said(Text("\n"))), instructions="Be brief."
    )
    encoded = chat.messages_of(PromptEncoder(prompt), "m")
    function = {"name": "look", "arguments": '{"at":"sea"}'}
    assert encoded == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "blue"},
    ]


def test_a_tool_without_a_schema_takes_an_object() -> None:
    encoder = PromptEncoder(Prompt((HELLO,), [Tool(name="look", description="Look.", input_schema={})]))
    schema = {"type": "object", "properties": {}}
    assert responses.tools_of(encoder)[0]["parameters"] == schema
    assert encoder.function_tools()[0]["function"] == {
        "name": "look",
        "description": "Look.",
        "parameters": schema,
    }


def test_thoughts_go_back_to_the_model_of_the_chat_that_had_them_and_with_calls_alone() -> None:
    thought = Reasoning("hm", {"openai-chat": {"model": "m", "member": "reasoning"}})
    asked = AssistantMessage("run_1", 1, (thought, ToolCallPart("call_1", "look", {}, "c1")))
    found = ResultsMessage("run_1", 1, (ToolResultPart("call_1", "look", {}, Success("blue"), "c1"),))
    done = AssistantMessage("run_1", 2, (thought, Text("Blue.")))
    encoder = PromptEncoder(Prompt((UserMessage("m1", (Text("go"),)), asked, found, done)))
    for model, kept in (("m", [None, "hm", None, None]), ("another", [None] * 4)):
        encoded = chat.messages_of(encoder, model)
        assert [each.get("reasoning") for each in encoded] == kept
