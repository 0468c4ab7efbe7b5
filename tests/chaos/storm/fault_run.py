"""One fault run: people chat continuously while the director injects faults; then the history is checked."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from farhand.eventlog.log import EventLog
from farhand.store.open import open_store
from tests.chaos.history import LATE_SEC, History, violations, wakes
from tests.chaos.storm.agent import CALLS_PER_CHAT, NOTES
from tests.chaos.storm.caller import Caller, any_direct
from tests.chaos.storm.director import CALLS, SEED, TIMES, Director, Fault
from tests.chaos.storm.gather import history_of
from tests.chaos.storm.hand import hands
from tests.chaos.storm.person import Person
from tests.chaos.storm.sender import Progress
from tests.chaos.storm.servers import Servers

PEOPLE = 24
PROGRAMS = 6


class TooShort(AssertionError):
    """Nothing was wrong, but too little was tried to say so."""


class Played(NamedTuple):
    people: list[Person]
    callers: list[Caller]
    struck: Counter[str]
    seconds: float


async def play(there: Servers, lanes: Sequence[Sequence[Fault]], dice: random.Random) -> Played:
    """Until every fault has struck often enough and enough calls were made; then all come to their end."""
    began = time.monotonic()
    progress = Progress()
    director = Director(lanes, dice, progress)
    people: list[Person] = []
    callers: list[Caller] = []

    def goes_on() -> bool:
        # a call without a key whose request was lost is not sent again, and never stored
        keyed = sum(each.direct.is_keyed for each in callers)
        return not striking.done() or len(people) * CALLS_PER_CHAT + keyed < CALLS

    async def chat_on() -> None:
        while goes_on():
            person = Person(f"chat-{len(people)}", lambda: dice.choice(there.clients), dice, progress)
            people.append(person)
            await person.talk()

    async def call_on() -> None:
        while goes_on():
            direct = any_direct(len(callers), len(there.each), dice)
            caller = Caller(direct, lambda: dice.choice(there.clients), progress)
            callers.append(caller)
            await caller.call()

    ports = [line.port for line in there.lines]
    async with hands(ports, there.folder), asyncio.TaskGroup() as group:
        striking = group.create_task(director.run())
        for _ in range(PEOPLE):
            group.create_task(chat_on())
        for _ in range(PROGRAMS):
            group.create_task(call_on())
    return Played(people, callers, director.struck, time.monotonic() - began)


async def judge(played: Played, store: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    eventlog = EventLog(await open_store(store))
    await eventlog.recover()
    history = await history_of(eventlog, folder / f"{NOTES}.jsonl", played.people, played.callers)
    await eventlog.close()
    found = violations(history)
    with capsys.disabled():
        # what was tried is part of the proof, and the seed brings it back
        print(f"\n{_summary(store, history, played)}; violations: {len(found)}")  # noqa: T201
    assert found == [], "\n".join(found[:50])
    if len(history.kept) < CALLS or min(played.struck.values()) < TIMES:
        raise TooShort(f"{len(history.kept)} calls, {played.struck}")


def _summary(store: str, history: History, played: Played) -> str:
    kinds = Counter(each.tool for each in history.executions)
    ran = ", ".join(f"{tool} {times}" for tool, times in sorted(kinds.items()))
    struck = ", ".join(f"{kind} {times}" for kind, times in sorted(played.struck.items()))
    told = Counter(each.told.value for each in history.sendings)
    answers = ", ".join(f"{kind} {times}" for kind, times in sorted(told.items()))
    took = sorted(each.took for each in wakes(history))
    return (
        f"faults on {store.partition(':')[0]}: {len(history.kept)} calls in {len(history.talks)} chats "
        f"and {len(history.direct)} programs; "
        f"tools begun: {ran}; "
        f"faults: {struck}; "
        f"results told: {answers}; "
        f"from an outcome to its model, {len(took)} times: {median(took):.2f} s in the middle,"
        f" {took[len(took) * 9 // 10]:.1f} s for nine in ten,"
        f" {took[-1]:.1f} s at most (late: over {LATE_SEC:g} s); "
        f"{played.seconds:.0f} s; TEST_STORM_SEED={SEED}"
    )
