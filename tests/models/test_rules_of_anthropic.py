"""Each rule that `FakeAnthropic` keeps, broken by a request of Anthropic's own library."""

from __future__ import annotations

from typing import Any, TypeAlias

import anthropic
import pytest

from farhand.models.base import Stop
from farhand.models.scripted import Ask, Say, Step, Think
from tests.fakes.anthropic import FakeAnthropic
from tests.fakes.anthropic.signature import signature_of

# Any: broken requests fit no type of the library
Json: TypeAlias = dict[str, Any]

HELLO = {"role": "user", "content": "hello"}
TOOL = {"name": "add", "description": "", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "3"}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def image(data: str) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": signature_of("hm")}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}

BROKEN: dict[str, tuple[list[Json], str]] = {
    "a call without a result": (
        [HELLO, assistant(CALL), user(text("and?"))],
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    ),
    "a call at the end": (
        [HELLO, assistant(CALL)],
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    ),
    "one result of two missing": (
        [HELLO, assistant(CALL, {**CALL, "id": "toolu_2"}), user(RESULT)],
        "immediately after: toolu_2. Each `tool_use` block must have a corresponding `tool_result` block",
    ),
    "a result that is not first": (
        [HELLO, assistant(CALL), user(text("here:"), RESULT)],
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after",
    ),
    "a result that is not in the very next message": (
        [HELLO, assistant(CALL), user(RESULT), assistant(text("ok")), user(RESULT)],
        "messages.4.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
    ),
    "a result nobody asked for": (
        [user(RESULT)],
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
    ),
    "two results for one call": (
        [HELLO, assistant(CALL), user(RESULT, RESULT)],
        "each tool_use must have a single result. Found multiple `tool_result` blocks with id: toolu_1",
    ),
    "an id that is used again": (
        [HELLO, assistant(CALL), user(RESULT), assistant(CALL), user(RESULT)],
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    "an id with strange letters": (
        [HELLO, assistant({**CALL, "id": "call 0"}), user({**RESULT, "tool_use_id": "call 0"})],
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "an input that is no object": (
        [HELLO, assistant({**CALL, "input": "{"}), user(RESULT)],
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    "a call by the user": (
        [user(CALL), assistant(text("ok")), HELLO],
        "`tool_use` blocks can only be in `assistant` messages",
    ),
    "a result by the assistant": (
        [HELLO, assistant(RESULT), HELLO],
        "`tool_result` blocks can only be in `user` messages",
    ),
    "no message": ([], "messages: at least one message is required"),
    "the assistant first": (
        [assistant(text("hello")), HELLO],
        'messages: first message must use the "user" role',
    ),
    "empty content": ([HELLO, assistant(), HELLO], "messages.1: all messages must have non-empty content"),
    "empty text": ([user(text(""))], "messages: text content blocks must be non-empty"),
    "blank text": ([user(text(" \n"))], "messages: text content blocks must contain non-whitespace text"),
    "a changed thought": (
        [HELLO, assistant({**THOUGHT, "thinking": "hm!"}, CALL), user(RESULT)],
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    "a text without a word": (
        [HELLO, assistant(text(" \n")), HELLO],
        "messages: text content blocks must contain non-whitespace text",
    ),
    "a text without a word in a result": (
        [HELLO, assistant(CALL), user({**RESULT, "content": [text("")]})],
        "messages: text content blocks must be non-empty",
    ),
    "an image that is none": (
        [user(image("aGVsbG8="))],
        "messages.0.content.0.image.source.base64: Could not process image",
    ),
    "an image of another kind": (
        [user(image("R0lGODlh"))],
        "Image does not match the provided media type image/png",
    ),
    "an image that is no base64, in a result": (
        [HELLO, assistant(CALL), user({**RESULT, "content": [image("%%%%")]})],
        "invalid base64 data",
    ),
    "an image that is too large": (
        [user(image("iVBORw0KGgo=" * 500_000))],
        "image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
    ),
    "words put into its mouth": (
        [HELLO, assistant(text("The answer is"))],
        "This model does not support assistant message prefill. The conversation must end with a user",
    ),
    "a turn that ends with a thought": (
        [HELLO, assistant(text("ok"), THOUGHT), HELLO],
        "messages.1: The final block in an assistant message cannot be `thinking`.",
    ),
    "a search that never ended": (
        [HELLO, assistant(SEARCH), HELLO],
        "`web_search` tool use with id `srv_1` was found without a corresponding `web_search_tool_result`",
    ),
}


@pytest.mark.parametrize(("messages", "words"), BROKEN.values(), ids=BROKEN.keys())
async def test_a_broken_history_is_refused_in_the_words_of_the_api(messages: list[Json], words: str) -> None:
    assert words in await refusal(messages=messages, tools=[TOOL])


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        (
            [{**TOOL, "name": "add.numbers"}],
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ),
        ([{**TOOL, "name": "a" * 129}], "tools.0.custom.name: String should match pattern"),
        ([TOOL, TOOL], "tools: Tool names must be unique."),
        ([{**TOOL, "input_schema": {}}], "tools.0.custom.input_schema.type: Field required"),
        *(
            (
                [{**TOOL, "input_schema": {"type": "object", word: [{}]}}],
                "input_schema does not support oneOf, allOf, or anyOf at the top level",
            )
            for word in ("oneOf", "allOf", "anyOf")
        ),
        (
            [{**TOOL, "input_schema": {"type": "object", "properties": {"file name": {}}}}],
            "tools.0.custom.input_schema.properties: Property keys should match pattern",
        ),
    ],
)
async def test_a_bad_tool_is_refused(tools: list[Json], words: str) -> None:
    assert words in await refusal(messages=[HELLO], tools=tools)


async def test_calls_in_the_history_need_tools() -> None:
    words = await refusal(messages=[HELLO, assistant(CALL), user(RESULT)])
    assert words == "Requests which include `tool_use` or `tool_result` blocks must define tools"


async def test_thinking_must_come_back_with_the_calls_it_led_to() -> None:
    messages = [HELLO, assistant(CALL), user(RESULT)]
    words = await refusal(
        messages=messages, tools=[TOOL], thinking={"type": "enabled", "budget_tokens": 1024}
    )
    assert "Expected `thinking` or `redacted_thinking`, but found `tool_use`" in words


async def test_a_paused_turn_must_come_back_unchanged() -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "oslo"}}
    script: list[Step] = [[Say("Searching"), Think("", echo=search), Stop("pause")], "Found it."]
    async with FakeAnthropic(script) as fake, client(fake) as library:
        paused = await ask(library, messages=[HELLO])
        assert paused.stop_reason == "pause_turn"
        blocks = [block.to_dict() for block in paused.content]
        assert blocks[1] == search
        with pytest.raises(anthropic.BadRequestError, match="does not support assistant message prefill"):
            await ask(library, messages=[HELLO, assistant({**blocks[0], "text": "Looking"}, *blocks[1:])])
        answered = await ask(library, messages=[HELLO, assistant(*blocks)])
        assert answered.stop_reason == "end_turn"


async def test_a_wrong_key_is_refused() -> None:
    async with FakeAnthropic(["never said"], key="right") as fake, client(fake) as library:
        with pytest.raises(anthropic.AuthenticationError):
            await ask(library, messages=[HELLO])
        assert [request.status for request in fake.refused] == [401]


async def test_a_good_request_is_answered_as_the_script_says() -> None:
    script: list[Step] = [[Think("hm"), Say("Let me see."), Ask("add", {"a": 1}, id="toolu_9")], "Three."]
    async with FakeAnthropic(script) as fake, client(fake) as library:
        asked = await ask(library, messages=[HELLO], tools=[TOOL])
        assert [block.type for block in asked.content] == ["thinking", "text", "tool_use"]
        assert asked.content[2].to_dict()["input"] == {"a": 1}
        result = user({**RESULT, "tool_use_id": "toolu_9"})
        said = [block.to_dict() for block in asked.content]
        answered = await ask(library, messages=[HELLO, assistant(*said), result], tools=[TOOL])
        assert answered.content[0].to_dict() == text("Three.")
        assert fake.refused == []


def client(fake: FakeAnthropic) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key="key", base_url=fake.url)


# Any: broken requests fit no type of the library
async def ask(library: anthropic.AsyncAnthropic, **request: Any) -> anthropic.types.Message:
    async with library.messages.stream(model="claude-sonnet-5", max_tokens=100, **request) as stream:
        return await stream.get_final_message()


async def refusal(**request: Any) -> str:
    async with FakeAnthropic(["never said"]) as fake, client(fake) as library:
        with pytest.raises(anthropic.BadRequestError) as refused:
            await ask(library, **request)
        assert [seen.status for seen in fake.refused] == [400]
        return str(refused.value.api_message)
