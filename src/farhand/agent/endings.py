"""Ends a run from outside: stopped by its user, left behind by a new message, or broken.

Ending is taking the run away: a claim by force makes every write of the former holder stale, then the open
calls, their results in the thread and the run's end are written together.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TypeVar

from msgspec.structs import replace

from farhand.agent.history import cut_step, open_step, results_of
from farhand.agent.kit import Kit
from farhand.core.call import Call, Phase
from farhand.core.event import Event, RunFailed, RunFinished, RunResumed, StepFinished
from farhand.core.run import Run, RunState
from farhand.core.thread import Message
from farhand.errors import Unreadable
from farhand.store.base import ClaimRun, Commit, Committed, InsertMessage, Stale, WriteRun

log = logging.getLogger("farhand.runs")

R = TypeVar("R")

STOPPED_BY_USER = "stopped by the user"
MOVED_ON = "the user moved on"
ABORTED = "aborted by the user"
DELETED = "the chat was deleted"


async def end(kit: Kit, run: Run, reason: str, *, is_whole: bool = True) -> bool:
    """True if this ended the run; False if it had ended already. One is not `is_whole` if its holder may have
    told words that were never stored: whoever heard them stands nowhere."""
    claim = await _take_away(kit, run, is_whole=is_whole)
    if isinstance(claim, Stale):
        return False
    last = RunFinished(RunState.STOPPED, reason, heard=True)
    return await _end(kit, claim.runs[run.run_id], reason, last)


async def break_off(kit: Kit, run: Run, failed: RunFailed) -> bool:
    """For its holder: a run that cannot go on ends, with a thread that a model can still be asked with."""
    return await _end(kit, run, "the run failed", failed)


async def break_off_by_force(kit: Kit, run: Run, failed: RunFailed) -> bool:
    """The same for a run that nobody could begin to advance."""
    claim = await _take_away(kit, run, is_whole=run.parked)
    return isinstance(claim, Committed) and await break_off(kit, claim.runs[run.run_id], failed)


async def _take_away(kit: Kit, run: Run, *, is_whole: bool) -> Commit:
    lost = () if is_whole else (WriteRun(run_id=run.run_id, events=(RunResumed(taken_over=True),)),)
    return await kit.store.commit(ClaimRun(run.run_id, kit.lease_sec, by_force=True), *lost)


async def _end(kit: Kit, run: Run, reason: str, last: RunFinished | RunFailed) -> bool:
    try:
        return await _end_in_full(kit, run, reason, last)
    except Unreadable as error:
        # what it wrote or asked for makes no sense any more: it must not keep its thread for ever
        log.error("run %s ends without its last words: %s", run.run_id, error)
        return isinstance(await kit.store.commit(_ended(run, (last,))), Committed)


async def _end_in_full(kit: Kit, run: Run, reason: str, last: RunFinished | RunFailed) -> bool:
    while True:
        calls = await _read(kit.store.calls_of(run.owner, run.run_id))
        messages, events = await _last_words(kit, run, calls, reason)
        inserts = [InsertMessage(run.owner, run.thread_id, message) for message in messages]
        open_calls = [call for call in calls if call.phase is not Phase.SETTLED]
        commit = await kit.desk.cancel(open_calls, reason, *inserts, _ended(run, (*events, last)))
        if isinstance(commit, Committed):
            return True
        if commit.why in ("fence", "missing"):
            return False


def _ended(run: Run, events: tuple[Event, ...]) -> WriteRun:
    ended = WriteRun(run_id=run.run_id, fence=run.fence, events=events, state=RunState.STOPPED)
    last = events[-1]
    return replace(ended, state=RunState.FAILED, error=last.message) if isinstance(last, RunFailed) else ended


async def _last_words(
    kit: Kit, run: Run, calls: list[Call], reason: str
) -> tuple[list[Message], tuple[Event, ...]]:
    """What completes the thread: results for the open step, or the text of a step cut in mid-word."""
    step = open_step(await _read(kit.store.messages(run.owner, run.thread_id)), run.run_id)
    results: list[Message] = [results_of(step, calls, reason)] if step is not None else []
    cut = cut_step(await _read(kit.store.events(run.owner, run.run_id, limit=100_000)), run)
    if cut is None:
        return results, ()
    return [*results, cut], (StepFinished(cut.step, "stopped"),)


async def _read(records: Awaitable[list[R]]) -> list[R]:
    """None of them, if one makes no sense: a run must come to its end all the same."""
    try:
        return await records
    except Unreadable:
        return []
