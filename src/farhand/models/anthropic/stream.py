"""Decodes the stream of one answer of Anthropic's Messages API into model events.

Text, thinking and calls each have a decoder; any other block goes back to Anthropic unchanged. It knows the
shapes of the stream and no connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Protocol, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from farhand.core.run import Usage
from farhand.models.anthropic.request import PROVIDER
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    StopReason,
    TextDelta,
)
from farhand.models.error_messages import AnswerFailed
from farhand.models.prompt_encoding import ToolNames, tag_echo
from farhand.models.sse_reader import SseEvent
from farhand.models.stream_guard import decode_json


class StartedMessage(Struct):
    usage: object = None


class MessageStart(Struct):
    message: StartedMessage


class BlockStart(Struct):
    """The block is complete except for its deltas, as it is sent back to Anthropic."""

    content_block: dict[str, object]


class TextBlockStart(Struct):
    """The used members of a text block; compatible servers omit empty ones."""

    text: str | None = None
    citations: list[dict[str, object]] | None = None


class ThinkingBlockStart(Struct):
    thinking: str | None = None
    signature: str | None = None


class ToolUseBlockStart(Struct):
    name: str
    id: str | None = None


class TextPiece(Struct):
    text: str


class CitationPiece(Struct):
    citation: dict[str, object]


class ThinkingPiece(Struct):
    thinking: str


class SignaturePiece(Struct):
    signature: str | None = None


class InputPiece(Struct):
    partial_json: str


class OtherDelta(Struct):
    """Of a type that is not used."""


BlockDelta: TypeAlias = TextPiece | CitationPiece | ThinkingPiece | SignaturePiece | InputPiece | OtherDelta


class BlockStop(Struct):
    pass


class StopDetails(Struct):
    stop_reason: str | None = None


class MessageDelta(Struct):
    delta: StopDetails
    usage: object = None


class MessageStop(Struct):
    pass


class OtherEvent(Struct):
    """Of a type that is not used. It shows that the server follows the API."""


MessageEvent: TypeAlias = (
    MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop | OtherEvent
)


def decode_event(sent: SseEvent) -> MessageEvent | None:
    """None for a keep-alive, and for events without a name, which Anthropic never sends."""
    if sent.name == b"error":
        raise _failed(sent.data)
    if not sent.name or sent.name == b"ping" or not sent.data:
        return None
    kind = str(decode_json(sent.data, _HEAD).type)
    if kind == _BLOCK_DELTA:
        delta = decode_json(sent.data, _DELTA).delta
        return msgspec.convert(delta, _DELTAS.get(str(delta.get("type")), OtherDelta))
    return decode_json(sent.data, _DECODERS.get(kind, _OTHER))


def _failed(data: bytes) -> AnswerFailed:
    text = data.decode(errors="replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return AnswerFailed("", text or "an error without a message")
    error = body.get("error") if isinstance(body, dict) else None
    members = error if isinstance(error, dict) else {}
    return AnswerFailed(str(members.get("type") or ""), str(members.get("message") or body))


class _Head(Struct):
    type: object = None


class _BlockDelta(Struct):
    delta: dict[str, object]


_BLOCK_DELTA = "content_block_delta"
_HEAD = Decoder(_Head)
_DELTA = Decoder(_BlockDelta)
_OTHER: Decoder[MessageEvent] = Decoder(OtherEvent)
_DECODERS: dict[str, Decoder[MessageEvent]] = {
    "message_start": Decoder(MessageStart),
    "content_block_start": Decoder(BlockStart),
    "content_block_stop": Decoder(BlockStop),
    "message_delta": Decoder(MessageDelta),
    "message_stop": Decoder(MessageStop),
}
_DELTAS: dict[str, type[BlockDelta]] = {
    "text_delta": TextPiece,
    "citations_delta": CitationPiece,
    "thinking_delta": ThinkingPiece,
    "signature_delta": SignaturePiece,
    "input_json_delta": InputPiece,
}


class BlockDecoder(Protocol):
    def begin(self) -> Iterator[ModelEvent]: ...

    def decode(self, delta: BlockDelta) -> Iterator[ModelEvent]: ...

    def end(self) -> Iterator[ModelEvent]: ...


def echo_block(block: dict[str, object]) -> ReasoningDone:
    """A block to be sent back to Anthropic unchanged."""
    return ReasoningDone(tag_echo(PROVIDER, block))


class TextDecoder:
    """A text. White space is held back until the first word; without one, the block is ignored."""

    def __init__(self, block: dict[str, object]) -> None:
        read = msgspec.convert(block, TextBlockStart)
        self._block = block
        self._at_once = read.text or ""
        self._pieces: list[str] = []
        self._citations = list(read.citations or ())
        self._has_words = False

    @property
    def plain(self) -> dict[str, object] | None:
        """The block as Anthropic has it; None if it is empty, or has citations and is stored anyway."""
        return self._whole() if self._has_words and not self._citations else None

    def begin(self) -> Iterator[ModelEvent]:
        return self._add(self._at_once)

    def decode(self, delta: BlockDelta) -> Iterator[ModelEvent]:
        if isinstance(delta, TextPiece):
            yield from self._add(delta.text)
        elif isinstance(delta, CitationPiece):
            self._citations.append(delta.citation)

    def end(self) -> Iterator[ModelEvent]:
        if self._has_words and self._citations:
            yield echo_block(self._whole())

    def _add(self, text: str) -> Iterator[ModelEvent]:
        self._pieces.append(text)
        if self._has_words:
            yield TextDelta(text)
        elif text.strip():
            self._has_words = True
            yield TextDelta("".join(self._pieces))

    def _whole(self) -> dict[str, object]:
        whole = self._block | {"text": "".join(self._pieces)}
        return {**whole, "citations": self._citations} if self._citations else whole


class ThinkingDecoder:
    """Thinking. Without a signature it was cut off and would be refused, so it is not stored."""

    def __init__(self, block: dict[str, object]) -> None:
        read = msgspec.convert(block, ThinkingBlockStart)
        self._block = block
        self._pieces = [read.thinking or ""]
        self._signature = read.signature

    def begin(self) -> Iterator[ModelEvent]:
        return iter(())

    def decode(self, delta: BlockDelta) -> Iterator[ModelEvent]:
        if isinstance(delta, ThinkingPiece):
            self._pieces.append(delta.thinking)
            yield ReasoningDelta(delta.thinking)
        elif isinstance(delta, SignaturePiece):
            self._signature = delta.signature

    def end(self) -> Iterator[ModelEvent]:
        if self._signature:
            whole = {"thinking": "".join(self._pieces), "signature": self._signature}
            yield echo_block(self._block | whole)


class CallDecoder:
    """A call of one of our tools; `index` is its number in this answer."""

    def __init__(self, index: int, name: str, model_call_id: str | None) -> None:
        self._index = index
        self._name = name
        self._model_call_id = model_call_id
        self._input: list[str] = []

    def begin(self) -> Iterator[ModelEvent]:
        yield CallStart(self._index, self._name, self._model_call_id)

    def decode(self, delta: BlockDelta) -> Iterator[ModelEvent]:
        if isinstance(delta, InputPiece):
            self._input.append(delta.partial_json)
            yield InputDelta(self._index, delta.partial_json)

    def end(self) -> Iterator[ModelEvent]:
        yield CallDone(self._index, "".join(self._input))


class OtherBlockDecoder:
    """Any other block, such as a call of one of Anthropic's own tools, whose input arrives in pieces too."""

    def __init__(self, block: dict[str, object]) -> None:
        self._block = block
        self._input: list[str] = []

    def begin(self) -> Iterator[ModelEvent]:
        return iter(())

    def decode(self, delta: BlockDelta) -> Iterator[ModelEvent]:
        if isinstance(delta, InputPiece):
            self._input.append(delta.partial_json)
        return iter(())

    def end(self) -> Iterator[ModelEvent]:
        try:
            yield echo_block({**self._block, "input": json.loads("".join(self._input))})
        except ValueError:
            # there was no input, or it was cut off
            yield echo_block(self._block)


_REASONS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
}
# tokens written to the cache or read from it are counted separately, not in the first
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_OUTPUT = "output_tokens"


class MessageDecoder:
    """`stop` is set once the answer is complete."""

    def __init__(self, names: ToolNames) -> None:
        self.stop: Stop | None = None
        self._names = names
        self._reason: StopReason | None = None
        self._counts: dict[str, int] = {}
        self._calls = 0
        self._block: BlockDecoder | None = None
        """The open block, or the last one."""

    def decode(self, event: MessageEvent) -> Iterator[ModelEvent]:
        match event:
            case BlockStart():
                yield from self._begin(event.content_block)
            case BlockStop():
                yield from self._end()
            case MessageStart():
                self._count(event.message.usage)
            case MessageDelta():
                self._reason = _REASONS.get(event.delta.stop_reason or "", "other")
                self._count(event.usage)
            case MessageStop():
                self._finish()
            case OtherEvent():
                pass
            case _:
                yield from self._decode_delta(event)

    def _decode_delta(self, delta: BlockDelta) -> Iterator[ModelEvent]:
        return self._block.decode(delta) if self._block is not None else iter(())

    def _end(self) -> Iterator[ModelEvent]:
        return self._block.end() if self._block is not None else iter(())

    def _finish(self) -> None:
        if self._reason is not None:
            read = sum(self._counts.get(name, 0) for name in _INPUTS)
            self.stop = Stop(self._reason, Usage(read, self._counts.get(_OUTPUT, 0)))

    def _count(self, usage: object) -> None:
        # each count is a total so far; compatible servers omit some
        counted = usage if isinstance(usage, dict) else {}
        counts = ((name, counted.get(name)) for name in (*_INPUTS, _OUTPUT))
        self._counts |= {name: count for name, count in counts if isinstance(count, int) and count}

    def _begin(self, block: dict[str, object]) -> Iterator[ModelEvent]:
        last = self._block
        self._block = self._read(block)
        # two adjacent texts are two blocks and go back as two
        if isinstance(last, TextDecoder) and isinstance(self._block, TextDecoder) and last.plain is not None:
            yield echo_block(last.plain)
        yield from self._block.begin()

    def _read(self, block: dict[str, object]) -> BlockDecoder:
        match block.get("type"):
            case "text":
                return TextDecoder(block)
            case "thinking":
                return ThinkingDecoder(block)
            case "tool_use":
                call = msgspec.convert(block, ToolUseBlockStart)
                self._calls += 1
                return CallDecoder(self._calls - 1, self._names.name(call.name), call.id or None)
            case _:
                return OtherBlockDecoder(block)
