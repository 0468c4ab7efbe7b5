"""What a request is answered with: which run, from where on, and what is said before it. Knows no bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.answers import Pause, Reaction, answer_pause
from farhand.agent.attachments import say
from farhand.agent.farhand import Farhand
from farhand.calls.change import Reply
from farhand.core.call import Call
from farhand.core.event import START, Position, RunParked, parse_bookmark
from farhand.core.principal import Owner, Principal
from farhand.core.result import Accepted, Receipt, Refused, Result
from farhand.core.run import Run
from farhand.core.settings import Limits
from farhand.core.thread import UserMessage, text_of
from farhand.errors import NotAllowed, NotFound
from farhand.faces.awaiting.decode import Prompt, Results, pause_meant, reactions_of, unapproved
from farhand.faces.awaiting.encode import Opening
from farhand.faces.awaiting.shapes import Format, MetaInit
from farhand.faces.base import check_words

EVERYTHING = Position(0, 1)
"""Before the first event, and not the start: a replay leaves out what a crash cut short, and a reader who
comes back may have seen it."""


class Exchange(Struct, frozen=True):
    """`start` is where the journal is read from; what the reader has of it is the opening's to say."""

    run: Run
    opening: Opening
    start: Position = START


class Refusing(Struct, frozen=True):
    """Nothing of a post was accepted."""

    call_ids: Sequence[str]
    receipts: Sequence[Receipt]


Answer: TypeAlias = Exchange | Refusing


async def begin(farhand: Farhand, owner: Owner, prompt: Prompt, formatter: Format) -> Exchange:
    """A new message of the user, in a thread that is known or in a new one."""
    fresh = farhand.clock.fresh
    thread_id = prompt.thread_id
    if thread_id is None:
        thread_id = str(UUID(hex=fresh("thr")[-32:], version=4))
    elif await farhand.thread(owner, thread_id) is None:
        raise NotFound("There is no such agent_uuid.", hint="Leave it out to begin a new conversation.")
    message = await say(farhand.files, owner, thread_id, message_id=fresh("msg"), said=prompt.said)
    started = await farhand.start(owner, thread_id, message, hold_for=0.0)
    meta = MetaInit(formatter, text_of(message), thread_id, farhand.spec.model.name)
    return Exchange(started.run, Opening(run_id=started.run.run_id, meta=meta))


async def answer(farhand: Farhand, principal: Principal, results: Results, formatter: Format) -> Answer:
    """All that a pause asked for, taken together: the run goes on, or nothing has changed."""
    owner = principal.owner
    now = await farhand.pause(owner, results.thread_id)
    pause = pause_meant(results, now, await _known(farhand, owner, results))
    missing = unapproved(results, pause)
    if missing:
        return Refusing(missing, [Refused("not_approved")] * len(missing))
    texts = [call.call_id for call in pause.calls if await farhand.returns_text(call)]
    reactions = reactions_of(results, pause, texts)
    _check_allowed(principal, reactions, farhand.settings.limits)
    after = await _last_pause(farhand, pause.run)
    receipts = await _apply(farhand, pause, reactions)
    told = list(zip(results.call_ids, receipts, strict=True))
    ignored = tuple(call_id for call_id, receipt in told if not isinstance(receipt, Accepted))
    if len(ignored) == len(told):
        return Refusing(results.call_ids, receipts)
    run = await farhand.last_run(owner, results.thread_id)
    past = run.last_seq if run.run_id == pause.run.run_id else 0
    meta = await _meta(farhand, pause.run, formatter)
    opening = Opening(run_id=pause.run.run_id, meta=meta, after=after, past=past, ignored=ignored)
    return Exchange(pause.run, opening, EVERYTHING)


async def resume(
    farhand: Farhand, owner: Owner, thread_id: str, formatter: Format, last_event_id: str | None
) -> Exchange:
    """The rest of the current run after what the reader has; all of it if that is nothing, or not known."""
    run = await farhand.last_run(owner, thread_id)
    meta = await _meta(farhand, run, formatter)
    opening = Opening(run_id=run.run_id, meta=meta, past=run.last_seq)
    if last_event_id is None:
        return Exchange(run, opening)
    bookmark = parse_bookmark(last_event_id)
    is_here = bookmark is not None and bookmark.is_in(run.run_id)
    if bookmark is None or not is_here or not await farhand.knows(run, bookmark.position):
        return Exchange(run, replace(opening, gap=last_event_id[:_SHOWN]))
    position = bookmark.position
    return Exchange(run, replace(opening, after=position), START if position == START else EVERYTHING)


_SHOWN = 64


async def _known(farhand: Farhand, owner: Owner, results: Results) -> list[Call]:
    """The calls of this thread among those that were answered."""
    found = [await farhand.call_of(owner, call_id) for call_id in dict.fromkeys(results.call_ids)]
    return [call for call in found if call is not None and call.thread_id == results.thread_id]


async def _apply(farhand: Farhand, pause: Pause, reactions: Sequence[Reaction]) -> list[Receipt]:
    if pause.open:
        # its next pause ends a response, too: nobody keeps a stream open for it
        farhand.worker.prefer(pause.run.run_id, hold_for=0.0)
    return await answer_pause(farhand.desk, pause, reactions)


async def _last_pause(farhand: Farhand, run: Run) -> Position:
    """Where the response before this one ended; what was told since on no response here comes first."""
    found = Position(run.last_seq)
    with farhand.read(run, EVERYTHING) as reader:
        while reader.at.seq < run.last_seq and (entries := await reader.next(0.0)):
            parked = [each.end for each in entries if isinstance(each.event, RunParked)]
            found = parked[-1] if parked else found
    return found


async def _meta(farhand: Farhand, run: Run, formatter: Format) -> MetaInit:
    messages = await farhand.messages(run.owner, run.thread_id)
    said = [text_of(message) for message in messages if isinstance(message, UserMessage)]
    return MetaInit(formatter, said[-1] if said else "", run.thread_id, farhand.spec.model.name)


def _check_allowed(principal: Principal, reactions: Sequence[Reaction], limits: Limits) -> None:
    for reaction in reactions:
        if reaction.answer is not None:
            if "approve" not in principal.scopes:
                raise NotAllowed("You may bring results, but not say yes or no.", hint="Nothing was applied.")
            check_words(Reply("", reaction.answer), limits)
        if reaction.outcome is not None:
            check_words(Result(call_id=reaction.call_id, outcome=reaction.outcome), limits)
