"""`OpenAI`: a model over the Responses API. Nothing is stored at OpenAI: each request has the whole history.

A request is plain JSON. The API's rules: a call is answered by its `call_id`, and every call in the input has
an output; a reasoning item goes back unchanged, together with the item that followed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeAlias, assert_never

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from farhand.core.run import Usage
from farhand.core.thread import (
    AssistantMessage,
    Message,
    Part,
    Reasoning,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
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
from farhand.models.error_messages import AnswerFailed
from farhand.models.openai.client import OpenAIModel, answer_failed, create_response, is_done
from farhand.models.prompt_encoding import PromptEncoder, ToolNames, own_echo, tag_echo
from farhand.models.provider_model import ModelRequest, RawResponse
from farhand.models.render import as_data_url, render_input_text, render_user_parts
from farhand.models.stream_guard import decode_json, usage_of

if TYPE_CHECKING:
    import openai


PROVIDER = "openai"
PHASE = "phase"
"""The type of an item of our own: the phase of the answer that the text before it belongs to."""

Item: TypeAlias = dict[str, object]


def input_of(encoder: PromptEncoder) -> list[Item]:
    return [item for message in encoder.prompt.messages for item in _items(message, encoder)]


def tools_of(encoder: PromptEncoder) -> list[Item]:
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": {"properties": {}, **tool.schema},
            # strict mode supports only a part of JSON Schema; the desk checks every input anyway
            "strict": False,
        }
        for tool in encoder.definitions()
    ]


def _items(message: Message, encoder: PromptEncoder) -> Sequence[Item]:
    match message:
        case UserMessage():
            parts = render_user_parts(message, encoder.prompt)
            return [{"role": "user", "content": [_content(part) for part in parts]}]
        case AssistantMessage():
            return _assistant_items(message.parts, encoder)
        case ResultsMessage():
            return [_output(resolved, encoder) for resolved in message.results]


def _assistant_items(parts: Sequence[Part], encoder: PromptEncoder) -> list[Item]:
    items: list[Item] = []
    for part in parts:
        match part:
            case Text(text=text) if text.strip():
                items.append({"role": "assistant", "content": text})
            case ToolCallPart():
                items.append(_call(part, encoder))
            case Reasoning():
                items = _with_echo(items, own_echo(PROVIDER, part))
            case _:
                pass
    # reasoning without an answer: it would be refused without the item that follows it
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    return items


def _with_echo(items: list[Item], echo: Item | None) -> list[Item]:
    if echo is None:
        return items
    if echo.get("type") != PHASE:
        return [*items, echo]
    if items and items[-1].get("role") == "assistant":
        return [*items[:-1], {**items[-1], PHASE: echo.get(PHASE)}]
    return items


def _call(asked: ToolCallPart, encoder: PromptEncoder) -> Item:
    return {
        "type": "function_call",
        "call_id": encoder.ids[asked.call_id],
        "name": encoder.names.alias(asked.tool),
        "arguments": render_input_text(asked),
    }


def _output(resolved: ToolResultPart, encoder: PromptEncoder) -> Item:
    shown = encoder.result(resolved)
    output: object = shown.text
    if shown.images:
        output = [_content(part) for part in _in_order(shown.text, shown.images)]
    return {"type": "function_call_output", "call_id": encoder.ids[resolved.call_id], "output": output}


def _in_order(text: str, images: Sequence[Image]) -> Iterator[str | Image]:
    yield text
    yield from images


def _content(part: str | Image) -> Item:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "image_url": as_data_url(part), "detail": "auto"}


class OutputTextDelta(Struct):
    delta: str


class RefusalDelta(Struct):
    delta: str


class ReasoningTextDelta(Struct):
    delta: str


class SummaryPartAdded(Struct):
    summary_index: int


class ArgumentsDelta(Struct):
    delta: str
    output_index: int | None = None


class ItemAdded(Struct):
    item: dict[str, object]
    output_index: int | None = None


class ItemDone(Struct):
    """The item is complete, as it is sent back to OpenAI."""

    item: dict[str, object]
    output_index: int | None = None


class FailureDetails(Struct):
    code: object = None
    message: object = None


class IncompleteDetails(Struct):
    reason: str | None = None


class ResponseUsage(Struct):
    input_tokens: object = None
    output_tokens: object = None


class EndedResponse(Struct):
    status: str | None = None
    error: FailureDetails | None = None
    incomplete_details: IncompleteDetails | None = None
    usage: ResponseUsage | None = None


class ResponseEnded(Struct):
    response: EndedResponse


class ErrorSent(Struct):
    code: object = None
    message: object = None


class OtherEvent(Struct):
    """Of a type that is not used. It shows that the server follows the API."""


ResponseEvent: TypeAlias = (
    OutputTextDelta
    | RefusalDelta
    | ReasoningTextDelta
    | SummaryPartAdded
    | ArgumentsDelta
    | ItemAdded
    | ItemDone
    | ResponseEnded
    | ErrorSent
    | OtherEvent
)


class FunctionCall(Struct):
    """The beginning of a call of one of our tools."""

    name: str
    call_id: str | None = None


class FinishedCall(Struct):
    arguments: str
    status: str | None = None


class _Head(Struct):
    type: object = None
    error: object = None


_HEAD = Decoder(_Head)
_OTHER: Decoder[ResponseEvent] = Decoder(OtherEvent)
_DECODERS: dict[str, Decoder[ResponseEvent]] = {
    "response.output_text.delta": Decoder(OutputTextDelta),
    "response.refusal.delta": Decoder(RefusalDelta),
    "response.reasoning_summary_text.delta": Decoder(ReasoningTextDelta),
    "response.reasoning_text.delta": Decoder(ReasoningTextDelta),
    "response.reasoning_summary_part.added": Decoder(SummaryPartAdded),
    "response.function_call_arguments.delta": Decoder(ArgumentsDelta),
    "response.output_item.added": Decoder(ItemAdded),
    "response.output_item.done": Decoder(ItemDone),
    "response.completed": Decoder(ResponseEnded),
    "response.incomplete": Decoder(ResponseEnded),
    "response.failed": Decoder(ResponseEnded),
    "error": Decoder(ErrorSent),
}


def decode_event(data: bytes) -> ResponseEvent | None:
    if is_done(data):
        return None
    head = decode_json(data, _HEAD)
    if head.error:
        raise answer_failed(head.error)
    return decode_json(data, _DECODERS.get(str(head.type), _OTHER))


_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "length", "content_filter": "refusal"}
_NO_REASON = FailureDetails(message="the response failed")


class ResponseDecoder:
    """`stop` is set once the answer is complete."""

    def __init__(self, names: ToolNames) -> None:
        self.stop: Stop | None = None
        self._names = names
        self._calls: dict[int | None, int] = {}
        self._refused = False

    def decode(self, event: ResponseEvent) -> Iterator[ModelEvent]:
        match event:
            case OutputTextDelta():
                yield TextDelta(event.delta)
            case ItemAdded():
                if event.item.get("type") == "function_call":
                    yield self._begin(event.output_index, msgspec.convert(event.item, FunctionCall))
            case ItemDone():
                yield from self._end(event.output_index, event.item)
            case ResponseEnded():
                self._finish(event.response)
            case ErrorSent():
                raise _failed(event)
            case _:
                yield from self._decode_rest(event)

    def _decode_rest(
        self, event: RefusalDelta | ReasoningTextDelta | SummaryPartAdded | ArgumentsDelta | OtherEvent
    ) -> Iterator[ModelEvent]:
        match event:
            case RefusalDelta():
                self._refused = True
                yield TextDelta(event.delta)
            case ReasoningTextDelta():
                yield ReasoningDelta(event.delta)
            case SummaryPartAdded():
                if event.summary_index > 0:
                    yield ReasoningDelta("\n\n")
            case ArgumentsDelta():
                if event.output_index in self._calls:
                    yield InputDelta(self._calls[event.output_index], event.delta)
            case OtherEvent():
                pass
            case _:
                assert_never(event)

    def _begin(self, output_index: int | None, call: FunctionCall) -> CallStart:
        index = self._calls[output_index] = len(self._calls)
        return CallStart(index, self._names.name(call.name), call.call_id or None)

    def _end(self, output_index: int | None, item: dict[str, object]) -> Iterator[ModelEvent]:
        match item.get("type"):
            case "function_call":
                if output_index not in self._calls:
                    yield self._begin(output_index, msgspec.convert(item, FunctionCall))
                call = msgspec.convert(item, FinishedCall)
                if call.status != "incomplete":
                    yield CallDone(self._calls[output_index], call.arguments)
            case "message":
                if item.get(PHASE) is not None:
                    yield ReasoningDone(tag_echo(PROVIDER, {"type": PHASE, PHASE: item[PHASE]}))
            case "reasoning":
                # what is not stored at OpenAI can be sent back only with its content
                if item.get("encrypted_content"):
                    yield ReasoningDone(tag_echo(PROVIDER, item))
            case _:
                yield ReasoningDone(tag_echo(PROVIDER, item))

    def _finish(self, response: EndedResponse) -> None:
        if response.status == "failed":
            raise _failed(response.error or _NO_REASON)
        used = response.usage
        usage = usage_of(used.input_tokens, used.output_tokens) if used else Usage()
        self.stop = Stop(self._reason(response), usage)

    def _reason(self, response: EndedResponse) -> StopReason:
        if response.status == "incomplete":
            why = response.incomplete_details.reason if response.incomplete_details else None
            return _INCOMPLETE.get(why or "", "other")
        if self._calls:
            return "calls"
        return "refusal" if self._refused else "end"


def _failed(error: ErrorSent | FailureDetails) -> AnswerFailed:
    return AnswerFailed(str(error.code or ""), str(error.message or ""))


class OpenAI(OpenAIModel):
    """A model of OpenAI over the Responses API; requires `pip install 'farhand[openai]'`.

    ```python
    from farhand import Agent
    from farhand.models import OpenAI

    agent = Agent(OpenAI("gpt-6-astra", api_key="sk-example", options={"reasoning": {"effort": "low"}}))
    ```

    Args:
        model: For example `gpt-6-astra`.
        api_key: Defaults to the environment variable `OPENAI_API_KEY`.
        base_url: Another server with the Responses API; defaults to `OPENAI_BASE_URL`, if set.
        max_retries: How often the library retries after 429, 5xx or a lost connection.
        timeout_sec: How long the server may be silent, before the first event and between two events.
        options: More members of the request, including those that the library does not know:
            `reasoning`, `max_output_tokens`, OpenAI's own `tools`.
    """

    provider = "openai"
    example = "openai:gpt-6-astra"
    _create = staticmethod(create_response)
    _decode = staticmethod(decode_event)
    _reserved = frozenset(
        {
            "model",
            "input",
            "instructions",
            "stream",
            "timeout",
            "background",
            "conversation",
            "previous_response_id",
        }
    )

    def _decoder(self, names: ToolNames) -> ResponseDecoder:
        return ResponseDecoder(names)

    def _request(self, encoder: PromptEncoder) -> ModelRequest:
        own, given = tools_of(encoder), self._options.get("tools")
        tools = [*own, *given] if isinstance(given, list | tuple) else own
        request = {"model": self._model, "store": False, **self._options, "input": input_of(encoder)}
        if encoder.prompt.instructions:
            request["instructions"] = encoder.prompt.instructions
        return {**request, "tools": tools} if tools else request

    def _send(
        self, client: openai.AsyncOpenAI, request: ModelRequest
    ) -> AbstractAsyncContextManager[RawResponse]:
        return client.responses.with_streaming_response.create(**request, stream=True)
