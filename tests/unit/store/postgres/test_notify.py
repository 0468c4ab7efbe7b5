"""Notifications from other processes: soon, never a process's own, and nothing is missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event

import pytest

from farhand.core.client import Client
from farhand.store.base import CLIENTS_CHANGED, FEED_GREW, THREAD_MOVED, owner_key, thread_key
from farhand.store.postgres import PostgresStore
from farhand.store.postgres.connection import Connection, connect, parse_address
from farhand.store.postgres.notify import (
    LISTENER,
    MAX_PAYLOADS,
    PAYLOAD_BYTES,
    Notifier,
    end_stopped,
    payloads,
)
from farhand.testing.store_laws.fixture import ANN, StoreFixture
from tests.postgres import running_cluster
from tests.requirement import requirement
from tests.unit.store.postgres.store_probe import Hints, comes_true, listens, query

WAITED_FOR = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event = 'ClientWrite'"
)
FLOOD = "SELECT pg_notify('crowded', repeat('x', 7000) || note) FROM generate_series(1, 500) AS note"
QUEUE_USAGE = "SELECT pg_notification_queue_usage()"
END_LISTENERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"


@pytest.fixture
async def hints(postgres: PostgresStore, other: PostgresStore) -> Hints:
    """What `other` hears."""
    hints = Hints(other)
    await listens(other)
    await listens(postgres)
    hints.all.clear()
    return hints


@requirement("postgres:woken")
async def test_others_hear_which_threads_and_feeds_moved_and_the_writer_itself_does_not(
    fixture: StoreFixture, postgres: PostgresStore, hints: Hints
) -> None:
    own = Hints(postgres)
    await fixture.append("t1", feed=1)
    await fixture.append("t2")
    thread, feed = (THREAD_MOVED, thread_key(ANN, "t1")), (FEED_GREW, owner_key(ANN))
    await hints.have(thread, feed, (THREAD_MOVED, thread_key(ANN, "t2")))
    assert len(hints.all) == 3
    assert own.all == []


@requirement("postgres:woken")
async def test_others_hear_of_deleted_threads_registrations_and_what_feeds_are_told(
    fixture: StoreFixture, postgres: PostgresStore, hints: Hints
) -> None:
    await fixture.append("t1")
    await hints.have((THREAD_MOVED, thread_key(ANN, "t1")))
    hints.all.clear()
    await fixture.delete("t1")
    await hints.have((THREAD_MOVED, thread_key(ANN, "t1")))
    client = Client(owner=ANN, client_id="desk", tools=(), grace_sec=5.0, registered_at=0.0)
    assert await postgres.clients.put(client, b"{}") == "put"
    await hints.have((CLIENTS_CHANGED, owner_key(ANN)), (FEED_GREW, owner_key(ANN)))
    hints.all.clear()
    assert await postgres.clients.drop(client) == "dropped"
    await hints.have((CLIENTS_CHANGED, owner_key(ANN)))
    await postgres.add_to_feed(ANN, b"{}")
    await hints.have((FEED_GREW, owner_key(ANN)))


@requirement("postgres:woken")
async def test_a_topic_of_ones_own_reaches_the_others_with_every_letter(
    postgres: PostgresStore, hints: Hints
) -> None:
    postgres.notify("progress", 'ü"\\\n\0😀')
    await hints.have(("progress", 'ü"\\\n\0😀'))


@requirement("postgres:woken")
async def test_nothing_is_heard_of_a_transaction_that_wrote_nothing(
    fixture: StoreFixture, hints: Hints
) -> None:
    await fixture.append("t1")
    await fixture.try_append("t1", version=7, feed=1)
    await fixture.append("t2")
    await hints.have((THREAD_MOVED, thread_key(ANN, "t2")))
    assert (FEED_GREW, owner_key(ANN)) not in hints.all


@requirement("postgres:woken")
async def test_of_many_threads_that_moved_at_once_every_one_is_heard(
    fixture: StoreFixture, postgres: PostgresStore, hints: Hints
) -> None:
    names = [f"thread-{no:0100}" for no in range(200)]
    await postgres.append([fixture.new_append(name) for name in names])
    await hints.have(*((THREAD_MOVED, thread_key(ANN, name)) for name in names))


def test_hints_share_notifications_that_the_database_takes() -> None:
    hints = [(THREAD_MOVED, f"acme\0ann\0thread-{no:050}") for no in range(1000)]
    notes = payloads("me", hints)
    assert 1 < len(notes) <= MAX_PAYLOADS
    assert all(len(note.encode()) <= PAYLOAD_BYTES for note in notes)
    assert payloads("me", [*hints, *hints]) == notes, "each once"
    assert payloads("me", []) == []


@pytest.mark.parametrize(
    "hints", [[("t", "x" * 8000)], [("t", f"{no}" + "x" * 1000) for no in range(8 * MAX_PAYLOADS)]]
)
def test_too_much_for_notifications_is_told_as_look_at_everything(hints: list[tuple[str, str]]) -> None:
    assert payloads("me", hints) == ['["me",[["",""]]]']


async def test_what_cannot_be_read_or_breaks_a_listener_ends_nothing(
    postgres: PostgresStore, other: PostgresStore, hints: Hints, caplog: pytest.LogCaptureFixture
) -> None:
    await query(postgres, "SELECT pg_notify($1, 'of a newer version')", postgres._database.channel)
    await hints.have(("", ""))

    def fail(topic: str, item: str) -> None:
        raise RuntimeError("a listener of ours")

    other.listen(fail)
    postgres.notify("topic", "item")
    await comes_true(lambda: "a listener failed" in caplog.text)
    again = Hints(other)
    postgres.notify("topic", "again")
    await again.have(("topic", "again"))


@requirement("postgres:recovers")
async def test_after_its_connection_was_ended_a_listener_looks_at_everything_and_hears_again(
    fixture: StoreFixture, postgres: PostgresStore, other: PostgresStore, hints: Hints
) -> None:
    await query(postgres, END_LISTENERS, LISTENER)
    await hints.have(("", ""))
    await listens(other)
    await fixture.append("t1")
    await hints.have((THREAD_MOVED, thread_key(ANN, "t1")))


async def test_what_is_to_be_said_while_there_is_no_connection_is_reported_later(
    postgres: PostgresStore, hints: Hints, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Notifier._work
    lost = 0

    async def lose(self: Notifier, connection: Connection) -> None:
        nonlocal lost
        if self is postgres._notifier and lost < 3:
            lost += 1
            connection.abort()
        await work(self, connection)

    monkeypatch.setattr(Notifier, "_work", lose)
    postgres.notify("topic", "late")
    await hints.have(("topic", "late"))
    assert lost == 3


async def test_a_connection_that_lives_and_receives_nothing_counts_as_lost_and_that_is_logged_once(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hints = Hints(postgres)
    await listens(postgres)
    monkeypatch.setattr("farhand.store.postgres.notify.ECHO_SEC", 0.2)
    monkeypatch.setattr("farhand.store.postgres.notify.RECHECK_SEC", 0.1)
    listen, tries = Connection.listen, 0

    async def listen_in_vain(self: Connection, channel: str, receive: Callable[[str], None]) -> None:
        nonlocal tries
        tries += 1

    monkeypatch.setattr(Connection, "listen", listen_in_vain)
    await query(postgres, END_LISTENERS, LISTENER)
    await comes_true(lambda: tries > 4)
    assert not postgres._notifier.is_listening
    assert caplog.text.count("not receiving notifications") == 1
    hints.all.clear()
    await comes_true(lambda: hints.all.count(("", "")) > 2)
    monkeypatch.setattr(Connection, "listen", listen)
    await listens(postgres)


async def test_whatever_breaks_in_listening_is_logged_and_begins_again(
    fixture: StoreFixture,
    postgres: PostgresStore,
    other: PostgresStore,
    hints: Hints,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def break_down(self: Notifier) -> None:
        assert not self.is_listening
        raise RuntimeError("not foreseen")

    with monkeypatch.context() as broken:
        broken.setattr(Notifier, "_listen_until_lost", break_down)
        await query(postgres, END_LISTENERS, LISTENER)
        await comes_true(lambda: "not foreseen" in caplog.text)
        await hints.have(("", ""))
    await listens(other)
    await fixture.append("t1")
    await hints.have((THREAD_MOVED, thread_key(ANN, "t1")))


async def test_a_listener_that_takes_nothing_any_more_is_ended_and_the_queue_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("farhand.store.postgres.notify.STOPPED_SEC", 0.5)
    # a local socket: the network's own patience does not end it
    with running_cluster() as cluster:
        address = f"postgresql://farhand@/postgres?host={cluster.folder}&port={cluster.port}"
        beside = await connect(parse_address(address))
        may_end = Event()
        stopped = asyncio.create_task(asyncio.to_thread(asyncio.run, _listen_and_stop(address, may_end)))

        async def is_waited_for() -> bool:
            await beside.fetch(FLOOD)
            return bool((await beside.fetch(WAITED_FOR, LISTENER))[0][0])

        await comes_true(is_waited_for)
        assert (await beside.fetch(QUEUE_USAGE))[0][0] > 0

        async def is_ended() -> bool:
            return await end_stopped(beside) == 1

        await comes_true(is_ended)

        async def is_free() -> bool:
            # the next to notify moves the end of the queue
            await beside.fetch(FLOOD)
            return bool((await beside.fetch(QUEUE_USAGE))[0][0] == 0)

        await comes_true(is_free)
        may_end.set()
        await stopped
        await beside.close()


async def _listen_and_stop(address: str, may_end: Event) -> None:
    """A process whose loop stands still from the first notification on."""
    is_over = asyncio.Event()

    def stop(_: str) -> None:
        may_end.wait()
        is_over.set()

    connection = await connect(parse_address(address), settings={"application_name": LISTENER})
    await connection.listen("crowded", stop)
    await is_over.wait()
    connection.abort()


async def test_more_unsent_hints_than_are_kept_become_one_that_says_look_at_everything() -> None:
    notifier = Notifier(parse_address("postgresql://h/d"), None, "me")  # type: ignore[arg-type]
    for no in range(10_001):
        notifier.send(("topic", str(no)))
    assert notifier._unsent == [("", ""), ("topic", "10000")]
    await asyncio.sleep(0)
