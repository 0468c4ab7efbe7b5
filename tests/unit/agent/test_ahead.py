"""Words that were heard before they were stored: the record confirms them, or the reader is sent away."""

from __future__ import annotations

import asyncio

import pytest

from farhand.agent.ahead import AT_MOST, Ahead
from farhand.agent.reader import Reader
from farhand.core.event import (
    CallBegun,
    Entry,
    Event,
    InputAdded,
    ReasoningAdded,
    RunResumed,
    RunStarted,
    StepStarted,
    TextAdded,
)
from farhand.core.principal import LOCAL
from farhand.core.run import Run
from farhand.core.thread import Thread
from farhand.store.base import Committed, InsertRun, InsertThread, WriteRun
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.requirement import requirement


def entry(seq: int, event: Event, offset: int = 0) -> Entry:
    return Entry(seq, event, 0.0, offset)


def heard(*entries: Entry) -> Ahead:
    ahead = Ahead()
    for each in entries:
        ahead.hear(each)
    return ahead


@requirement("streams:takeover")
@pytest.mark.parametrize(
    ("stored", "is_same"),
    [
        (TextAdded(0, "Hello"), True),
        (TextAdded(0, "Hello there"), True),
        (TextAdded(0, "Hel"), False),
        (TextAdded(0, "Help!"), False),
        (TextAdded(1, "Hello"), False),
        (ReasoningAdded(0, "Hello"), False),
        (InputAdded("call_1", "Hello"), False),
        (StepStarted(1), False),
        (RunResumed(taken_over=True), False),
    ],
)
def test_the_record_agrees_if_it_begins_with_what_was_heard(stored: Event, is_same: bool) -> None:
    ahead = heard(entry(3, TextAdded(0, "Hel")), entry(3, TextAdded(0, "lo"), 3))
    assert ahead.agrees(entry(3, stored)) is is_same


@requirement("streams:takeover")
def test_what_is_confirmed_or_was_never_heard_cannot_be_contradicted() -> None:
    begun = CallBegun("call_1", "weather")
    ahead = heard(entry(3, StepStarted(1)), entry(4, begun), entry(5, RunStarted("t")))
    assert not ahead.agrees(entry(4, CallBegun("call_2", "weather")))
    ahead.confirm(entry(3, StepStarted(1)))
    assert ahead.first == 4
    ahead.confirm(entry(4, begun))
    assert ahead.agrees(entry(4, StepStarted(9)))
    assert ahead.agrees(entry(5, StepStarted(9))), "what is stored before it is told is not kept in mind"


@requirement("streams:takeover")
def test_no_more_is_kept_in_mind_than_a_bound() -> None:
    ahead = heard(*(entry(seq, StepStarted(seq)) for seq in range(1, AT_MOST + 11)))
    assert ahead.first == 11


@requirement("streams:takeover")
async def test_a_reader_whose_words_were_lost_is_sent_away_when_the_record_says_otherwise() -> None:
    store = MemoryStore(FakeClock())
    store.is_shared = True
    run = Run(run_id="run_1", owner=LOCAL, thread_id="t1", started_at=0.0, lease_until=1e12)
    thread = Thread(owner=LOCAL, thread_id="t1", created_at=0.0, updated_at=0.0)
    await store.commit(InsertThread(thread), InsertRun(run))
    with Reader(store, LOCAL, "run_1") as reader:
        assert await reader.next(0.0) == []
        store.hub.tell("run_1", [entry(1, StepStarted(1)), entry(2, TextAdded(0, "lost words"))])
        assert await asyncio.wait_for(reader.next(5.0), 5.0)
        # another worker took it over and says something else under the same numbers, then goes on
        others = (RunResumed(taken_over=True), StepStarted(1), TextAdded(0, "kept words"))
        commit = await store.commit(WriteRun(run_id="run_1", fence=1, events=others))
        assert isinstance(commit, Committed)
        assert await asyncio.wait_for(reader.next(5.0), 5.0) is None
        assert reader.cut
