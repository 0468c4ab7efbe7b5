"""What one exchange shows: of which run, from where on, until where. The same for HTTP and both sockets.

Decisions about the run are made behind `Farhand`; here is only what an AI SDK client must see of them, so
that it neither loses a part nor posts for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from farhand.agent.attachments import say
from farhand.agent.farhand import Farhand
from farhand.calls.change import Reply
from farhand.calls.desk import Brought
from farhand.core.call import Call, Phase
from farhand.core.event import START, Bookmark, Position
from farhand.core.outcome import Denied, Success, canonical
from farhand.core.principal import Owner, Principal
from farhand.core.result import Accepted, Receipt, Result
from farhand.core.run import Run
from farhand.core.settings import Limits
from farhand.core.tool import Executor
from farhand.errors import NotAllowed, NotFound
from farhand.faces.base import check_words
from farhand.faces.ui_stream.decode import Again, Bring, Chat, Say
from farhand.faces.ui_stream.encode import Chunks, may_run
from farhand.wire.guard import json_or_text

SPLIT_HOLD_SEC = 0.3
"""How long the first post that brings only a yes is held: an eager client adds its output meanwhile."""


Told: TypeAlias = Sequence[tuple[Brought, Receipt]]


@dataclass(slots=True)
class Exchange:
    run: Run
    after: Position
    chunks: Chunks
    until: int | None = None
    first: list[bytes] = field(default_factory=list)
    """Chunks that come before those of the journal."""
    with_ids: bool = False
    unheard: bool = True
    """Nobody has heard the answer to its end yet: if it ends before it is read, that is worth a note."""
    is_new: bool = False
    """The run was begun this very moment: what it says is heard as it is said."""
    only_yes: bool = False
    """A first yes to a frontend tool and nothing more: there is nothing to show yet."""


async def begin(farhand: Farhand, principal: Principal, chat: Chat, *, split: bool = True) -> Exchange:
    """`split`: hold back a first yes for a moment, for clients whose output comes in the next post."""
    owner = principal.owner
    held = _is_held(farhand, chat)
    hold_for = farhand.settings.patience.hold_for if held else 0.0
    match chat.wish:
        case Say(message_id=message_id, said=said, instead_of=instead_of):
            message = await say(farhand.files, owner, chat.thread_id, message_id=message_id, said=said)
            started = await farhand.start(
                owner, chat.thread_id, message, hold_for=hold_for, instead_of=instead_of
            )
            return await _replay(farhand, started.run) if started.again else _fresh(started.run)
        case Again(instead_of=instead_of):
            started = await farhand.start_again(
                owner, chat.thread_id, instead_of=instead_of, hold_for=hold_for
            )
            return _fresh(started.run)
        case Bring() as bring:
            return await _go_on(farhand, principal, chat, bring, split=split)
    assert_never(chat.wish)


async def resume(farhand: Farhand, owner: Owner, thread_id: str, after: Bookmark | None) -> Exchange | None:
    """The current answer, whole or after a position, then live; None if there is nothing to hear.

    Whoever has a position was cut: it gets the rest however late it comes, for as long as that is kept.
    """
    run = await farhand.find_run(owner, thread_id)
    if run is None:
        return None
    if after is None or after.position == START:
        exchange = await _replay(farhand, run) if await farhand.is_to_be_heard(run) else None
    else:
        exchange = await _rest(farhand, run, after)
    if exchange is not None:
        exchange.with_ids = after is not None
    return exchange


async def _rest(farhand: Farhand, run: Run, after: Bookmark) -> Exchange | None:
    exchange = await _replay(farhand, run)
    if after.is_in(run.run_id) and await farhand.knows(run, after.position):
        exchange.after = after.position
        # it has these chunks: what follows must fit on them
        exchange.chunks.of_entries(await farhand.told_until(run, after.position))
        # with the last one it had the end
        return None if exchange.chunks.ended else exchange
    if not run.active and not await farhand.told_until(run, FIRST):
        # its journal was removed long ago: there is nothing to replay
        return None
    exchange.first = exchange.chunks.gap()
    return exchange


FIRST = Position(1)


def _fresh(run: Run) -> Exchange:
    # all it has said so far is that it was started
    return Exchange(run, Position(run.last_seq), Chunks(run.run_id), is_new=True)


async def _replay(farhand: Farhand, run: Run) -> Exchange:
    """Everything that was said in this run. A parked one has nothing more to say for now."""
    known = {call.call_id: call for call in await farhand.calls(run)}
    chunks = Chunks(run.run_id, past=run.last_seq, known=known)
    until = run.last_seq if _is_at_rest(run, known.values()) else None
    unheard = run.active or await farhand.is_unheard(run)
    return Exchange(run, START, chunks, until, unheard=unheard)


async def is_at_rest(farhand: Farhand, run: Run) -> bool:
    """Whether nothing more happens in this run until a person or a page answers."""
    return _is_at_rest(await farhand.now(run), await farhand.calls(run))


async def bring_result(farhand: Farhand, principal: Principal, result: Result) -> Exchange:
    """One result by its call id alone, and what follows from it."""
    owner = principal.owner
    call = await farhand.call_of(owner, result.call_id)
    run = await farhand.find_run(owner, call.thread_id) if call is not None else None
    if call is None or run is None or call.run_id != run.run_id:
        raise NotFound("There is no such call.")
    chat = Chat(call.thread_id, "turn", Bring((result,), (call.call_id,)))
    return await begin(farhand, principal, chat, split=False)


async def _go_on(
    farhand: Farhand, principal: Principal, chat: Chat, bring: Bring, *, split: bool
) -> Exchange:
    """Answers for open calls: their outcomes as they are stored, then the rest of the message."""
    owner = principal.owner
    run = await farhand.find_run(owner, chat.thread_id)
    if run is None:
        raise NotFound("There is no such chat.")
    if not bring.call_ids:
        return await _replay(farhand, run)
    after = await farhand.end_of_step(run, bring.call_ids)
    _check_allowed(principal, bring, await farhand.calls(run), farhand.settings.limits)
    held = _is_held(farhand, chat)
    hold_for = farhand.settings.patience.hold_for if held else 0.0
    calls = await farhand.calls(run)
    brought = [await _as_declared(farhand, item, calls) for item in _unaltered(bring, calls)]
    told = await farhand.accept(run, brought, hold_for=hold_for)
    calls = await farhand.calls(run)
    now = await farhand.now(run)
    if held and not _is_at_rest(now, calls):
        known = {call.call_id: call for call in calls}
        return Exchange(run, after, Chunks(run.run_id, past=run.last_seq, known=known))
    yes = _first_yes(told, calls)
    if yes and split:
        # the one untouched answer, once for each approval: a client about to add its output would lose it
        await asyncio.sleep(SPLIT_HOLD_SEC)
        # this run, though another one may have begun in the thread meanwhile
        now, calls = await farhand.now(run), await farhand.calls(run)
    dead_end = not now.active and any(call.step == now.step for call in calls)
    chunks = Chunks(run.run_id, past=now.last_seq, dead_end=dead_end)
    if not _is_at_rest(now, calls):
        return Exchange(run, after, chunks)
    if yes:
        return Exchange(run, Position(now.last_seq), chunks, now.last_seq, only_yes=True)
    chunks.keep_back(_own_denials(told, calls))
    altered = {call.call_id for call in calls if _is_altered(bring, call)}
    # what came after the steps that the client knows is told by the journal, in its place
    theirs = [call for call in calls if call.call_id in bring.call_ids]
    first = chunks.corrected(theirs, dispatch=bring.claimed, altered=altered)
    return Exchange(run, after, chunks, now.last_seq, first)


def _is_held(farhand: Farhand, chat: Chat) -> bool:
    return (chat.wait or farhand.wait) == "hold"


def _check_allowed(principal: Principal, bring: Bring, calls: Sequence[Call], limits: Limits) -> None:
    """Chatting, answering and approving are three permissions, also in one post; each says little.

    A client sends its whole message again and again: what was settled or answered before needs none.
    """
    asking = {call.approval.approval_id for call in calls if call.approval and not call.approval.answer}
    ours = {call.call_id for call in calls if call.executor is not Executor.SERVER and call.blocks}
    for item in bring.brought:
        needs = "approve" if isinstance(item, Reply) else "answer"
        counts = item.approval_id in asking if isinstance(item, Reply) else item.call_id in ours
        if not counts:
            continue
        if needs not in principal.scopes:
            raise NotAllowed(f"This credential may not {needs}.", hint="Nothing was applied.")
        check_words(item, limits)


def _unaltered(bring: Bring, calls: Sequence[Call]) -> list[Brought]:
    """What is brought for calls as they are stored: an answer to another input is none."""
    return [
        item
        for item in bring.brought
        if not any(_concerns(item, call) and _is_altered(bring, call) for call in calls)
    ]


async def _as_declared(farhand: Farhand, item: Brought, calls: Sequence[Call]) -> Brought:
    """A string that holds JSON is that JSON unless its tool returns text: some pages send it so."""
    if not isinstance(item, Result) or not isinstance(item.outcome, Success):
        return item
    text = item.outcome.output
    if not isinstance(text, str):
        return item
    call = next((each for each in calls if each.call_id == item.call_id), None)
    tool = None if call is None else await farhand.tool_of(call)
    if tool is None or tool.returns_text:
        return item
    value = json_or_text(text)
    if tool.output_schema is None and not isinstance(value, dict | list):
        # any object or nothing declared: a number or a word may well be meant as text
        return item
    return replace(item, outcome=Success(value))


def _concerns(item: Brought, call: Call) -> bool:
    if isinstance(item, Result):
        return item.call_id == call.call_id
    return call.approval is not None and item.approval_id == call.approval.approval_id


def _is_altered(bring: Bring, call: Call) -> bool:
    shown = bring.inputs.get(call.call_id)
    if shown is None:
        return False
    asked = call.approval.asked_input if call.approval is not None else None
    # a client may still show what the model wrote when the person has edited it since
    return all(canonical(shown) != canonical(stored) for stored in (call.input, asked or call.input))


def _is_at_rest(run: Run, calls: Iterable[Call]) -> bool:
    """Parked with questions open: nothing more happens until a person or a page answers.

    What a registered client runs is answered elsewhere: the response waits for it.
    """
    return run.parked and run.blockers > 0 and any(call.blocks and not _is_elsewhere(call) for call in calls)


def _is_elsewhere(call: Call) -> bool:
    return call.client_id is not None and call.phase is not Phase.ASKING


def _first_yes(told: Told, calls: Sequence[Call]) -> bool:
    """Whether this post says yes to a frontend tool for the first time, and brings no output for it."""
    said = {item.approval_id for item, got in told if isinstance(item, Reply) and isinstance(got, Accepted)}
    return any(call.approval and call.approval.approval_id in said for call in calls if may_run(call))


def _own_denials(told: Told, calls: Sequence[Call]) -> set[str]:
    """Calls to which this client said no, and which are denied."""
    said = {item.approval_id for item, got in told if isinstance(item, Reply) and not item.answer.approved}
    return {
        call.call_id
        for call in calls
        if call.approval and call.approval.approval_id in said and isinstance(call.outcome, Denied)
    }
