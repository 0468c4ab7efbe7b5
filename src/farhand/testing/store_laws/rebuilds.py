"""Rebuilds: look-up rows are derived from the log again; rows that the log cannot provide stay as they
are."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.call import Call, Phase, ProgramRequest
from farhand.core.run import Run, RunState
from farhand.store.base import Lease, Lookups, ThreadRow
from farhand.testing.store_laws.fixture import ANN, BOB, EVE, LEASE_SEC, Laws, StoreFixture


class RebuildLaws(Laws):
    async def test_every_thread_of_every_owner_is_listed_page_by_page(self) -> None:
        async with self.opened() as fixture:
            expected = [(owner, f"t{no}") for owner in (ANN, BOB, EVE) for no in range(3)]
            for owner, thread_id in reversed(expected):
                await fixture.append(thread_id, owner=owner)
            assert await fixture.store.thread_keys(limit=99) == expected
            first = await fixture.store.thread_keys(limit=4)
            rest = await fixture.store.thread_keys(limit=99, after=first[-1])
            assert first + rest == expected
            assert await fixture.store.thread_keys(limit=4, after=expected[-1]) == []

    async def test_what_the_log_says_already_is_left_alone(self) -> None:
        async with self.opened() as fixture:
            row, call, run = fixture.parked(), fixture.new_call(), fixture.new_run()
            await fixture.append(thread=row, calls=(call,), runs=(run,))
            assert await fixture.store.rebuild(self._lookups(fixture, row, (call,), (run,))) == 0

    async def test_rows_that_differ_are_missing_or_superfluous_are_corrected(self) -> None:
        async with self.opened() as fixture:
            wrong, extra = fixture.new_call("call_1", deadline=None), fixture.new_call("call_9")
            wrong_run, extra_run = fixture.new_run("run_1"), fixture.new_run("run_9")
            await fixture.append(calls=(wrong, extra), runs=(wrong_run, extra_run))
            row, now = fixture.running(updated_at=fixture.clock.now() + 5), fixture.clock.now()
            calls = (fixture.new_call("call_1"), fixture.new_call("call_2", client_id="c", run_id=None))
            runs = (replace(wrong_run, state=RunState.DONE, ended_at=now), fixture.new_run("run_2"))
            lookups = self._lookups(fixture, row, calls, runs)
            assert await fixture.store.rebuild(lookups, dry_run=True) == 7
            assert await fixture.open_ids() == ["call_1", "call_9"]
            assert await fixture.store.rebuild(lookups) == 7
            assert await fixture.store.rebuild(lookups) == 0
            assert await fixture.open_ids() == ["call_1", "call_2"]
            assert await fixture.open_ids(needs_worker=True) == ["call_2"]
            assert await fixture.open_ids(client_id="c") == ["call_2"]
            assert await fixture.open_ids(due_before=fixture.clock.now() + 61) == ["call_1", "call_2"]
            assert await fixture.store.count("open_calls", "acme", "ann") == 2
            assert await fixture.store.count("running", "acme") == 1
            assert [run.run_id for run in await fixture.store.runs(ANN, limit=9)] == ["run_2", "run_1"]
            assert await fixture.store.find_run(ANN, "run_1") == runs[0]
            assert [each.row for each in await fixture.store.threads(ANN, limit=9)] == [lookups.thread]
            assert await fixture.claimable_ids() == ["t1"]

    async def test_a_thread_that_has_moved_on_or_is_gone_is_left_alone(self) -> None:
        async with self.opened() as fixture:
            await fixture.append()
            lookups = self._lookups(fixture, fixture.running())
            await fixture.append()
            assert await fixture.store.rebuild(lookups) is None
            await fixture.delete()
            assert await fixture.store.rebuild(lookups) is None
            assert await fixture.claimable_ids() == []

    async def test_what_may_have_been_purged_is_not_recreated_but_corrected_if_it_exists(self) -> None:
        async with self.opened() as fixture:
            now = fixture.clock.now()
            old, gone = (fixture.settled(fixture.new_call(f"call_{no}")) for no in range(2))
            ended = fixture.new_run("run_1", state=RunState.DONE, ended_at=now)
            await fixture.append(calls=(replace(old, tool="other"),), runs=(replace(ended, error="no"),))
            fixture.clock.advance(100)
            before = fixture.clock.now()
            young = fixture.settled(fixture.new_call("call_2"))
            runs = (ended, replace(ended, run_id="run_2"), replace(ended, run_id="run_3", ended_at=before))
            lookups = self._lookups(fixture, fixture.new_row(), (old, gone, young), runs, before=before)
            await fixture.store.rebuild(lookups)
            found = await fixture.store.find_call(ANN, "call", "call_0")
            assert found is not None
            assert found.call == old
            assert await fixture.store.find_call(ANN, "call", "call_1") is None
            assert await fixture.store.find_call(ANN, "call", "call_2") is not None
            assert await fixture.store.find_run(ANN, "run_1") == ended
            assert await fixture.store.find_run(ANN, "run_2") is None
            assert await fixture.store.find_run(ANN, "run_3") is not None

    async def test_an_active_run_gets_its_old_calls_back(self) -> None:
        async with self.opened() as fixture:
            call = fixture.settled(fixture.new_call("call_1"))
            await fixture.append(thread=fixture.running())
            fixture.clock.advance(100)
            row = fixture.running(kept_from=0)
            lookups = self._lookups(fixture, row, (call,), before=fixture.clock.now())
            await fixture.store.rebuild(lookups)
            assert await fixture.store.find_call(ANN, "call", "call_1") is not None

    async def test_rows_of_what_was_purged_from_the_log_stay_unless_they_are_open(self) -> None:
        async with self.opened() as fixture:
            settled, still_open = fixture.settled(fixture.new_call("call_1")), fixture.new_call("call_2")
            ended = fixture.new_run("run_1", state=RunState.DONE, ended_at=fixture.clock.now())
            await fixture.append(calls=(settled, still_open), runs=(ended, fixture.new_run("run_2")))
            row = fixture.new_row()
            # the two that are open, and the number of open calls in the thread's row
            assert await fixture.store.rebuild(self._lookups(fixture, row, is_whole=False)) == 3
            assert await fixture.store.find_call(ANN, "call", "call_1") is not None
            assert await fixture.store.find_call(ANN, "call", "call_2") is None
            assert await fixture.store.find_run(ANN, "run_1") is not None
            assert await fixture.store.find_run(ANN, "run_2") is None

    async def test_leases_and_numbers_of_feeds_stay_as_they_are(self) -> None:
        async with self.opened() as fixture:
            lease = Lease("w1", fixture.clock.now() + LEASE_SEC)
            await fixture.append(thread=fixture.running(), lease=lease, feed=2)
            feed = await fixture.store.feed(ANN, after=0, limit=9)
            row = fixture.running(title="Other")
            assert await fixture.store.rebuild(self._lookups(fixture, row)) == 1
            assert await fixture.claimable_ids() == []
            fixture.clock.advance(LEASE_SEC)
            assert await fixture.claimable_ids() == ["t1"]
            assert await fixture.store.feed(ANN, after=0, limit=9) == feed
            assert await fixture.store.feed_span(ANN) == (1, 2)

    async def test_of_two_calls_with_one_request_id_the_later_one_has_it(self) -> None:
        async with self.opened() as fixture:
            early = fixture.settled(fixture.new_call("call_1", run_id=None, request=ProgramRequest("job")))
            await fixture.append("t1", calls=(early,))
            await fixture.append("t2")
            fixture.clock.advance(1)
            late = fixture.new_call("call_2", run_id=None, thread_id="t2", request=ProgramRequest("job"))
            row = fixture.new_row()
            lookups = self._lookups(fixture, row, (late,), thread_id="t2")
            await fixture.store.rebuild(lookups)
            found = await fixture.store.find_call(ANN, "request", "job")
            assert found is not None
            assert (found.thread_id, found.call) == ("t2", late)
            await fixture.store.rebuild(self._lookups(fixture, row, (early,)))
            assert await fixture.store.find_call(ANN, "request", "job") == found
            assert await fixture.store.find_call(ANN, "call", "call_1") is None

    async def test_a_rebuilt_thread_takes_appends_and_purges_as_before(self) -> None:
        async with self.opened() as fixture:
            await fixture.append(body=b"12345")
            await fixture.append(body=b"678", snapshot=b"state")
            await fixture.store.rebuild(self._lookups(fixture, fixture.new_row(title="Other")))
            assert await fixture.store.count("bytes", "acme", "ann") == 8
            await fixture.append(body=b"9")
            fixture.clock.advance(100)
            before = fixture.clock.now()
            assert await fixture.store.without_snapshot(before=before, limit=9) == [(ANN, "t1")]
            await fixture.store.purge(before=before)
            lookups = self._lookups(fixture, fixture.new_row(), is_whole=False)
            await fixture.store.rebuild(lookups)
            assert await fixture.store.count("bytes", "acme", "ann") == len(b"state" + b"9")
            assert [row.version for row in (await fixture.store.load(ANN, "t1", after=0)).rows] == [3]

    # each of them a part of what a log says
    def _lookups(  # noqa: PLR0913
        self,
        fixture: StoreFixture,
        row: ThreadRow,
        calls: tuple[Call, ...] = (),
        runs: tuple[Run, ...] = (),
        *,
        thread_id: str = "t1",
        is_whole: bool = True,
        before: float = 0.0,
    ) -> Lookups:
        return Lookups(
            owner=ANN,
            thread_id=thread_id,
            version=fixture.version(thread_id),
            thread=replace(row, open_calls=sum(call.phase is not Phase.SETTLED for call in calls)),
            calls=calls,
            runs=runs,
            is_whole=is_whole,
            before=before,
        )
