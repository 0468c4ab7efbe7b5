"""The desk: opens, approves, takes, releases and settles calls. Nothing else writes a call.

Every change is a compare-and-swap on the stored version, in one transaction with the event that tells of it.
Who comes too late is told the truth: the outcome the call has. Knows no wire and no model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from farhand.calls.change import Change, Reply, answered, finished, stopped
from farhand.calls.opening import Opening, call_of, opened_event, ready_deadline
from farhand.calls.verdict import late_answer, late_result
from farhand.core import call as table
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.event import CallReleased, CallTaken
from farhand.core.outcome import Cancelled, Failure, Outcome, Success, TimedOut, digest
from farhand.core.principal import Owner
from farhand.core.result import Accepted, Receipt, Refused, Result, Unknown
from farhand.core.settings import Patience
from farhand.core.tool import Executor, Tool
from farhand.errors import Malformed, NotFound
from farhand.store.base import (
    AllowTool,
    Commit,
    Committed,
    Due,
    InsertCall,
    Stale,
    Store,
    SwapCall,
    Tell,
    When,
    Write,
)
from farhand.store.soon import soon
from farhand.tools.gate import complaint_about, complaint_about_output

SERVER = "server"
"""Holder of the calls that this side executes itself. Of one without a run, the worker's name follows it."""

BACKSTOP_SEC = 1.0
"""A tool's own limit is kept where it runs; the stored deadline behind it is for one that never returns."""

MOST_SPANS = 10
"""So many times its own time a call may take in all while its client reports progress."""

Brought: TypeAlias = Result | Reply
Known = dict[str, Call]


class Desk:
    def __init__(
        self,
        store: Store,
        patience: Patience,
        *,
        expect: Callable[[Due], None] | None = None,
        worker: str = "",
    ) -> None:
        """`expect` hears of every deadline that is set, as a hint for whoever watches them. `worker` is the
        name that calls without a run are executed under."""
        self._store = store
        self._worker = worker
        self._patience = patience
        self._expect = expect or (lambda due: None)

    def prepare(self, opening: Opening) -> Call:
        """The call as it will be opened. A server tool that needs no yes is taken at once: it runs now."""
        now = self._store.now()
        call = call_of(opening, now=now, patience=self._patience)
        if call.executor is not Executor.SERVER or call.phase is not Phase.READY:
            return call
        return self._taken_here(call, now) or call

    async def open(self, calls: Sequence[tuple[Call, Tool | None]], *beside: Write) -> Commit:
        """The calls exist from now on, together with what is written beside them, or not at all."""
        writes: list[Write] = []
        for call, tool in calls:
            writes.append(InsertCall(call, tool))
            # the opening of a run's call is told in its journal
            if call.run_id is None:
                writes.append(Tell(call.owner, (opened_event(call),), call.thread_id))
        commit = await self._store.commit(*writes, *beside)
        if isinstance(commit, Committed):
            for call, _ in calls:
                if call.deadline is not None:
                    self._expect(Due(call.deadline, call.owner, call.call_id))
        return commit

    async def settle(self, owner: Owner, result: Result) -> Receipt:
        """A far hand's result. The first one that commits wins."""
        [receipt] = await self.accept(owner, result)
        return receipt

    async def approve(self, owner: Owner, approval_id: str, answer: Answer) -> Receipt:
        [receipt] = await self.accept(owner, Reply(approval_id, answer))
        return receipt

    async def accept(self, owner: Owner, *brought: Brought) -> list[Receipt]:
        """All that one message brings, in one transaction: what is accepted of it is accepted together."""
        while True:
            planned: Known = {}
            changes: list[Change] = []
            receipts: list[Receipt] = []
            for item in brought:
                if isinstance(item, Reply):
                    verdict = await self._plan_reply(owner, item, planned)
                else:
                    verdict = await self._plan_result(owner, item, planned)
                if isinstance(verdict, Change):
                    planned[verdict.after.call_id] = verdict.after
                    changes.append(verdict)
                    receipts.append(Accepted())
                else:
                    receipts.append(verdict)
            commit = await soon(self._store, self._commit(changes))
            if isinstance(commit, Committed):
                return receipts
            await soon(self._store, self._make_way(commit))

    async def take(
        self, owner: Owner, call_id: str, holder: str, *, instead_of: str | None = None
    ) -> Receipt:
        """Accepted means: execute it. It lasts a while and is renewed by taking again.

        `instead_of` is a holder whose own take ends with this one.
        """
        return await self._take(owner, call_id, holder, instead_of=instead_of)

    async def renew(self, owner: Owner, call_id: str, holder: str) -> Receipt:
        """The same for a registered client that reports progress: it has its time again, from now on, up to
        `MOST_SPANS` times that time in all."""
        return await self._take(owner, call_id, holder, deadline=self._renewed_deadline)

    async def _take(
        self,
        owner: Owner,
        call_id: str,
        holder: str,
        *,
        instead_of: str | None = None,
        deadline: Callable[[Call, float], float | None] = lambda call, now: None,
    ) -> Receipt:
        while True:
            call = await self._far_call(owner, call_id)
            if call is None:
                return Unknown()
            if call.phase is Phase.SETTLED:
                return late_result(call, sent="")
            held_by = None if call.take is None else call.take.holder
            free = replace(call, take=None) if held_by == instead_of else call
            now = self._store.now()
            after = table.take(free, holder, at=now, deadline=deadline(call, now))
            if after is None:
                return Refused("not_approved" if call.phase is Phase.ASKING else "taken")
            renewed = held_by == holder
            events = () if renewed else (CallTaken(call_id, holder),)
            commit = await soon(self._store, self._commit([Change(call, after, events)]))
            if isinstance(commit, Committed):
                return Accepted()
            await soon(self._store, self._make_way(commit))

    async def release(self, owner: Owner, call_id: str, holder: str) -> Receipt:
        """Gives a taken call back, so that another hand may execute it."""
        while True:
            call = await self._far_call(owner, call_id)
            if call is None:
                return Unknown()
            if call.phase is Phase.SETTLED:
                return late_result(call, sent="")
            after = table.release(call)
            if after is None or call.take is None or call.take.holder != holder:
                return Refused("taken")
            commit = await soon(self._store, self._commit([Change(call, after, (CallReleased(call_id),))]))
            if isinstance(commit, Committed):
                return Accepted()
            await soon(self._store, self._make_way(commit))

    async def start(self, call: Call, *beside: Write) -> Call | None:
        """Takes an approved call for this side, from when its time counts; None if somebody was faster, or
        if what is written beside it does not hold."""
        after = self._taken_here(call, self._store.now())
        if after is None:
            return None
        taken = Change(call, after, (CallTaken(call.call_id, SERVER),))
        # a run that goes on later runs its tools later, too; a call without one has its time from the yes on
        when = When.ANY_TIME if call.run_id is not None else When.IN_TIME
        commit = await self._commit([taken], when, *beside)
        return after if isinstance(commit, Committed) else None

    async def finish(self, call: Call, outcome: Outcome, *, when: When = When.IN_TIME) -> Receipt:
        """The outcome of a tool that ran on this side, for the call it was started with."""
        current: Call | None = call
        while current is not None and current.phase is not Phase.SETTLED:
            change = finished(current, outcome, at=self._store.now())
            if change is None:
                return Refused("not_approved")
            commit = await self._commit([change], when)
            if isinstance(commit, Committed):
                return Accepted()
            await self._make_way(commit)
            current = await self._store.get_call(call.owner, call.call_id)
        return Unknown() if current is None else late_result(current, sent=digest(outcome))

    async def expire(self, due: Due) -> bool:
        """Settles the call as timed out if the store finds it overdue."""
        while True:
            call = await self._store.get_call(due.owner, due.call_id)
            if call is None or call.deadline is None:
                return False
            outcome = TimedOut(call.timeout_sec or round(call.deadline - call.opened_at, 3))
            commit = await self._commit([stopped(call, outcome, at=self._store.now())], When.OVERDUE)
            if isinstance(commit, Committed):
                return True
            if commit.why == "in_time":
                return False

    async def cancel(self, calls: Sequence[Call], reason: str, *beside: Write) -> Commit:
        """Stops these open calls, together with what is written beside them, or nothing of it."""
        now = self._store.now()
        changes = [
            stopped(call, Cancelled(reason), at=now) for call in calls if call.phase is not Phase.SETTLED
        ]
        return await self._commit(changes, When.ANY_TIME, *beside)

    async def give_up(self, calls: Sequence[Call], error: str, *beside: Write) -> Commit:
        """Fails calls whose hand is gone, together with what is written beside them, or nothing of it.

        One that nobody has said yes to yet cannot fail: it is cancelled.
        """
        now = self._store.now()
        changes = [
            finished(call, Failure(error), at=now) or stopped(call, Cancelled(error), at=now)
            for call in calls
            if call.phase is not Phase.SETTLED
        ]
        return await self._commit(changes, When.ANY_TIME, *beside)

    async def _plan_result(self, owner: Owner, result: Result, planned: Known) -> Change | Receipt:
        """What this would change, after what is planned before it; or what it is told instead."""
        stored = await self._store.get_call(owner, result.call_id)
        # what runs on this side is answered by nobody else
        if stored is None or stored.executor is Executor.SERVER:
            return Unknown()
        call = planned.get(stored.call_id, stored)
        outcome = result.outcome
        if call.phase is Phase.SETTLED:
            return late_result(call, sent=digest(outcome))
        if isinstance(outcome, Success):
            tool = await self._store.get_tool(call.tool_version)
            wrong = None if tool is None else complaint_about_output(tool, outcome.output)
            if wrong is not None:
                # a success whose output breaks the tool's promise is a failure that says so
                outcome = Failure(f"The output of '{call.tool}' does not fit its schema: {wrong}")
        return finished(call, outcome, at=self._store.now(), result=result) or Refused("not_approved")

    async def _plan_reply(self, owner: Owner, reply: Reply, planned: Known) -> Change | Receipt:
        stored = await self._store.get_asking(owner, reply.approval_id)
        if stored is None:
            return Unknown()
        call = planned.get(stored.call_id, stored)
        late = late_answer(call, reply.answer)
        if late is not None:
            return late
        await self._check_edit(call, reply.answer)
        now = self._store.now()
        held = await self._is_held(call)
        deadline = ready_deadline(
            call.executor, call.timeout_sec, held=held, now=now, patience=self._patience
        )
        if call.run_id is None and call.executor is Executor.SERVER:
            # nobody may ever be attached to it: its time counts from the yes
            deadline = self._tool_deadline(call, now)
        return answered(call, reply.answer, at=now, deadline=deadline) or Refused("not_approved")

    async def _check_edit(self, call: Call, answer: Answer) -> None:
        if answer.input is None or not answer.approved:
            return
        tool = await self._store.get_tool(call.tool_version)
        wrong = complaint_about(tool, answer.input) if tool is not None else None
        if wrong is not None:
            raise Malformed(
                f"The edited input does not fit '{call.tool}': {wrong}.", hint="Nothing was approved."
            )

    async def _is_held(self, call: Call) -> bool:
        run = await self._store.get_run(call.owner, call.run_id) if call.run_id is not None else None
        return run is not None and not run.parked

    async def _far_call(self, owner: Owner, call_id: str) -> Call | None:
        """A call that far hands may take and release: not one that runs on this side."""
        call = await self._store.get_call(owner, call_id)
        return None if call is None or call.executor is Executor.SERVER else call

    def _taken_here(self, call: Call, now: float) -> Call | None:
        if call.run_id is not None:
            return table.take(call, SERVER, at=now, deadline=self._tool_deadline(call, now))
        # whoever starts a call without a run knows that a worker that had it is gone, and its time stays
        deadline = call.deadline or self._tool_deadline(call, now)
        free = replace(call, take=None)
        return table.take(free, f"{SERVER}.{self._worker}", at=now, deadline=deadline)

    def _renewed_deadline(self, call: Call, now: float) -> float | None:
        if call.executor is not Executor.CLIENT or call.deadline is None:
            return None
        span = call.timeout_sec or self._patience.client_call
        answered_at = None if call.approval is None else call.approval.answered_at
        ready_at = answered_at or call.opened_at
        return max(call.deadline, min(now + span, ready_at + MOST_SPANS * span))

    def _tool_deadline(self, call: Call, now: float) -> float:
        return now + (call.timeout_sec or self._patience.server_tool) + BACKSTOP_SEC

    async def _make_way(self, stale: Stale) -> None:
        """Before another look: an overdue call is settled as such first, so that the look tells so."""
        if stale.why == "overdue" and isinstance(stale.write, SwapCall):
            late = stale.write.before
            await self.expire(Due(late.deadline or 0.0, late.owner, late.call_id))
        if isinstance(stale.write, AllowTool):
            # looking again would find the same for ever
            raise NotFound("The thread of this call is gone.")

    async def _commit(self, changes: Sequence[Change], when: When = When.IN_TIME, *beside: Write) -> Commit:
        writes: list[Write] = []
        for change in changes:
            writes += change.writes(when)
        if not writes and not beside:
            return Committed(self._store.now())
        commit = await self._store.commit(*writes, *beside)
        if not isinstance(commit, Stale):
            for change in changes:
                after = change.after
                if after.deadline is not None:
                    self._expect(Due(after.deadline, after.owner, after.call_id))
        return commit


def executing_worker(call: Call) -> str | None:
    """The worker that runs the tool of this call without a run; None if nobody does, or one that has no name
    there."""
    if call.executor is not Executor.SERVER or call.take is None:
        return None
    return call.take.holder.partition(".")[2] or None
