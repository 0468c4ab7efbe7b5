"""The stream of one response as model events. Knows the stream's shapes, and no connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from farhand.core.run import Usage
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
from farhand.models.calling import Names
from farhand.models.openai.client import AnswerFailed
from farhand.models.openai.responses_input import PHASE, PROVIDER
from farhand.models.reading import counted
from farhand.models.telling import echo_by

if TYPE_CHECKING:
    from openai.types.responses import (
        Response,
        ResponseFunctionToolCall,
        ResponseOutputItem,
        ResponseStreamEvent,
    )

_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "length", "content_filter": "refusal"}


class Answer:
    """`stop` is there once the answer is complete."""

    def __init__(self, names: Names) -> None:
        self.stop: Stop | None = None
        self._names = names
        self._calls: dict[int, int] = {}
        self._refused = False

    def hear(self, event: ResponseStreamEvent) -> Iterator[ModelEvent]:
        match event.type:
            case "response.output_item.added":
                if event.item.type == "function_call":
                    yield self._begin(event.output_index, event.item)
            case "response.output_item.done":
                yield from self._end(event.output_index, event.item)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._finish(event.response)
            case "error":
                raise AnswerFailed(event.code or "", event.message)
            case _:
                yield from self._hear_delta(event)

    def _hear_delta(self, event: ResponseStreamEvent) -> Iterator[ModelEvent]:
        match event.type:
            case "response.output_text.delta":
                yield TextDelta(event.delta)
            case "response.refusal.delta":
                self._refused = True
                yield TextDelta(event.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield ReasoningDelta(event.delta)
            case "response.reasoning_summary_part.added" if event.summary_index > 0:
                yield ReasoningDelta("\n\n")
            case "response.function_call_arguments.delta" if event.output_index in self._calls:
                yield InputDelta(self._calls[event.output_index], event.delta)
            case _:
                pass

    def _begin(self, output_index: int, item: ResponseFunctionToolCall) -> CallStart:
        index = self._calls[output_index] = len(self._calls)
        return CallStart(index, self._names.name(item.name), item.call_id or None)

    def _end(self, output_index: int, item: ResponseOutputItem) -> Iterator[ModelEvent]:
        match item.type:
            case "function_call":
                if output_index not in self._calls:
                    yield self._begin(output_index, item)
                if item.status != "incomplete":
                    yield CallDone(self._calls[output_index], item.arguments)
            case "message":
                if item.phase is not None:
                    yield ReasoningDone(echo_by(PROVIDER, {"type": PHASE, PHASE: item.phase}))
            case "reasoning":
                # what is not kept at OpenAI can be handed back only with its content
                if item.encrypted_content:
                    yield ReasoningDone(echo_by(PROVIDER, item.to_dict(mode="json")))
            case _:
                yield ReasoningDone(echo_by(PROVIDER, item.to_dict(mode="json")))

    def _finish(self, response: Response) -> None:
        if response.status == "failed":
            failed = response.error
            code, words = (failed.code, failed.message) if failed else ("", "the response failed")
            raise AnswerFailed(code, words)
        used = response.usage
        usage = counted(used.input_tokens, used.output_tokens) if used else Usage()
        self.stop = Stop(self._reason(response), usage)

    def _reason(self, response: Response) -> StopReason:
        if response.status == "incomplete":
            why = response.incomplete_details.reason if response.incomplete_details else None
            return _INCOMPLETE.get(why or "", "other")
        if self._calls:
            return "calls"
        return "refusal" if self._refused else "end"
