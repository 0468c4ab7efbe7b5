"""What belongs to another owner does not exist."""

from __future__ import annotations

from farhand.core.event import TextAdded
from farhand.core.principal import Owner
from farhand.store.base import WriteRun
from farhand.testing.store_laws.given import ANN, Laws

STRANGERS = (Owner("acme", "bob"), Owner("other", "ann"), Owner("", ""), Owner("ann", "acme"))


class OwnerLaws(Laws):
    async def test_no_read_shows_anything_to_a_stranger(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.message("m1")
            approval = given.asking()
            call = await given.call(run, approval=approval)
            await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),)))
            store = given.store
            for stranger in STRANGERS:
                assert await store.get_thread(stranger, "t1") is None
                assert await store.messages(stranger, "t1") == []
                assert await store.get_run(stranger, run.run_id) is None
                assert await store.last_run(stranger, "t1") is None
                assert await store.runs(stranger, limit=10) == []
                assert await store.count_threads(stranger) == 0
                assert await store.count_runs(stranger, "t1") == 0
                assert await store.get_call(stranger, call.call_id) is None
                assert await store.get_asking(stranger, approval.approval_id) is None
                assert await store.calls_of(stranger, run.run_id) == []
                assert await store.open_calls(stranger) == []
                assert await store.open_calls(stranger, "t1") == []
                assert await store.events(stranger, run.run_id) == []

    async def test_what_was_never_written_is_not_found(self) -> None:
        async with self.given() as given:
            store, fresh = given.store, given.clock.fresh
            assert await store.get_thread(ANN, "t1") is None
            assert await store.get_run(ANN, fresh("run")) is None
            assert await store.last_run(ANN, "t1") is None
            assert await store.get_call(ANN, fresh("call")) is None
            assert await store.get_asking(ANN, fresh("apr")) is None
            assert await store.calls_of(ANN, fresh("run")) == []
            assert await store.get_tool("no such version") is None

    async def test_what_not_every_store_can_hold_is_not_found(self) -> None:
        async with self.given() as given:
            run = await given.run()
            store = given.store
            for name in ("\0", f"{run.thread_id}\0", f"{run.run_id}\0"):
                assert await store.get_thread(ANN, name) is None
                assert await store.messages(ANN, name) == []
                assert await store.get_run(ANN, name) is None
                assert await store.last_run(ANN, name) is None
                assert await store.get_call(ANN, name) is None
                assert await store.get_asking(ANN, name) is None
                assert await store.get_requested(ANN, name) is None
                assert await store.calls_of(ANN, name) == []
                assert await store.open_calls(ANN, name) == []
                assert await store.count_open(ANN, name) == 0
                assert await store.count_runs(ANN, name) == 0
                assert await store.client_calls(ANN, name) == []
                assert await store.events(ANN, name) == []
                assert await store.get_tool(name) is None
                assert await store.files.get(ANN, name) is None
                assert await store.files.piece(ANN, name, 0) is None
                assert store.streams is None or not await store.streams.is_here(ANN, name)
