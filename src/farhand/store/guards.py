"""Rules about appends and look-up rows that are the same in every backend. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import add, neg
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from farhand.core.call import Call, Phase
from farhand.core.decide.direct import needs_worker
from farhand.core.principal import Owner
from farhand.core.run import ENDED, Run, RunState
from farhand.store.base import Append, CallFilter, CallKey, Counted, FoundCall, Lookups, ThreadRow


def is_current(append: Append, version: int, last_at: float | None) -> bool:
    """Whether it was decided on the thread as it is: at this version, last appended to at this time."""
    return append.version == version and (append.last_at is None or append.last_at == last_at)


def is_in_time(append: Append, now: float) -> bool:
    is_late = append.not_after is not None and now >= append.not_after
    is_early = append.not_before is not None and now < append.not_before
    return not is_late and not is_early


def can_go_on(row: ThreadRow) -> bool:
    """Whether a worker may advance the run: not ended, and not parked for an answer."""
    return _is_active(row) and not (row.is_parked and row.run_state is RunState.WAITING)


def is_running(row: ThreadRow) -> bool:
    """Whether the run counts as active: not ended, and not waiting for a person or a far hand."""
    return _is_active(row) and row.run_state is not RunState.WAITING


def is_open(call: Call) -> bool:
    """Whether a worker may still have to work on it: not settled, or not reported yet."""
    return call.phase is not Phase.SETTLED or call.is_unreported


def has_key(call: Call) -> bool:
    """Whether a program has given the call a permanent name: no purge removes it."""
    return call.request is not None and call.request.key is not None


def is_wanted(which: CallFilter, found: FoundCall) -> bool:
    """Whether this call is open and passes the filter."""
    call = found.call
    if not is_open(call) or (which.owner is not None and found.owner != which.owner):
        return False
    if which.due_before is not None and (call.deadline is None or call.deadline >= which.due_before):
        return False
    return (
        (which.client_id is None or call.client_id == which.client_id)
        and not (which.needs_worker and not needs_worker(call))
        and not (which.is_client and call.client_id is None)
    )


def open_calls_condition(which: CallFilter, mark: Callable[[int], str]) -> tuple[str, list[object]]:
    """The same in SQL, with the order, and the values; `mark` formats a parameter by its number. Only column
    names become part of the SQL."""
    owner = which.owner
    values: list[object] = []
    where = ["calls.settled_at IS NULL"]
    for column, value in (
        ("calls.tenant =", None if owner is None else owner.tenant),
        ("calls.subject =", None if owner is None else owner.subject),
        ("calls.client_id =", which.client_id),
        ("calls.deadline <", which.due_before),
    ):
        if value is not None:
            values.append(value)
            where.append(f"{column} {mark(len(values))}")
    if which.needs_worker:
        where += ["calls.run_id IS NULL", "calls.needs_worker"]
    if which.is_client:
        where.append("calls.client_id IS NOT NULL")
    first = "opened_at" if which.due_before is None else "deadline"
    return f"WHERE {' AND '.join(where)} ORDER BY calls.{first}, calls.call_id", values


def sort_key(which: CallFilter, found: FoundCall) -> tuple[float, str]:
    """The sort key of a list of open calls."""
    call = found.call
    at = call.opened_at if which.due_before is None or call.deadline is None else call.deadline
    return at, call.call_id


def key_of(call: Call, kind: CallKey) -> str | None:
    match kind:
        case "call":
            return call.call_id
        case "approval":
            return None if call.approval is None else call.approval.approval_id
        case "request":
            return None if call.request is None else call.request.request_id


def is_call_kept(lookups: Lookups, call: Call) -> bool:
    """Whether no purge can have removed it."""
    row = lookups.thread
    is_of_active_run = row.kept_from is not None and row.run_id == call.run_id
    return is_of_active_run or call.settled_at is None or call.settled_at >= lookups.before


def is_run_kept(lookups: Lookups, run: Run) -> bool:
    return run.ended_at is None or run.ended_at >= lookups.before


def _is_active(row: ThreadRow) -> bool:
    return row.run_state is not None and row.run_state not in ENDED


V = TypeVar("V")


class Difference(Struct, Generic[V], frozen=True):
    """`put` replaces the rows with these ids; `drop` are rows that are not in the log."""

    put: dict[str, V]
    drop: list[str]

    def __len__(self) -> int:
        return len(self.put) + len(self.drop)


def difference(
    stored: Mapping[str, V],
    wanted: Mapping[str, V],
    *,
    kept: Collection[str],
    still_open: Collection[str],
    is_whole: bool,
) -> Difference[V]:
    """Compares rows by id. `kept` are the wanted ones that no purge can have removed, `still_open` the stored
    ones that claim not to have ended: every such row is in the log."""
    put = {
        key: row for key, row in wanted.items() if (key in stored or key in kept) and stored.get(key) != row
    }
    drop = [key for key in stored if key not in wanted and (is_whole or key in still_open)]
    return Difference(put, drop)


Key: TypeAlias = tuple[str, str | None]
"""A tenant, and one of its subjects; None: all of them."""
Counts: TypeAlias = tuple[int, ...]
"""Threads, active runs, open calls, bytes; or the changes of each."""

_PLACES: dict[Counted, int] = {"threads": 0, "running": 1, "open_calls": 2, "bytes": 3}
_NOTHING: Counts = (0, 0, 0, 0)


class Totals:
    def __init__(self) -> None:
        self._counts: dict[Key, Counts] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def get(self, what: Counted, tenant: str, subject: str | None = None) -> int:
        return self._counts.get((tenant, subject), _NOTHING)[_PLACES[what]]

    def add(
        self, owner: Owner, *, threads: int = 0, running: int = 0, open_calls: int = 0, size: int = 0
    ) -> None:
        self.add_counts(owner, (threads, running, open_calls, size))

    def subtract_counts(self, owner: Owner, less: Counts) -> None:
        self.add_counts(owner, tuple(map(neg, less)))

    def add_counts(self, owner: Owner, more: Counts) -> None:
        counts, tenant = self._counts, owner.tenant
        for key in ((tenant, owner.subject), (tenant, None)):
            has = tuple(map(add, counts.get(key, _NOTHING), more))
            if has == _NOTHING:
                # a subject without anything takes no memory
                counts.pop(key, None)
            else:
                counts[key] = has
