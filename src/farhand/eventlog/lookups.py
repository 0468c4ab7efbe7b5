"""The look-up rows of an append: how lists and finders see a thread after these events. Pure."""

from __future__ import annotations

from farhand.core.call import Call
from farhand.core.log import (
    ApprovalAnswered,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    Event,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    TakeRenewed,
)
from farhand.core.state import ThreadState
from farhand.store.log.base import ThreadRow

_OF_CALLS = (
    CallOpened,
    CallRejected,
    ApprovalAnswered,
    CallTaken,
    TakeRenewed,
    CallReleased,
    CallSettled,
)
IN_FEED = (
    RunStarted,
    CallOpened,
    CallRejected,
    ApprovalAnswered,
    CallTaken,
    CallReleased,
    CallSettled,
    RunParked,
    RunResumed,
    RunFinished,
    RunFailed,
)
"""What an owner's feed has: everything but what the model is writing."""


def thread_row(thread: ThreadState) -> ThreadRow:
    run = thread.run
    if run is None:
        return ThreadRow(title=thread.title, created_at=thread.created_at, updated_at=thread.updated_at)
    return ThreadRow(
        title=thread.title,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        run_id=run.run_id,
        run_state=run.state,
        run_started_at=run.started_at,
        is_parked=run.is_parked,
        is_blocked=run.is_active and any(call.blocks for call in thread.step_calls()),
    )


def changed_calls(thread: ThreadState, events: tuple[Event, ...]) -> tuple[Call, ...]:
    """The records of the calls that these events opened or moved; each once, as it is after all of them."""
    ids = dict.fromkeys([event.call_id for event in events if isinstance(event, _OF_CALLS)])
    return tuple([thread.calls[call_id] for call_id in ids if call_id in thread.calls])


def is_in_feed(events: tuple[Event, ...]) -> bool:
    return any(isinstance(event, IN_FEED) for event in events)
