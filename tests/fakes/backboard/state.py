"""What Backboard keeps: assistants, threads, and at most one run per thread that waits for outputs.

Owns the rules of rounds. Knows no HTTP and no script.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from farhand.core.outcome import Success
from farhand.core.thread import (
    AssistantMessage,
    Message,
    Part,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
from tests.fakes.provider import Json, Refusal

CREATED = "2027-01-15T08:00:00Z"
_SPACE = uuid.UUID("6f1d3c1e-7d2b-4c0a-9a51-0f6b6d2c8e11")


class Ids:
    """UUIDs, as Backboard gives them out; the same in every test."""

    def __init__(self) -> None:
        self._made = 0

    def fresh(self) -> str:
        self._made += 1
        return str(uuid.uuid5(_SPACE, str(self._made)))


@dataclass
class Run:
    id: str
    status: str = "in_progress"
    tool_calls: tuple[ToolCallPart, ...] = ()


@dataclass
class Thread:
    id: str
    assistant: str
    messages: list[Message] = field(default_factory=list)
    records: list[Json] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)

    @property
    def waiting(self) -> Run | None:
        return next((run for run in self.runs.values() if run.status == "requires_action"), None)

    def hear(self, content: str, metadata: object, ids: Ids) -> Run:
        """The user's words, and the run that answers them."""
        if not content:
            raise Refusal(400, "content is required")
        if self.waiting is not None:
            raise Refusal(
                400, f"Run {self.waiting.id} requires action: submit its tool outputs or cancel it first"
            )
        message = ids.fresh()
        self.messages.append(UserMessage(message, (Text(content),)))
        self._record(message, "user", content, metadata)
        return self._begin(ids)

    def take(self, run_id: str, outputs: Sequence[Json], ids: Ids) -> Run:
        """The outputs of a round, all at once; the round after it is a run of its own."""
        run = self.runs.get(run_id)
        if run is None:
            raise Refusal(404, "Run not found")
        if run.status != "requires_action":
            raise Refusal(400, f"Run {run_id} is not waiting for tool outputs")
        _check_outputs(run, outputs)
        run.status = "completed"
        self.records[-1]["status"] = "COMPLETED"
        waiting = list(outputs)
        results = tuple(_resolved(asked, _taken_from(waiting, asked)) for asked in run.tool_calls)
        self.messages.append(ResultsMessage("run_fake", len(self.messages), results))
        return self._begin(ids)

    def cancel(self, run_id: str) -> bool:
        """False if it had ended already. What it had asked for was never answered, and is forgotten."""
        run = self.runs.get(run_id)
        if run is None:
            raise Refusal(404, "Run not found")
        if run.status == "requires_action" and self.messages:
            self.messages.pop()
        was_open = run.status in {"requires_action", "in_progress"}
        run.status = "cancelled" if was_open else run.status
        return was_open

    def said(self, run: Run, parts: Sequence[Part], ids: Ids) -> None:
        """The end of a round: an answer, or calls that wait for their outputs."""
        message = AssistantMessage("run_fake", len(self.messages), tuple(parts))
        self.messages.append(message)
        run.tool_calls = message.tool_calls
        run.status = "requires_action" if run.tool_calls else "completed"
        text = "".join(part.text for part in parts if isinstance(part, Text))
        self._record(
            ids.fresh(), "assistant", text, None, "REQUIRES_ACTION" if run.tool_calls else "COMPLETED"
        )

    def shown(self) -> Json:
        return {"thread_id": self.id, "created_at": CREATED, "messages": self.records, "metadata_": None}

    def _begin(self, ids: Ids) -> Run:
        run = Run(ids.fresh())
        self.runs[run.id] = run
        return run

    def _record(
        self, message_id: str, role: str, content: str, metadata: object, status: str | None = None
    ) -> None:
        facts = {"message_id": message_id, "role": role, "content": content, "created_at": CREATED}
        self.records.append({**facts, "metadata_": metadata, "status": status})


def _check_outputs(run: Run, outputs: Sequence[Json]) -> None:
    for number, output in enumerate(outputs):
        if not isinstance(output.get("output"), str):
            raise Refusal(422, f"tool_outputs.{number}.output: Input should be a valid string")
    wanted = Counter(asked.model_call_id for asked in run.tool_calls)
    got = Counter(output.get("tool_call_id") for output in outputs)
    missing, unknown = wanted - got, got - wanted
    if unknown:
        raise Refusal(400, f"Unexpected tool_call_id: {', '.join(map(str, unknown))}")
    if missing:
        raise Refusal(400, f"Missing tool outputs for: {', '.join(map(str, missing))}")


def _taken_from(waiting: list[Json], asked: ToolCallPart) -> Json:
    """The first output with the call's id: of calls that share one, the order decides."""
    output = next(each for each in waiting if each["tool_call_id"] == asked.model_call_id)
    waiting.remove(output)
    return output


def _resolved(asked: ToolCallPart, output: Json) -> ToolResultPart:
    try:
        value = msgspec.json.decode(output["output"])
    except msgspec.DecodeError:
        value = output["output"]
    return ToolResultPart(asked.call_id, asked.tool, asked.input, Success(value), asked.model_call_id)
