"""Threads and runs: listed, found and counted for their owner. Those of other owners do not exist."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.call import ProgramRequest
from farhand.core.principal import Owner
from farhand.core.run import RunState
from farhand.store.base import CallFilter, CallKey, FoundThread, Loaded
from farhand.testing.store_laws.fixture import ANN, BOB, Laws


class ThreadLaws(Laws):
    async def test_a_thread_is_listed_as_its_last_append_says(self) -> None:
        async with self.opened() as fixture:
            await fixture.append()
            row = fixture.parked(title="Now", kept_from=1)
            await fixture.append(thread=row)
            assert await fixture.store.threads(ANN, limit=9) == [FoundThread(ANN, "t1", 2, row)]
            assert await fixture.store.threads(BOB, limit=9) == []

    async def test_threads_are_listed_by_use_and_page_by_page(self) -> None:
        async with self.opened() as fixture:
            for number, used in enumerate((3.0, 1.0, 2.0, 2.0)):
                await fixture.append(f"t{number}", thread=fixture.new_row(updated_at=used, title=f"{number}"))
            first = await fixture.store.threads(ANN, limit=2)
            assert [each.thread_id for each in first] == ["t0", "t3"]
            rest = await fixture.store.threads(ANN, limit=9, after=(2.0, "t3"))
            assert [(each.thread_id, each.row.title) for each in rest] == [("t2", "2"), ("t1", "1")]
            assert await fixture.store.threads(ANN, limit=9, after=(1.0, "t1")) == []
            await fixture.append("t1", thread=fixture.new_row(updated_at=4.0))
            assert (await fixture.store.threads(ANN, limit=1))[0].thread_id == "t1"

    async def test_runs_are_found_as_their_last_append_left_them(self) -> None:
        async with self.opened() as fixture:
            run = fixture.new_run()
            await fixture.append(runs=(run,))
            assert await fixture.store.find_run(ANN, "run_1") == run
            ended = replace(run, state=RunState.DONE, ended_at=fixture.clock.now())
            await fixture.append(runs=(ended,))
            assert await fixture.store.find_run(ANN, "run_1") == ended
            assert await fixture.store.find_run(BOB, "run_1") is None
            assert await fixture.store.find_run(ANN, "run_2") is None

    async def test_runs_are_listed_newest_first_and_page_by_page(self) -> None:
        async with self.opened() as fixture:
            for no in range(5):
                fixture.clock.advance(1)
                run = fixture.new_run(f"run_{no}", thread_id=f"t{no % 2}")
                await fixture.append(f"t{no % 2}", runs=(run,))
            await fixture.append(owner=BOB, runs=(fixture.new_run("run_b", owner=BOB),))
            # a run keeps its place while it continues
            first = await fixture.store.find_run(ANN, "run_0")
            assert first is not None
            await fixture.append("t0", runs=(replace(first, step=3),))
            page = await fixture.store.runs(ANN, limit=2)
            assert [run.run_id for run in page] == ["run_4", "run_3"]
            rest = await fixture.store.runs(ANN, limit=9, after="run_3")
            assert [run.run_id for run in rest] == ["run_2", "run_1", "run_0"]
            assert len(await fixture.store.runs(ANN, limit=9, after="run_gone")) == 5
            assert len(await fixture.store.runs(ANN, limit=9, after="run_b")) == 5

    async def test_threads_and_their_bytes_are_counted_for_the_owner_and_for_the_tenant(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t1", b"12345")
            await fixture.append("t1", b"678")
            await fixture.append("t2", b"9", snapshot=b"not counted")
            await fixture.append("t1", b"0", owner=BOB)
            await fixture.try_append("t3", b"refused", version=3)
            count = fixture.store.count
            assert [await count("threads", "acme"), await count("threads", "acme", "ann")] == [3, 2]
            assert [await count("bytes", "acme"), await count("bytes", "acme", "ann")] == [10, 9]
            assert [await count("threads", "evil"), await count("bytes", "evil", "ann")] == [0, 0]
            await fixture.delete("t1")
            assert [await count("threads", "acme"), await count("bytes", "acme")] == [2, 2]

    async def test_active_runs_are_counted_and_waiting_ones_are_not(self) -> None:
        async with self.opened() as fixture:
            count = fixture.store.count
            await fixture.append("t1", thread=fixture.running("run_1"))
            await fixture.append("t2", thread=fixture.running("run_2"))
            await fixture.append("t1", owner=BOB, thread=fixture.running("run_3"))
            assert [await count("running", "acme"), await count("running", "acme", "ann")] == [3, 2]
            # held at a pause, or parked: it uses nothing until somebody answers
            await fixture.append("t1", thread=fixture.running("run_1", run_state=RunState.WAITING))
            await fixture.append("t2", thread=fixture.parked("run_2"))
            assert await count("running", "acme", "ann") == 0
            await fixture.append("t1", thread=fixture.running("run_1"))
            assert await count("running", "acme", "ann") == 1
            await fixture.append("t1", thread=fixture.running("run_1", run_state=RunState.DONE))
            assert await count("running", "acme") == 1
            await fixture.delete("t1", BOB)
            assert await count("running", "acme") == 0


STRANGERS = (Owner("acme", "bob"), Owner("other", "ann"), Owner("", ""), Owner("ann", "acme"))


class OwnerLaws(Laws):
    async def test_no_read_shows_anything_to_a_stranger(self) -> None:
        async with self.opened() as fixture:
            call = fixture.new_call(approval=fixture.new_approval(), request=ProgramRequest("job-1"))
            await fixture.append(
                thread=fixture.running(), calls=(call,), runs=(fixture.new_run(),), feed=1, snapshot=b"{}"
            )
            store = fixture.store
            for stranger in STRANGERS:
                assert await store.load(stranger, "t1") == Loaded(())
                assert await store.load(stranger, "t1", after=0) == Loaded(())
                assert await store.threads(stranger, limit=9) == []
                assert await store.find_run(stranger, "run_1") is None
                assert await store.runs(stranger, limit=9) == []
                assert await store.find_call(stranger, "call", "call_1") is None
                assert await store.find_call(stranger, "approval", "apr_1") is None
                assert await store.find_call(stranger, "request", "job-1") is None
                assert await store.open_calls(CallFilter(owner=stranger)) == []
                assert await store.feed(stranger, after=0, limit=9) == []
                assert await store.feed_span(stranger) == (1, 0)
                for what in ("threads", "running", "open_calls", "bytes"):
                    assert await store.count(what, stranger.tenant, stranger.subject) == 0

    async def test_a_thread_of_the_same_name_is_another_thread(self) -> None:
        async with self.opened() as fixture:
            for stranger in STRANGERS:
                await fixture.append("t1", stranger.tenant.encode() or b"-", owner=stranger, feed=1)
            for stranger in STRANGERS:
                [row] = (await fixture.store.load(stranger, "t1")).rows
                assert row.body == (stranger.tenant.encode() or b"-")
                assert len(await fixture.store.feed(stranger, after=0, limit=9)) == 1

    async def test_what_not_every_store_can_hold_is_not_found(self) -> None:
        async with self.opened() as fixture:
            await fixture.append(thread=fixture.running(), calls=(fixture.new_call(),))
            store = fixture.store
            kinds: tuple[CallKey, ...] = ("call", "approval", "request")
            for name in ("\0", "t1\0", "call_1\0", "run_1\0"):
                assert await store.load(ANN, name) == Loaded(())
                for kind in kinds:
                    assert await store.find_call(ANN, kind, name) is None
                assert await store.find_run(ANN, name) is None
                assert await store.open_calls(CallFilter(owner=ANN, client_id=name)) == []
                assert await store.find_tool(name) is None
                assert await store.files.get(ANN, name) is None
                assert await store.files.piece(ANN, name, 0) is None
                assert not await store.delete(ANN, name, 0)
                assert store.streams is None or not await store.streams.is_here(ANN, name)
