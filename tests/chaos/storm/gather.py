"""Puts a history together when all is over: from the store, from the notes of the servers, from people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from farhand.core.call import Call
from farhand.core.event import (
    ApprovalAnswered,
    CallBegun,
    CallOpened,
    CallSettled,
    Entry,
    InputAdded,
    RunFinished,
    RunParked,
    RunResumed,
    StepDiscarded,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Outcome, Success, digest, kind_of
from farhand.core.principal import LOCAL
from farhand.core.tool import Executor
from farhand.store.base import Store
from tests.chaos.history import Execution, History, Kept, Line, Request, Talk
from tests.chaos.storm.person import Person


async def history_of(store: Store, notes: Path, people: Iterable[Person]) -> History:
    history = History()
    calls: dict[str, Call] = {}
    # by the store's own clock: what a worker believes of it may lag
    settled_at: dict[str, float] = {}
    for person in people:
        history.sendings += person.sendings
        history.answers += person.answers
        run = await store.last_run(LOCAL, person.chat)
        assert run is not None, f"{person.chat} has no run"
        entries = await store.events(LOCAL, run.run_id, limit=100_000)
        talk = Talk(
            person.chat, person.is_finished, journal_of(entries), person.heard, person.gaps, person.endings
        )
        history.talks.append(talk)
        settled_at |= {each.event.call_id: each.at for each in entries if isinstance(each.event, CallSettled)}
        for call in await store.calls_of(LOCAL, run.run_id):
            history.kept.append(_kept(call))
            history.answered += _answered(call)
            calls[f"{call.tool}:{next(iter(call.input.values()))}"] = call
    _read_notes(history, notes, calls, settled_at)
    return history


def _kept(call: Call) -> Kept:
    is_far = call.executor is not Executor.SERVER
    if call.outcome is None or call.settled_at is None:
        return Kept(call.call_id, call.thread_id, "", None, is_far=is_far)
    # what nobody sent, such as the end of a tool that a crash cut off, has no digest of its own
    mark = call.digest or digest(call.outcome)
    return Kept(call.call_id, call.thread_id, kind_of(call.outcome), mark, call.settled_at, is_far)


def _answered(call: Call) -> list[Kept]:
    if call.approval is None:
        return []
    answer = call.approval.answer
    if answer is None:
        return [Kept(call.call_id, call.thread_id, "", None)]
    return [
        Kept(call.call_id, call.thread_id, "approved" if answer.approved else "denied", digest(answer)),
    ]


def journal_of(entries: Iterable[Entry]) -> list[Line]:
    lines: list[Line] = []
    step_began = 0
    for entry in entries:
        if isinstance(entry.event, StepStarted):
            step_began = len(lines)
        if isinstance(entry.event, StepDiscarded):
            lines[step_began:] = [_discarded(line) for line in lines[step_began:]]
        is_takeover = isinstance(entry.event, StepDiscarded) or (
            isinstance(entry.event, RunResumed) and entry.event.taken_over
        )
        lines.append(replace(_line(entry), is_takeover=is_takeover))
    return lines


def _line(entry: Entry) -> Line:
    match entry.event:
        case TextAdded(text=text) | InputAdded(text=text):
            return Line(entry.seq, text)
        case CallBegun(call_id=call_id):
            return Line(entry.seq, f"begun {call_id};")
        case CallSettled(call_id=call_id):
            return Line(entry.seq, f"settled {call_id};")
        case RunFinished():
            return Line(entry.seq, "finish stop;")
        case CallOpened(call_id=call_id) | ApprovalAnswered(call_id=call_id):
            # of what is settled meanwhile a late reader is not told that it may run
            return Line(entry.seq, f"ready {call_id};", is_optional=True)
        case RunParked():
            return Line(entry.seq, "finish tool-calls;", is_optional=True)
        case _:
            return Line(entry.seq, "", is_silent=True)


def _discarded(line: Line) -> Line:
    return replace(line, is_discarded=True)


# Any: the notes are read as the agent wrote them
def _read_notes(history: History, notes: Path, calls: dict[str, Call], settled_at: dict[str, float]) -> None:
    for note in map(json.loads, notes.read_text().splitlines()):
        if "request" in note:
            results = tuple((call_id, _digest(outcome)) for call_id, outcome in note["results"])
            history.requests.append(Request(note["request"], results, note["asked_at"]))
        else:
            history.executions.append(_execution(note, calls, settled_at))


def _execution(note: Any, calls: dict[str, Call], settled_at: dict[str, float]) -> Execution:
    key, began_at = f"{note['began']}:{note['subject']}", note["began_at"]
    call = calls[key]
    approval = call.approval
    is_allowed = approval is None or (
        approval.answer is not None and approval.answer.approved and (approval.answered_at or 0.0) <= began_at
    )
    # one that was stopped before it began, and was given up meanwhile, begins all the same, and once
    is_late = isinstance(call.outcome, Success) and settled_at.get(call.call_id, began_at) < began_at
    return Execution(note["began"], key, note["idempotent"], after_its_result=is_late, is_allowed=is_allowed)


def _digest(outcome: Any) -> str:
    return digest(msgspec.convert(outcome, Outcome))
