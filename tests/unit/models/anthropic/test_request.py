from __future__ import annotations

from farhand.core.outcome import Failure, Success
from farhand.core.thread import (
    AssistantMessage,
    File,
    Message,
    Reasoning,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
from farhand.core.tool import Tool
from farhand.models.anthropic.request import former_tools_of, messages_of, tools_of
from farhand.models.base import Image, Prompt
from farhand.models.prompt_encoding import PromptEncoder
from tests.requirement import requirement

REF = f"blob_{'1' * 32}"
NOTED = f'{{"ref":"{REF}"}}\n[{REF}: image: image/png, 3 bytes]'
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}


def user(text: str) -> UserMessage:
    return UserMessage(text, (Text(text),))


def said(*parts: Text | Reasoning | ToolCallPart) -> AssistantMessage:
    return AssistantMessage("run_1", 1, parts)


def results(*resolved: ToolResultPart) -> ResultsMessage:
    return ResultsMessage("run_1", 1, resolved)


def encoded(*messages: Message) -> list[dict[str, object]]:
    return messages_of(PromptEncoder(Prompt(messages)))


ASKED = ToolCallPart("call_1", "look", {"at": "sea"}, "toolu_1")
FOUND = ToolResultPart("call_1", "look", {"at": "sea"}, Success("blue"), "toolu_1")
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "blue"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sea"}}


def test_results_come_first_in_the_user_message_that_follows() -> None:
    assert encoded(user("go"), said(Text("ok"), ASKED), results(FOUND), user("and?"))[2] == {
        "role": "user",
        "content": [RESULT, {"type": "text", "text": "and?"}],
    }


def test_a_failure_is_marked_as_an_error() -> None:
    failed = ToolResultPart("call_1", "look", {"at": "sea"}, Failure("fog"), "toolu_1")
    marked = {**RESULT, "content": '{"status":"failed","errorText":"fog"}', "is_error": True}
    assert encoded(user("go"), said(ASKED), results(failed))[2]["content"] == [marked]


def test_messages_of_one_role_become_one() -> None:
    assert encoded(user("one"), user("two"), said(Text("a")), said(Text("b"))) == [
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ]


def test_blanks_and_empty_answers_are_left_out() -> None:
    assert encoded(user("one"), said(Text("\n")), user("two")) == [
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}
    ]


def test_thoughts_go_back_as_they_came_and_those_of_others_do_not() -> None:
    message = said(
        Reasoning("hm", {"anthropic": THOUGHT}),
        Reasoning("so", {"openai": {"type": "reasoning"}}),
        Reasoning("cut off"),
        ASKED,
    )
    assert encoded(user("go"), message, results(FOUND))[1]["content"] == [THOUGHT, CALL]


def test_a_text_that_was_kept_whole_stands_for_itself() -> None:
    cited = {"type": "text", "text": "blue", "citations": [{"type": "char_location"}]}
    message = said(Text("blue"), Reasoning("", {"anthropic": cited}), Text(" sea"))
    assert encoded(user("go"), message)[1]["content"] == [cited, {"type": "text", "text": " sea"}]


def test_an_empty_output_has_no_content() -> None:
    nothing = ToolResultPart("call_1", "look", {"at": "sea"}, Success(""), "toolu_1")
    assert encoded(user("go"), said(ASKED), results(nothing))[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1"}
    ]


@requirement("models:images")
def test_images_stand_in_messages_and_in_results() -> None:
    photo = Image("image/png", b"png")
    source = {"type": "base64", "media_type": "image/png", "data": "cG5n"}
    resolved = ToolResultPart("call_1", "look", {"at": "sea"}, Success({"ref": REF}), "toolu_1")
    sent = UserMessage("m1", (File(REF, "a.png", "image/png", 3),))
    prompt = Prompt((sent, said(ASKED), results(resolved)), images={REF: photo})
    first, _, last = messages_of(PromptEncoder(prompt))
    assert first["content"] == [{"type": "image", "source": source}]
    assert last["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [{"type": "text", "text": NOTED}, {"type": "image", "source": source}],
        }
    ]


def test_a_tool_without_a_schema_takes_an_object() -> None:
    encoder = PromptEncoder(Prompt((user("go"),), [Tool(name="look", description="Look.", input_schema={})]))
    assert tools_of(encoder) == [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]


def test_tools_that_are_gone_are_named_as_long_as_the_history_tells_of_them() -> None:
    encoder = PromptEncoder(Prompt((user("go"), said(ASKED), results(FOUND))))
    assert [tool["name"] for tool in former_tools_of(encoder)] == ["look"]


def test_a_blank_text_that_an_older_history_kept_is_left_out_and_thoughts_stay() -> None:
    blank = Reasoning("", {"anthropic": {"type": "text", "text": "\n\n", "citations": None}})
    kept = Reasoning("hm", {"anthropic": THOUGHT})
    assert encoded(user("go"), said(kept, Text("\n\n"), blank, kept, ASKED), results(FOUND))[1] == {
        "role": "assistant",
        "content": [THOUGHT, THOUGHT, CALL],
    }


def test_a_turn_without_a_word_or_with_thoughts_alone_is_left_out() -> None:
    thought, again = Reasoning("hm", {"anthropic": THOUGHT}), {"type": "text", "text": "and?"}
    before = (user("go"), said(ASKED), results(FOUND))
    assert encoded(*before, said(), user("and?"))[2:] == [{"role": "user", "content": [RESULT, again]}]
    # two messages of one role in a row are one turn to the API
    assert encoded(*before, said(thought), user("and?"))[2:] == [
        {"role": "user", "content": [RESULT]},
        {"role": "user", "content": [again]},
    ]
    cut = said(Text("blue"), thought)
    assert encoded(user("go"), cut, user("and?"))[1]["content"] == [{"type": "text", "text": "blue"}]
