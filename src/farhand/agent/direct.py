"""Calls that a program makes itself, without a run and without a model.

They stand on the desk like any other: the same checks, approvals, deadlines and receipts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import nullcontext

import anyio
from msgspec import Struct

from farhand.agent.execute import execute
from farhand.agent.kit import Kit
from farhand.calls.opening import Opening
from farhand.calls.wait import unblocked
from farhand.core.call import Call, Phase, Request
from farhand.core.outcome import canonical
from farhand.core.principal import Owner
from farhand.core.thread import Thread
from farhand.core.tool import Tool
from farhand.errors import Broken, Malformed, NameTaken, NotFound, PeerFault
from farhand.store.base import Committed, InsertThread, Stale
from farhand.store.soon import soon
from farhand.tools.gate import complaint_about
from farhand.tools.timeouts import chosen_timeout

log = logging.getLogger("farhand.calls")

CALLER_GONE = "whoever asked for it has gone"
CANCEL_WITHIN_SEC = 5.0


class Direct(Struct, frozen=True, kw_only=True):
    """What the program asks for. `request` holds its own ids; under one request id there is one call."""

    owner: Owner
    thread_id: str
    tool: str
    input: dict[str, object]
    timeout_sec: float | None = None
    model_call_id: str | None = None
    request: Request | None = None
    title: str = ""
    """Of the thread, if it is new."""

    @property
    def request_id(self) -> str | None:
        return None if self.request is None else self.request.request_id


def fault_in(kit: Kit, wish: Direct) -> PeerFault | None:
    """Why it can't be opened: no such tool, or an input that its schema does not allow."""
    tool = kit.tool(wish.owner, wish.tool)
    if tool is None:
        return NotFound(f"There is no tool '{wish.tool}'.")
    wrong = complaint_about(tool, wish.input)
    return None if wrong is None else Malformed(wrong)


async def call_for_caller(kit: Kit, wish: Direct) -> Call:
    """As `call_directly`, for a caller in this process who alone is told the outcome: if it is cancelled, so
    is the call, and nobody is asked for what nobody wants any more."""
    opened: list[Call] = []
    try:
        return await call_directly(kit, wish, opened.append)
    except asyncio.CancelledError:
        # also where whoever cancels does so again at each await
        with anyio.move_on_after(CANCEL_WITHIN_SEC, shield=True):
            for call in opened:
                await _cancel(kit, call)
        raise


async def call_directly(kit: Kit, wish: Direct, note: Callable[[Call], object] = lambda call: None) -> Call:
    """The call once it has its outcome, or without one if it was deleted meanwhile. A bad wish is raised.

    A request id that was used before opens nothing: its call is answered if it is settled, else `NameTaken`.
    `note` is told of each call that is about to be opened.
    """
    while True:
        known = await _known(kit, wish)
        if known is not None:
            return known
        fault = fault_in(kit, wish)
        if fault is not None:
            raise fault
        call = await _open(kit, wish, note)
        if call is not None:
            return await _settled(kit, call)


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


async def _open(kit: Kit, wish: Direct, note: Callable[[Call], object]) -> Call | None:
    """None if the same request came in this very moment."""
    tool = kit.tool(wish.owner, wish.tool)
    assert tool is not None, "it was found a moment ago"
    call = kit.desk.prepare(await _opening(kit, wish, tool))
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
    return None if isinstance(commit, Stale) else call


async def _opening(kit: Kit, wish: Direct, tool: Tool) -> Opening:
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
        request=wish.request,
    )


async def _cancel(kit: Kit, call: Call) -> None:
    current: Call | None = call
    try:
        while current is not None and current.phase is not Phase.SETTLED:
            if isinstance(await kit.desk.cancel([current], CALLER_GONE), Committed):
                return
            current = await kit.store.get_call(call.owner, call.call_id)
    except Broken as error:
        log.warning("call %s is left to its deadline: %s", call.call_id, error)


async def _settled(kit: Kit, call: Call) -> Call:
    """Waits for the call; a server tool is run right here once it may."""
    moved = await unblocked(kit.store, call.owner, call.call_id)
    if moved is not None and await execute(kit, [moved], opened_here=True):
        moved = await kit.store.get_call(call.owner, call.call_id)
    return call if moved is None else moved
