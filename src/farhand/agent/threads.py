"""Begins runs in threads: one at a time, one for each user message.

A message that was posted before starts nothing. A new one ends a run that waits, and is refused while one
works. An edited message, or the wish for another answer, cuts the thread first; tools that ran stay run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from farhand.agent.endings import MOVED_ON, end
from farhand.agent.kit import Kit
from farhand.agent.worker import Worker
from farhand.core.event import RunStarted
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import File, Message, Text, Thread, UserMessage, printable, text_of
from farhand.errors import Busy, Malformed, NotFound, TooMany
from farhand.store.base import (
    BindFiles,
    CutThread,
    InsertMessage,
    InsertRun,
    InsertThread,
    Stale,
    Write,
    WriteRun,
)

TITLE_CHARS = 80


class Place(Struct, frozen=True):
    """Whose thread."""

    owner: Owner
    thread_id: str


class Started(Struct, frozen=True):
    """The run that answers the message; `again` if the message was known already."""

    run: Run
    again: bool = False


async def start_run(
    kit: Kit,
    worker: Worker,
    place: Place,
    message: UserMessage,
    *,
    instead_of: str | None = None,
    hold_for: float,
) -> Started:
    """Answers a new message. With `instead_of`, it takes the place of that one and of all that came after.

    `TooMany` for an owner over its quota; but what was sent before begins nothing, and is answered as ever.
    """
    size = sum(len(part.text) for part in message.parts if isinstance(part, Text))
    try:
        async with kit.quotas.place(place.owner, place.thread_id, size):
            started = await _start_run(kit, worker, place, message, instead_of=instead_of, hold_for=hold_for)
        if started.again:
            kit.quotas.give_back(place.owner)
        return started
    except TooMany:
        again = None if instead_of else await _answered_before(kit, place, message)
        if again is None:
            raise
        return again


async def _start_run(
    kit: Kit, worker: Worker, place: Place, message: UserMessage, *, instead_of: str | None, hold_for: float
) -> Started:
    if instead_of == message.message_id and await _is_last_said(kit, place, message):
        # the same words in the same place bring nothing new
        instead_of = None
    while True:
        if instead_of is not None:
            await _free(kit, worker, place)
        cut = () if instead_of is None else (CutThread(place.owner, place.thread_id, instead_of),)
        said = InsertMessage(place.owner, place.thread_id, message)
        writes = (*cut, said, *_bound(place, message))
        started = await _begin(kit, worker, place, message, writes, hold_for=hold_for)
        if isinstance(started, Started):
            return started
        if isinstance(started.write, CutThread):
            raise NotFound("There is no such message in this thread.")
        last = await kit.store.last_run(place.owner, place.thread_id)
        if started.why == "exists" and last is not None:
            await _check_same_words(kit, place, message)
            return Started(last, again=True)
        await _free(kit, worker, place)


async def _answered_before(kit: Kit, place: Place, message: UserMessage) -> Started | None:
    """The run of the thread, if this message is in it already; None for a new one."""
    last = await kit.store.last_run(place.owner, place.thread_id)
    messages = await kit.store.messages(place.owner, place.thread_id)
    if last is None or all(each.message_id != message.message_id for each in messages):
        return None
    await _check_same_words(kit, place, message)
    return Started(last, again=True)


async def answer_again(
    kit: Kit, worker: Worker, place: Place, *, instead_of: str | None, hold_for: float
) -> Started:
    """Another answer to the user's message before this one (or before the last one). `TooMany` as above."""
    async with kit.quotas.place(place.owner, place.thread_id, 0):
        return await _answer_again(kit, worker, place, instead_of=instead_of, hold_for=hold_for)


async def _answer_again(
    kit: Kit, worker: Worker, place: Place, *, instead_of: str | None, hold_for: float
) -> Started:
    while True:
        await _free(kit, worker, place)
        messages = await kit.store.messages(place.owner, place.thread_id)
        first = _first_to_go(messages, instead_of)
        kept = messages[:first]
        asked = next((each for each in reversed(kept) if isinstance(each, UserMessage)), None)
        if asked is None:
            raise NotFound("There is no such message in this thread.")
        gone = messages[first].message_id if first < len(messages) else None
        cut = () if gone is None else (CutThread(place.owner, place.thread_id, gone),)
        started = await _begin(kit, worker, place, asked, cut, hold_for=hold_for)
        if isinstance(started, Started):
            return started


async def stop_run(kit: Kit, worker: Worker, run: Run, reason: str) -> bool:
    """True if this stopped it; False if it had ended already."""
    return await worker.uninterrupted(_end(kit, worker, run, reason))


async def _end(kit: Kit, worker: Worker, run: Run, reason: str) -> bool:
    is_whole = await worker.let_go(run)
    return await end(kit, run, reason, is_whole=is_whole)


async def _begin(
    kit: Kit, worker: Worker, place: Place, message: UserMessage, writes: Sequence[Write], *, hold_for: float
) -> Started | Stale:
    now = kit.store.now()
    run = Run(
        run_id=kit.clock.fresh("run"),
        owner=place.owner,
        thread_id=place.thread_id,
        started_at=now,
        hold_for=hold_for,
        lease_until=now + kit.lease_sec,
    )
    try:
        commit = await kit.store.commit(
            InsertThread(_thread(place, message, now)),
            *writes,
            InsertRun(run),
            WriteRun(run_id=run.run_id, events=(RunStarted(place.thread_id, message.message_id),)),
        )
    except asyncio.CancelledError:
        # whoever asked is gone, but the run may be stored by now, and somebody has to advance it
        worker.launch_if_stored(run)
        raise
    if isinstance(commit, Stale):
        return commit
    started = commit.runs[run.run_id]
    # a thread that begins with this commit holds what was said in it, and nothing else
    said = [each.message for each in writes if isinstance(each, InsertMessage)] if commit.begun else None
    worker.launch(started, hold_for=hold_for, said=said)
    return Started(started)


def _bound(place: Place, message: UserMessage) -> tuple[Write, ...]:
    """Files in the message go with the thread from now on."""
    refs = tuple([part.ref for part in message.parts if isinstance(part, File)])
    return (BindFiles(place.owner, place.thread_id, refs),) if refs else ()


async def _free(kit: Kit, worker: Worker, place: Place) -> None:
    """Leaves a waiting run behind; a working one is not interrupted by a message."""
    run = await kit.store.last_run(place.owner, place.thread_id)
    if run is None or not run.active:
        return
    if not run.waits:
        raise Busy(
            "The assistant is still working on the last message.",
            hint="Wait for its answer, or stop it (POST /api/chat/{id}/stop, or `agent.stop(thread)`).",
        )
    await worker.uninterrupted(_end(kit, worker, run, MOVED_ON))


async def _check_same_words(kit: Kit, place: Place, message: UserMessage) -> None:
    messages = await kit.store.messages(place.owner, place.thread_id)
    if all(each != message for each in messages):
        raise Malformed(
            "A message with this id was said before, in other words.",
            hint="Give a new message an id of its own; to change the old one, send its id as messageId, too.",
        )


async def _is_last_said(kit: Kit, place: Place, message: UserMessage) -> bool:
    messages = await kit.store.messages(place.owner, place.thread_id)
    return next((each for each in reversed(messages) if isinstance(each, UserMessage)), None) == message


def _first_to_go(messages: Sequence[Message], instead_of: str | None) -> int:
    """Where the answer begins that is to be replaced: a run by its id, or what follows a user's message."""
    answers = [index for index, each in enumerate(messages) if not isinstance(each, UserMessage)]
    if instead_of is None:
        last_said = max((i for i, each in enumerate(messages) if isinstance(each, UserMessage)), default=-1)
        return last_said + 1
    for index in answers:
        if getattr(messages[index], "run_id", None) == instead_of:
            return index
    for index, each in enumerate(messages):
        if isinstance(each, UserMessage) and each.message_id == instead_of:
            return index + 1
    raise NotFound("There is no such message in this thread.")


def _thread(place: Place, message: UserMessage, now: float) -> Thread:
    said = text_of(message) or ", ".join([part.name for part in message.parts if isinstance(part, File)])
    title = printable(said)[:TITLE_CHARS]
    return Thread(owner=place.owner, thread_id=place.thread_id, title=title, created_at=now, updated_at=now)
