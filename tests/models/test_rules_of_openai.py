"""Each rule that `FakeOpenAI` keeps on both APIs, broken by a request of OpenAI's own library."""

from __future__ import annotations

from typing import Any, TypeAlias

import openai
import pytest
from openai.types.responses import Response, ResponseCompletedEvent

from farhand.models.scripted import Ask, Say, Step, Think
from tests.fakes.openai import FakeOpenAI
from tests.fakes.openai.encrypted_reasoning import sealed

# Any: broken requests fit no type of the library
Json: TypeAlias = dict[str, Any]

HELLO = {"role": "user", "content": "hello"}
CALL = {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
SEALED = {**THOUGHT, "encrypted_content": sealed(THOUGHT)}
FUNCTION = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}

NO_IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8="}

BROKEN_INPUT: dict[str, tuple[list[Json], str]] = {
    "a call without an output": ([HELLO, CALL], "No tool output found for function call call_1."),
    "one output of two missing": (
        [HELLO, CALL, {**CALL, "call_id": "call_2"}, OUTPUT],
        "No tool output found for function call call_2.",
    ),
    "an output without a call": (
        [HELLO, OUTPUT],
        "No tool call found for function call output with call_id call_1.",
    ),
    "an output before its call": (
        [HELLO, OUTPUT, CALL],
        "No tool call found for function call output with call_id call_1.",
    ),
    "an answer by the item's id": (
        [HELLO, {**CALL, "id": "fc_1"}, {**OUTPUT, "call_id": "fc_1"}],
        "No tool call found for function call output with call_id fc_1.",
    ),
    "two outputs for one call": (
        [HELLO, CALL, OUTPUT, OUTPUT],
        "No tool call found for function call output with call_id call_1.",
    ),
    "an id that is used again": (
        [HELLO, CALL, OUTPUT, CALL, OUTPUT],
        "Duplicate item found with id call_1. Remove duplicate items from your input and try again.",
    ),
    "a call without an id": (
        [HELLO, {**CALL, "call_id": ""}],
        "Missing required parameter: 'input[1].call_id'.",
    ),
    "an id that is too long": (
        [HELLO, {**CALL, "call_id": "c" * 65}],
        "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64",
    ),
    "an image that is none, in an output": (
        [HELLO, CALL, {**OUTPUT, "output": [NO_IMAGE]}],
        "Invalid 'input[2].image_url': Could not process image.",
    ),
    "an image that is no base64": (
        [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png,%89PNG"}]}],
        "Invalid 'input[0].image_url': Expected a base64-encoded data URL",
    ),
    "an output that is no text": (
        [HELLO, CALL, {**OUTPUT, "output": {"sum": 3}}],
        "Invalid type for 'input[2].output': expected one of an array of objects or string",
    ),
    "reasoning without what followed it": (
        [HELLO, SEALED, HELLO],
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    "reasoning that was changed": (
        [HELLO, {**SEALED, "summary": []}, CALL, OUTPUT],
        "The encrypted content for item rs_1 could not be verified.",
    ),
}


@pytest.mark.parametrize(("items", "words"), BROKEN_INPUT.values(), ids=BROKEN_INPUT.keys())
async def test_a_broken_input_is_refused_in_the_words_of_the_api(items: list[Json], words: str) -> None:
    assert words in await refused_response(input=items, tools=[FUNCTION])


async def test_reasoning_that_is_kept_nowhere_is_not_found() -> None:
    async with FakeOpenAI(["never said"]) as fake, client(fake) as library:
        with pytest.raises(
            openai.NotFoundError, match="Items are not persisted when `store` is set to false"
        ):
            await respond(library, input=[HELLO, THOUGHT, CALL, OUTPUT])


async def test_a_call_must_come_back_with_the_reasoning_it_came_from() -> None:
    script: list[Step] = [[Think("hm"), Ask("add", {"a": 1}, id="call_7")], "Three."]
    async with FakeOpenAI(script) as fake, client(fake) as library:
        asked = await respond(library, input=[HELLO], tools=[FUNCTION])
        thought, call = (item.to_dict() for item in asked.output)
        output = {**OUTPUT, "call_id": "call_7"}
        with pytest.raises(openai.BadRequestError, match="without its required 'reasoning' item"):
            await respond(library, input=[HELLO, call, output])
        answered = await respond(library, input=[HELLO, thought, call, output])
        assert answered.output_text == "Three."


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ({**FUNCTION, "name": "add.numbers"}, "Invalid 'tools[0].name': string does not match pattern."),
        ({**FUNCTION, "name": "a" * 65}, "Invalid 'tools[0].name': string too long."),
        (
            {**FUNCTION, "parameters": {}},
            "Invalid schema for function 'add': schema must be a JSON Schema of 'type: \"object\"', got",
        ),
        *(
            (
                {**FUNCTION, "parameters": {"type": "object", word: [{}]}},
                "Invalid schema for function 'add': schema must have type 'object' and not have 'oneOf'",
            )
            for word in ("oneOf", "anyOf", "allOf", "enum", "not")
        ),
    ],
)
async def test_a_bad_function_is_refused(function: Json, words: str) -> None:
    assert words in await refused_response(input=[HELLO], tools=[function])


CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
TOLD = {"role": "tool", "tool_call_id": "call_1", "content": "3"}
CHAT_FUNCTION = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}

CHAT_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}

BROKEN_CHAT: dict[str, tuple[list[Json], str]] = {
    "a call without a tool message": (
        [HELLO, ASKED, HELLO],
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each",
    ),
    "a call at the end": ([HELLO, ASKED], "did not have response messages: call_1"),
    "one tool message of two missing": (
        [HELLO, {**ASKED, "tool_calls": [CHAT_CALL, {**CHAT_CALL, "id": "call_2"}]}, TOLD],
        "did not have response messages: call_2",
    ),
    "a tool message that does not follow": (
        [HELLO, TOLD],
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with",
    ),
    "a tool message after another one": (
        [HELLO, ASKED, TOLD, HELLO, TOLD],
        "messages with role 'tool' must be a response to a preceeding message",
    ),
    "a tool message for another call": (
        [HELLO, ASKED, {**TOLD, "tool_call_id": "call_9"}],
        "Invalid parameter: 'tool_call_id' of 'call_9' not found in 'tool_calls' of previous message.",
    ),
    "an id that is used again": (
        [HELLO, ASKED, TOLD, ASKED, TOLD],
        "Duplicate value for 'tool_call_id' of 'call_1' in message[3].",
    ),
    "an image in a tool message": (
        [HELLO, ASKED, {**TOLD, "content": [CHAT_IMAGE]}],
        "Image URLs are only allowed for messages with role 'user', but this message with role 'tool'",
    ),
    "an image that is none": (
        [{"role": "user", "content": [CHAT_IMAGE]}],
        "Invalid 'messages[0].content.image_url': Could not process image.",
    ),
    "no content": (
        [HELLO, {"role": "assistant", "content": None}, HELLO],
        "Invalid value for 'content': expected a string, got null.",
    ),
    "an empty list of calls": (
        [HELLO, {"role": "assistant", "content": "hi", "tool_calls": []}, HELLO],
        "Invalid 'messages[1].tool_calls': empty array.",
    ),
    "an id that is too long": (
        [HELLO, {**ASKED, "tool_calls": [{**CHAT_CALL, "id": "c" * 41}]}],
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40",
    ),
}


@pytest.mark.parametrize(("messages", "words"), BROKEN_CHAT.values(), ids=BROKEN_CHAT.keys())
async def test_a_broken_chat_is_refused_in_the_words_of_the_api(messages: list[Json], words: str) -> None:
    async with FakeOpenAI(["never said"]) as fake, client(fake) as library:
        with pytest.raises(openai.BadRequestError) as refused:
            await chat(library, messages=messages, tools=[CHAT_FUNCTION])
        assert words in words_of(refused.value)
        assert [seen.status for seen in fake.refused] == [400]


async def test_a_good_chat_is_answered_as_the_script_says() -> None:
    script: list[Step] = [[Say("Let me see."), Ask("add", {"a": 1}, id="call_1")], "Three."]
    async with FakeOpenAI(script) as fake, client(fake) as library:
        asked = await chat(library, messages=[HELLO], tools=[CHAT_FUNCTION])
        assert asked[-1].choices[0].finish_reason == "tool_calls"
        answered = await chat(library, messages=[HELLO, ASKED, TOLD], tools=[CHAT_FUNCTION])
        assert "".join(chunk.choices[0].delta.content or "" for chunk in answered) == "Three."
        assert fake.refused == []


async def test_a_chat_server_may_want_thoughts_back_as_they_were() -> None:
    script: list[Step] = [[Think("hm"), Ask("add", {"a": 1}, id="call_1")], "Three."]
    async with FakeOpenAI(script, reasoning="reasoning_content") as fake, client(fake) as library:
        await chat(library, messages=[HELLO], tools=[CHAT_FUNCTION])
        for kept, words in (
            ({}, "Missing `reasoning_content` field in the assistant message at message index 1."),
            ({"reasoning_content": "hm!"}, "message index 1 was changed"),
        ):
            with pytest.raises(openai.BadRequestError, match=words):
                await chat(library, messages=[HELLO, {**ASKED, **kept}, TOLD], tools=[CHAT_FUNCTION])
        whole = {**ASKED, "reasoning_content": "hm"}
        assert await chat(library, messages=[HELLO, whole, TOLD], tools=[CHAT_FUNCTION])


async def test_a_wrong_key_is_refused() -> None:
    async with FakeOpenAI(["never said"], key="right") as fake, client(fake) as library:
        with pytest.raises(openai.AuthenticationError):
            await respond(library, input="hello")


def client(fake: FakeOpenAI) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="key", base_url=fake.url)


# Any: broken requests fit no type of the library
async def respond(library: openai.AsyncOpenAI, **request: Any) -> Response:
    async with await library.responses.create(model="gpt", store=False, stream=True, **request) as events:
        completed = [event async for event in events if isinstance(event, ResponseCompletedEvent)]
    return completed[0].response


async def chat(library: openai.AsyncOpenAI, **request: Any) -> list[openai.types.chat.ChatCompletionChunk]:
    async with await library.chat.completions.create(model="gpt", stream=True, **request) as chunks:
        return [chunk async for chunk in chunks]


async def refused_response(**request: Any) -> str:
    async with FakeOpenAI(["never said"]) as fake, client(fake) as library:
        with pytest.raises(openai.BadRequestError) as refused:
            await respond(library, **request)
        assert [seen.status for seen in fake.refused] == [400]
        return words_of(refused.value)


def words_of(error: openai.APIStatusError) -> str:
    """As the fake sent them: older versions of the library quote the whole body in their own message."""
    return str(error.response.json()["error"]["message"])
