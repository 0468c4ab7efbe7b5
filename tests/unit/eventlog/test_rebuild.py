"""Look-ups rebuilt from a log: after a purge, with unreadable rows, and during changes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.core.call import ProgramRequest
from farhand.core.decide import calls, runs
from farhand.core.decide.calls import CheckedResult
from farhand.core.outcome import Success
from farhand.core.principal import Owner
from farhand.core.result import Result
from farhand.eventlog import rebuild as rebuild_module
from farhand.eventlog.codec import encode_snapshot
from farhand.eventlog.log import EventLog
from farhand.eventlog.rebuild import Rebuilt, rebuild
from farhand.store.base import Append, Appended, Loaded, Lookups, Store, ThreadRow
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.core.thread_builder import asks_for
from tests.unit.core.thread_log import ANN
from tests.unit.eventlog.thread_story import ThreadStory

pytestmark = requirement("store:rebuild")


async def test_what_others_append_meanwhile_is_read_again(
    story: ThreadStory, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await story.begin()
    moved: list[int] = []
    make_again = store.rebuild

    async def raced(lookups: Lookups, *, dry_run: bool = False) -> int | None:
        if len(moved) < 2:
            moved.append(lookups.version)
            await story.write("more")
        return await make_again(lookups, dry_run=dry_run)

    monkeypatch.setattr(store, "rebuild", raced)
    assert await rebuild(store, before=0.0) == Rebuilt(threads=1, rows=0)
    assert moved == [1, 2]


async def test_a_thread_that_never_rests_is_left_out_and_one_that_is_deleted_is_not(
    story: ThreadStory, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await story.begin()

    async def moved(lookups: Lookups, *, dry_run: bool = False) -> int | None:
        return None

    with monkeypatch.context() as patch:
        patch.setattr(store, "rebuild", moved)
        [left] = (await rebuild(store, before=0.0)).left_out
    assert (left.owner, left.thread_id) == (ANN, "t1")
    assert "kept changing" in left.reason

    async def gone(owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        return Loaded(())

    with monkeypatch.context() as patch:
        patch.setattr(store, "load", gone)
        [left] = (await rebuild(store, before=0.0)).left_out
        assert left.reason == "Its log is empty."
        await story.finish()
        assert await store.delete(ANN, "t1", 2)
        patch.setattr(store, "thread_keys", _listing((ANN, "t1")))
        assert await rebuild(store, before=0.0) == Rebuilt(threads=1)


async def test_a_thread_that_is_deleted_and_created_again_meanwhile_is_read_again(
    story: ThreadStory, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await story.begin()
    load, reads = store.load, 0

    async def gone_at_first(owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        nonlocal reads
        reads += 1
        return Loaded(()) if reads <= 2 else await load(owner, thread_id, after=after)

    monkeypatch.setattr(store, "load", gone_at_first)
    assert await rebuild(store, before=0.0) == Rebuilt(threads=1, rows=0)


async def test_a_log_with_rows_missing_or_unreadable_is_named_and_the_others_are_made(
    story: ThreadStory, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild_module, "THREADS_PER_PAGE", 1)
    await story.begin()
    await story.write("a")
    await story.write("b")
    now = store.now()
    row = ThreadRow(title="", created_at=now, updated_at=now)
    odd = Append(owner=ANN, thread_id="odd", version=0, at=now, body=b"no events", thread=row)
    assert await store.append([odd]) == [Appended()]
    await ThreadStory(story.log, "t9").begin("run_9")
    load = store.load

    async def with_a_gap(owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        loaded = await load(owner, thread_id, after=after)
        return replace(loaded, rows=tuple([row for row in loaded.rows if row.version != 2]))

    monkeypatch.setattr(store, "load", with_a_gap)
    seen: list[int] = []
    rebuilt = await rebuild(store, before=0.0, progress=lambda each: seen.append(each.threads))
    assert seen == [1, 2, 3]
    reasons = {each.thread_id: each.reason for each in rebuilt.left_out}
    assert reasons.keys() == {"odd", "t1"}
    assert "Row 1 of a thread's log cannot be read" in reasons["odd"]
    assert reasons["t1"] == "Rows of its log are missing."


async def test_an_event_that_does_not_follow_on_the_rows_before_it_is_unreadable(
    story: ThreadStory, store: Store
) -> None:
    now = store.now()
    row = ThreadRow(title="", created_at=now, updated_at=now)
    body = b'{"events":[{"type":"run-parked"}]}'
    odd = Append(owner=ANN, thread_id="odd", version=0, at=now, body=body, thread=row)
    assert await store.append([odd]) == [Appended()]
    [left] = (await rebuild(store, before=0.0)).left_out
    assert "Row 1 of a thread's log" in left.reason


async def test_a_run_whose_beginning_was_purged_is_made_from_the_snapshot_if_it_is_not_there(
    story: ThreadStory, store: Store, clock: FakeClock
) -> None:
    await story.begin()
    await story.finish(asks_for("call_1"))
    clock.advance(100)
    limit = clock.now()
    clock.advance(100)
    await _settle(story, "call_1")
    await story.finish(text="Good day")
    await story.log.decide(ANN, "t1", lambda thread, _: runs.deliver(thread, "run_1"))
    state = await story.log.read(ANN, "t1", encode_snapshot)
    version = await story.log.read(ANN, "t1", lambda thread: thread.version)
    await store.put_snapshot(ANN, "t1", version, state, at=clock.now())
    await store.purge(before=limit)
    assert (await store.load(ANN, "t1", after=0)).rows[0].version > 1
    run = await store.find_run(ANN, "run_1")
    assert run is not None
    assert (await rebuild(store, before=limit)).rows == 0, "what is stored says the same"
    await _drop_lookups(store)
    assert (await rebuild(store, before=limit)).rows == 2
    again = await store.find_run(ANN, "run_1")
    assert again is not None
    assert (again.state, again.ended_at, again.since) == (run.state, run.ended_at, run.since)
    found = await store.find_call(ANN, "call", "call_1")
    assert found is not None
    assert found.call.outcome == Success(1)


async def test_a_direct_call_that_snapshot_and_state_have_forgotten_comes_back_from_the_rows(
    story: ThreadStory, store: Store, clock: FakeClock
) -> None:
    await story.open_direct(asks_for("call_0", direct=True))
    await _settle(story, "call_0")
    clock.advance(100)
    limit = clock.now()
    clock.advance(100)
    await story.open_direct(asks_for("call_1", direct=True))
    await _settle(story, "call_1")
    # what settles after it lets the state forget it
    for no in range(40):
        await story.open_direct(asks_for(f"later_{no}", direct=True))
        await _settle(story, f"later_{no}")
    state = await story.log.read(ANN, "t1", encode_snapshot)
    version = await story.log.read(ANN, "t1", lambda thread: thread.version)
    await store.put_snapshot(ANN, "t1", version, state, at=clock.now())
    await store.purge(before=limit)
    found = await store.find_call(ANN, "call", "call_1")
    assert found is not None
    assert (await rebuild(store, before=limit)).rows == 0
    await _drop_lookups(store)
    assert (await rebuild(store, before=limit)).rows == 41
    again = await store.find_call(ANN, "call", "call_1")
    assert again == found


async def test_of_two_calls_of_a_thread_with_one_request_id_the_last_has_it(
    story: ThreadStory, store: Store, clock: FakeClock
) -> None:
    request = ProgramRequest("job")
    await story.begin()
    await story.open_direct(replace(asks_for("call_1", direct=True), request=request))
    await _settle(story, "call_1")
    clock.advance(100)
    await store.purge(before=clock.now())
    # a state that has forgotten it
    for no in range(40):
        await story.open_direct(asks_for(f"later_{no}", direct=True))
        await _settle(story, f"later_{no}")
    await story.open_direct(replace(asks_for("call_2", direct=True), request=request))
    assert (await rebuild(store, before=0.0)).rows == 0
    found = await store.find_call(ANN, "request", "job")
    assert found is not None
    assert found.call.call_id == "call_2"
    assert await EventLog(store).get_call(ANN, "call_1") is None


async def _settle(story: ThreadStory, call_id: str) -> None:
    checked = CheckedResult(Result(call_id=call_id, outcome=Success(1)), Success(1))
    await story.log.decide(ANN, "t1", lambda thread, now: calls.settle(thread, checked, now=now))


async def _drop_lookups(store: Store) -> None:
    """All calls and runs of the thread, as a damage would."""
    [found] = await store.threads(ANN, limit=1)
    lookups = Lookups(
        owner=ANN,
        thread_id="t1",
        version=found.version,
        thread=found.row,
        calls=(),
        runs=(),
        is_whole=True,
        before=0.0,
    )
    assert await store.rebuild(lookups)


# what a store answers to
def _listing(*keys: tuple[Owner, str]) -> object:
    async def logs(*, limit: int, after: tuple[Owner, str] | None = None) -> list[tuple[Owner, str]]:
        return [key for key in keys if after is None]

    return logs
