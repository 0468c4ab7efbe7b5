"""Checks the history of a run in the fault tests, collected from all sides, for violations of a promise.

Owns the rules: one outcome for each call and one answer for each question; whoever brought one was told the
truth; a far call was offered to somebody; the model got the winner, once, and soon; readers heard the
journal, no event lost or doubled, never lost their place, and every response had one end; no finished tool
ran again, and none without the approval it needs; a success has run; programs were told what the record says.
Must not know how the faults were made, nor how anything was recorded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

LATE_SEC = 60.0
"""Faults that follow each other can keep a run asleep for as long, and a starved machine for longer: there
it is late by `OF_OTHERS`."""
OF_OTHERS = 10
"""Times as long as nine in ten took."""
OVERTAKEN = 0.2
"""Of all wakes: when so many were settled later and woken earlier, the machine was not to blame."""


class Told(StrEnum):
    """What a sender was answered; `NOTHING` if the line broke first."""

    ACCEPTED = "accepted"
    REPEATED = "repeated"
    CONFLICT = "conflict"
    OVER = "over"
    UNKNOWN = "unknown"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Sending:
    """One result on its way to a call, or one answer to a question. `winner` is the digest that a refusal
    named, `kind` what sort of outcome it was said to be."""

    call_id: str
    digest: str
    told: Told
    winner: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class Kept:
    """A call in the record, when everything is over. `digest` None: it was never settled.

    A far one can be brought to its end by nobody but those to whom it was offered.
    """

    call_id: str
    thread_id: str
    kind: str
    digest: str | None
    settled_at: float = 0.0
    is_far: bool = False
    effect: str | None = None
    """The `Execution.call_key` of what a success of it has done."""


@dataclass(frozen=True)
class Answered:
    """What a program was told of its call without a run, which it names by the key of its effect."""

    key: str
    is_success: bool
    output: object = None


@dataclass(frozen=True)
class DirectCall:
    """A call without a run in the record. One that is keyed can be asked for until it is answered."""

    key: str
    is_keyed: bool
    is_settled: bool
    is_success: bool = False
    output: object = None


@dataclass(frozen=True)
class Request:
    """The results in the history of one request to the model: call id and digest of its outcome, in order."""

    thread_id: str
    results: tuple[tuple[str, str], ...]
    at: float = 0.0
    """By the clock of `Kept.settled_at`."""


class Wake(NamedTuple):
    """From the last outcome that a step of a thread waited for, to the model that was asked with it."""

    thread_id: str
    settled_at: float
    asked_at: float

    @property
    def took(self) -> float:
        return self.asked_at - self.settled_at


@dataclass(frozen=True)
class Execution:
    """A server tool began; `after_its_result` if what it brought was stored by then."""

    tool: str
    call_key: str
    idempotent: bool
    after_its_result: bool = False
    is_allowed: bool = True


@dataclass(frozen=True)
class Line:
    """One entry of a journal: `text` is what a reader is told of it, words or a description.

    A discarded one may have been heard, in part or not at all; of an optional one a late reader is told less.
    """

    seq: int
    text: str
    is_silent: bool = False
    is_optional: bool = False
    is_discarded: bool = False


@dataclass(frozen=True)
class Gap:
    """A reader showed a position that the server had given, and was told that it is not known there."""

    seq: int
    offset: int


@dataclass(frozen=True)
class Ending:
    """How one response ended: its markers, what came behind one, and whether the server ended it."""

    markers: int
    said_after: int
    is_whole: bool


@dataclass(frozen=True)
class Heard:
    """A piece that a reader got, with the position behind it."""

    seq: int
    offset: int
    text: str


@dataclass
class Talk:
    """One thread: its journal, and what its reader heard over all connections since it last began again."""

    thread_id: str
    is_finished: bool
    journal: list[Line] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    answer: list[str] = field(default_factory=list)
    """The text of each step as the thread has it when everything is over."""
    script: list[str] = field(default_factory=list)
    """The text of each step as the model says it."""


@dataclass
class History:
    sendings: list[Sending] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    answers: list[Sending] = field(default_factory=list)
    """Yes and no, by the call that they are about."""
    answered: list[Kept] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    direct: list[DirectCall] = field(default_factory=list)
    told: list[Answered] = field(default_factory=list)
    """To programs that call without a run."""
    talks: list[Talk] = field(default_factory=list)


def violations(history: History) -> list[str]:
    """Every rule that was broken, in words; empty if none was."""
    return [
        *_two_outcomes(history.sendings),
        *_untold_truths(history.sendings, history.kept),
        *(f"question: {each}" for each in _two_outcomes(history.answers)),
        *(f"question: {each}" for each in _untold_truths(history.answers, history.answered)),
        *_denied_and_done(history),
        *_never_offered(history),
        *_wrong_to_the_model(history),
        *_woken_late(history),
        *_lost_or_doubled(history),
        *_lost_places(history),
        *_wrong_endings(history),
        *_wrong_answers(history),
        *_run_twice(history),
        *_never_run(history),
        *_wrong_to_programs(history),
    ]


def wakes(history: History) -> list[Wake]:
    """Of every step that waited for something."""
    settled_at = {each.call_id: each.settled_at for each in history.kept}
    given: set[str] = set()
    found: list[Wake] = []
    for request in sorted(history.requests, key=lambda each: each.at):
        new = {call_id for call_id, _ in request.results if call_id in settled_at} - given
        given |= new
        if new:
            found.append(Wake(request.thread_id, max(settled_at[each] for each in new), request.at))
    return found


def _two_outcomes(sendings: list[Sending]) -> Iterator[str]:
    accepted = Counter(each.call_id for each in sendings if each.told is Told.ACCEPTED)
    for call_id, times in accepted.items():
        if times > 1:
            yield f"two outcomes: {call_id} accepted {times} results"
    winners: dict[str, set[str]] = defaultdict(set)
    for each in sendings:
        named = each.digest if each.told in (Told.ACCEPTED, Told.REPEATED) else each.winner
        if named is not None:
            winners[each.call_id].add(named)
    for call_id, named_winners in winners.items():
        if len(named_winners) > 1:
            yield f"two outcomes: {call_id} had the winners {sorted(named_winners)}"


def _untold_truths(sendings: list[Sending], records: list[Kept]) -> Iterator[str]:
    kept = {each.call_id: each for each in records}
    for each in sendings:
        record = kept.get(each.call_id)
        lie = _lie(each, record.digest if record is not None else None, known=record is not None)
        if not lie and record is not None and each.kind not in (None, record.kind):
            lie = f"as {each.kind}, but the record has {record.kind}"
        if lie:
            yield f"not the truth: {each.call_id} was told {each.told.value}, {lie}"


def _lie(sending: Sending, winner: str | None, *, known: bool) -> str:
    match sending.told:
        case Told.ACCEPTED | Told.REPEATED if winner != sending.digest:
            return f"but the record has {winner}"
        case Told.CONFLICT if winner == sending.digest:
            return "but its own result is the winner"
        case Told.CONFLICT if sending.winner != winner:
            return f"with {sending.winner}, but the record has {winner}"
        case Told.OVER if winner == sending.digest:
            return "but its own result is the winner"
        case Told.UNKNOWN if known:
            return "but the call is in the record"
    return ""


def _denied_and_done(history: History) -> Iterator[str]:
    """A no is the outcome; an approval is none."""
    kinds = {each.call_id: each.kind for each in history.kept}
    for each in history.answered:
        kind = kinds.get(each.call_id)
        if (each.kind == "denied") != (kind == "denied"):
            yield f"question: {each.call_id} was {each.kind}, and its outcome is {kind}"
    for execution in history.executions:
        if not execution.is_allowed:
            yield f"question: {execution.call_key} ran without a yes"


def _never_offered(history: History) -> Iterator[str]:
    """Whoever sent its outcome, or was told that it is over, had been shown it."""
    sent = {(each.call_id, each.digest) for each in history.sendings}
    told_over = {each.call_id for each in history.sendings if each.told is Told.OVER}
    for each in history.kept:
        is_known = each.call_id in told_over or (each.call_id, each.digest) in sent
        if each.is_far and each.digest is not None and not is_known:
            yield f"never offered: {each.call_id} ended as {each.kind}, and nobody had a part in it"


def _wrong_to_the_model(history: History) -> Iterator[str]:
    kept = {each.call_id: each for each in history.kept}
    given: set[str] = set()
    for request in history.requests:
        times = Counter(call_id for call_id, _ in request.results)
        yield from (f"model: {call_id} given {n} times at once" for call_id, n in times.items() if n > 1)
        for call_id, digest in request.results:
            given.add(call_id)
            record = kept.get(call_id)
            if record is None:
                yield f"model: given {call_id}, which is in no record"
            elif record.digest != digest:
                yield f"model: given {digest} for {call_id}, but the record has {record.digest}"
    finished = {talk.thread_id for talk in history.talks if talk.is_finished}
    for each in history.kept:
        if each.thread_id in finished and each.call_id not in given:
            yield f"model: never given {each.call_id} of a thread that finished"


def _woken_late(history: History) -> Iterator[str]:
    """Judged by others, not by the clock alone: a machine that is starved is slow for everybody."""
    found = wakes(history)
    usual = sorted(each.took for each in found)[len(found) * 9 // 10] if found else 0.0
    for late in found:
        if late.took <= max(LATE_SEC, OF_OTHERS * usual):
            continue
        passed = sum(each.settled_at > late.settled_at and each.asked_at < late.asked_at for each in found)
        if passed >= OVERTAKEN * len(found):
            yield f"woken late: {late.thread_id} after {late.took:.0f} s, when {passed} others had passed it"


def _lost_or_doubled(history: History) -> Iterator[str]:
    for talk in history.talks:
        if not talk.is_finished:
            yield f"lost: {talk.thread_id} never came to its end"
            continue
        yield from (f"{fault} in {talk.thread_id}" for fault in _faults_of(talk))


def _faults_of(talk: Talk) -> Iterator[str]:
    numbers = [line.seq for line in talk.journal]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"lost: the journal is numbered {numbers}"
    positions = [(piece.seq, piece.offset) for piece in talk.heard]
    for before, after in pairwise(positions):
        if after <= before:
            yield f"doubled: {after} was heard after {before}"
    heard: dict[int, str] = defaultdict(str)
    for piece in talk.heard:
        heard[piece.seq] += piece.text
    for line in talk.journal:
        yield from _faults_of_line(line, heard.pop(line.seq, None))
    yield from (f"invented: {text!r} at {seq}, which is in no journal" for seq, text in heard.items() if text)


def _faults_of_line(line: Line, heard: str | None) -> Iterator[str]:
    if line.is_optional:
        return
    if line.is_silent:
        if heard:
            yield f"invented: {heard!r} at {line.seq}"
        return
    if line.is_discarded:
        if heard and not line.text.startswith(heard):
            yield f"invented: {heard!r} at {line.seq}, where {line.text!r} was discarded"
        return
    if heard is None or (len(heard) < len(line.text)):
        yield f"lost: {line.text!r} at {line.seq}, heard {heard!r}"
    elif heard != line.text:
        yield f"doubled: {heard!r} at {line.seq}, where the journal has {line.text!r}"


def _lost_places(history: History) -> Iterator[str]:
    """What a reader was sent is stored, so its place is known forever."""
    for talk in history.talks:
        for gap in talk.gaps:
            there = next((line.text for line in talk.journal if line.seq == gap.seq), None)
            place = f"{gap.seq}.{gap.offset}, where the journal has {there!r}"
            yield f"lost place: {talk.thread_id} was at {place}, and was told that it is unknown"


def _wrong_endings(history: History) -> Iterator[str]:
    for talk in history.talks:
        for each in talk.endings:
            if each.markers > 1 or (each.is_whole and each.markers != 1):
                yield f"ending: a response in {talk.thread_id} had {each.markers} ends"
            if each.said_after:
                yield f"ending: a response in {talk.thread_id} went on after its end"


def _wrong_answers(history: History) -> Iterator[str]:
    """What a crash cut is asked for again, and only the second time counts."""
    for talk in history.talks:
        if talk.is_finished and talk.answer != talk.script:
            yield f"answer: {talk.thread_id} has {talk.answer}, and the model said {talk.script}"


def _run_twice(history: History) -> Iterator[str]:
    begun = Counter(each.call_key for each in history.executions if not each.idempotent)
    for call_key, times in begun.items():
        if times > 1:
            yield f"run twice: {call_key} began {times} times"
    first: set[str] = set()
    for each in history.executions:
        # rows carry the time at which their first command was decided: what began once did not begin again
        is_again = each.call_key in first
        first.add(each.call_key)
        if is_again and each.after_its_result:
            yield f"run twice: {each.call_key} began again after its result was stored"


def _never_run(history: History) -> Iterator[str]:
    begun = {each.call_key for each in history.executions}
    for each in history.kept:
        if each.kind == "success" and each.effect is not None and each.effect not in begun:
            yield f"never run: {each.effect} succeeded and never began"


def _wrong_to_programs(history: History) -> Iterator[str]:
    times = Counter(each.key for each in history.direct)
    yield from (f"program: {key} was opened {n} times" for key, n in times.items() if n > 1)
    record = {each.key: each for each in history.direct}
    for told in history.told:
        call = record.get(told.key)
        if call is None:
            yield f"program: told of {told.key}, which is in no record"
        elif (told.is_success, told.output) != (call.is_success, call.output):
            yield f"program: told {told.output} of {told.key}, but the record has {call.output}"
    answered = {each.key for each in history.told}
    for call in history.direct:
        if not call.is_settled:
            yield f"program: {call.key} never came to its end"
        elif call.is_keyed and call.key not in answered:
            yield f"program: nobody was told how {call.key} ended"
