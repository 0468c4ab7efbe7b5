"""What a write does to a run, and whether a call may change: the same for every backend that decides here.

Pure. An answer that is a `Why` means: the guard does not hold.
"""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.run import ENDED, Run, RunState
from farhand.store.base import ClaimRun, ParkRun, SwapCall, When, Why, WriteRun

ARRIVING_SEC = 3600.0
"""A file that is not complete though its last piece is older than this never will be: its sender is gone."""


def why_not_swap(write: SwapCall, *, version: int, deadline: float | None, now: float) -> Why | None:
    """Judged by what is stored, never by what the writer believes."""
    if version != write.before.version:
        return "version"
    late = deadline is not None and deadline <= now
    if late and write.when is When.IN_TIME:
        return "overdue"
    if not late and write.when is When.OVERDUE:
        return "in_time"
    return None


def claimed(run: Run, write: ClaimRun, now: float) -> Run | Why:
    if not run.active:
        return "ended"
    if write.seen is not None and write.seen.fence != run.fence:
        return "fence"
    if write.seen is not None and write.seen.last_seq != run.last_seq:
        return "grown"
    if not write.by_force and not run.parked and run.lease_until > now:
        return "held"
    lease_until = now + write.lease_sec
    return replace(run, fence=run.fence + 1, lease_until=lease_until, parked=False, state=RunState.RUNNING)


def changed(run: Run, write: WriteRun, now: float) -> Run | Why:
    """With its events counted: writing them is the store's."""
    only_appends = (
        write.state is None and write.step is None and write.error is None and write.lease_sec is None
    )
    if write.fence != run.fence and not (write.fence is None and only_appends):
        return "fence"
    last_seq = run.last_seq + len(write.events)
    if only_appends:
        return replace(run, last_seq=last_seq)
    state = write.state or run.state
    ended = state in ENDED
    lease_until = run.lease_until if write.lease_sec is None else now + write.lease_sec
    return replace(
        run,
        state=state,
        step=run.step if write.step is None else write.step,
        error=write.error or run.error,
        ended_at=now if ended and run.ended_at is None else run.ended_at,
        lease_until=0.0 if ended else lease_until,
        last_seq=last_seq,
    )


def parked(run: Run, write: ParkRun) -> Run | Why:
    if write.fence != run.fence:
        return "fence"
    if run.blockers == 0:
        return "nothing_open"
    return replace(run, state=RunState.WAITING, parked=True, lease_until=0.0, last_seq=run.last_seq + 1)


def is_stray(run: Run, now: float) -> bool:
    """Nobody advances it, though it could go on."""
    return run.active and (run.could_go_on if run.parked else run.lease_until <= now)
