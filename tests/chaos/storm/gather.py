"""Assembles the history at the end: from the store, the servers' notes and the people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from farhand.core.call import Call
from farhand.core.decide.direct import is_unwanted
from farhand.core.event import (
    ApprovalAnswered,
    CallBegun,
    CallOpened,
    CallSettled,
    InputAdded,
    RunFinished,
    RunParked,
    StepDiscarded,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Outcome, Success, digest, kind_of
from farhand.core.position import Entry
from farhand.core.principal import LOCAL
from farhand.core.state import ThreadState
from farhand.core.thread import AssistantMessage, text_of
from farhand.core.tool import Executor
from farhand.eventlog.codec import decode_body
from farhand.eventlog.log import EventLog
from tests.chaos.history import DirectCall, Execution, History, Kept, Line, Request, Talk
from tests.chaos.storm.agent import answer_of
from tests.chaos.storm.caller import Caller
from tests.chaos.storm.person import Person


async def history_of(
    eventlog: EventLog, notes: Path, people: Iterable[Person], callers: Iterable[Caller] = ()
) -> History:
    history = History()
    calls: dict[str, Call] = {}
    settled_at: dict[str, float] = {}
    for person in people:
        history.sendings += person.sender.results
        history.answers += person.sender.answers
        run = await eventlog.last_run(LOCAL, person.chat)
        assert run is not None, f"{person.chat} has no run"
        entries = await eventlog.entries(run)
        talk = Talk(
            person.chat,
            person.is_finished,
            journal_of(entries),
            person.heard,
            person.gaps,
            person.endings,
            answer=await eventlog.read(LOCAL, person.chat, _answer),
            script=answer_of(person.chat),
        )
        history.talks.append(talk)
        settled_at |= {each.event.call_id: each.at for each in entries if isinstance(each.event, CallSettled)}
        for call in await eventlog.calls_of(LOCAL, run.run_id):
            _add_call(history, call)
            calls[_key(call)] = call
    for caller in callers:
        for call in await _add_direct(history, eventlog, caller):
            settled_at |= {call.call_id: call.settled_at} if call.settled_at is not None else {}
            calls[_key(call)] = call
    _read_notes(history, notes, calls, settled_at)
    return history


def _answer(thread: ThreadState) -> list[str]:
    return [text_of(message) for message in thread.messages if isinstance(message, AssistantMessage)]


async def _add_direct(history: History, eventlog: EventLog, caller: Caller) -> list[Call]:
    """The calls of one program: one, or none if it was never opened."""
    history.sendings += caller.sender.results
    history.answers += caller.sender.answers
    history.told += caller.answers
    loaded = await eventlog.store.load(LOCAL, caller.direct.subject, after=0)
    opened = [
        event for row in loaded.rows for event in decode_body(row).events if isinstance(event, CallOpened)
    ]
    found = [await eventlog.get_call(LOCAL, event.call_id) for event in opened]
    calls = [call for call in found if call is not None]
    for call in calls:
        _add_call(history, call)
        output = call.outcome.output if isinstance(call.outcome, Success) else None
        is_success = isinstance(call.outcome, Success)
        is_settled = call.outcome is not None
        history.direct.append(DirectCall(_key(call), caller.direct.is_keyed, is_settled, is_success, output))
    return calls


def _add_call(history: History, call: Call) -> None:
    history.kept.append(_kept(call))
    history.answered += _answered(call)


def _key(call: Call) -> str:
    return f"{call.tool}:{next(iter(call.input.values()))}"


def _kept(call: Call) -> Kept:
    # what a registered client brings is its own affair: nobody here writes it down
    # and what a program asked for without a request id ends with it, perhaps before anybody saw it
    is_far = call.executor is Executor.FRONTEND and not (call.run_id is None and is_unwanted(call))
    effect = None if call.executor is Executor.FRONTEND else _key(call)
    if call.outcome is None or call.settled_at is None:
        return Kept(call.call_id, call.thread_id, "", None, is_far=is_far, effect=effect)
    # what nobody sent, such as the end of a tool that a crash cut off, has no digest of its own
    mark = call.digest or digest(call.outcome)
    return Kept(call.call_id, call.thread_id, kind_of(call.outcome), mark, call.settled_at, is_far, effect)


def _answered(call: Call) -> list[Kept]:
    if call.approval is None:
        return []
    answer = call.approval.answer
    if answer is None:
        # whoever answers later is told how the call ended
        ended = "" if call.outcome is None else kind_of(call.outcome)
        return [Kept(call.call_id, call.thread_id, ended, None)]
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
        lines.append(_line(entry))
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
    # one that was stopped before it began, and was given up meanwhile, begins anyway, and once
    is_late = isinstance(call.outcome, Success) and settled_at.get(call.call_id, began_at) < began_at
    return Execution(note["began"], key, note["idempotent"], after_its_result=is_late, is_allowed=is_allowed)


def _digest(outcome: Any) -> str:
    return digest(msgspec.convert(outcome, Outcome))
