"""The two formats of this wire: tags, or Anthropic's stream events. Knows no positions, and not when a
response ends.

What is streamed in pieces is a block: it is started, added to and stopped. Everything else is sent whole.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

from msgspec import Struct

from farhand.core.event import (
    CallBegun,
    CallOpened,
    CallRejected,
    CallSettled,
    Event,
    InputAdded,
    ReasoningAdded,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Failure, Outcome, public, seen_by_model
from farhand.core.run import Usage
from farhand.faces.awaiting.shapes import ERROR, OURS, TEXT, THINKING, TOOL_CALL, TOOL_RESULT
from farhand.wire.json_writer import encode
from farhand.wire.markup import TagEscaper, attribute, cdata, escape_stream_text


class ContentBlock(Struct, frozen=True):
    """`key` distinguishes it from the other blocks of its kind in the step."""

    kind: Literal["text", "thinking", "call"]
    key: str
    tool: str = ""


class Style(Protocol):
    @property
    def held(self) -> int:
        """Characters of the open block that are held back until it is clear whether they begin a tag."""
        ...

    def block_of(self, event: Event) -> ContentBlock | None:
        """The block that this event starts or adds to, if it is streamed."""
        ...

    def start(self, block: ContentBlock) -> str: ...

    def add(self, block: ContentBlock, text: str) -> str: ...

    def rest(self) -> str:
        """What was held back."""
        ...

    def stop(self, block: ContentBlock) -> str: ...

    def whole(self, event: Event) -> list[str]:
        """The frames of an event that is not part of a block; for most events, none."""
        ...

    def together(self, texts: list[str]) -> list[str]:
        """Joins the frames of one event into as few as its readers can read."""
        ...


class Xml:
    """Tags: text is streamed inside an open one, calls and results come in one piece."""

    def __init__(self) -> None:
        self._escaper = TagEscaper(_GUARDED)

    @property
    def held(self) -> int:
        return self._escaper.held

    def block_of(self, event: Event) -> ContentBlock | None:
        return _words(event)

    def start(self, block: ContentBlock) -> str:
        self._escaper = TagEscaper(_GUARDED)
        return f"<{_TAGS[block.kind]}>"

    def add(self, block: ContentBlock, text: str) -> str:
        return escape_stream_text(self._escaper.feed(text))

    def rest(self) -> str:
        return escape_stream_text(self._escaper.flush())

    def stop(self, block: ContentBlock) -> str:
        return f"</{_TAGS[block.kind]}>"

    def whole(self, event: Event) -> list[str]:
        match event:
            case CallOpened(call_id=call_id, tool=tool, input=input):
                return [_tool_call(call_id, tool, input)]
            case CallRejected(call_id=call_id, tool=tool, input=input, error=error):
                return [_tool_call(call_id, tool, input), _tool_result(call_id, tool, Failure(error))]
            case CallSettled(call_id=call_id, tool=tool, outcome=outcome):
                return [_tool_result(call_id, tool, outcome)]
            case _:
                return []

    def together(self, texts: list[str]) -> list[str]:
        # one frame: a reader that was cut between two would get the first one again
        return ["".join(texts)]


class Raw:
    """Each step is one message of the assistant. Results are tags between two messages, since Anthropic's
    stream has no event for them."""

    held = 0

    def __init__(self, run_id: str, model: str) -> None:
        self._run_id = run_id
        self._model = model
        self._numbers: dict[ContentBlock, int] = {}
        self._in_message = False

    def block_of(self, event: Event) -> ContentBlock | None:
        match event:
            case CallBegun(call_id=call_id, tool=tool):
                return ContentBlock("call", call_id, tool)
            case InputAdded(call_id=call_id):
                return next((block for block in self._numbers if block.key == call_id), None)
            case _:
                return _words(event)

    def start(self, block: ContentBlock) -> str:
        known = block in self._numbers
        number = self._numbers.setdefault(block, len(self._numbers))
        if known:
            # a model may write two inputs at a time: the number says which block continues
            return ""
        return _json("content_block_start", index=number, content_block=_empty(block))

    def add(self, block: ContentBlock, text: str) -> str:
        if not text:
            return ""
        kind, name = _DELTAS[block.kind]
        delta = {"type": kind, name: text}
        return _json("content_block_delta", index=self._numbers[block], delta=delta)

    def rest(self) -> str:
        return ""

    def stop(self, block: ContentBlock) -> str:
        return _json("content_block_stop", index=self._numbers[block])

    def whole(self, event: Event) -> list[str]:
        match event:
            case StepStarted(step=step):
                self._numbers = {}
                self._in_message = True
                return [_json("message_start", message=self._message(step))]
            case StepFinished(stop_reason=reason, usage=usage):
                return self._end_message(_STOP_REASONS.get(reason), usage)
            case StepDiscarded():
                return self._end_message(None, Usage())
            case CallRejected(call_id=call_id, tool=tool, error=error):
                return [_tool_result(call_id, tool, Failure(error))]
            case CallSettled(call_id=call_id, tool=tool, outcome=outcome):
                return [_tool_result(call_id, tool, outcome)]
            case _:
                return []

    def together(self, texts: list[str]) -> list[str]:
        return [each for each in texts if each]

    def _message(self, step: int) -> dict[str, object]:
        return {
            "id": f"{self._run_id}:{step}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }

    def _end_message(self, reason: str | None, usage: Usage) -> list[str]:
        if not self._in_message:
            return []
        self._in_message = False
        delta = {"stop_reason": reason, "stop_sequence": None}
        return [_json("message_delta", delta=delta, usage=usage), _json("message_stop")]


# the start of a section would hide whatever follows it from an XML parser
_GUARDED = (*OURS, "![CDATA[")
_TAGS = {"text": TEXT, "thinking": THINKING}
_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
}
_STOP_REASONS = {
    "end": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "pause": "pause_turn",
}
_OUR_TAG = re.compile(f"<(?=/?(?:{'|'.join(map(re.escape, OURS))}))", re.IGNORECASE | re.ASCII)
_ODD_IN_NAME = re.compile(r"[^A-Za-z0-9_.:-]")


def error_tag(code: str, message: str) -> str:
    return f'<{ERROR} code="{_name(code)}">{_section(message)}</{ERROR}>'


def _words(event: Event) -> ContentBlock | None:
    match event:
        case TextAdded(part=part):
            return ContentBlock("text", str(part))
        case ReasoningAdded(part=part):
            return ContentBlock("thinking", str(part))
        case _:
            return None


def _tool_call(call_id: str, tool: str, input: object) -> str:
    return f'<{TOOL_CALL} id="{call_id}" name="{_name(tool)}" arguments="{attribute(input)}"></{TOOL_CALL}>'


def _tool_result(call_id: str, tool: str, outcome: Outcome) -> str:
    text = _section(seen_by_model(public(outcome)).text)
    return f'<{TOOL_RESULT} id="{call_id}" name="{_name(tool)}">{text}</{TOOL_RESULT}>'


def _section(text: str) -> str:
    # the output of a tool may hold anything: where it would begin one of our tags, the section is split,
    # so that an XML parser reads it unchanged and a text search does not find a tag
    return _OUR_TAG.sub("<]]><![CDATA[", cdata(text))


def _name(tool: str) -> str:
    """Names of tools are plain, but a name that a model made up may hold anything."""
    return _ODD_IN_NAME.sub("_", tool)


def _empty(block: ContentBlock) -> dict[str, object]:
    match block.kind:
        case "text":
            return {"type": "text", "text": ""}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "call":
            return {"type": "tool_use", "id": block.key, "name": block.tool, "input": {}}


def _json(kind: str, **fields: object) -> str:
    text = encode({"type": kind, **fields}).decode()
    # JSON has neither character outside of strings, and escaped they mean the same: no text looks like a tag,
    # and a client that undoes escapes of its transport (two backslashes for one) reads the same value
    return text.replace("\\\\", "\\u005c").replace("<", "\\u003c")
