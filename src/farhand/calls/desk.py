"""The desk: every command on an existing call. Finds the thread, lets it decide the command, returns the
receipt once that is durable.

Rules are in `core/decide`; the desk adds what they need from outside: the thread of a call, the schema that
it was opened with, and the record of a call that its thread's state has dropped. Knows no wire, no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from msgspec import Struct

from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.decide import calls as rules
from farhand.core.decide.calls import CheckedResult, Reply
from farhand.core.decide.decision import Decision, late_answer, late_result
from farhand.core.decide.direct import cancel_unwanted
from farhand.core.decide.opening import BACKSTOP_SEC
from farhand.core.outcome import Failure, Outcome, Success, digest
from farhand.core.principal import Claims, Owner
from farhand.core.result import Receipt, Result, Unknown
from farhand.core.settings import Timeouts
from farhand.core.state import ThreadState
from farhand.core.tool import Executor, Tool
from farhand.errors import Malformed
from farhand.eventlog.batch import Command
from farhand.eventlog.log import EventLog
from farhand.eventlog.thread_cache import Key
from farhand.store.base import bounded_wait
from farhand.tools.schema_admission import check_input, check_output

__all__ = ["BACKSTOP_SEC", "Desk", "Reply", "Submission", "executing_worker"]

TOOLS_KEPT = 1_000

T = TypeVar("T")
U = TypeVar("U")

Submission: TypeAlias = Result | Reply
Following: TypeAlias = Callable[[ThreadState, Decision[list[Receipt]]], Decision[T]]
"""What is decided on a thread together with the accepted submissions."""
Summarize: TypeAlias = Callable[[Call, object], str | None]
"""A short summary of an output, as the call's tool defines it; must not wait."""
_Ending: TypeAlias = Callable[[ThreadState, Sequence[str]], Decision[int]]


class _ToolMissing(Struct, frozen=True, gc=False):
    """An output cannot be checked before this version of its tool is loaded."""

    version: str


class Desk:
    def __init__(
        self, eventlog: EventLog, timeouts: Timeouts, summarize: Summarize = lambda call, output: None
    ) -> None:
        self._log = eventlog
        self._summarize = summarize
        self.on_receipt: Callable[[Submission, Receipt], None] = lambda item, receipt: None
        """Called with every submission and its receipt."""
        self._timeouts = timeouts
        self._tools: dict[str, Tool | None] = {}
        """By version, cached: a decision cannot wait for the store to check an output."""

    # ---------------------------------------------------------------------- results and answers of far hands

    async def settle(self, owner: Owner, result: Result) -> Receipt:
        """A far hand's result. The first one that is stored wins."""
        [receipt] = await self.accept(owner, result)
        return receipt

    async def settle_if_it_fits(self, owner: Owner, result: Result) -> Receipt:
        """Like `settle`, for a person, who can change an answer: raises `Malformed` for an output that does
        not match the tool's schema, and the call stays open."""
        await self.check_fit(owner, result)
        return await self.settle(owner, result)

    async def check_fit(self, owner: Owner, result: Result) -> None:
        """Raises `Malformed` for an output that does not match the tool of an open call."""
        call = await self._log.get_call(owner, result.call_id)
        if call is not None and call.phase is not Phase.SETTLED and isinstance(result.outcome, Success):
            # what is valid depends only on the tool's version, which no call changes
            tool = await self._log.get_tool(call.tool_version)
            wrong = None if tool is None else check_output(tool, result.outcome.output)
            if wrong is not None:
                raise Malformed(
                    f"The answer does not fit '{call.tool}': {wrong}.",
                    hint="Change it and send it again.",
                )

    async def approve(
        self, owner: Owner, approval_id: str, answer: Answer, *, by: Claims | None = None
    ) -> Receipt:
        """`by` are the claims of the person who answers. Raises `Malformed` for an edited input that does not
        match the tool's schema."""
        [receipt] = await self.accept(owner, Reply(approval_id, answer, by or {}))
        return receipt

    async def accept(self, owner: Owner, *submissions: Submission) -> list[Receipt]:
        """All submissions of one message: those for one thread are accepted together."""
        for item in submissions:
            if isinstance(item, Reply):
                await self._check_edit(owner, item)
        receipts: list[Receipt] = [Unknown()] * len(submissions)
        for thread_id, places in (await self._by_thread(owner, submissions)).items():
            items = [submissions[place] for place in places]
            answers = await bounded_wait(self._log.store, self._accept(owner, thread_id, items))
            for place, receipt in zip(places, await self.complete(owner, items, answers), strict=True):
                receipts[place] = receipt
        return receipts

    async def accept_with(
        self,
        owner: Owner,
        thread_id: str,
        items: Sequence[Submission],
        then: Following[T],
        view: Callable[[ThreadState, T], U],
    ) -> U:
        """Decides submissions for calls of this thread, together with `then`: in one append, or not at all.
        Returns what `view` makes of that answer and of the thread right after it; `complete` finishes the
        receipts in it."""
        for item in items:
            if isinstance(item, Reply):
                await self._check_edit(owner, item)
        while True:
            command: Command[T | _ToolMissing] = partial(self._decide_with, items, then)

            def seen(thread: ThreadState, answer: T | _ToolMissing) -> U | _ToolMissing:
                return answer if isinstance(answer, _ToolMissing) else view(thread, answer)

            answer = await self._log.decide(owner, thread_id, command, seen)
            if not isinstance(answer, _ToolMissing):
                return answer
            await self._load_tool(answer.version)

    async def complete(
        self, owner: Owner, items: Sequence[Submission], receipts: Sequence[Receipt]
    ) -> list[Receipt]:
        """Adds the receipts for calls that the thread's state has dropped, and reports each to
        `on_receipt`."""
        complete = [
            await self._late(owner, item) if isinstance(receipt, Unknown) else receipt
            for item, receipt in zip(items, receipts, strict=True)
        ]
        for item, receipt in zip(items, complete, strict=True):
            self.on_receipt(item, receipt)
        return complete

    def _decide_with(
        self, items: Sequence[Submission], then: Following[T], thread: ThreadState, now: float
    ) -> Decision[T | _ToolMissing]:
        accepted = self._decide_all(thread, items, now)
        if isinstance(accepted.answer, _ToolMissing):
            return Decision(accepted.answer)
        events, limits = accepted.events, (accepted.not_after, accepted.not_before)
        settled = Decision(accepted.answer, events, not_after=limits[0], not_before=limits[1])
        return then(thread, settled)

    async def _by_thread(self, owner: Owner, submissions: Sequence[Submission]) -> dict[str, list[int]]:
        """The indexes of the items by thread; without items that belong to no call."""
        found: dict[str, list[int]] = {}
        for place, item in enumerate(submissions):
            name = item.approval_id if isinstance(item, Reply) else item.call_id
            thread_id = await self._log.thread_of_call(owner, name)
            if thread_id is not None:
                found.setdefault(thread_id, []).append(place)
        return found

    async def _accept(self, owner: Owner, thread_id: str, items: Sequence[Submission]) -> list[Receipt]:
        while True:
            answer: list[Receipt] | _ToolMissing = await self._log.decide(
                owner, thread_id, lambda thread, now: self._decide_all(thread, items, now)
            )
            if not isinstance(answer, _ToolMissing):
                return answer
            await self._load_tool(answer.version)

    def _decide_all(
        self, thread: ThreadState, items: Sequence[Submission], now: float
    ) -> Decision[list[Receipt] | _ToolMissing]:
        checked: list[CheckedResult | Reply] = []
        for item in items:
            each = item if isinstance(item, Reply) else self._check_output(thread, item)
            if isinstance(each, _ToolMissing):
                return Decision(each)
            checked.append(each)
        return rules.accept(thread, checked, now=now, timeouts=self._timeouts)

    def _check_output(self, thread: ThreadState, result: Result) -> CheckedResult | _ToolMissing:
        """A success whose output does not match the tool's schema becomes a failure that says so."""
        call, outcome = thread.calls.get(result.call_id), result.outcome
        if call is None or call.phase is Phase.SETTLED or not isinstance(outcome, Success):
            return CheckedResult(result, outcome)
        if call.tool_version not in self._tools:
            return _ToolMissing(call.tool_version)
        tool = self._tools[call.tool_version]
        wrong = None if tool is None else check_output(tool, outcome.output)
        if wrong is None:
            return CheckedResult(result, outcome, self._summarize(call, outcome.output))
        return CheckedResult(result, Failure(f"The output of '{call.tool}' does not fit its schema: {wrong}"))

    async def _load_tool(self, version: str) -> None:
        tool = await self._log.get_tool(version)
        if len(self._tools) >= TOOLS_KEPT:
            self._tools.clear()
        self._tools[version] = tool

    async def _check_edit(self, owner: Owner, reply: Reply) -> None:
        """Before anything is decided, so that nothing in the message is accepted. What may be edited depends
        only on the tool's version, which no call changes."""
        answer = reply.answer
        if answer.input is None or not answer.approved:
            return
        call = await self._log.get_call_of_approval(owner, reply.approval_id)
        if call is None or late_answer(call, answer) is not None:
            return
        tool = await self._log.get_tool(call.tool_version)
        wrong = None if tool is None else check_input(tool, answer.input)
        if wrong is not None:
            raise Malformed(
                f"The edited input does not fit '{call.tool}': {wrong}.", hint="Nothing was approved."
            )

    async def _late(self, owner: Owner, item: Submission) -> Receipt:
        """For a call that is no longer in its thread's state: its look-up row says how it ended."""
        if isinstance(item, Result):
            return await self._late_result(owner, item.call_id, sent=digest(item.outcome))
        call = await self._log.get_call_of_approval(owner, item.approval_id)
        return Unknown() if call is None else late_answer(call, item.answer) or Unknown()

    async def _late_result(self, owner: Owner, call_id: str, *, sent: str | None) -> Receipt:
        call = await self._log.get_call(owner, call_id)
        # nobody else answers for a server tool
        if call is None or call.outcome is None or call.executor is Executor.SERVER:
            return Unknown()
        return late_result(call, sent=sent)

    # ------------------------------------------------------------------------------------- take, release

    async def take(
        self, owner: Owner, call_id: str, holder: str, *, instead_of: str | None = None
    ) -> Receipt:
        """Accepted means: execute it. A take expires and is renewed by taking again.

        `instead_of` is a holder whose own take ends with this one.
        """
        return await self._move(
            owner,
            call_id,
            lambda thread, now: rules.take(thread, call_id, holder, now=now, instead_of=instead_of),
        )

    async def renew(self, owner: Owner, call_id: str, holder: str) -> Receipt:
        """Like `take`, for a registered client that reports progress: its time starts again, within
        bounds."""
        return await self._move(
            owner,
            call_id,
            lambda thread, now: rules.renew(thread, call_id, holder, now=now, timeouts=self._timeouts),
        )

    async def release(self, owner: Owner, call_id: str, holder: str) -> Receipt:
        """Gives a taken call back, so that another client may execute it."""
        return await self._move(
            owner, call_id, lambda thread, now: rules.release(thread, call_id, holder, now=now)
        )

    async def _move(self, owner: Owner, call_id: str, command: Command[Receipt]) -> Receipt:
        thread_id = await self._log.thread_of_call(owner, call_id)
        if thread_id is None:
            return Unknown()
        receipt: Receipt = await bounded_wait(self._log.store, self._log.decide(owner, thread_id, command))
        if not isinstance(receipt, Unknown):
            return receipt
        return await self._late_result(owner, call_id, sent=None)

    # ------------------------------------------------------------------------------- tools of the server

    async def start(self, call: Call, tool: Tool | None, *, fence: int) -> Call | None:
        """The call if its tool may start now; None if it must not, for example because another claim has the
        run. `tool` is what would run: a version other than the requested one fails the call."""
        return await self._log.decide(
            call.owner,
            call.thread_id,
            lambda thread, now: rules.start(
                thread, call.call_id, tool, now=now, timeouts=self._timeouts, fence=fence
            ),
        )

    async def start_direct(self, call: Call, tool: Tool | None, worker: str) -> Call | None:
        """Like `start`, for a call without a run, by this worker; a call held by a worker that is gone is
        taken over if nothing has changed it since."""
        return await self._log.decide(
            call.owner,
            call.thread_id,
            lambda thread, now: rules.start_direct(
                thread, call, tool, worker, now=now, timeouts=self._timeouts
            ),
        )

    async def finish(self, call: Call, outcome: Outcome, *, fence: int | None = None) -> Receipt:
        """The outcome of a tool that ran on the server; `fence` is that of the claim on its run."""
        summary = self._summarize(call, outcome.output) if isinstance(outcome, Success) else None
        receipt: Receipt = await self._log.decide(
            call.owner,
            call.thread_id,
            lambda thread, now: rules.finish(
                thread, call.call_id, outcome, now=now, summary=summary, fence=fence
            ),
        )
        if not isinstance(receipt, Unknown):
            return receipt
        ended = await self._log.get_call(call.owner, call.call_id)
        if ended is None or ended.outcome is None:
            return receipt
        return late_result(ended, sent=digest(outcome))

    async def abandon(self, call: Call) -> bool:
        """Settles a direct call whose worker disappeared while its tool was running: its outcome is unknown.
        False if the call has changed since it was read."""
        return await self._log.decide(
            call.owner, call.thread_id, lambda thread, now: rules.abandon(thread, call)
        )

    # ----------------------------------------------------------------------------------- ends from outside

    async def expire(self, call: Call) -> bool:
        """Settles the call as timed out if the store finds it overdue."""
        # commands that wait together are decided at the time of the first one, which may be before the
        # deadline: the store's clock judges when it is written. The time is read again for each decision,
        # since a clock may be set back
        return await self._log.decide(
            call.owner,
            call.thread_id,
            lambda thread, now: rules.expire(thread, call.call_id, now=max(now, self._log.now())),
        )

    async def cancel(self, calls: Iterable[Call], reason: str) -> int:
        """Cancels the open calls among these; returns how many there were."""
        return await self._end_all(calls, lambda thread, ids: rules.cancel(thread, ids, reason))

    async def cancel_unwanted(self, calls: Iterable[Call], reason: str) -> int:
        """Like `cancel`, for direct calls without their callers: a call that was approved meanwhile
        continues."""
        return await self._end_all(calls, lambda thread, ids: cancel_unwanted(thread, ids, reason))

    async def give_up(self, calls: Iterable[Call], error: str) -> int:
        """Fails calls whose executor is gone; returns how many were open. A call that was not approved yet is
        cancelled."""
        return await self._end_all(calls, lambda thread, ids: rules.give_up(thread, ids, error))

    async def _end_all(self, calls: Iterable[Call], command: _Ending) -> int:
        count = 0
        for (owner, thread_id), call_ids in _ids_by_thread(calls).items():
            count += await self._end(owner, thread_id, call_ids, command)
        return count

    async def _end(self, owner: Owner, thread_id: str, call_ids: Sequence[str], command: _Ending) -> int:
        return await self._log.decide(owner, thread_id, lambda thread, now: command(thread, call_ids))


def executing_worker(call: Call) -> str | None:
    """The worker that runs the tool of this call without a run; None if none does, or if it has no name
    there."""
    if call.executor is not Executor.SERVER or call.take is None:
        return None
    return call.take.holder.partition(".")[2] or None


def _ids_by_thread(calls: Iterable[Call]) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = {}
    for call in calls:
        if call.phase is not Phase.SETTLED:
            found.setdefault((call.owner, call.thread_id), []).append(call.call_id)
    return found
