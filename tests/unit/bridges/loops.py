"""Hand-written loops over the providers' libraries, with far hands in each."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Sequence
from typing import Any, TypeAlias, Unpack

import anthropic
import openai

from farhand.bridges.anthropic import anthropic_results, anthropic_tools
from farhand.bridges.bridge import ThreadOptions
from farhand.bridges.far_tools import Hands
from farhand.bridges.openai import chat_results, chat_tools, responses_outputs, responses_tools
from farhand.models.scripted import Step
from farhand.models.scripted.model import Script
from tests.fakes.anthropic import FakeAnthropic
from tests.fakes.openai import FakeOpenAI
from tests.fakes.provider import FakeProvider

# Any: the messages of three libraries
History: TypeAlias = list[Any]
"""What a loop keeps: it continues where this ends."""


class Loop:
    """`run` asks the model until it has answered, or raises `TimeoutError` while a call is open."""

    fake: Callable[[Script | Sequence[Step | Script]], FakeProvider]

    client: anthropic.AsyncAnthropic | openai.AsyncOpenAI

    def __init__(self, url: str, hands: Hands) -> None:
        raise NotImplementedError

    async def run(self, history: History, **where: Unpack[ThreadOptions[None]]) -> str:
        raise NotImplementedError


class AnthropicLoop(Loop):
    fake = FakeAnthropic

    def __init__(self, url: str, hands: Hands) -> None:
        self.client: anthropic.AsyncAnthropic = anthropic.AsyncAnthropic(api_key="key", base_url=url)
        self.hands = hands

    async def run(self, history: History, **where: Unpack[ThreadOptions[None]]) -> str:
        while True:
            if isinstance(history[-1], str):
                history[-1] = {"role": "user", "content": history[-1]}
            if history[-1]["role"] == "user":
                async with self.client.messages.stream(
                    model="claude-sonnet-5",
                    max_tokens=1000,
                    messages=[_without_id(each) for each in history],
                    tools=anthropic_tools(self.hands),
                ) as stream:
                    history.append((await stream.get_final_message()).to_dict())
            message = history[-1]
            if not any(block["type"] == "tool_use" for block in message["content"]):
                return "".join(block["text"] for block in message["content"] if block["type"] == "text")
            history.append(await anthropic_results(self.hands, message, **where))


def _without_id(message: dict[str, Any]) -> Any:
    return {"role": message["role"], "content": message["content"]}


class ResponsesLoop(Loop):
    fake = FakeOpenAI

    def __init__(self, url: str, hands: Hands) -> None:
        self.client: openai.AsyncOpenAI = openai.AsyncOpenAI(api_key="key", base_url=url)
        self.hands = hands

    async def run(self, history: History, **where: Unpack[ThreadOptions[None]]) -> str:
        while True:
            if isinstance(history[-1], str):
                history[-1] = {"role": "user", "content": history[-1]}
            if history[-1].get("object") != "response":
                async with self.client.responses.stream(
                    model="gpt-6-astra", store=False, input=_items(history), tools=responses_tools(self.hands)
                ) as stream:
                    history.append((await stream.get_final_response()).to_dict())
            outputs = await responses_outputs(self.hands, history[-1], **where)
            if not outputs:
                [message] = [item for item in history[-1]["output"] if item["type"] == "message"]
                return str(message["content"][0]["text"])
            history += outputs


def _items(history: History) -> Any:
    answers = (each["output"] if each.get("object") == "response" else [each] for each in history)
    return [item for items in answers for item in items]


class ChatLoop(Loop):
    fake = FakeOpenAI

    def __init__(self, url: str, hands: Hands) -> None:
        self.client: openai.AsyncOpenAI = openai.AsyncOpenAI(api_key="key", base_url=url)
        self.hands = hands

    async def run(self, history: History, **where: Unpack[ThreadOptions[None]]) -> str:
        while True:
            if isinstance(history[-1], str):
                history[-1] = {"role": "user", "content": history[-1]}
            if "choices" not in history[-1]:
                # not `stream()`: in older releases that one refuses tools that are not strict
                chunks = await self.client.chat.completions.create(
                    model="llama3", messages=_messages(history), tools=chat_tools(self.hands), stream=True
                )
                history.append(await _joined(chunks))
            results = await chat_results(self.hands, history[-1], **where)
            if not results:
                return str(history[-1]["choices"][0]["message"]["content"])
            history += results


async def _joined(chunks: AsyncIterable[Any]) -> dict[str, Any]:
    """The completion that the chunks are pieces of."""
    completion_id, text, calls = "", "", dict[int, dict[str, Any]]()
    async for chunk in chunks:
        completion_id = chunk.id
        for delta in (choice.delta for choice in chunk.choices):
            text += delta.content or ""
            for piece in delta.tool_calls or ():
                empty = {"id": piece.id, "type": "function", "function": {"name": "", "arguments": ""}}
                function = calls.setdefault(piece.index, empty)["function"]
                function["name"] += piece.function.name or ""
                function["arguments"] += piece.function.arguments or ""
    message = {"role": "assistant", "content": text} | ({"tool_calls": [*calls.values()]} if calls else {})
    return {"id": completion_id, "choices": [{"message": message}]}


def _messages(history: History) -> Any:
    return [each["choices"][0]["message"] if "choices" in each else each for each in history]
