"""What is heard of the other processes: nothing is missed in silence, and no more is told than is new."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from farhand.core.event import TextAdded
from farhand.store.base import WriteRun
from farhand.store.hub import Hub
from farhand.store.postgres import PostgresStore
from farhand.store.postgres.bell import Bell
from farhand.store.postgres.heard import Heard
from farhand.store.postgres.line import Line, connect
from farhand.store.postgres.place import place_of
from farhand.store.postgres.stopped import LISTENER, end_stopped, queue_usage
from farhand.testing.store_laws.given import Given
from tests.postgres import running_cluster
from tests.requirement import requirement
from tests.unit.agent.stage import comes_true

WAITED_FOR = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event = 'ClientWrite'"
)
FLOOD = "SELECT pg_notify('crowded', repeat('x', 7000) || note) FROM generate_series(1, 500) AS note"


@requirement("postgres:queue")
async def test_a_listener_that_takes_nothing_any_more_is_ended_and_the_queue_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("farhand.store.postgres.stopped.STOPPED_SEC", 0.5)
    # a local socket: the network's own patience does not end it
    with running_cluster() as cluster:
        address = f"postgresql://farhand@/postgres?host={cluster.folder}&port={cluster.port}"
        beside = await connect(place_of(address))
        stopped = await connect(place_of(address), settings={"application_name": LISTENER})
        await stopped.listen("crowded", lambda _: None)
        stopped._connection._transport.pause_reading()

        async def is_waited_for() -> bool:
            await beside.fetch(FLOOD)
            return bool((await beside.fetch(WAITED_FOR, LISTENER))[0][0])

        await comes_true(is_waited_for)
        assert await queue_usage(beside) > 0

        async def is_ended() -> bool:
            return await end_stopped(beside) == 1

        await comes_true(is_ended)

        async def is_free() -> bool:
            # whoever comes next moves the end of the queue
            await beside.fetch(FLOOD)
            return await queue_usage(beside) == 0

        await comes_true(is_free)
        stopped.cut()
        await beside.close()


@requirement("postgres:echo")
async def test_a_connection_that_lives_and_hears_nothing_counts_as_deaf_and_that_is_said_once(
    given: Given,
    other: Given,
    postgres: PostgresStore,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await _comes(lambda: postgres._bell.is_hearing)
    monkeypatch.setattr("farhand.store.postgres.bell.SAID_SEC", 0.2)
    listen, tries = Line.listen, 0

    async def listen_in_vain(self: Line, channel: str, heard: Callable[[str], None]) -> None:
        nonlocal tries
        tries += 1

    monkeypatch.setattr(Line, "listen", listen_in_vain)
    await postgres._lines.do(lambda line: line.fetch(END_LISTENERS, LISTENER))
    await _comes(lambda: tries > 4)
    assert not postgres._bell.is_hearing
    assert caplog.text.count("nothing is heard") <= 2, "once for each of the two stores"
    run = await given.run()
    with postgres.hub.watch(run.run_id) as watch:
        await _comes(lambda: watch.lost)
    monkeypatch.setattr(Line, "listen", listen)
    await _comes(lambda: postgres._bell.is_hearing)


@requirement("postgres:unbroken")
@pytest.mark.parametrize("part", ["_tell", "_hear_until_lost"])
async def test_whatever_breaks_in_hearing_is_logged_and_begins_again(
    given: Given,
    other: Given,
    postgres: PostgresStore,
    part: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await _comes(lambda: postgres._bell.is_hearing)
    run = await given.run()

    async def break_down(self: Bell | Heard, *about: object) -> None:
        assert isinstance(self, Heard) or not self.is_hearing
        raise RuntimeError("not foreseen")

    with monkeypatch.context() as broken, postgres.hub.watch(run.run_id) as watch:
        broken.setattr(Bell if part == "_hear_until_lost" else Heard, part, break_down)
        if part == "_hear_until_lost":
            await postgres._lines.do(lambda line: line.fetch(END_LISTENERS, LISTENER))
        else:
            await other.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "a"),)))
        await _comes(lambda: "not foreseen" in caplog.text)
        assert (watch.news, watch.lost) == ([], True), "who watches has to look"
    await _comes(lambda: postgres._bell.is_hearing)
    with postgres.hub.watch(run.run_id) as watch:
        await other.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "b"),)))
        await _comes(lambda: bool(watch.news))


@requirement("postgres:woken")
async def test_of_more_than_is_read_at_once_the_watchers_are_told_to_look(
    given: Given, other: Given, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.postgres.heard.ENTRIES_AT_MOST", 2)
    await _comes(lambda: postgres._bell.is_hearing)
    runs = [await given.run(f"t{number}") for number in range(3)]
    words = tuple(TextAdded(0, word) for word in "abc")
    with (
        postgres.hub.watch(runs[0].run_id) as first,
        postgres.hub.watch(runs[1].run_id) as second,
        postgres.hub.watch(runs[2].run_id) as third,
    ):
        await other.store.commit(*(WriteRun(run_id=run.run_id, events=words) for run in runs))
        await _comes(lambda: first.lost and second.lost and third.lost)


@requirement("postgres:many-read")
async def test_the_end_of_reading_is_told_and_what_goes_on_is_not_told_with_every_sign_of_life(
    given: Given, other: Given, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.elsewhere.HERE_SEC", 1000.0)
    run = await given.run()
    with other.store.hub.watch(run.run_id):
        await _comes(lambda: postgres.hub.watched(run.run_id) == 1)
    await _comes(lambda: postgres.hub.watched(run.run_id) == 0)


async def test_only_what_began_or_ended_is_told_and_all_of_it_to_whoever_asks() -> None:
    hub = Hub()
    bell = Bell(place_of("postgresql://h/d"), None, hub, "me")  # type: ignore[arg-type]
    with hub.watch("run_1", "run_2"):
        bell._find_topics()
        assert sorted(bell._to_tell) == [("read", "run_1"), ("read", "run_2")]
        bell._to_tell.clear()
        bell._find_topics()
        assert not bell._to_tell, "they know"
        bell._hear('["you",[["who"]]]')
        bell._find_topics()
        assert len(bell._to_tell) == 2
        bell._to_tell.clear()
    bell._find_topics()
    assert sorted(bell._to_tell) == [("unread", "run_1"), ("unread", "run_2")]


async def test_what_a_process_said_that_is_not_heard_of_any_more_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = Hub()
    bell = Bell(place_of("postgresql://h/d"), None, hub, "me")  # type: ignore[arg-type]
    bell._hear('["you",[["read","run_1"]]]')
    assert hub.watched("run_1") == 1
    monkeypatch.setattr("farhand.store.elsewhere.HERE_SEC", -1.0)
    bell._hear('["you",[["here"]]]')
    assert hub.watched("run_1") == 0
    monkeypatch.setattr("farhand.store.elsewhere.TOLD_SEC", -1.0)
    bell._hear('["another",[["here"]]]')
    bell._hear('["another",[["here"]]]')
    assert not hub.elsewhere._topics, "nor kept"


END_LISTENERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"


async def _comes(fact: Callable[[], bool]) -> None:
    async def asked() -> bool:
        await asyncio.sleep(0)
        return fact()

    await comes_true(asked)
