"""Begins runs in threads: one at a time, one for each user message.

A message that was posted before starts nothing. A new one ends a run that waits, and is refused while one
works.
"""

from __future__ import annotations

from msgspec import Struct

from farhand.agent.endings import MOVED_ON, end
from farhand.agent.kit import Kit
from farhand.agent.park import FOREVER
from farhand.agent.worker import Worker
from farhand.core.event import RunStarted
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import Thread, UserMessage, text_of
from farhand.errors import Busy
from farhand.store.base import InsertMessage, InsertRun, InsertThread, Stale, WriteRun

TITLE_CHARS = 80


class Started(Struct, frozen=True):
    """The run that answers the message; `again` if the message was known already."""

    run: Run
    again: bool = False


async def start_run(
    kit: Kit, worker: Worker, owner: Owner, thread_id: str, message: UserMessage, *, hold_for: float
) -> Started:
    while True:
        run = _new_run(kit, owner, thread_id)
        commit = await kit.store.commit(
            InsertThread(_thread(kit, owner, thread_id, message)),
            InsertMessage(owner, thread_id, message),
            InsertRun(run),
            WriteRun(run_id=run.run_id, events=(RunStarted(thread_id, message.message_id),)),
        )
        if not isinstance(commit, Stale):
            started = commit.runs[run.run_id]
            worker.launch(started, hold_for=hold_for)
            return Started(started)
        last = await kit.store.last_run(owner, thread_id)
        if commit.why == "exists" and last is not None:
            return Started(last, again=True)
        if last is not None and last.active:
            await move_on(kit, worker, last)


async def move_on(kit: Kit, worker: Worker, run: Run) -> None:
    """Leaves a waiting run behind; a working one is not interrupted by a message."""
    if not run.waits:
        raise Busy(
            "The assistant is still working on the last message.",
            hint="Wait for its answer, or stop it with POST /api/chat/{id}/stop.",
        )
    await worker.let_go(run.run_id)
    await end(kit, run, MOVED_ON)


async def stop_run(kit: Kit, worker: Worker, run: Run, reason: str) -> bool:
    """True if this stopped it; False if it had ended already."""
    await worker.let_go(run.run_id)
    return await end(kit, run, reason)


def _new_run(kit: Kit, owner: Owner, thread_id: str) -> Run:
    now = kit.store.now()
    return Run(
        run_id=kit.clock.fresh("run"),
        owner=owner,
        thread_id=thread_id,
        started_at=now,
        lease_until=now + FOREVER,
    )


def _thread(kit: Kit, owner: Owner, thread_id: str, message: UserMessage) -> Thread:
    now = kit.store.now()
    title = " ".join(text_of(message).split())[:TITLE_CHARS]
    return Thread(owner=owner, thread_id=thread_id, title=title, created_at=now, updated_at=now)
