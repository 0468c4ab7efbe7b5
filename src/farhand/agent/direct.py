"""Calls that a program makes itself, without a run and without a model.

They stand on the desk like any other: the same checks, approvals, deadlines and receipts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import anyio
from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.direct_executor import is_unwanted
from farhand.agent.kit import Kit
from farhand.agent.worker import Worker
from farhand.calls.opening import Opening
from farhand.calls.wait import settled
from farhand.core.call import Call, Phase, Request
from farhand.core.outcome import Cancelled, canonical
from farhand.core.principal import Owner
from farhand.core.thread import Thread
from farhand.core.tool import Tool
from farhand.errors import Broken, Malformed, NameTaken, NotFound, PeerFault, ShuttingDown
from farhand.store.base import Committed, InsertThread, Stale
from farhand.store.soon import soon
from farhand.tools.gate import complaint_about
from farhand.tools.timeouts import chosen_timeout

log = logging.getLogger("farhand.calls")

CALLER_GONE = "whoever asked for it has gone"
CALLER_TIMED_OUT = "the caller's time was over"
CANCEL_WITHIN_SEC = 5.0


class Direct(Struct, frozen=True, kw_only=True):
    """What the program asks for. `request` holds its own ids; under one request id there is one call."""

    owner: Owner
    thread_id: str
    tool: str
    input: dict[str, object]
    timeout_sec: float | None = None
    """How long the tool may take."""
    within: float | None = None
    """How long the caller waits, whatever the call waits for; then the call is cancelled."""
    keep: bool = False
    """The call stays when the caller's time is over."""
    model_call_id: str | None = None
    request: Request | None = None
    title: str = ""
    """Of the thread, if it is new."""

    @property
    def request_id(self) -> str | None:
        return None if self.request is None else self.request.request_id


class Overdue(Struct, frozen=True):
    """The caller's time is over, and the call was cancelled, or it stays as it is."""

    call: Call


def fault_in(kit: Kit, wish: Direct) -> PeerFault | None:
    """Why it can't be opened: no such tool, or an input that its schema does not allow."""
    tool = kit.tool(wish.owner, wish.tool)
    if tool is None:
        return NotFound(f"There is no tool '{wish.tool}'.")
    wrong = complaint_about(tool, wish.input)
    return None if wrong is None else Malformed(wrong)


async def call_directly(kit: Kit, worker: Worker, wish: Direct) -> Call | Overdue:
    """The call once it has its outcome, or without one if it was deleted meanwhile. A bad wish is raised.

    A request id that was used before opens nothing: its call is answered if it is settled, else `NameTaken`.
    A call without a request id is for its caller alone: if that is cancelled, so is the call.
    """
    opened: list[Call] = []
    since = asyncio.get_running_loop().time()
    try:
        call = await _opened(kit, worker, wish, opened.append)
        if call.phase is Phase.SETTLED:
            return _answer(call)
        async with asyncio.timeout_at(None if wish.within is None else since + wish.within):
            return await settled(kit.store, call.owner, call.call_id) or call
    except TimeoutError:
        return await _overdue(kit, wish, opened[-1])
    except asyncio.CancelledError:
        await _leave(kit, wish, opened)
        raise
    except ShuttingDown:
        await _leave(kit, wish, [call for call in opened if is_unwanted(call)])
        raise


async def stop_calls(kit: Kit, owner: Owner, thread_id: str, reason: str) -> bool:
    """Cancels the open calls of this thread that have no run; False if there was none."""
    calls = [call for call in await kit.store.open_calls(owner, thread_id) if call.run_id is None]
    for call in calls:
        await _cancel(kit, call, reason)
    return bool(calls)


async def _opened(kit: Kit, worker: Worker, wish: Direct, note: Callable[[Call], object]) -> Call:
    """The call, open or as it was settled before. `note` is told of each one that is about to be opened."""
    while True:
        known = await _known(kit, wish)
        if known is not None:
            return known
        fault = fault_in(kit, wish)
        if fault is not None:
            raise fault
        opening = _open(kit, worker, wish, note)
        # one that can be asked for again is opened also if its caller leaves meanwhile
        call = await (opening if wish.request_id is None else worker.uninterrupted(opening))
        if call is not None:
            return call


async def _overdue(kit: Kit, wish: Direct, call: Call) -> Call | Overdue:
    """The caller's time is over. What was faster than that is answered all the same."""
    if not wish.keep:
        await _cancel(kit, call, CALLER_TIMED_OUT)
    now = await kit.store.get_call(call.owner, call.call_id) or call
    return Overdue(now) if now.outcome is None else _answer(now)


def _answer(call: Call) -> Call | Overdue:
    """The same again for whoever asks again for a call that its caller's time has ended."""
    return Overdue(call) if call.outcome == Cancelled(CALLER_TIMED_OUT) else call


async def _leave(kit: Kit, wish: Direct, calls: Sequence[Call]) -> None:
    """Nobody waits for the calls any more: those that nobody can ask for again are cancelled."""
    if wish.request_id is not None:
        return
    # also where whoever cancels does so again at each await
    with anyio.move_on_after(CANCEL_WITHIN_SEC, shield=True):
        for call in calls:
            await _cancel(kit, call, CALLER_GONE)


async def _known(kit: Kit, wish: Direct) -> Call | None:
    if wish.request_id is None:
        return None
    call = await kit.store.get_requested(wish.owner, wish.request_id)
    if call is None:
        return None
    if call.tool != wish.tool or canonical(call.input) != canonical(wish.input):
        raise NameTaken("This request id was used for another call.", hint="Use a new one.")
    if call.phase is not Phase.SETTLED:
        raise NameTaken("The call of this request id is under way.", hint="Ask again for its answer later.")
    return call


async def _open(kit: Kit, worker: Worker, wish: Direct, note: Callable[[Call], object]) -> Call | None:
    """None if the same request came in this very moment. A server tool that needs no yes is started."""
    tool = kit.tool(wish.owner, wish.tool)
    assert tool is not None, "it was found a moment ago"
    call = kit.desk.prepare(await _opening(kit, worker.name, wish, tool))
    now = kit.store.now()
    place = Thread(
        owner=wish.owner, thread_id=wish.thread_id, title=wish.title, created_at=now, updated_at=now
    )
    # only what has to wait takes room
    room = kit.room.place(wish.owner, wish.thread_id) if call.blocks else nullcontext()
    async with room:
        # before it is stored: a caller may be cancelled while the store has it half written
        note(call)
        commit = await soon(kit.store, kit.desk.open([(call, tool)], InsertThread(place)))
    if isinstance(commit, Stale):
        return None
    worker.direct.begin(call)
    return call


async def _opening(kit: Kit, worker: str, wish: Direct, tool: Tool) -> Opening:
    asks = kit.asks(wish.owner, tool, wish.input)
    known = await kit.store.get_thread(wish.owner, wish.thread_id) if asks else None
    return Opening(
        call_id=kit.clock.fresh("call"),
        owner=wish.owner,
        thread_id=wish.thread_id,
        tool=tool,
        input=wish.input,
        model_call_id=wish.model_call_id,
        timeout_sec=wish.timeout_sec or chosen_timeout(tool, wish.input),
        held=True,
        approval_id=kit.clock.fresh("apr") if asks else None,
        allowed_before=known is not None and tool.version in known.allowed,
        request=_request(wish, worker),
    )


def _request(wish: Direct, worker: str) -> Request:
    request = wish.request or Request()
    return request if request.request_id is not None else replace(request, worker=worker)


async def _cancel(kit: Kit, call: Call, reason: str) -> None:
    current: Call | None = call
    try:
        while current is not None and current.phase is not Phase.SETTLED:
            if isinstance(await kit.desk.cancel([current], reason), Committed):
                return
            current = await kit.store.get_call(call.owner, call.call_id)
    except Broken as error:
        log.warning("call %s is left to its deadline: %s", call.call_id, error)
