"""Calls that a program makes itself, without a run and without a model.

They stand in their thread's log like any other: the same checks, approvals, deadlines and receipts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from typing import TypeAlias

import anyio
from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.context import AgentContext
from farhand.agent.offered_tools import OfferedTools
from farhand.agent.worker import Worker
from farhand.calls.wait import wait_until_settled
from farhand.core.call import Call, Phase, ProgramRequest
from farhand.core.decide.calls import cancel
from farhand.core.decide.decision import Decision
from farhand.core.decide.direct import (
    LimitReached,
    RequestUsed,
    add_caller,
    cancel_unwanted,
    cancel_with_callers,
    open_direct,
)
from farhand.core.decide.opening import Opening
from farhand.core.outcome import Cancelled, canonical
from farhand.core.principal import Claims, Owner
from farhand.core.state import ThreadState
from farhand.errors import Broken, Malformed, NameTaken, NotFound, PeerFault, ShuttingDown, TooMany
from farhand.store.base import bounded_wait
from farhand.tools.context import Context
from farhand.tools.schema_admission import check_input
from farhand.tools.timeouts import effective_timeout

log = logging.getLogger("farhand.calls")

CALLER_GONE = "the caller disconnected or was cancelled"
RUN_CANCELLED = "the run that asked for it was cancelled"
CALLER_TIMED_OUT = "the caller stopped waiting"
CANCEL_WITHIN_SEC = 5.0

Rule: TypeAlias = Callable[[ThreadState, list[str], str], Decision[int]]
"""Which of these calls are cancelled, for this reason."""


class DirectCall(Struct, frozen=True, kw_only=True):
    """What the program asks for. `request` holds its own ids; under one request id there is one call."""

    owner: Owner
    thread_id: str
    tool: str
    input: dict[str, object]
    timeout_sec: float | None = None
    """How long the tool may take."""
    caller_timeout_sec: float | None = None
    """How long the caller waits, whatever the call waits for; then the call is cancelled."""
    keep_after_timeout: bool = False
    """The call stays open after the caller's timeout."""
    ends_with_caller: bool = False
    """Cancel the call when its last caller is cancelled, even though it has a request id. Not cancelled while
    a caller waits at another worker, or if one asked to keep it."""
    attach_if_open: bool = False
    """Waits for the call of this request id if it is open, instead of refusing."""
    claims: Claims = {}
    """Of the person on whose behalf it is made."""
    model_call_id: str | None = None
    request: ProgramRequest | None = None
    title: str = ""
    """The title of the thread, if it is new."""

    @property
    def request_id(self) -> str | None:
        return None if self.request is None else self.request.request_id

    @property
    def is_shared_by_callers(self) -> bool:
        """Whether other callers may wait for it, and it ends with the last of them."""
        return self.ends_with_caller and self.request_id is not None


class _Caller(Struct):
    """A caller: the ids of the calls that were opened for it, and whether it was cancelled."""

    call_ids: list[str] = []
    is_gone: bool = False


class Overdue(Struct, frozen=True):
    """The caller's timeout has passed: the call was cancelled, or it stays open."""

    call: Call


async def _list_offered_tools(context: AgentContext, direct: DirectCall) -> OfferedTools:
    person = Context(owner=direct.owner, claims=direct.claims, thread_id=direct.thread_id)
    return await context.offered(person)


def _fault_in(offered: OfferedTools, direct: DirectCall) -> PeerFault | None:
    """Why it can't be opened: no such tool, or an input that its schema does not allow."""
    tool = offered.get(direct.tool)
    if tool is None:
        return NotFound(
            f"There is no tool '{direct.tool}'.", hint="List them with farhand tools or GET /api/tools."
        )
    wrong = check_input(tool, direct.input)
    return None if wrong is None else Malformed(wrong)


async def call_directly(context: AgentContext, worker: Worker, direct: DirectCall) -> Call | Overdue:
    """The call once it has its outcome, or without one if it was deleted meanwhile. A bad request is raised.

    A request id that was used before opens nothing: its call is answered if it is settled, else `NameTaken`,
    or it is waited for by a caller with `attach_if_open`.
    A call without a request id is for its caller alone: if that is cancelled, so is the call. One that
    `ends_with_caller` is cancelled with the last caller, if all of them wait here.
    """
    caller = _Caller()
    try:
        with _count_caller(worker, direct):
            return await _open_and_wait(context, worker, direct, caller)
    except asyncio.CancelledError:
        caller.is_gone = True
        await _leave(context, worker, direct, caller)
        raise
    except ShuttingDown:
        # one that was approved meanwhile is started by the next process
        if direct.request_id is None:
            await _cancel_all(context, direct, caller.call_ids, cancel_unwanted)
        raise


async def _open_and_wait(
    context: AgentContext, worker: Worker, direct: DirectCall, caller: _Caller
) -> Call | Overdue:
    since = asyncio.get_running_loop().time()
    call = await _find_or_open(context, worker, direct, caller)
    if call.phase is Phase.SETTLED:
        return _answer(call)
    until = None if direct.caller_timeout_sec is None else since + direct.caller_timeout_sec
    try:
        async with asyncio.timeout_at(until):
            return await wait_until_settled(context.log, call) or call
    except TimeoutError:
        return await _stop_waiting(context, direct, call)


async def stop_calls(context: AgentContext, owner: Owner, thread_id: str, reason: str) -> bool:
    """Cancels the open calls of this thread that have no run; False if there was none."""
    calls = [call for call in await context.log.open_calls(owner, thread_id) if call.run_id is None]
    try:
        await context.desk.cancel(calls, reason)
    except Broken as error:
        log.warning("could not cancel %d calls; they stay open until their deadlines: %s", len(calls), error)
    return bool(calls)


async def attach_and_wait(context: AgentContext, worker: Worker, call: Call) -> Call | None:
    """A call that was made before, once it has its outcome; None if it is gone. Nothing is opened."""
    current = await _attach(context, worker, call, ends_with_caller=False)
    return None if current is None else await wait_until_settled(context.log, current)


async def _attach(
    context: AgentContext, worker: Worker, call: Call, *, ends_with_caller: bool
) -> Call | None:
    at = None if call.request is None else call.request.worker
    if call.phase is Phase.SETTLED or at is None or (ends_with_caller and at == worker.name):
        return call
    is_lost = await worker.direct.is_gone(at)
    return await context.log.decide(
        call.owner,
        call.thread_id,
        lambda thread, now: add_caller(
            thread, call, worker.name, ends_with_caller=ends_with_caller, is_lost=is_lost
        ),
    )


@contextmanager
def _count_caller(worker: Worker, direct: DirectCall) -> Iterator[None]:
    """Counts this caller from before the call is opened or found, so that another caller who leaves meanwhile
    does not cancel it."""
    if not direct.is_shared_by_callers:
        yield
        return
    callers, name = worker.direct.callers, (direct.owner, direct.request_id)
    callers[name] += 1
    try:
        yield
    finally:
        callers[name] -= 1
        if not callers[name]:
            del callers[name]


def _ending(worker: Worker, direct: DirectCall) -> Rule:
    """The rule that decides what happens to a call whose caller was cancelled."""
    if not direct.is_shared_by_callers:
        return cancel

    def with_callers(thread: ThreadState, call_ids: list[str], reason: str) -> Decision[int]:
        [call_id] = call_ids
        if worker.direct.callers[direct.owner, direct.request_id]:
            return Decision(0)
        return cancel_with_callers(thread, call_id, worker.name, reason)

    return with_callers


async def _find_or_open(context: AgentContext, worker: Worker, direct: DirectCall, caller: _Caller) -> Call:
    """The call, opened now or found. Before a call is opened, its id is added to those of the caller."""
    while True:
        known = await _find_by_request_id(context, direct)
        if known is not None:
            known = await _attach(context, worker, known, ends_with_caller=direct.ends_with_caller)
        if known is not None:
            return known
        offered = await _list_offered_tools(context, direct)
        fault = _fault_in(offered, direct)
        if fault is not None:
            raise fault
        opening = _open(context, worker, direct, offered, caller)
        # a call with a request id is opened even if its caller leaves meanwhile: it can be looked up
        call = await (opening if direct.request_id is None else worker.uninterrupted(opening))
        if call is not None:
            return call


async def _find_by_request_id(context: AgentContext, direct: DirectCall) -> Call | None:
    if direct.request_id is None:
        return None
    call = await context.log.get_requested(direct.owner, direct.request_id)
    if call is None:
        return None
    if call.tool != direct.tool or canonical(call.requested_input) != canonical(direct.input):
        what = "request id" if call.request is None or call.request.key is None else "key"
        raise NameTaken(f"This {what} was used for another call.", hint="Use a new one.")
    if call.phase is not Phase.SETTLED and not direct.attach_if_open:
        raise NameTaken(
            "The call with this request id is still in progress.",
            hint="Send the request again later to get its result.",
        )
    return call


async def _open(
    context: AgentContext,
    worker: Worker,
    direct: DirectCall,
    offered: OfferedTools,
    caller: _Caller,
) -> Call | None:
    """None if another call with the same request id was opened at the same moment. Starts a server tool that
    needs no approval."""
    opening = _opening(context, worker.name, direct, offered)
    async with _reserve_slot(context, direct.owner, opening) as calls_left:
        # before it is stored: the caller may be cancelled while the store is still writing
        caller.call_ids.append(opening.call_id)
        since = asyncio.get_running_loop().time()
        try:
            answer = await _decide(context, direct, opening, calls_left=calls_left)
        except Broken:
            worker.direct.mark_unconfirmed(opening.call_id)
            raise
    match answer:
        case LimitReached(why=why):
            raise TooMany(why, hint="Try again when some open calls have been answered.")
        case Call() if caller.is_gone and direct.ends_with_caller:
            await _cancel(context, direct, [answer.call_id], _ending(worker, direct), reason=RUN_CANCELLED)
            current = await context.log.get_call(answer.owner, answer.call_id)
            if current is not None and current.phase is not Phase.SETTLED:
                # another caller waits for it
                worker.direct.begin(current)
            return answer
        case Call():
            worker.direct.begin(answer, since)
            return answer
        case _:
            return None


def _reserve_slot(context: AgentContext, owner: Owner, opening: Opening) -> AbstractAsyncContextManager[int]:
    """Only a call that may have to wait takes a slot."""
    return context.open_call_limit.reserve(owner.tenant) if opening.has_to_wait else nullcontext(0)


async def _decide(
    context: AgentContext, direct: DirectCall, opening: Opening, *, calls_left: int
) -> Call | LimitReached | None:
    opened: Awaitable[Call | LimitReached | RequestUsed] = context.log.decide(
        direct.owner,
        direct.thread_id,
        lambda thread, now: open_direct(
            thread, opening, title=direct.title, now=now, settings=context.settings, calls_left=calls_left
        ),
    )
    try:
        answer = await bounded_wait(context.log.store, opened)
    except NameTaken:
        # another thread has it
        return None
    return None if isinstance(answer, RequestUsed) else answer


def _opening(context: AgentContext, worker: str, direct: DirectCall, offered: OfferedTools) -> Opening:
    tool = offered.get(direct.tool)
    assert tool is not None, "it was found a moment ago"
    return Opening(
        call_id=context.clock.fresh("call"),
        tool=tool,
        input=direct.input,
        is_direct=True,
        model_call_id=direct.model_call_id,
        timeout_sec=direct.timeout_sec or effective_timeout(tool, direct.input),
        is_held=True,
        approval_id=context.clock.fresh("apr") if offered.asks(tool, direct.input) else None,
        request=_request(direct, worker),
        claims=direct.claims,
        worker=worker,
    )


def _request(direct: DirectCall, worker: str) -> ProgramRequest:
    request = direct.request or ProgramRequest()
    is_for_callers = request.request_id is None or direct.ends_with_caller
    return replace(request, worker=worker) if is_for_callers else request


async def _stop_waiting(context: AgentContext, direct: DirectCall, call: Call) -> Call | Overdue:
    """The caller's timeout has passed. An outcome that was stored before that is still returned."""
    if not direct.keep_after_timeout:
        await _cancel(context, direct, [call.call_id], cancel, reason=CALLER_TIMED_OUT)
    current = await context.log.get_call(call.owner, call.call_id) or call
    return Overdue(current) if current.outcome is None else _answer(current)


def _answer(call: Call) -> Call | Overdue:
    """A call that was cancelled by its caller's timeout is `Overdue` for later callers as well."""
    return Overdue(call) if call.outcome == Cancelled(CALLER_TIMED_OUT) else call


async def _leave(context: AgentContext, worker: Worker, direct: DirectCall, caller: _Caller) -> None:
    """Nobody waits for the calls any more: cancels them, unless they can be looked up by a request id."""
    if direct.request_id is not None and not direct.ends_with_caller:
        return
    # shielded: the caller may be cancelled again at each await
    with anyio.move_on_after(CANCEL_WITHIN_SEC, shield=True):
        call_ids = caller.call_ids
        if direct.request_id is not None:
            call_ids = [*call_ids, *await _find_open_call_ids(context, direct.owner, direct.request_id)]
        await _cancel_all(context, direct, call_ids, _ending(worker, direct))


async def _find_open_call_ids(context: AgentContext, owner: Owner, request_id: str) -> list[str]:
    """The id of the call with this request id, if it is open. One that this caller is opening may not be
    stored yet."""
    try:
        call = await context.log.get_requested(owner, request_id)
    except Broken as error:
        log.warning("could not cancel a call; it stays open until its deadline: %s", error)
        return []
    return [] if call is None or call.phase is Phase.SETTLED else [call.call_id]


async def _cancel_all(context: AgentContext, direct: DirectCall, call_ids: list[str], rule: Rule) -> None:
    reason = RUN_CANCELLED if direct.ends_with_caller else CALLER_GONE
    with anyio.move_on_after(CANCEL_WITHIN_SEC, shield=True):
        for call_id in dict.fromkeys(call_ids):
            await _cancel(context, direct, [call_id], rule, reason=reason)


async def _cancel(
    context: AgentContext, direct: DirectCall, call_ids: list[str], rule: Rule, *, reason: str
) -> None:
    """By id: a call that is still being opened is decided before this command."""
    try:
        await context.log.decide(
            direct.owner, direct.thread_id, lambda thread, now: rule(thread, call_ids, reason)
        )
    except Broken as error:
        log.warning(
            "could not cancel calls %s; they stay open until their deadlines: %s", ", ".join(call_ids), error
        )
