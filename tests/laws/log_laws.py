"""What every store of logs must do; a backend derives from `LogLaws` and says how it is opened."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.approval import Approval
from farhand.core.call import Call, Phase, Request
from farhand.core.outcome import Success
from farhand.core.principal import Owner
from farhand.core.run import RunState
from farhand.core.tool import Executor
from farhand.store.log.base import Append, Appended, Lease, Loaded, LogStore, Moved, OutOfTime, Row, ThreadRow
from farhand.testing import FakeClock

ANN, BOB = Owner("acme", "ann"), Owner("acme", "bob")
ROW = ThreadRow(title="Hello", created_at=1.0, updated_at=1.0)


class LogLaws:
    clock: FakeClock
    store: LogStore

    async def test_an_append_is_read_again_by_its_owner_alone(self) -> None:
        assert await self.append(b"[1]") == Appended()
        assert await self.append(b"[2]", version=1) == Appended()
        rows = (Row(1, self.clock.now(), b"[1]"), Row(2, self.clock.now(), b"[2]"))
        assert await self.store.load(ANN, "t1") == Loaded(rows)
        assert await self.store.load(ANN, "t1", after=1) == Loaded(rows[1:])
        assert await self.store.load(BOB, "t1") == Loaded(())
        assert await self.store.load(ANN, "t2") == Loaded(())

    async def test_an_append_at_a_passed_version_writes_nothing(self) -> None:
        await self.append(b"[1]")
        assert await self.append(b"[x]", version=0) == Moved(1)
        assert await self.append(b"[x]", version=2) == Moved(1)
        assert [row.body for row in (await self.store.load(ANN, "t1")).rows] == [b"[1]"]

    async def test_an_append_without_events_asks_for_the_version(self) -> None:
        assert await self.append(b"") == Appended()
        assert await self.append(b"", version=1) == Moved(0)
        assert await self.store.load(ANN, "t1") == Loaded(())

    async def test_time_limits_are_judged_by_the_clock_of_the_store(self) -> None:
        now = self.clock.now()
        for limits in ({"not_after": now - 50}, {"not_before": now + 100}):
            late = await self.append(b"[1]", **limits)
            assert isinstance(late, OutOfTime)
            # the time by which it was judged, so that whoever decides again decides by the same
            assert now - 50 <= late.now < now + 100
        assert await self.append(b"[1]", not_after=now + 100, not_before=now - 50) == Appended()

    async def test_one_append_of_a_batch_that_fails_takes_no_other_with_it(self) -> None:
        batch = [
            self.made(b"[1]"),
            self.made(b"[2]", version=7, thread_id="t2"),
            self.made(b"[3]", thread_id="t3"),
        ]
        assert await self.store.append(batch) == [Appended(), Moved(0), Appended()]
        assert len((await self.store.load(ANN, "t3")).rows) == 1
        assert (await self.store.load(ANN, "t2")).rows == ()

    async def test_a_snapshot_stands_for_the_rows_before_it(self) -> None:
        await self.append(b"[1]")
        await self.append(b"[2]", version=1, snapshot=b"{}")
        await self.append(b"[3]", version=2)
        loaded = await self.store.load(ANN, "t1")
        assert (loaded.snapshot, loaded.snapshot_version) == (b"{}", 2)
        assert [row.version for row in loaded.rows] == [3]
        assert [row.version for row in (await self.store.load(ANN, "t1", after=0)).rows] == [1, 2, 3]

    async def test_calls_are_found_by_id_approval_and_request_within_their_owner(self) -> None:
        call = self.call("call_1")
        await self.append(b"[1]", calls=(call,))
        for kind, value in (("call", "call_1"), ("approval", "apr_call_1"), ("request", "req_call_1")):
            found = await self.store.find_call(ANN, kind, value)  # type: ignore[arg-type]
            assert found is not None
            assert (found.owner, found.thread_id, found.call) == (ANN, "t1", call)
            assert await self.store.find_call(BOB, kind, value) is None  # type: ignore[arg-type]
        assert await self.store.find_call(ANN, "call", "call_9") is None

    async def test_open_calls_are_listed_by_owner_client_and_deadline(self) -> None:
        first = replace(self.call("call_1"), deadline=50.0)
        second = replace(self.call("call_2"), deadline=40.0, opened_at=2.0, client_id="desk")
        timeless = replace(self.call("call_3"), deadline=None, opened_at=3.0)
        await self.append(b"[1]", calls=(second, first, timeless))
        assert await self.ids(owner=ANN) == ["call_1", "call_2", "call_3"]
        assert await self.ids(owner=ANN, limit=1) == ["call_1"]
        assert await self.ids(owner=BOB) == []
        assert await self.ids(client_id="desk") == ["call_2"]
        assert await self.ids(due_before=50.0) == ["call_2"]
        assert await self.ids(due_before=60.0) == ["call_2", "call_1"]
        settled = replace(first, phase=Phase.SETTLED, outcome=Success(1), settled_at=9.0, deadline=None)
        await self.append(b"[2]", version=1, calls=(settled,))
        assert await self.ids(owner=ANN) == ["call_2", "call_3"]
        found = await self.store.find_call(ANN, "call", "call_1")
        assert found is not None
        assert found.call == settled

    async def test_threads_are_listed_by_use_and_page_by_page(self) -> None:
        for number, used in enumerate((3.0, 1.0, 2.0, 2.0)):
            row = replace(ROW, updated_at=used, title=f"{number}")
            await self.append(b"[1]", thread_id=f"t{number}", thread=row)
        first = await self.store.threads(ANN, limit=2)
        assert [each.thread_id for each in first] == ["t0", "t3"]
        rest = await self.store.threads(ANN, limit=9, after=(2.0, "t3"))
        assert [(each.thread_id, each.row.title) for each in rest] == [("t2", "2"), ("t1", "1")]
        assert await self.store.threads(BOB, limit=9) == []

    async def test_a_run_without_a_lease_that_counts_is_a_stray(self) -> None:
        now = self.clock.now()
        running = replace(ROW, run_id="run_1", run_state=RunState.RUNNING)
        await self.append(b"[1]", thread=running, lease=Lease("w1", now + 100))
        assert await self.strays() == []
        self.clock.advance(100)
        assert await self.strays() == ["t1"]
        await self.store.renew("w1", self.clock.now() + 100)
        assert await self.strays() == []
        await self.append(b"[2]", version=1, thread=running, lease=Lease("", 0.0))
        assert await self.strays() == ["t1"]

    async def test_a_parked_run_is_a_stray_once_nothing_is_open_in_it(self) -> None:
        parked = replace(ROW, run_id="run_1", run_state=RunState.WAITING, is_parked=True, is_blocked=True)
        await self.append(b"[1]", thread=parked, lease=Lease("", 0.0))
        assert await self.strays() == []
        await self.append(b"[2]", version=1, thread=replace(parked, is_blocked=False))
        assert await self.strays() == ["t1"]
        await self.append(b"[3]", version=2, thread=replace(parked, run_state=RunState.DONE))
        assert await self.strays() == []

    async def test_a_feed_has_the_appends_of_all_threads_in_order(self) -> None:
        await self.append(b"[1]", in_feed=True)
        await self.append(b"[2]", version=1)
        await self.append(b"[3]", thread_id="t2", in_feed=True)
        await self.append(b"[4]", owner=BOB, in_feed=True)
        feed = await self.store.feed(ANN, after=0, limit=9)
        assert [(each.no, each.thread_id, each.row.body) for each in feed] == [
            (1, "t1", b"[1]"),
            (2, "t2", b"[3]"),
        ]
        assert [each.no for each in await self.store.feed(ANN, after=1, limit=9)] == [2]
        assert [each.no for each in await self.store.feed(ANN, after=0, limit=1)] == [1]

    async def test_a_deleted_thread_leaves_nothing(self) -> None:
        await self.append(b"[1]", calls=(self.call("call_1"),), in_feed=True, snapshot=b"{}")
        assert not await self.store.delete(ANN, "t1", 2)
        assert not await self.store.delete(BOB, "t1", 1)
        assert await self.store.delete(ANN, "t1", 1)
        assert await self.store.load(ANN, "t1") == Loaded(())
        assert await self.store.find_call(ANN, "call", "call_1") is None
        assert await self.store.feed(ANN, after=0, limit=9) == []
        assert await self.append(b"[1]") == Appended()

    async def test_a_purge_drops_old_rows_that_a_snapshot_covers_and_old_settled_calls(self) -> None:
        old, now = self.clock.now(), self.clock.advance(100)
        settled = replace(
            self.call("call_1"), phase=Phase.SETTLED, outcome=Success(1), settled_at=old, deadline=None
        )
        await self.append(b"[1]", at=old, calls=(settled, self.call("call_2")), in_feed=True)
        await self.append(b"[2]", version=1, at=old, snapshot=b"{}")
        await self.append(b"[3]", version=2, at=old)
        await self.append(b"[1]", thread_id="t2", at=old, in_feed=True)
        assert await self.store.purge(before=now) == 2
        loaded = await self.store.load(ANN, "t1")
        assert (loaded.snapshot, [row.version for row in loaded.rows]) == (b"{}", [3])
        assert await self.store.find_call(ANN, "call", "call_1") is None
        assert await self.ids(owner=ANN) == ["call_2"]
        assert [each.thread_id for each in await self.store.feed(ANN, after=0, limit=9)] == ["t2"]

    # ------------------------------------------------------------------------------------------- made here

    def made(
        self, body: bytes, *, version: int = 0, thread_id: str = "t1", owner: Owner = ANN, **more: object
    ) -> Append:
        made = Append(
            owner=owner, thread_id=thread_id, version=version, at=self.clock.now(), body=body, thread=ROW
        )
        return replace(made, **more)

    async def append(self, body: bytes, **more: object) -> object:
        [result] = await self.store.append([self.made(body, **more)])  # type: ignore[arg-type]
        return result

    async def ids(self, **which: object) -> list[str]:
        found = await self.store.open_calls(**which)  # type: ignore[arg-type]
        return [each.call.call_id for each in found]

    async def strays(self) -> list[str]:
        return [each.thread_id for each in await self.store.strays(worker="w2", limit=9)]

    def call(self, call_id: str) -> Call:
        return Call(
            call_id=call_id,
            owner=ANN,
            thread_id="t1",
            run_id=None,
            tool="open_url",
            tool_version="v1",
            executor=Executor.FRONTEND,
            input={"url": "x"},
            request=Request(f"req_{call_id}"),
            opened_at=1.0,
            phase=Phase.READY,
            deadline=60.0,
            approval=Approval(approval_id=f"apr_{call_id}", digest="d"),
        )
