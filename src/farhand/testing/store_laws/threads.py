"""Threads and runs are listed, found and counted by their owners."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.run import RunState
from farhand.store.base import ThreadFound
from farhand.testing.store_laws.fixture import ANN, BOB, Laws


class ThreadLaws(Laws):
    async def test_a_thread_is_listed_as_its_last_append_says(self) -> None:
        async with self.opened() as fixture:
            await fixture.append()
            row = fixture.parked(title="Now", kept_from=1)
            await fixture.append(thread=row)
            assert await fixture.store.threads(ANN, limit=9) == [ThreadFound(ANN, "t1", 2, row)]
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

    async def test_runs_are_listed_the_last_begun_first_and_page_by_page(self) -> None:
        async with self.opened() as fixture:
            for no in range(5):
                fixture.clock.advance(1)
                run = fixture.new_run(f"run_{no}", thread_id=f"t{no % 2}")
                await fixture.append(f"t{no % 2}", runs=(run,))
            await fixture.append(owner=BOB, runs=(fixture.new_run("run_b", owner=BOB),))
            # as one goes on, it keeps its place
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

    async def test_runs_at_work_are_counted_and_those_that_wait_for_somebody_are_not(self) -> None:
        async with self.opened() as fixture:
            count = fixture.store.count
            await fixture.append("t1", thread=fixture.running("run_1"))
            await fixture.append("t2", thread=fixture.running("run_2"))
            await fixture.append("t1", owner=BOB, thread=fixture.running("run_3"))
            assert [await count("running", "acme"), await count("running", "acme", "ann")] == [3, 2]
            # held at a pause, or parked: it takes nothing until somebody answers
            await fixture.append("t1", thread=fixture.running("run_1", run_state=RunState.WAITING))
            await fixture.append("t2", thread=fixture.parked("run_2"))
            assert await count("running", "acme", "ann") == 0
            await fixture.append("t1", thread=fixture.running("run_1"))
            assert await count("running", "acme", "ann") == 1
            await fixture.append("t1", thread=fixture.running("run_1", run_state=RunState.DONE))
            assert await count("running", "acme") == 1
            await fixture.delete("t1", BOB)
            assert await count("running", "acme") == 0
