"""What one request does to a thread: start a run, regenerate an answer, answer calls, resume, stop.

A turn loads the run and its calls once, checks permissions and tampering, lets the thread decide, and returns
a value for a face to encode. How runs start and stop is in `start_run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.attachments import MessageInput, prepare_message
from farhand.agent.context import AgentContext
from farhand.agent.pause import (
    PostedResult,
    Reaction,
    answer_pause,
    pause_answered,
    pause_of,
    reactions_to,
    unapproved,
)
from farhand.agent.start_run import Asker, ThreadPlace, answer_again, start_run
from farhand.agent.worker import Worker
from farhand.calls.desk import Submission
from farhand.core.call import Call, Phase
from farhand.core.decide.calls import Reply
from farhand.core.event import CallOpened, RunParked, StepFinished
from farhand.core.outcome import Failure, Success, canonical
from farhand.core.position import START, Bookmark, Entry, Position
from farhand.core.principal import Owner, Principal, name_in
from farhand.core.result import Accepted, Receipt, Refused, Result
from farhand.core.run import Run
from farhand.core.settings import Limits, Wait
from farhand.core.state import ThreadState
from farhand.core.thread import UserMessage
from farhand.core.tool import Executor, Tool
from farhand.errors import NotAllowed, NotFound, TooLarge
from farhand.eventlog.reader import entries_until, has_position
from farhand.store.base import bounded_wait
from farhand.wire.json_reader import json_or_text

JUST_ENDED_SEC = 60.0
"""How long an answer is replayed to anyone who asks, even if somebody has read it to its end."""


class NewMessage(Struct, frozen=True):
    """A message of the user; `instead_of` names the message that it replaces, with everything after it."""

    message_id: str
    parts: tuple[MessageInput, ...]
    instead_of: str | None = None
    request_tools: tuple[Tool, ...] = ()
    """Tools that the client describes and executes itself."""


class Regeneration(Struct, frozen=True):
    """Another answer to the last user message, instead of this answer or of the last one."""

    instead_of: str | None


class CallAnswers(Struct, frozen=True):
    """Results and approvals for the calls of the last answer, as a page sends them with that answer.

    `call_ids` are all the calls that the page shows, `inputs` the inputs it shows for them: a result or an
    approval for an input other than the stored one has no effect.
    """

    submissions: tuple[Submission, ...]
    call_ids: tuple[str, ...]
    inputs: dict[str, object] = {}


Accept: TypeAlias = Callable[[Sequence[Submission]], Awaitable[list[Receipt]]]
"""Stores answers to calls and returns their receipts."""
ChatTurn: TypeAlias = NewMessage | Regeneration | CallAnswers


class Turn(Struct, frozen=True, kw_only=True):
    """A run with its calls once the turn is stored, and where its reader starts.

    `past` is the run's last event before the turn. `seen` has the events that a returning reader has; None if
    its position is unknown.
    """

    run: Run
    calls: tuple[Call, ...] = ()
    message: UserMessage | None = None
    """The user's last message."""
    after: Position = START
    past: int = 0
    seen: tuple[Entry, ...] | None = ()
    is_new: bool = False
    """This turn started the run."""
    is_held: bool = False
    """A response waits for far hands instead of ending at a pause."""
    receipts: tuple[tuple[Submission, Receipt], ...] = ()
    altered: frozenset[str] = frozenset()
    """Calls that the page shows with an input other than the stored one."""
    awaits_output: bool = False
    """The turn approved a tool that the page executes, for the first time and without its output."""

    @property
    def is_at_rest(self) -> bool:
        """Responses have ended with open questions: nothing more happens until a person or a page answers.

        A call that a registered client runs is answered elsewhere: a response waits for it.
        """
        run = self.run
        return run.rests and run.waits and any(call.blocks and not call.runs_at_client for call in self.calls)

    @property
    def is_followed(self) -> bool:
        """A response stays open for what comes next."""
        return self.is_held and not self.is_at_rest


class PauseTurn(Struct, frozen=True):
    """The receipts for the results that one message posted for a pause, by call id."""

    turn: Turn
    receipts: tuple[tuple[str, Receipt], ...]

    @property
    def ignored(self) -> tuple[str, ...]:
        return tuple(call_id for call_id, receipt in self.receipts if not isinstance(receipt, Accepted))

    @property
    def is_refused(self) -> bool:
        """Nothing in the message was accepted."""
        return len(self.ignored) == len(self.receipts)


class Turns:
    def __init__(self, context: AgentContext, worker: Worker, *, wait: Wait) -> None:
        """`wait` is what a response does at a pause if its request does not say."""
        self._context = context
        self._worker = worker
        self._wait: Wait = wait

    async def take(
        self,
        principal: Principal,
        thread_id: str,
        turn: ChatTurn,
        *,
        wait: Wait | None = None,
        output_grace: float = 0.0,
    ) -> Turn:
        """`output_grace`: seconds to wait where a page may still send the output of a tool it has just
        approved."""
        match turn:
            case NewMessage():
                return await self.begin(principal, thread_id, turn, wait=wait)
            case Regeneration(instead_of=instead_of):
                return await self.regenerate(principal, thread_id, instead_of=instead_of, wait=wait)
            case CallAnswers():
                answered = await self.answer(principal, thread_id, turn, wait=wait)
                if not output_grace or not answered.awaits_output or answered.is_followed:
                    return answered
                await asyncio.sleep(output_grace)
                # whatever paused the run meanwhile is over: this turn's response is not held
                return replace(await self.reload(answered), is_held=False)

    async def begin(
        self, principal: Principal, thread_id: str, new: NewMessage, *, wait: Wait | None = None
    ) -> Turn:
        """A run that answers this message; for a known message, its existing run."""
        message = await prepare_message(
            self._context.files, principal.owner, thread_id, message_id=new.message_id, said=new.parts
        )
        place = ThreadPlace(principal.owner, thread_id, Asker(principal.claims, new.request_tools))
        started = await bounded_wait(
            self._context.log,
            start_run(
                self._context, place, message, instead_of=new.instead_of, hold_for=self._hold_for(wait)
            ),
        )
        return await self.load(started.run) if started.again else started_turn(started.run, message.message)

    async def regenerate(
        self, principal: Principal, thread_id: str, *, instead_of: str | None, wait: Wait | None = None
    ) -> Turn:
        """Another answer to the message before this one, or before the last one."""
        place = ThreadPlace(principal.owner, thread_id, Asker(principal.claims))
        started = answer_again(self._context, place, instead_of=instead_of, hold_for=self._hold_for(wait))
        return started_turn((await bounded_wait(self._context.log, started)).run)

    async def answer(
        self,
        principal: Principal,
        thread_id: str,
        answers: CallAnswers,
        *,
        wait: Wait | None = None,
        accept: Accept | None = None,
    ) -> Turn:
        """Results and approvals for open calls; settled calls are left as they are. `accept` stores them,
        with whatever else its request decides; without it, they are stored alone."""
        turn = await self._last(principal.owner, thread_id)
        if turn is None:
            raise NotFound("There is no such chat.")
        if not answers.call_ids:
            return turn
        after = await self._end_of_step(turn, answers.call_ids)
        altered = frozenset(call.call_id for call in turn.calls if _is_altered(answers, call))
        submissions = await self.prepare(principal, answers, turn.calls, without=altered)
        store = accept or (lambda items: self._context.desk.accept(principal.owner, *items))
        receipts = await self._accept(turn.run, store, submissions, hold_for=self._hold_for(wait))
        answered = replace(
            await self.reload(turn),
            after=after,
            is_held=self._is_held(wait),
            receipts=tuple(zip(submissions, receipts, strict=True)),
            altered=altered,
        )
        return replace(answered, awaits_output=_awaits_output(answered))

    async def prepare(
        self,
        principal: Principal,
        answers: CallAnswers,
        calls: Sequence[Call],
        *,
        without: Collection[str] = (),
    ) -> list[Submission]:
        """The submissions for these calls that are allowed and signed, in the form that their tools
        declare."""
        _check_allowed(principal, answers, calls, self._context.settings.limits)
        return [
            await self._as_declared(_signed(item, principal), calls)
            for item in _for_calls(answers.submissions, calls, without=without)
        ]

    async def answer_call(self, principal: Principal, result: Result) -> Turn:
        """Accepts one result by its call id alone, for a call of its thread's last run."""
        call = await self._context.log.get_call(principal.owner, result.call_id)
        if call is None or call.run_id is None:
            raise NotFound("There is no such call.")
        turn = await self._last(principal.owner, call.thread_id)
        if turn is None or turn.run.run_id != call.run_id:
            raise NotFound("There is no such call.")
        answers = CallAnswers((result,), (call.call_id,))
        return await self.answer(principal, call.thread_id, answers, wait="turn")

    async def answer_pause(
        self, principal: Principal, thread_id: str, posted: Sequence[PostedResult]
    ) -> PauseTurn:
        """Everything that a pause asked for, in one message: the run continues, or nothing changes."""
        turn = await self.find(principal.owner, thread_id)
        run = turn.run
        current = pause_of(run, [call for call in turn.calls if call.step == run.step])
        pause = pause_answered(posted, current, await self._find_calls(turn, posted))
        missing = unapproved(posted, pause)
        if missing:
            return PauseTurn(turn, tuple((call_id, Refused("not_approved")) for call_id in missing))
        reactions = reactions_to(posted, pause, await self._texts(pause.calls))
        _check_reactions(principal, reactions, self._context.settings.limits)
        journal = await self._context.log.entries(run)
        parked = [
            entry.end for entry in journal if entry.seq <= turn.past and isinstance(entry.event, RunParked)
        ]
        after = parked[-1] if parked else Position(run.last_seq)
        if pause.open:
            # its next pause ends a response too: no stream is kept open for it
            self._worker.prefer(run.run_id, hold_for=0.0)
        receipts = await answer_pause(self._context.desk, pause, reactions, by=principal.claims)
        last = await self.find(principal.owner, thread_id)
        past = last.run.last_seq if last.run.run_id == run.run_id else 0
        by_call = zip((each.call_id for each in posted), receipts, strict=True)
        return PauseTurn(replace(turn, after=after, past=past), tuple(by_call))

    async def find(self, owner: Owner, thread_id: str, after: Bookmark | None = None) -> Turn:
        """The thread's last run as it is now, after a position if that is known."""
        turn = await self._last(owner, thread_id)
        if turn is None:
            raise NotFound("There is no such thread.")
        return turn if after is None else _after(turn, after, await self._context.log.entries(turn.run))

    async def resume(self, owner: Owner, thread_id: str, after: Bookmark | None) -> Turn | None:
        """The last answer for a returning reader; None if there is nothing to read.

        Without a position: all of an answer that is still running, or that ended unread or just now. After a
        position: the rest, however late the reader comes; all of it if that position is unknown.
        """
        turn = await self._last(owner, thread_id)
        if turn is None:
            return None
        run, is_whole = turn.run, after is None or after.position == START
        if is_whole and run.active:
            return turn
        age = self._context.log.now() - (run.ended_at or 0.0)
        if is_whole and age >= JUST_ENDED_SEC and run.is_delivered:
            return None
        journal = await self._context.log.entries(run)
        turn = turn if is_whole or after is None else _after(turn, after, journal)
        is_kept = run.active or (bool(journal) and journal[0].seq == 1)
        # a reader that has its position needs only the rest; what was before may have been removed
        return turn if is_kept or turn.after != START else None

    async def reload(self, turn: Turn) -> Turn:
        current = await self.load(turn.run)
        return replace(turn, run=current.run, calls=current.calls)

    def _is_held(self, wait: Wait | None) -> bool:
        return (wait or self._wait) == "hold"

    def _hold_for(self, wait: Wait | None) -> float:
        return self._context.settings.timeouts.hold_for if self._is_held(wait) else 0.0

    async def _last(self, owner: Owner, thread_id: str) -> Turn | None:
        """Reads the thread once: its last run, that run's calls, and the user's last message."""
        return await self._context.log.read(owner, thread_id, last_turn)

    async def load(self, run: Run) -> Turn:
        """The run as it is now, even if another one has started in its thread."""
        turn = await self._last(run.owner, run.thread_id)
        if turn is not None and turn.run.run_id == run.run_id:
            return turn
        current = await self._context.log.get_run(run.owner, run.run_id) or run
        calls = await self._context.log.calls_of(run.owner, run.run_id)
        return Turn(run=current, calls=tuple(calls), past=current.last_seq)

    async def _end_of_step(self, turn: Turn, call_ids: Collection[str]) -> Position:
        """Where the last step with one of these calls ends in the journal, or where the last of them that a
        tool asked was opened: their outcomes follow."""
        known = [call for call in turn.calls if call.call_id in call_ids]
        if not known:
            raise NotFound("None of these calls is known in this thread.")
        step = max(call.step for call in known)
        asked = {call.call_id for call in known if call.parent is not None and call.step == step}
        journal = await self._context.log.entries(turn.run)
        ends = [
            entry.end
            for entry in journal
            if (isinstance(entry.event, StepFinished) and entry.event.step == step)
            or (isinstance(entry.event, CallOpened) and entry.event.call_id in asked)
        ]
        return ends[-1] if ends else journal[-1].end if journal else START

    async def _as_declared(self, item: Submission, calls: Sequence[Call]) -> Submission:
        """A string that holds JSON is parsed unless its tool returns text: some pages send results that
        way."""
        if not isinstance(item, Result) or not isinstance(item.outcome, Success):
            return item
        text = item.outcome.output
        call = next((each for each in calls if each.call_id == item.call_id), None)
        if not isinstance(text, str) or call is None:
            return item
        tool = await self._context.log.get_tool(call.tool_version)
        if tool is None or tool.returns_text:
            return item
        value = json_or_text(text)
        if tool.output_schema is None and not isinstance(value, dict | list):
            # with any object, or no declared type, a number or a word may be meant as text
            return item
        return replace(item, outcome=Success(value))

    async def _accept(
        self, run: Run, accept: Accept, submissions: Sequence[Submission], *, hold_for: float
    ) -> list[Receipt]:
        """A parked run that this resumes is held for this long at its next pause."""
        self._worker.prefer(run.run_id, hold_for=hold_for)
        receipts: list[Receipt] = []
        try:
            receipts = await accept(submissions)
        finally:
            if not any(isinstance(receipt, Accepted) for receipt in receipts):
                self._worker.forget(run.run_id)
        return receipts

    async def _find_calls(self, turn: Turn, posted: Sequence[PostedResult]) -> list[Call]:
        """The calls of this thread among the posted ones, also of earlier runs."""
        here = {call.call_id: call for call in turn.calls}
        found: list[Call] = []
        for call_id in dict.fromkeys(each.call_id for each in posted):
            call = here.get(call_id) or await self._context.log.get_call(turn.run.owner, call_id)
            if call is not None and call.thread_id == turn.run.thread_id:
                found.append(call)
        return found

    async def _texts(self, calls: Sequence[Call]) -> set[str]:
        """The calls whose tool returns text."""
        tools = {call.call_id: await self._context.log.get_tool(call.tool_version) for call in calls}
        return {call_id for call_id, tool in tools.items() if tool is not None and tool.returns_text}


def check_text_size(item: Submission, limits: Limits) -> None:
    """Raises `TooLarge` for a reason or an error that is too long to read."""
    if isinstance(item, Reply):
        name, text = "reason", item.answer.reason
    elif isinstance(item.outcome, Failure):
        name, text = "error", item.outcome.error
    else:
        return
    # most are far shorter: a character has at most four bytes
    if 4 * len(text) > limits.error_text and len(text.encode()) > limits.error_text:
        raise TooLarge(f"The {name} is larger than {limits.error_text} bytes.", hint="Nothing was applied.")


def last_turn(thread: ThreadState) -> Turn | None:
    run = thread.run_record()
    if run is None:
        return None
    calls = tuple(call for call in thread.calls.values() if call.run_id == run.run_id)
    said = (message for message in reversed(thread.messages) if isinstance(message, UserMessage))
    return Turn(run=run, calls=calls, message=next(said, None), past=run.last_seq)


def started_turn(run: Run, message: UserMessage | None = None) -> Turn:
    # after its first event, which says that it was started; it may have continued since
    return Turn(run=run, message=message, after=Position(1), is_new=True)


def _after(turn: Turn, after: Bookmark, journal: list[Entry]) -> Turn:
    if not after.is_in(turn.run.run_id) or not has_position(journal, after.position):
        return replace(turn, seen=None)
    return replace(turn, after=after.position, seen=tuple(entries_until(journal, after.position)))


def _awaits_output(turn: Turn) -> bool:
    approved = {
        item.approval_id
        for item, receipt in turn.receipts
        if isinstance(item, Reply) and isinstance(receipt, Accepted)
    }
    return any(
        call.approval and call.approval.approval_id in approved for call in turn.calls if may_run(call)
    )


def may_run(call: Call) -> bool:
    """Whether a page may execute the call now: approved where that is needed, and without an outcome."""
    return call.executor is Executor.FRONTEND and call.phase in (Phase.READY, Phase.TAKEN)


def _check_allowed(principal: Principal, answers: CallAnswers, calls: Sequence[Call], limits: Limits) -> None:
    """Chatting, answering and approving are three permissions, even in one message.

    A page sends its whole message again and again: what was already settled or answered needs none.
    """
    asking = {call.approval.approval_id for call in calls if call.approval and not call.approval.answer}
    waiting = {call.call_id for call in calls if call.executor is not Executor.SERVER and call.blocks}
    for item in answers.submissions:
        needs = "approve" if isinstance(item, Reply) else "answer"
        counts = item.approval_id in asking if isinstance(item, Reply) else item.call_id in waiting
        if not counts:
            continue
        if needs not in principal.scopes:
            raise NotAllowed(f"This credential may not {needs}.", hint="Nothing was applied.")
        check_text_size(item, limits)


def _check_reactions(principal: Principal, reactions: Sequence[Reaction], limits: Limits) -> None:
    for reaction in reactions:
        if reaction.answer is not None:
            if "approve" not in principal.scopes:
                raise NotAllowed("This credential may not approve.", hint="Nothing was applied.")
            check_text_size(Reply("", reaction.answer), limits)
        if reaction.outcome is not None:
            check_text_size(Result(call_id=reaction.call_id, outcome=reaction.outcome), limits)


def _for_calls(
    submissions: Sequence[Submission], calls: Sequence[Call], *, without: Collection[str]
) -> list[Submission]:
    """The submissions for these calls, except for those in `without`."""
    names = set[str]()
    for call in calls:
        if call.call_id not in without:
            names |= {call.call_id, call.approval.approval_id} if call.approval else {call.call_id}
    return [
        item
        for item in submissions
        if (item.approval_id if isinstance(item, Reply) else item.call_id) in names
    ]


def _signed(item: Submission, principal: Principal) -> Submission:
    if isinstance(item, Reply):
        return replace(item, by=principal.claims)
    return replace(item, by=name_in(principal.claims))


def _is_altered(answers: CallAnswers, call: Call) -> bool:
    page_input = answers.inputs.get(call.call_id)
    if page_input is None:
        return False
    asked = call.approval.asked_input if call.approval is not None else None
    # a page may still show what the model wrote when the person has edited it since
    return all(canonical(page_input) != canonical(stored) for stored in (call.input, asked or call.input))
