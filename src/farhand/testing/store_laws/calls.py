"""A call changes by compare-and-swap, and its deadline is judged by the store's clock."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from farhand.core import call as table
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase, Request, Take
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut, digest
from farhand.core.tool import Executor
from farhand.store.base import Committed, InsertCall, Stale, SwapCall, When
from farhand.testing.store_laws.given import ANN, BOB, OPEN_URL, Given, Laws

OUTCOMES: tuple[Outcome, ...] = (
    Success({"deep": [1, 1.0, -0.5, None, True, "ü\u0000\U0001f600", {"": []}], "big": 10**63}),
    Failure("no"),
    Denied("because"),
    TimedOut(60.0),
    Cancelled("stopped"),
)


class CallLaws(Laws):
    async def test_a_call_comes_back_as_it_was_written_whatever_its_outcome(self) -> None:
        async with self.given() as given:
            for outcome in OUTCOMES:
                call = self._full_call(given, outcome)
                await given.write(InsertCall(call))
                assert await given.stored_call(call) == call

    async def test_a_call_id_is_used_once(self) -> None:
        async with self.given() as given:
            call = await given.call()
            assert await given.refuse(InsertCall(replace(call, tool="other"))) == "exists"
            assert await given.stored_call(call) == call

    async def test_a_call_of_a_run_that_does_not_exist_is_refused(self) -> None:
        async with self.given() as given:
            assert await given.refuse(InsertCall(given.new_call(given.new_run()))) == "missing"

    async def test_of_many_changes_to_one_version_exactly_one_is_made(self) -> None:
        async with self.given() as given:
            call = await given.call(await given.run())
            rivals = [given.settled(call, number) for number in range(50)]
            commits = await asyncio.gather(*(given.store.commit(SwapCall(call, after)) for after in rivals))
            winners = [
                after for after, commit in zip(rivals, commits, strict=True) if isinstance(commit, Committed)
            ]
            assert winners == [await given.stored_call(call)]
            assert {commit.why for commit in commits if isinstance(commit, Stale)} == {"version"}

    async def test_open_calls_without_a_run_that_may_need_a_worker_are_found_whoever_owns_them(self) -> None:
        async with self.given() as given:
            server = Executor.SERVER
            unnamed = await given.call(owner=BOB, approval=given.asking())
            approved = await given.call(request=Request("job-1"), executor=server)
            begun = await given.call(request=Request("job-2"), executor=server, approval=given.asking())
            taken = table.take(replace(begun, phase=Phase.READY), "server", at=given.clock.now())
            assert taken is not None
            await given.write(SwapCall(begun, taken))
            asking = await given.call(request=Request("job-3"), executor=server, approval=given.asking())
            with_run = await given.call(await given.run(), executor=server)
            over = await given.call(executor=server)
            await given.settle(over)
            found = await given.store.direct_calls()
            assert [call for call in found if call != asking] == [unnamed, approved, taken]
            assert with_run not in found

    async def test_open_calls_are_counted_in_their_thread_and_for_their_tenant(self) -> None:
        async with self.given() as given:
            first, _ = await given.call(), await given.call(thread_id="t2")
            # nothing of a commit that does not hold is counted
            other = given.new_call()
            await given.refuse(InsertCall(other), SwapCall(other, given.settled(other)), InsertCall(first))
            assert await given.store.count_open(ANN, "t1") == 1
            assert await given.store.count_open_of_tenant(ANN.tenant) == 2
            assert await given.store.count_open_of_tenant("another") == 0
            await given.settle(first)
            assert await given.store.count_open(ANN, "t1") == 0
            assert await given.store.count_open_of_tenant(ANN.tenant) == 1

    async def test_a_change_of_an_unknown_call_is_refused(self) -> None:
        async with self.given() as given:
            call = given.new_call()
            assert await given.refuse(SwapCall(call, given.settled(call))) == "missing"

    async def test_a_result_is_in_time_until_the_moment_of_the_deadline(self) -> None:
        async with self.given() as given:
            early, late = await given.call(), await given.call()
            given.clock.advance(59.999)
            assert isinstance(await given.settle(early, When.IN_TIME), Committed)
            given.clock.advance(0.001)
            refusal = await given.settle(late, When.IN_TIME)
            assert isinstance(refusal, Stale)
            assert refusal.why == "overdue"
            assert await given.stored_call(late) == late

    async def test_a_call_expires_at_the_moment_of_the_deadline_and_not_before(self) -> None:
        async with self.given() as given:
            call = await given.call()
            given.clock.advance(59.999)
            assert await given.refuse(SwapCall(call, given.settled(call), When.OVERDUE)) == "in_time"
            given.clock.advance(0.001)
            assert isinstance(await given.settle(call, When.OVERDUE), Committed)

    async def test_some_changes_do_not_ask_for_the_deadline(self) -> None:
        async with self.given() as given:
            call = await given.call()
            given.clock.advance(1000)
            assert isinstance(await given.settle(call, When.ANY_TIME), Committed)

    async def test_a_call_without_a_deadline_is_never_overdue(self) -> None:
        async with self.given() as given:
            call = await given.call(deadline=None)
            given.clock.advance(10**9)
            assert await given.refuse(SwapCall(call, given.settled(call), When.OVERDUE)) == "in_time"
            assert isinstance(await given.settle(call, When.IN_TIME), Committed)

    async def test_the_deadline_that_counts_is_the_stored_one(self) -> None:
        async with self.given() as given:
            call = await given.call()
            given.clock.advance(60)
            pretended = replace(call, deadline=given.clock.now() + 60)
            assert await given.refuse(SwapCall(pretended, given.settled(call), When.IN_TIME)) == "overdue"

    async def test_a_moved_deadline_counts_from_then_on(self) -> None:
        async with self.given() as given:
            call = await given.call()
            moved = table.take(call, "tab", at=given.clock.now(), deadline=given.clock.now() + 120)
            assert moved is not None
            await given.write(SwapCall(call, moved))
            given.clock.advance(90)
            assert await given.store.due(before=given.clock.now(), limit=10) == []
            assert isinstance(await given.settle(moved, When.IN_TIME), Committed)

    async def test_what_is_due_comes_earliest_first_and_without_what_is_settled(self) -> None:
        async with self.given() as given:
            now = given.clock.now()
            third, first, second = [await given.call(deadline=now + sec) for sec in (3, 1, 2)]
            await given.call(deadline=now + 4)
            await given.call(deadline=None)
            await given.settle(await given.call(deadline=now + 1))
            found = await given.store.due(before=now + 4, limit=10)
            assert [due.call_id for due in found] == [first.call_id, second.call_id, third.call_id]
            assert [due.deadline for due in found] == [now + 1, now + 2, now + 3]
            assert {due.owner for due in found} == {ANN}
            assert await given.store.due(before=now + 4, limit=2) == found[:2]

    async def test_open_calls_come_oldest_first_and_without_what_is_settled(self) -> None:
        async with self.given() as given:
            one = await given.call(thread_id="t1")
            two = await given.call(thread_id="t2")
            three = await given.call(thread_id="t1")
            await given.settle(await given.call(thread_id="t1"))
            assert await given.store.open_calls(ANN) == [one, two, three]
            assert await given.store.open_calls(ANN, "t1") == [one, three]
            assert await given.store.open_calls(ANN, "t3") == []

    async def test_a_long_list_of_open_calls_is_whole(self) -> None:
        async with self.given() as given:
            calls = [given.new_call() for _ in range(300)]
            await asyncio.gather(*(given.write(InsertCall(call)) for call in calls))
            listed = await given.store.open_calls(ANN)
            assert {call.call_id for call in listed} == {call.call_id for call in calls}
            assert len(listed) == len(calls)

    async def test_calls_of_a_run_come_in_the_order_they_were_opened(self) -> None:
        async with self.given() as given:
            run, other = await given.run("t1"), await given.run("t2")
            calls = [await given.call(run, step=step) for step in (1, 1, 2)]
            await given.call(other, step=1)
            assert await given.store.calls_of(ANN, run.run_id) == calls
            assert await given.store.calls_of(ANN, run.run_id, 1) == calls[:2]
            assert await given.store.calls_of(ANN, run.run_id, 0) == []

    async def test_a_call_is_found_by_its_approval_answered_or_not(self) -> None:
        async with self.given() as given:
            approval = given.asking()
            call = await given.call(await given.run(), approval=approval)
            assert await given.store.get_asking(ANN, approval.approval_id) == call
            denied = table.deny(call, Answer(approved=False), at=given.clock.now())
            assert denied is not None
            await given.write(SwapCall(call, denied))
            assert await given.store.get_asking(ANN, approval.approval_id) == denied
            assert await given.store.get_asking(ANN, given.clock.fresh("apr")) is None

    async def test_the_first_tool_of_a_version_stays(self) -> None:
        async with self.given() as given:
            assert await given.store.get_tool(OPEN_URL.version) is None
            await given.write(InsertCall(given.new_call(), OPEN_URL))
            await given.write(InsertCall(given.new_call(), replace(OPEN_URL, timeout_sec=5.0)))
            await given.write(InsertCall(given.new_call()))
            assert await given.store.get_tool(OPEN_URL.version) == OPEN_URL

    def _full_call(self, given: Given, outcome: Outcome) -> Call:
        now = given.clock.now()
        answer = Answer(approved=True, reason="fine", input={"url": "b"}, scope="thread")
        approval = replace(given.asking(), answer=answer, answered_at=now, asked_input={"url": "a"})
        return replace(
            given.new_call(),
            step=7,
            executor=Executor.CLIENT,
            input={"url": "b", "n": 1, "x": 1.0, "none": None},
            model_call_id="call_0",
            card="confirm",
            timeout_sec=12.5,
            phase=Phase.SETTLED,
            version=4,
            deadline=None,
            approval=approval,
            take=Take("tab", now + 30),
            outcome=outcome,
            digest=digest(outcome),
            settled_at=now,
            title="A title",
            metadata={"k": ["v"]},
        )
