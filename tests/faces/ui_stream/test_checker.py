"""The stream checker itself: well-formed responses pass it, each planted violation is named."""

from __future__ import annotations

import json

import pytest

from tests.stream_checker import Chunk, StreamChecker, checked, read_sse

START: Chunk = {"type": "start", "messageId": "run_1"}
STEP: Chunk = {"type": "start-step"}
END_STEP: Chunk = {"type": "finish-step"}
TEXT: list[Chunk] = [
    {"type": "text-start", "id": "t"},
    {"type": "text-delta", "id": "t", "delta": "hello"},
    {"type": "text-end", "id": "t"},
]
REASONING: list[Chunk] = [
    {"type": "reasoning-start", "id": "r"},
    {"type": "reasoning-delta", "id": "r", "delta": "hm"},
    {"type": "reasoning-end", "id": "r"},
]
BEGIN: Chunk = {"type": "tool-input-start", "toolCallId": "c", "toolName": "x"}
DELTA: Chunk = {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{}"}
READY: Chunk = {"type": "tool-input-available", "toolCallId": "c", "toolName": "x", "input": {}}
WRONG: Chunk = {
    "type": "tool-input-error",
    "toolCallId": "c",
    "toolName": "x",
    "input": {},
    "errorText": "no",
}
ASK: Chunk = {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"}
OUTPUT: Chunk = {"type": "tool-output-available", "toolCallId": "c", "output": None}
FAILED: Chunk = {"type": "tool-output-error", "toolCallId": "c", "errorText": "no"}
DENIED: Chunk = {"type": "tool-output-denied", "toolCallId": "c"}
ERROR: Chunk = {"type": "error", "errorText": "no"}


def finish(reason: str = "stop") -> Chunk:
    return {"type": "finish", "finishReason": reason}


def body(*chunks: Chunk, done: str = "data: [DONE]\n\n") -> bytes:
    return ("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + done).encode()


def faults(*chunks: Chunk, known: tuple[str, ...] = ()) -> list[str]:
    checker = StreamChecker(known=known)
    for chunk in chunks:
        checker.read(chunk)
    checker.read_done()
    return [fault.partition(": ")[2] for fault in checker.faults]


@pytest.mark.parametrize(
    "chunks",
    [
        [START, STEP, *TEXT, END_STEP, finish()],
        [START, STEP, *REASONING, *TEXT, END_STEP, finish("length")],
        [START, STEP, BEGIN, DELTA, READY, END_STEP, OUTPUT, STEP, *TEXT, END_STEP, finish()],
        [START, STEP, BEGIN, WRONG, END_STEP, STEP, *TEXT, END_STEP, finish()],
        [START, STEP, BEGIN, DELTA, READY, ASK, END_STEP, finish("tool-calls")],
        [START, STEP, BEGIN, DELTA, ASK, END_STEP, READY, FAILED, finish("other")],
        [START, STEP, BEGIN, DELTA, ASK, END_STEP, DENIED, STEP, *TEXT, END_STEP, finish()],
        [START, STEP, BEGIN, DELTA, END_STEP, OUTPUT, STEP, *TEXT, END_STEP, finish()],
        [START, STEP, READY, END_STEP, ERROR],
        [START, STEP, BEGIN, DELTA, END_STEP, finish("other")],
        [START, {"type": "data-gap", "data": {}, "transient": True}, STEP, *TEXT, END_STEP, finish()],
        [START, finish("tool-calls")],
        [START, ERROR],
    ],
    ids=str,
)
def test_a_well_formed_response_has_no_fault(chunks: list[Chunk]) -> None:
    assert faults(*chunks) == []


@pytest.mark.parametrize("first", [READY, ASK, OUTPUT, FAILED, DENIED], ids=lambda chunk: chunk["type"])
def test_a_continuation_may_begin_with_a_call_that_was_shown_before(first: Chunk) -> None:
    assert faults(START, first, finish("tool-calls"), known=("c",)) == []


PLANTED: list[tuple[str, list[Chunk]]] = [
    ("start-step comes first", [STEP, *TEXT, END_STEP, finish()]),
    ("start comes again", [START, START, finish()]),
    ("a step starts inside a step", [START, STEP, STEP, *TEXT, END_STEP, finish()]),
    ("a step finishes that never started", [START, END_STEP, finish()]),
    ("a step is empty", [START, STEP, END_STEP, finish()]),
    ("finish comes inside a step", [START, STEP, *TEXT, finish()]),
    ("error comes inside a step", [START, STEP, *TEXT, ERROR]),
    ("text-start comes outside a step", [START, *TEXT, finish()]),
    ("text-delta for t, which is not open", [START, STEP, TEXT[1], END_STEP, finish()]),
    ("text-end for t, which is not open", [START, STEP, *TEXT, TEXT[2], END_STEP, finish()]),
    ("t starts twice", [START, STEP, TEXT[0], *TEXT, END_STEP, finish()]),
    ("t is open at the end of its step", [START, STEP, TEXT[0], END_STEP, finish()]),
    ("reasoning-end for t, which is not open", [START, STEP, TEXT[0], {"type": "reasoning-end", "id": "t"}]),
    ("tool-input-delta for c, which is new", [START, STEP, DELTA, END_STEP, finish("other")]),
    ("tool-input-start for c, which is begun", [START, STEP, BEGIN, BEGIN, READY, END_STEP, finish()]),
    ("tool-input-delta for c, which is available", [START, STEP, BEGIN, READY, DELTA, READY]),
    ("tool-input-available for c, which is available", [START, STEP, READY, READY, END_STEP, finish()]),
    ("tool-input-error for c, which is available", [START, STEP, READY, WRONG, END_STEP, finish()]),
    ("tool-approval-request for c, which is new", [START, STEP, ASK, END_STEP, finish()]),
    ("tool-approval-request for c, which is over", [START, STEP, READY, END_STEP, OUTPUT, ASK]),
    ("tool-output-available for c, which is new", [START, OUTPUT, finish()]),
    ("tool-output-error for c, which is over", [START, STEP, READY, END_STEP, OUTPUT, FAILED]),
    ("tool-output-denied for c, which is over", [START, STEP, BEGIN, WRONG, END_STEP, DENIED]),
    ("tool-input-start for c comes outside a step", [START, BEGIN, finish("other")]),
    ("the input of c never became whole", [START, STEP, BEGIN, DELTA, END_STEP, finish("tool-calls")]),
    (
        "text-start comes after a tool's output in the same step",
        [START, STEP, READY, OUTPUT, *TEXT, END_STEP, finish()],
    ),
    ("finish comes after finish", [START, finish(), finish()]),
    ("finish comes after error", [START, ERROR, finish()]),
    ("error comes after finish", [START, finish(), ERROR]),
    ("finish gives the reason 'done'", [START, finish("done")]),
    ("no client knows a chunk of type 'tool-result'", [START, {"type": "tool-result"}, finish()]),
    ("no client knows a chunk of type None", [START, {}, finish()]),
    ("start has no messageId", [{"type": "start"}, finish()]),
    ("errorText of error is 1", [START, {"type": "error", "errorText": 1}]),
    (
        "tool-output-available has a field title that the oldest client refuses",
        [START, STEP, READY, END_STEP, {**OUTPUT, "title": "x"}, finish()],
    ),
    ("tool-output-available has no output", [START, {"type": "tool-output-available", "toolCallId": "c"}]),
]


@pytest.mark.parametrize(("fault", "chunks"), PLANTED, ids=[fault for fault, _ in PLANTED])
def test_a_planted_violation_is_named(fault: str, chunks: list[Chunk]) -> None:
    assert fault in faults(*chunks)


def test_a_body_needs_exactly_one_done_and_nothing_after_it() -> None:
    assert checked(body(START, finish())) == [START, finish()]
    with pytest.raises(AssertionError, match="ended without"):
        checked(body(START, finish(), done=""))
    with pytest.raises(AssertionError, match="comes twice"):
        checked(body(START, finish(), done="data: [DONE]\n\ndata: [DONE]\n\n"))
    with pytest.raises(AssertionError, match="before finish"):
        checked(body(START))
    with pytest.raises(AssertionError, match=r"comes after \[DONE\]"):
        checked(body(START, finish()) + body(ERROR, done=""))


def test_comments_and_positions_are_read() -> None:
    frames = read_sse(b": keep-alive\n\ndata: 1\n\nid: 12.3\ndata: 2\n\n")
    assert [(frame.data, frame.id) for frame in frames] == [("1", None), ("2", "12.3")]


@pytest.mark.parametrize(
    "broken",
    [
        b"data: 1\n",
        b"data: 1",
        b"data: 1\r\n\r\n",
        b"event: x\ndata: 1\n\n",
        b"data: 1\ndata: 2\n\n",
        b"id: abc\ndata: 1\n\n",
        b"\n\n",
    ],
)
def test_other_framing_is_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"event"):
        read_sse(broken)
