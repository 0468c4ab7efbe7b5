"""What this process saw outside the log: readers that came and went, and answers that changed nothing.

For the Inspector only, in memory and bounded: the log does not need it, and a restart clears it. With several
workers, each has its own part.
"""

from __future__ import annotations

from collections import OrderedDict
from types import TracebackType
from typing import Literal, Self, TypeAlias

from msgspec import Struct

from farhand.calls.desk import Submission
from farhand.core.decide.calls import Reply
from farhand.core.position import START, Position
from farhand.core.result import Conflict, Receipt, Repeated
from farhand.core.run import Run
from farhand.eventlog.log import EventLog
from farhand.eventlog.reader import LogReader

MOST_KEPT = 500
"""Runs and calls that are remembered, most recently used first."""
MOST_EACH = 50

Seen: TypeAlias = Literal["joined", "left", "repeat", "conflict"]


class Observation(Struct, frozen=True):
    """`readers` is the number of the run's readers afterwards."""

    at: float
    seen: Seen
    readers: int = 0


class Observations:
    def __init__(self, eventlog: EventLog) -> None:
        self._log = eventlog
        self._kept: OrderedDict[str, list[Observation]] = OrderedDict()

    def of(self, *names: str) -> list[Observation]:
        """By the id of a run, a call or an approval, in order of time."""
        return sorted((each for name in names for each in self._kept.get(name, ())), key=lambda each: each.at)

    def reader(self, run: Run, after: Position = START) -> LogReader:
        return _ObservedReader(self, self._log, run, after)

    def note_reader(self, run_id: str, seen: Literal["joined", "left"]) -> None:
        self._note(run_id, seen, readers=self._log.broker.count(run_id))

    def note_receipt(self, item: Submission, receipt: Receipt) -> None:
        """Notes a result that was sent again, or an answer that differs from the accepted one."""
        name = item.approval_id if isinstance(item, Reply) else item.call_id
        if isinstance(receipt, Conflict):
            self._note(name, "conflict")
        # AI SDK pages send the answers to approvals again with every post: not worth an observation
        elif isinstance(receipt, Repeated) and not isinstance(item, Reply):
            self._note(name, "repeat")

    def _note(self, name: str, seen: Seen, *, readers: int = 0) -> None:
        noted = self._kept.setdefault(name, [])
        self._kept.move_to_end(name)
        if len(noted) < MOST_EACH:
            noted.append(Observation(self._log.now(), seen, readers))
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


class _ObservedReader(LogReader):
    __slots__ = ("_observations", "_run_id")

    def __init__(self, observations: Observations, eventlog: EventLog, run: Run, after: Position) -> None:
        super().__init__(eventlog, run, after)
        self._observations = observations
        self._run_id = run.run_id

    def __enter__(self) -> Self:
        super().__enter__()
        self._observations.note_reader(self._run_id, "joined")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._observations.note_reader(self._run_id, "left")
