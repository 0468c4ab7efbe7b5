"""Calls are found by any of their ids; those that are open are listed by owner, client and deadline."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.call import Call, Phase, ProgramRequest
from farhand.core.run import RunState
from farhand.core.tool import Executor
from farhand.store.base import Appended, CallKey, FoundCall, RequestTaken
from farhand.testing.store_laws.fixture import ANN, BOB, EVE, OPEN_URL, Laws, StoreFixture


class CallLaws(Laws):
    async def test_a_call_is_found_by_its_id_its_approval_and_its_request(self) -> None:
        async with self.opened() as fixture:
            call = fixture.new_call(approval=fixture.new_approval(), request=ProgramRequest("job-1", "m1"))
            await fixture.append(calls=(call,))
            keys: list[tuple[CallKey, str]] = [
                ("call", "call_1"),
                ("approval", "apr_1"),
                ("request", "job-1"),
            ]
            for kind, value in keys:
                assert await fixture.store.find_call(ANN, kind, value) == FoundCall(ANN, "t1", call)
                for stranger in (BOB, EVE):
                    assert await fixture.store.find_call(stranger, kind, value) is None
                assert await fixture.store.find_call(ANN, kind, "another") is None

    async def test_a_call_is_found_as_its_last_append_left_it(self) -> None:
        async with self.opened() as fixture:
            call = fixture.new_call(approval=fixture.new_approval(), request=ProgramRequest("job-1"))
            await fixture.append(calls=(call,))
            moved = replace(call, version=2, deadline=fixture.clock.now() + 90)
            await fixture.append(calls=(moved,))
            assert await self._found(fixture, "request", "job-1") == moved
            settled = fixture.settled(replace(moved, phase=Phase.READY))
            await fixture.append(calls=(settled,))
            assert await self._found(fixture, "call", "call_1") == settled
            assert await self._found(fixture, "request", "job-1") == settled
            assert await self._found(fixture, "approval", "apr_1") == settled
            assert await fixture.open_ids(owner=ANN) == []

    async def test_open_calls_are_listed_the_oldest_first(self) -> None:
        async with self.opened() as fixture:
            first = fixture.new_call("call_9")
            fixture.clock.advance(1)
            second = fixture.new_call("call_2", client_id="desk")
            third = fixture.new_call("call_3", run_id=None, deadline=None)
            await fixture.append("t1", calls=(third, second))
            await fixture.append("t2", calls=(first,))
            await fixture.append("t1", owner=BOB, calls=(replace(first, call_id="call_4", owner=BOB),))
            assert await fixture.open_ids(owner=ANN) == ["call_9", "call_2", "call_3"]
            assert await fixture.open_ids(owner=ANN, limit=1) == ["call_9"]
            assert await fixture.open_ids(owner=EVE) == []
            assert await fixture.open_ids(owner=ANN, client_id="desk") == ["call_2"]
            assert await fixture.open_ids(owner=BOB, client_id="desk") == []
            assert await fixture.open_ids(is_client=True) == ["call_2"]
            assert await fixture.open_ids(owner=BOB, is_client=True) == []
            assert await fixture.open_ids(needs_worker=True) == ["call_3"]
            assert await fixture.open_ids(owner=BOB, needs_worker=True) == []
            assert set(await fixture.open_ids()) == {"call_9", "call_2", "call_3", "call_4"}
            await fixture.append("t1", calls=(fixture.settled(second), fixture.settled(third)))
            assert await fixture.open_ids(owner=ANN) == ["call_9"]
            assert await fixture.open_ids(is_client=True) == []
            assert await fixture.open_ids(needs_worker=True) == []

    async def test_due_calls_are_listed_by_their_deadlines(self) -> None:
        async with self.opened() as fixture:
            now = fixture.clock.now()
            calls = [fixture.new_call(f"call_{no}", deadline=now + no) for no in (3, 1, 2)]
            calls.append(fixture.new_call("call_timeless", deadline=None))
            await fixture.append(calls=tuple(calls))
            assert await fixture.open_ids(due_before=now + 3) == ["call_1", "call_2"]
            assert await fixture.open_ids(due_before=now + 9) == ["call_1", "call_2", "call_3"]
            assert await fixture.open_ids(due_before=now + 9, limit=1) == ["call_1"]
            assert await fixture.open_ids(due_before=now + 9, owner=BOB) == []
            later = replace(calls[1], version=2, deadline=now + 5)
            await fixture.append(calls=(later, fixture.settled(calls[2])))
            assert await fixture.open_ids(due_before=now + 9) == ["call_3", "call_1"]
            timeless = replace(later, version=3, deadline=None)
            await fixture.append(calls=(timeless,))
            assert await fixture.open_ids(due_before=now + 9) == ["call_3"]

    async def test_a_call_that_ended_where_it_began_was_never_open(self) -> None:
        async with self.opened() as fixture:
            settled = fixture.settled(fixture.new_call())
            await fixture.append(calls=(settled,))
            assert await self._found(fixture, "call", "call_1") == settled
            assert await fixture.open_ids() == []
            assert await fixture.store.count("open_calls", "acme") == 0

    async def test_a_program_uses_each_of_its_request_ids_once(self) -> None:
        async with self.opened() as fixture:
            first = fixture.new_call("call_1", request=ProgramRequest("job-1"), executor=Executor.CLIENT)
            await fixture.append("t1", calls=(first,))
            again = replace(first, call_id="call_2")
            refused, held = await fixture.append_all(
                fixture.new_append("t2", calls=(again,), feed=1, runs=(fixture.new_run(),)),
                fixture.new_append("t3"),
            )
            assert (refused, held) == (RequestTaken(), Appended())
            assert await fixture.store.find_call(ANN, "call", "call_2") is None
            assert await fixture.store.find_run(ANN, "run_1") is None
            assert (await fixture.store.load(ANN, "t2")).rows == ()
            assert await fixture.store.feed_span(ANN) == (1, 0)
            assert await fixture.try_append("t1", calls=(again,)) == RequestTaken()
            assert await self._found(fixture, "request", "job-1") == first

    async def test_a_request_id_stays_with_its_call_and_others_may_use_it(self) -> None:
        async with self.opened() as fixture:
            call = fixture.new_call(request=ProgramRequest("job-1"))
            await fixture.append(calls=(call,))
            await fixture.append(calls=(fixture.settled(call),))
            theirs = fixture.new_call("call_2", owner=BOB, request=ProgramRequest("job-1"))
            await fixture.append(owner=BOB, calls=(theirs,))
            for no in (3, 4):
                nameless = fixture.new_call(f"call_{no}", request=ProgramRequest(None, "m1"))
                await fixture.append(calls=(nameless,))
            taken = fixture.new_call("call_5", request=ProgramRequest("job-1"))
            assert await fixture.try_append("t9", calls=(taken,)) == RequestTaken()

    async def test_of_two_appends_at_once_with_one_request_id_one_wins(self) -> None:
        async with self.opened() as fixture:
            calls = [fixture.new_call(f"call_{no}", request=ProgramRequest("job-1")) for no in (1, 2)]
            results = await fixture.append_all(
                *(fixture.new_append(call.call_id, calls=(call,)) for call in calls)
            )
            assert results == [Appended(), RequestTaken()]
            assert await self._found(fixture, "request", "job-1") == calls[0]
            both = tuple(fixture.new_call(f"call_{no}", request=ProgramRequest("job-2")) for no in (3, 4))
            assert await fixture.try_append("t9", calls=both) == RequestTaken()

    async def test_a_tool_is_kept_with_the_call_that_was_opened_with_it(self) -> None:
        async with self.opened() as fixture:
            for no in (1, 2):
                await fixture.append(calls=(fixture.new_call(f"call_{no}"),), tools=(OPEN_URL,))
            assert await fixture.store.find_tool(OPEN_URL.version) == OPEN_URL
            assert await fixture.store.find_tool("another") is None

    async def test_a_tool_of_an_append_that_is_refused_is_not_kept(self) -> None:
        async with self.opened() as fixture:
            await fixture.try_append(version=7, tools=(OPEN_URL,))
            assert await fixture.store.find_tool(OPEN_URL.version) is None
            await fixture.append(tools=(OPEN_URL,))
            assert await fixture.store.find_tool(OPEN_URL.version) == OPEN_URL

    async def test_open_calls_are_counted_for_the_owner_and_for_the_tenant(self) -> None:
        async with self.opened() as fixture:
            call, other = fixture.new_call("call_1"), fixture.new_call("call_2")
            await fixture.append(calls=(call, other))
            await fixture.append(owner=BOB, calls=(fixture.new_call("call_3", owner=BOB),))
            assert await fixture.store.count("open_calls", "acme") == 3
            assert await fixture.store.count("open_calls", "acme", "ann") == 2
            await fixture.append(calls=(replace(call, version=2),))
            assert await fixture.store.count("open_calls", "acme", "ann") == 2
            await fixture.append(calls=(fixture.settled(call),))
            await fixture.append(calls=(fixture.settled(call),))
            assert await fixture.store.count("open_calls", "acme") == 2
            assert await fixture.store.count("open_calls", "evil") == 0

    async def test_a_call_that_only_remains_to_be_reported_is_listed_and_not_counted(self) -> None:
        async with self.opened() as fixture:
            request = ProgramRequest("key=job-1", is_reported=False)
            call = fixture.new_call(run_id=None, request=request)
            await fixture.append(calls=(call,))
            assert await fixture.store.count("open_calls", "acme") == 1
            await fixture.append(calls=(fixture.settled(call),))
            assert await fixture.open_ids(needs_worker=True) == ["call_1"]
            assert await fixture.store.count("open_calls", "acme", "ann") == 0
            assert await fixture.store.count("open_calls", "acme") == 0

    async def test_a_call_that_waits_for_a_person_is_not_listed_among_those_that_need_a_worker(self) -> None:
        async with self.opened() as fixture:
            request = ProgramRequest("key=job-1")
            call = fixture.new_call(
                run_id=None, request=request, executor=Executor.SERVER, phase=Phase.ASKING, deadline=None
            )
            await fixture.append(calls=(call,))
            assert await fixture.open_ids(needs_worker=True) == []
            ready = replace(call, phase=Phase.READY, version=2)
            await fixture.append(calls=(ready,))
            assert await fixture.open_ids(needs_worker=True) == ["call_1"]
            await fixture.append(calls=(fixture.settled(ready),))
            assert await fixture.open_ids(needs_worker=True) == []

    async def test_the_calls_of_an_active_run_are_found_like_all_others(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t0", calls=(fixture.new_call("call_0", thread_id="t0", run_id=None),))
            fixture.clock.advance(1)
            asking = fixture.new_call("call_1", approval=fixture.new_approval())
            other = fixture.new_call("call_2", client_id="notes", deadline=fixture.clock.now() + 5)
            await fixture.append(thread=fixture.running(), calls=(asking, other))
            assert await fixture.open_ids(owner=ANN) == ["call_0", "call_1", "call_2"]
            assert await fixture.open_ids(owner=ANN, limit=2) == ["call_0", "call_1"]
            assert await fixture.open_ids(client_id="notes") == ["call_2"]
            assert await fixture.open_ids(due_before=fixture.clock.now() + 59.5) == ["call_2", "call_0"]
            assert await fixture.open_ids(needs_worker=True) == ["call_0"]
            assert await self._found(fixture, "approval", "apr_1") == asking
            assert await fixture.store.find_call(BOB, "call", "call_1") is None
            await fixture.append(thread=fixture.running(), calls=(fixture.settled(other),))
            assert await fixture.open_ids(owner=ANN) == ["call_0", "call_1"]
            assert await self._found(fixture, "call", "call_2") == fixture.settled(other)

    async def test_calls_are_found_through_all_that_happens_to_their_run(self) -> None:
        async with self.opened() as fixture:
            call = fixture.new_call()
            settled = fixture.settled(call)
            ended = fixture.running(run_state=RunState.DONE)
            for no, (row, calls) in enumerate(
                (
                    (fixture.running(), (call,)),
                    (fixture.parked(), ()),
                    (fixture.running(), (settled,)),
                    (fixture.parked(), ()),
                    (fixture.running("run_2"), (fixture.new_call("call_2", run_id="run_2"),)),
                    (ended, ()),
                )
            ):
                await fixture.append(thread=row, calls=calls)
                assert await self._found(fixture, "call", "call_1") == (call if no < 2 else settled)
                assert await fixture.open_ids() == (["call_1"] if no < 2 else [] if no < 4 else ["call_2"])
                assert await fixture.store.count("open_calls", "acme") == len(await fixture.open_ids())

    async def _found(self, fixture: StoreFixture, kind: CallKey, value: str) -> Call:
        found = await fixture.store.find_call(ANN, kind, value)
        assert found is not None
        return found.call
