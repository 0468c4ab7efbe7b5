"""Checks that a response of the chat stream is valid for every AI SDK client, including its order.

Owns the chunk types and fields of the oldest supported client (6.0.3) and the order of chunks. Must not know
how a stream is made: it sees what a reader sees, so it serves any server that speaks this wire.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

# Any: what a chunk holds is the wire's business; the table below says which field has which type
Chunk: TypeAlias = dict[str, Any]

DONE = "[DONE]"


class SseFrame(Struct, frozen=True):
    """One event: its data, and the position it names if it names one."""

    data: str
    id: str | None = None


def read_sse(body: bytes) -> list[SseFrame]:
    """The events of a body. Anything but `id:`, one `data:` line and comments, ended by LF, raises."""
    if body and not body.endswith(b"\n\n"):
        raise ValueError(f"The body ends in the middle of an event: {body[-80:]!r}")
    frames = []
    for event in body.decode().split("\n\n")[:-1]:
        if event.startswith(":") and "\n" not in event:
            continue
        found = _EVENT.fullmatch(event)
        if found is None:
            raise ValueError(f"Not an event of this stream: {event[:200]!r}")
        frames.append(SseFrame(found["data"], found["id"]))
    return frames


def checked(body: bytes, *, known: Collection[str] = ()) -> list[Chunk]:
    """The chunks of a whole response; raises `AssertionError` with every fault that was found in it.

    `known` are the calls that earlier responses to the same message have shown.
    """
    checker = StreamChecker(known=known)
    for frame in read_sse(body):
        checker.read_data(frame.data)
    return checker.finished()


class StreamChecker:
    """Reads one response chunk by chunk; `faults` says in words what is wrong with it."""

    def __init__(self, *, known: Collection[str] = ()) -> None:
        self.faults: list[str] = []
        self.chunks: list[Chunk] = []
        self._ending: str | None = None
        self._done = False
        self._in_step = False
        self._chunks_of_step = 0
        self._output_in_step = False
        self._blocks: dict[str, str] = {}
        self._calls: dict[str, str] = dict.fromkeys(known, "known")
        self._begun_in_step: set[str] = set()

    @property
    def ended(self) -> bool:
        """After `[DONE]`."""
        return self._done

    def read_data(self, data: str) -> None:
        """What one event carries: a chunk, or `[DONE]`."""
        if data == DONE:
            self.read_done()
        else:
            self.read(msgspec.json.decode(data))

    def read(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        kind = chunk.get("type")
        if not isinstance(kind, str) or (kind not in _FIELDS and not kind.startswith("data-")):
            self._fault(f"no client knows a chunk of type {kind!r}")
            return
        self._check_fields(kind, chunk)
        self._check_place(kind)
        self._count(kind)
        for look in (self._look_at_course, self._look_at_words, self._look_at_tool):
            look(kind, chunk)

    def read_done(self) -> None:
        self._must(not self._done, "[DONE] comes twice")
        self._must(self._ending is not None, "[DONE] comes before finish or error")
        self._done = True

    def finished(self) -> list[Chunk]:
        """The body ended. The chunks, or an `AssertionError` with all faults."""
        self._must(self._done, "the response ended without [DONE]")
        if self.faults:
            told = "\n".join(f"{number}: {chunk}" for number, chunk in enumerate(self.chunks))
            raise AssertionError("\n".join([*self.faults, "of these chunks:", told]))
        return self.chunks

    def _check_fields(self, kind: str, chunk: Chunk) -> None:
        needed, optional = _DATA_FIELDS if kind.startswith("data-") else _FIELDS[kind]
        for name, allowed in needed.items():
            self._must(name in chunk, f"{kind} has no {name}")
            self._must(isinstance(chunk.get(name), allowed), f"{name} of {kind} is {chunk.get(name)!r}")
        for name in chunk.keys() - needed.keys() - {"type"}:
            self._must(name in optional, f"{kind} has a field {name} that the oldest client refuses")
            self._must(isinstance(chunk[name], optional.get(name, object)), f"{name} of {kind} is of no use")

    def _check_place(self, kind: str) -> None:
        first = len(self.chunks) == 1
        if first or kind == "start":
            self._must(first and kind == "start", f"{kind} comes {'first' if first else 'again'}")
        self._must(self._ending is None, f"{kind} comes after {self._ending}")
        self._must(not self._done, f"{kind} comes after [DONE]")

    def _count(self, kind: str) -> None:
        if kind not in _COURSE and not kind.startswith("data-"):
            self._chunks_of_step += 1

    def _look_at_course(self, kind: str, chunk: Chunk) -> None:
        match kind:
            case "start-step":
                self._must(not self._in_step, "a step starts inside a step")
                self._in_step, self._chunks_of_step, self._output_in_step = True, 0, False
                self._begun_in_step = set()
            case "finish-step":
                self._must(self._in_step, "a step finishes that never started")
                self._must(self._chunks_of_step > 0, "a step is empty")
                self._must(not self._blocks, f"{_list(self._blocks)} is open at the end of its step")
                self._in_step = False
            case "finish" | "error" | "abort":
                self._must(not self._in_step, f"{kind} comes inside a step")
                self._ending = kind
                if kind == "finish":
                    self._look_at_finish(chunk.get("finishReason"))
            case _:
                pass

    def _look_at_finish(self, reason: object) -> None:
        self._must(reason in _FINISH_REASONS, f"finish gives the reason {reason!r}")
        if reason == "other":
            return
        # a step that was stopped or cut leaves its unfinished input behind; any other one completes it
        unfinished = [call for call in self._begun_in_step if self._calls[call] == "begun"]
        self._must(not unfinished, f"the input of {_list(unfinished)} never became whole")

    def _look_at_words(self, kind: str, chunk: Chunk) -> None:
        found = _WORDS.fullmatch(kind)
        if found is None:
            return
        block, move = str(chunk.get("id")), found["move"]
        self._must(self._in_step, f"{kind} comes outside a step")
        # the stock client would take the step for one whose results are still to be posted
        self._must(not self._output_in_step, f"{kind} comes after a tool's output in the same step")
        if move == "start":
            self._must(block not in self._blocks, f"{block} starts twice")
            self._blocks[block] = found["kind"]
            return
        self._must(self._blocks.get(block) == found["kind"], f"{kind} for {block}, which is not open")
        if move == "end":
            self._blocks.pop(block, None)

    def _look_at_tool(self, kind: str, chunk: Chunk) -> None:
        rule = _TOOL_RULES.get(kind)
        if rule is None:
            return
        call, (before, after) = str(chunk.get("toolCallId")), rule
        now = self._calls.get(call, "new")
        self._must(now in before, f"{kind} for {call}, which is {now}")
        self._calls[call] = after
        if kind == "tool-input-start":
            self._begun_in_step.add(call)
        if kind.startswith("tool-output-"):
            self._output_in_step = self._in_step
        elif now == "new":
            # a client puts the part where it first hears of the call, and that is in its step
            self._must(self._in_step, f"{kind} for {call} comes outside a step")

    # the fact itself stands where it is called, as in an assertion
    def _must(self, holds: bool, fault: str) -> None:
        if not holds:
            self._fault(fault)

    def _fault(self, fault: str) -> None:
        self.faults.append(f"chunk {len(self.chunks) - 1}: {fault}")


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


Fields: TypeAlias = Mapping[str, type]

_EVENT = re.compile(
    r"(?:id: (?P<id>[0-9]+\.[0-9]+(?:\.[1-9][0-9]*)?(?:~[A-Za-z0-9_-]+)?)\n)?data: (?P<data>[^\r\n]*)"
)
_WORDS = re.compile(r"(?P<kind>text|reasoning)-(?P<move>start|delta|end)")
_COURSE = frozenset({"start", "start-step", "finish-step", "finish", "error", "abort", "message-metadata"})
_FINISH_REASONS = frozenset({"stop", "length", "content-filter", "tool-calls", "error", "other"})

_CALL: Fields = {"toolCallId": str}
_NAMED: Fields = {"toolCallId": str, "toolName": str}
_DYNAMIC: Fields = {"dynamic": bool}

_FIELDS: Mapping[str, tuple[Fields, Fields]] = {
    "start": ({"messageId": str}, {"messageMetadata": object}),
    "start-step": ({}, {}),
    "finish-step": ({}, {}),
    "text-start": ({"id": str}, {}),
    "text-delta": ({"id": str, "delta": str}, {}),
    "text-end": ({"id": str}, {}),
    "reasoning-start": ({"id": str}, {}),
    "reasoning-delta": ({"id": str, "delta": str}, {}),
    "reasoning-end": ({"id": str}, {}),
    "tool-input-start": (_NAMED, _DYNAMIC),
    "tool-input-delta": ({**_CALL, "inputTextDelta": str}, {}),
    "tool-input-available": ({**_NAMED, "input": object}, _DYNAMIC),
    "tool-input-error": ({**_NAMED, "input": object, "errorText": str}, _DYNAMIC),
    "tool-approval-request": ({**_CALL, "approvalId": str}, {}),
    "tool-output-available": ({**_CALL, "output": object}, {}),
    "tool-output-error": ({**_CALL, "errorText": str}, {}),
    "tool-output-denied": (_CALL, {}),
    "message-metadata": ({"messageMetadata": object}, {}),
    "error": ({"errorText": str}, {}),
    "abort": ({}, {}),
    "finish": ({"finishReason": str}, {"messageMetadata": object}),
}
"""Of each type the fields it must have and those it may have: all others are refused by some client."""

_DATA_FIELDS: tuple[Fields, Fields] = ({"data": object}, {"id": str, "transient": bool})

# A call is new, begun (its input is being written), available, asked (about) or over; `known` is one that an
# earlier response has shown, so that every later move may follow.
_SHOWN = frozenset({"begun", "available", "asked", "known"})
_TOOL_RULES: Mapping[str, tuple[frozenset[str], str]] = {
    "tool-input-start": (frozenset({"new", "known"}), "begun"),
    "tool-input-delta": (frozenset({"begun"}), "begun"),
    "tool-input-available": (frozenset({"new", "begun", "asked", "known"}), "available"),
    "tool-input-error": (frozenset({"new", "begun"}), "over"),
    "tool-approval-request": (frozenset({"begun", "available", "known"}), "asked"),
    "tool-output-available": (_SHOWN, "over"),
    "tool-output-error": (_SHOWN, "over"),
    "tool-output-denied": (_SHOWN, "over"),
}
