"""What belongs to another owner does not exist."""

from __future__ import annotations

from farhand.core.call import ProgramRequest
from farhand.core.principal import Owner
from farhand.store.base import CallFilter, CallKey, Loaded
from farhand.testing.store_laws.fixture import ANN, Laws

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
