"""A server is killed before and after each append of a whole scene; the log alone leads to the one right end.
Each effect is counted in a file that outlives the process.

A scene is played again and again: the server dies right before its first append, right after it, before the
second, and so on, until the scene ends before the server does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import get_args

import pytest

from farhand.core.call import Call
from farhand.core.decide.calls import UNKNOWN_END
from farhand.core.outcome import Cancelled, Success
from farhand.core.principal import LOCAL
from farhand.core.run import RunState
from farhand.eventlog.log import EventLog
from farhand.store.open import open_store
from tests.chaos.crash_points import VIEW, CarefulPerson, OneByOne, Stage, When, caller, stage
from tests.chaos.history import History, Told, violations
from tests.chaos.storm.agent import NOTES
from tests.chaos.storm.caller import Caller, Direct
from tests.chaos.storm.gather import history_of
from tests.chaos.time_limit_check import say
from tests.postgres import running_cluster
from tests.requirement import requirement

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(600)]
CHAT_EVENTS = (
    "MessageAdded",
    "TextAdded",
    "CallOpened",
    "ApprovalAnswered",
    "CallTaken",
    "CallSettled",
    "RunFinished",
)
"""The server dies before and after an append with each of them."""
AGAIN = "look_up"
"""The one tool that may run again."""

Scene = Callable[[str], Awaitable[None]]


async def sweep(there: Stage, play: Scene, kinds: Sequence[str]) -> int:
    """How many moments there were; each scene gets a name of its own. How many appends a scene takes is a
    matter of its timing: so the first append with an event of each of these kinds is a moment, too."""
    moments = 0
    for when in get_args(When):
        for number in count(1):
            if not await there.play(when, number, partial(play, f"{when}-{number}")):
                break
            moments += 1
            await there.set()
        for kind in kinds:
            moments += await there.play(when, 1, partial(play, f"{when}-{kind}"), kind=kind)
            await there.set()
    return moments


@contextmanager
def addresses(kind: str, folder: Path) -> Iterator[list[str]]:
    """On SQLite of one server, which is started again; on PostgreSQL of two, of which one stays."""
    if kind == "sqlite":
        yield [f"sqlite:///{folder}/store.db"]
        return
    with running_cluster() as cluster:
        yield [cluster.address("crash")] * 2


def check_effect(call: Call, times: int) -> None:
    """It ran once and says so; or how it ended is unknown, and it did not run again."""
    if call.tool == AGAIN:
        assert isinstance(call.outcome, Success), call
        assert times in (1, 2), (call, times)
    elif isinstance(call.outcome, Success):
        assert times == 1, (call, times)
    else:
        assert call.outcome == UNKNOWN_END, call
        assert times <= 1, (call, times)


def begun(history: History) -> Counter[str]:
    return Counter(each.call_key for each in history.executions)


@requirement("crash:points")
@pytest.mark.parametrize(
    ("kind", "is_held", "visitor"),
    [
        ("sqlite", True, CarefulPerson),
        ("sqlite", False, OneByOne),
        ("postgres", True, OneByOne),
    ],
    ids=["sqlite-held", "sqlite-parked-one-by-one", "postgres-held-one-by-one"],
)
async def test_a_chat_comes_to_its_one_right_end_wherever_its_server_dies(
    tmp_path: Path, kind: str, is_held: bool, visitor: type[CarefulPerson]
) -> None:
    people: list[CarefulPerson] = []
    with addresses(kind, tmp_path) as stores:
        async with stage(stores, tmp_path) as there:

            async def play(name: str) -> None:
                people.append(visitor(name, there, is_held=is_held))
                await people[-1].talk()

            moments = await sweep(there, play, CHAT_EVENTS)
            for person in people:
                await check_receipts(person)
        async with reading(stores[0]) as eventlog:
            history = await history_of(eventlog, tmp_path / f"{NOTES}.jsonl", people)
            assert violations(history) == []
            for person in people:
                await check_chat(eventlog, person.chat, begun(history))
    unknown = sum(each.kind == "failure" for each in history.kept)
    say(f"{kind}: a chat whose server dies at {moments} moments; {unknown} calls with an unknown end")
    say(f"{kind}: died at {dict(there.killed)}")
    assert set(there.killed) >= {(when, each) for when in get_args(When) for each in CHAT_EVENTS}


@asynccontextmanager
async def reading(store: str) -> AsyncIterator[EventLog]:
    """What is kept, when no server is left."""
    eventlog = EventLog(await open_store(store))
    await eventlog.recover()
    try:
        yield eventlog
    finally:
        await eventlog.close()


async def check_chat(eventlog: EventLog, chat: str, times: Counter[str]) -> None:
    run = await eventlog.last_run(LOCAL, chat)
    assert run is not None
    assert run.state is RunState.DONE, run
    calls = await eventlog.calls_of(LOCAL, run.run_id)
    assert len(calls) == 10, calls
    for call in calls:
        if call.tool == "open_page":
            assert call.outcome == VIEW, call
        else:
            check_effect(call, times[f"{call.tool}:{chat}"])
        if call.client_id is not None:
            assert isinstance(call.outcome, Success), call
        if call.approval is not None:
            assert call.approval.answer is not None


async def check_receipts(person: CarefulPerson) -> None:
    """The same again is a repetition, whether its sender was ever answered or not."""
    results, answers = person.sender.results, person.sender.answers
    for call_id in {each.call_id for each in results}:
        await person.sender.bring(call_id, VIEW)
        assert results[-1].told is Told.REPEATED, results[-1]
    assert {each.told for each in answers} <= {Told.ACCEPTED, Told.REPEATED, Told.NOTHING}
    assert sum(each.told is Told.ACCEPTED for each in results) <= 5


DIRECT_EVENTS = ("CallOpened", "ApprovalAnswered", "CallTaken", "CallSettled")
CALLS = (
    ("charge", True),
    ("look_up", True),
    ("delete_file", True),
    ("open_page", True),
    ("client_hand0_work", True),
    ("delete_file", False),
    ("charge", False),
)
"""Tools, and whether the call has a request id."""


@requirement("crash:points")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_call_without_a_run_comes_to_its_one_right_end_wherever_its_server_dies(
    tmp_path: Path, kind: str
) -> None:
    programs: list[Caller] = []
    moments: dict[tuple[str, bool], int] = {}
    with addresses(kind, tmp_path) as stores:
        async with stage(stores, tmp_path) as there:

            async def play(tool: str, is_keyed: bool, name: str) -> None:
                direct = Direct(tool, f"{tool}-{is_keyed:d}-{name}", is_keyed)
                programs.append(caller(direct, there))
                await programs[-1].call()

            for tool, is_keyed in CALLS:
                moments[tool, is_keyed] = await sweep(there, partial(play, tool, is_keyed), ())
        async with reading(stores[0]) as eventlog:
            history = await history_of(eventlog, tmp_path / f"{NOTES}.jsonl", (), programs)
            assert violations(history) == []
            for program in programs:
                await check_program(eventlog, program, begun(history))
    say(f"{kind}: calls without a run whose server dies at {sum(moments.values())} moments: {moments}")
    # at one worker, of a client at the other, it is the opening alone
    assert min(moments.values()) >= 2
    assert set(there.killed) >= {(when, each) for when in get_args(When) for each in DIRECT_EVENTS}


async def check_program(eventlog: EventLog, program: Caller, times: Counter[str]) -> None:
    direct = program.direct
    opened = await eventlog.read(LOCAL, direct.subject, lambda thread: list(thread.calls.values()))
    if not opened and not direct.is_keyed:
        # its server died before it was opened, and nobody can ask again
        assert not times[direct.key]
        return
    [call] = opened
    if not direct.is_keyed and isinstance(call.outcome, Cancelled):
        # nobody had approved it, and nobody can ask for it again
        assert call.approval is None or call.approval.answer is None
        assert times[direct.key] <= (call.approval is None)
    elif direct.tool in ("open_page", "client_hand0_work"):
        assert isinstance(call.outcome, Success), call
    else:
        check_effect(call, times[direct.key])
