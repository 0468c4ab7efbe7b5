"""How messages lie in a SQLite file: those of a thread together, also where they were scattered before."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from farhand.core.thread import AssistantMessage, ResultsMessage, Text
from farhand.store.base import CutThread, InsertMessage, SwapCall
from farhand.store.draft.records import encode
from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite import file as file_module
from farhand.store.sqlite.file import open_file
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import ANN, Given, user_message
from tests.requirement import requirement

BEFORE_PLACES = 5
"""The last version with messages in the order of all threads."""


@requirement("store:message-places")
async def test_messages_that_come_in_turns_lie_by_their_thread(given: Given, path: Path) -> None:
    for name in ("t1", "t2"):
        await given.thread(name)
    for number in range(3):
        await given.message(f"m{number}", "t2")
        await given.message(f"m{number}", "t1")
    names = "SELECT place >> 28, place & 0xFFFFFFF, message_id FROM messages ORDER BY place"
    assert _ask(path, names) == [
        (thread_no, number + 1, f"m{number}") for thread_no in (1, 2) for number in range(3)
    ]


@requirement("store:message-places")
async def test_only_names_that_a_sender_chose_are_in_an_index(
    sqlite: SqliteStore, given: Given, path: Path
) -> None:
    run = await given.run()
    said = (
        user_message("m1"),
        AssistantMessage(run.run_id, 1, (Text("hello"),)),
        ResultsMessage(run.run_id, 1, ()),
    )
    await given.write(*(InsertMessage(ANN, "t1", message) for message in said))
    assert await sqlite.messages(ANN, "t1") == list(said)
    assert _ask(path, "SELECT message_id FROM messages WHERE is_sent = 1") == [("m1",)]
    # read again, as after a start
    sqlite._writer._draft.forget()
    assert await given.refuse(InsertMessage(ANN, "t1", said[0])) == "exists"


@requirement("store:message-places")
async def test_a_sender_cannot_use_the_name_of_what_the_model_said(sqlite: SqliteStore, given: Given) -> None:
    run = await given.run()
    answer = AssistantMessage(run.run_id, 1, (Text("hello"),))
    await given.write(InsertMessage(ANN, "t1", answer))
    assert await given.refuse(InsertMessage(ANN, "t1", user_message(answer.message_id))) == "exists"
    sent = user_message(f"{run.run_id}:2")
    await given.write(InsertMessage(ANN, "t1", sent))
    assert await given.refuse(InsertMessage(ANN, "t1", sent)) == "exists"
    assert await sqlite.messages(ANN, "t1") == [answer, sent]


@requirement("store:message-places")
@pytest.mark.parametrize("name", ["m1", "msg:1", "2026-11-16T15:09:04Z"])
async def test_a_name_of_its_sender_is_looked_up_without_walking_through_the_thread(
    sqlite: SqliteStore, given: Given, name: str
) -> None:
    await given.thread()
    await given.write(*(InsertMessage(ANN, "t1", user_message(f"old-{number}")) for number in range(1000)))
    steps: list[None] = []
    sqlite._writer._db.set_progress_handler(lambda: steps.append(None), 1)
    await given.message(name)
    assert await given.refuse(InsertMessage(ANN, "t1", user_message(name))) == "exists"
    assert len(steps) < 1000, "fewer than one for each message that is there"


@requirement("store:message-places")
async def test_a_thread_can_be_cut_where_the_model_spoke_and_goes_on_from_there(
    sqlite: SqliteStore, given: Given
) -> None:
    run = await given.run()
    first, answer, last = (
        user_message("m1"),
        AssistantMessage(run.run_id, 1, (Text("hello"),)),
        user_message("m2"),
    )
    await given.write(*(InsertMessage(ANN, "t1", message) for message in (first, answer, last)))
    await given.write(CutThread(ANN, "t1", answer.message_id), InsertMessage(ANN, "t1", last))
    assert await sqlite.messages(ANN, "t1") == [first, last]


@requirement("store:migrations")
async def test_messages_of_a_file_where_they_are_scattered_come_back_in_order_and_once(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make_old_file(path, monkeypatch, clock.now())
    store = await SqliteStore.open(str(path), clock)
    given = Given(store, clock)
    old = [user_message(name) for name in ("z", "b", "y", "a")]
    assert await store.messages(ANN, "t1") == old
    assert await store.messages(ANN, "t2") == old
    assert await given.refuse(InsertMessage(ANN, "t2", user_message("y", "again"))) == "exists"
    await given.write(InsertMessage(ANN, "t1", user_message("new")))
    assert await store.messages(ANN, "t1") == [*old, user_message("new")]
    assert await store.messages(ANN, "t2") == old
    await store.close()


@requirement("store:cheap-scans")
async def test_a_call_that_is_settled_is_not_due_and_goes_by_the_time_of_its_end(
    sqlite: SqliteStore, given: Given, clock: FakeClock
) -> None:
    run = await given.run()
    settled = await given.call(run, deadline=clock.now() + 5.0)
    waits = await given.call(run, deadline=clock.now() + 6.0)
    clock.advance(1.0)
    await given.write(SwapCall(settled, given.settled(settled)))
    assert [due.call_id for due in await sqlite.due(before=clock.now() + 60.0, limit=9)] == [waits.call_id]
    await given.write(SwapCall(waits, given.settled(waits)))
    await given.end(run)
    # before the deadline that it had, and after its end
    clock.advance(2.0)
    removed = await sqlite.purge(settled_before=clock.now())
    assert removed.calls == 2


def _make_old_file(path: Path, monkeypatch: pytest.MonkeyPatch, at: float) -> None:
    """As the version before would have left it, with two threads that took turns."""
    known = file_module._migrations()
    with monkeypatch.context() as patch:
        patch.setattr(file_module, "_migrations", lambda: known[:BEFORE_PLACES])
        open_file(str(path)).close()
    db = sqlite3.connect(path)
    for number, name in enumerate(("t1", "t2"), 1):
        thread = encode({"owner": ANN, "thread_id": name, "created_at": at, "updated_at": at})
        row = (number, ANN.tenant, ANN.subject, name, at, thread)
        db.execute("INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?)", row)
    for name in ("z", "b", "y", "a"):
        body = encode(user_message(name))
        db.executemany(
            "INSERT INTO messages (thread_no, message_id, body) VALUES (?, ?, ?)",
            [(2, name, body), (1, name, body)],
        )
    db.commit()
    db.close()


def _ask(path: Path, question: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(path)
    rows = db.execute(question).fetchall()
    db.close()
    return rows
