"""`OpenAIChat`: a model over the Chat Completions API, of OpenAI or of any compatible server.

A request is plain JSON. The API's rules: an assistant message with calls is followed directly by one `tool`
message for each of them; no content is empty. Servers with reasoning models want back the reasoning that led
to calls, and only that. Tool messages are text, so the images of a step's results follow in a message of
their own.

Servers differ in their streams, too: some give every call the same index, some send no ids or the same id for
all calls, some end with `stop` although they request calls, and some give no reason at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from farhand.core.run import Usage
from farhand.core.thread import AssistantMessage, Message, Reasoning, ResultsMessage, UserMessage, text_of
from farhand.models.base import (
    CallDone,
    CallStart,
    Image,
    InputDelta,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    StopReason,
    TextDelta,
)
from farhand.models.openai.client import OpenAIModel, answer_failed, create_chat, is_done
from farhand.models.prompt_encoding import PromptEncoder, ToolNames, own_echo, tag_echo
from farhand.models.provider_model import ModelRequest, RawResponse
from farhand.models.render import IMAGES_OF, as_data_url, join_text, render_input_text, render_user_parts
from farhand.models.stream_guard import decode_json, usage_of

if TYPE_CHECKING:
    import openai


PROVIDER = "openai-chat"
LONGEST_ID = 40

Item: TypeAlias = dict[str, object]


def messages_of(encoder: PromptEncoder, model: str) -> list[Item]:
    """`model` gets back only its own reasoning, not that of another model."""
    items = [item for message in encoder.prompt.messages for item in _items(message, encoder, model)]
    if not encoder.prompt.instructions:
        return items
    return [{"role": "system", "content": encoder.prompt.instructions}, *items]


def _items(message: Message, encoder: PromptEncoder, model: str) -> list[Item]:
    match message:
        case UserMessage():
            return [{"role": "user", "content": _content(render_user_parts(message, encoder.prompt))}]
        case AssistantMessage():
            return _assistant_items(message, encoder, model)
        case ResultsMessage():
            return _results(message, encoder)


def _assistant_items(message: AssistantMessage, encoder: PromptEncoder, model: str) -> list[Item]:
    text = text_of(message)
    answer: Item = {"role": "assistant", "content": text if text.strip() else None}
    calls = [
        {
            "id": encoder.ids[asked.call_id],
            "type": "function",
            "function": {"name": encoder.names.alias(asked.tool), "arguments": render_input_text(asked)},
        }
        for asked in message.tool_calls
    ]
    if calls:
        return [{**answer, **_reasoning(message, model), "tool_calls": calls}]
    return [answer] if answer["content"] else []


def _reasoning(message: AssistantMessage, model: str) -> Item:
    """The reasoning as it arrived: under the same name, in one piece."""
    thoughts: dict[str, str] = {}
    for part in message.parts:
        echo = own_echo(PROVIDER, part) if isinstance(part, Reasoning) else None
        if isinstance(part, Reasoning) and echo is not None and echo.get("model") == model:
            member = str(echo.get("member"))
            thoughts[member] = thoughts.get(member, "") + part.text
    return dict(thoughts)


def _results(message: ResultsMessage, encoder: PromptEncoder) -> list[Item]:
    items: list[Item] = []
    seen: list[str | Image] = []
    for resolved in message.results:
        shown = encoder.result(resolved)
        call = encoder.ids[resolved.call_id]
        items.append({"role": "tool", "tool_call_id": call, "content": shown.text})
        if shown.images:
            seen += [f"{IMAGES_OF} {encoder.names.alias(resolved.tool)} ({call}):", *shown.images]
    return [*items, {"role": "user", "content": _content(seen)}] if seen else items


def _content(parts: list[str | Image]) -> str | list[Item]:
    if all(isinstance(part, str) for part in parts):
        # the plain form: servers without images often do not support parts either
        return join_text(parts)
    return [_part(part) for part in parts]


def _part(part: str | Image) -> Item:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": as_data_url(part)}}


class Function(Struct):
    name: str | None = None
    arguments: str | None = None


class CallPiece(Struct):
    index: int | None = None
    id: str | None = None
    function: Function | None = None


class ChatDelta(Struct):
    """`reasoning_content` and `reasoning` are not part of OpenAI's API and may hold anything."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None
    reasoning_content: object = None
    reasoning: object = None


class Choice(Struct):
    delta: ChatDelta
    finish_reason: str | None = None


class ChatUsage(Struct):
    prompt_tokens: object = None
    completion_tokens: object = None


class ChatChunk(Struct):
    choices: list[Choice] | None = None
    usage: ChatUsage | None = None
    error: object = None


class Done:
    """The end of the stream. Some servers give no other sign that an answer is complete."""


DONE: Final = Done()
ChatEvent: TypeAlias = ChatChunk | Done

_CHUNK = Decoder(ChatChunk)


def decode_chunk(data: bytes) -> ChatEvent:
    if is_done(data):
        return DONE
    chunk = decode_json(data, _CHUNK)
    if chunk.error:
        raise answer_failed(chunk.error)
    return chunk


_REASONS: dict[str, StopReason] = {
    "stop": "end",
    "tool_calls": "end",
    "function_call": "end",
    "length": "length",
    "content_filter": "refusal",
}


class ChatDecoder:
    """`stop` is set once the answer is complete."""

    def __init__(self, names: ToolNames, model: str) -> None:
        self._names = names
        self._reasoning = _ReasoningDecoder(model)
        self._calls: list[_OpenCall] = []
        self._at: dict[int | None, _OpenCall] = {}
        self._reason: StopReason | None = None
        self._has_text = False
        self._refused = False
        self._usage = Usage()

    @property
    def stop(self) -> Stop | None:
        if self._reason is None:
            return None
        return Stop(self._reason, self._usage)

    def decode(self, chunk: ChatEvent) -> Iterator[ModelEvent]:
        if isinstance(chunk, Done):
            # a server that gives no reason reached the end
            if self._reason is None and (self._has_text or self._calls):
                yield from self._finish("end")
            return
        if chunk.usage is not None:
            self._usage = usage_of(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        # a chunk with usage, or a keep-alive, has no choices
        for choice in (chunk.choices or [])[:1]:
            yield from self._decode_delta(choice.delta)
            if choice.finish_reason and self._reason is None:
                yield from self._finish(_REASONS.get(choice.finish_reason, "other"))

    def _decode_delta(self, delta: ChatDelta) -> Iterator[ModelEvent]:
        yield from self._reasoning.decode(delta)
        if delta.content or delta.refusal or delta.tool_calls:
            yield from self._reasoning.end()
        if delta.content:
            self._has_text = True
            yield TextDelta(delta.content)
        if delta.refusal:
            self._refused = True
            yield TextDelta(delta.refusal)
        for piece in delta.tool_calls or ():
            yield from self._decode_call(piece)

    def _decode_call(self, piece: CallPiece) -> Iterator[ModelEvent]:
        name = (piece.function.name if piece.function else None) or ""
        text = (piece.function.arguments if piece.function else None) or ""
        call = self._at.get(piece.index)
        if call is None or (name and call.is_new(self._names.name(name), piece.id)):
            call = self._at[piece.index] = _OpenCall(len(self._calls), piece.id)
            self._calls.append(call)
        yield from call.add(self._names.name(name), text)

    def _finish(self, reason: StopReason) -> Iterator[ModelEvent]:
        yield from self._reasoning.end()
        # the last call of a truncated answer is truncated
        whole = self._calls[:-1] if reason == "length" else self._calls
        for call in self._calls:
            yield from call.begin()
        for call in whole:
            yield CallDone(call.index, "".join(call.pieces))
        if reason == "end" and self._calls:
            reason = "calls"
        self._reason = "refusal" if self._refused and reason == "end" else reason


class _ReasoningDecoder:
    """Reasoning, which compatible servers send in addition to the API; some require it back with calls."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._member = ""

    def decode(self, delta: ChatDelta) -> Iterator[ModelEvent]:
        members = (("reasoning_content", delta.reasoning_content), ("reasoning", delta.reasoning))
        for member, text in members:
            if isinstance(text, str) and text:
                self._member = member
                yield ReasoningDelta(text)
                return

    def end(self) -> Iterator[ModelEvent]:
        if self._member:
            yield ReasoningDone(tag_echo(PROVIDER, {"model": self._model, "member": self._member}))
        self._member = ""


class _OpenCall:
    """A call while its input arrives. It begins when its name is known."""

    def __init__(self, index: int, model_call_id: str | None) -> None:
        self.index = index
        self.model_call_id = model_call_id or None
        self.pieces: list[str] = []
        self._name = ""
        self._is_started = False

    def is_new(self, name: str, model_call_id: str | None) -> bool:
        """True if a piece with this name begins another call, although it has the same index.

        Some servers repeat name and id with every piece: those continue an input that is not complete yet.
        """
        if not self._name:
            return False
        if name != self._name or (model_call_id or self.model_call_id) != self.model_call_id:
            return True
        return _is_complete("".join(self.pieces))

    def add(self, name: str, text: str) -> Iterator[ModelEvent]:
        self._name = self._name or name
        if self._name:
            yield from self.begin()
        if text:
            self.pieces.append(text)
            if self._is_started:
                yield InputDelta(self.index, text)

    def begin(self) -> Iterator[ModelEvent]:
        if self._is_started:
            return
        self._is_started = True
        yield CallStart(self.index, self._name, self.model_call_id)
        if self.pieces:
            yield InputDelta(self.index, "".join(self.pieces))


def _is_complete(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


class OpenAIChat(OpenAIModel):
    """A model of Ollama, vLLM, llama.cpp, a gateway, or OpenAI; requires `pip install 'farhand[openai]'`.

    ```python
    from farhand import Agent
    from farhand.models import OpenAIChat

    agent = Agent(OpenAIChat("llama3", base_url="http://127.0.0.1:11434/v1"))
    ```

    Args:
        model: Its name at the server, such as `llama3`.
        api_key: Defaults to the environment variable `OPENAI_API_KEY`; a server of your own may need none.
        base_url: The server's address, such as `http://127.0.0.1:11434/v1`; defaults to `OPENAI_BASE_URL`.
        max_retries: How often the library retries after 429, 5xx or a lost connection.
        timeout_sec: How long the server may be silent, before the first event and between two events.
        options: More members of the request, including those that the library does not know:
            `temperature`, `max_tokens`, `top_k`, `chat_template_kwargs`.
    """

    provider = "openai-chat"
    example = "openai-chat:llama3"
    longest_id = LONGEST_ID
    _create = staticmethod(create_chat)
    _decode = staticmethod(decode_chunk)
    _reserved = frozenset({"model", "messages", "tools", "functions", "function_call", "stream", "timeout"})

    def _decoder(self, names: ToolNames) -> ChatDecoder:
        return ChatDecoder(names, self._model)

    def _request(self, encoder: PromptEncoder) -> ModelRequest:
        request = {
            "model": self._model,
            "stream_options": {"include_usage": True},
            **self._options,
            "messages": messages_of(encoder, self._model),
        }
        tools = encoder.function_tools()
        return {**request, "tools": tools} if tools else request

    def _send(
        self, client: openai.AsyncOpenAI, request: ModelRequest
    ) -> AbstractAsyncContextManager[RawResponse]:
        return client.chat.completions.with_streaming_response.create(**request, stream=True)
