"""The agent of the fault runs, in a server that kills itself at one of its appends to the log.

A server that finds the file `crash` in its room, with its own process id, counts its appends from then on and
dies at the one that the file names: right `after` it returned, before anybody is answered or told; or right
`before` it is made, when all that came of the append before it has happened. What it was about goes into
`crashed` first.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, json

from farhand.core.event import CallStep
from farhand.eventlog.codec import decode_body
from farhand.store.base import Append, Appended, AppendResult, Row
from farhand.store.postgres.store import PostgresStore
from farhand.store.sqlite.store import SqliteStore
from tests.chaos.storm.agent import agent

__all__ = ["agent"]

Stored = Callable[..., Awaitable[list[AppendResult]]]


class Order(Struct, frozen=True):
    """`number` counts from the moment the order was given; with a `kind`, only appends with such an event."""

    pid: int
    when: Literal["before", "after"]
    number: int
    kind: str = ""

    def counts(self, appends: Sequence[Append]) -> bool:
        kinds = _crashed(appends, is_stored=False).kinds
        return self.kind in kinds if self.kind else bool(kinds)


class Crashed(Struct, frozen=True):
    """What the append was about, stored if it was made: the kinds of its events, and the calls that they
    moved."""

    is_stored: bool
    kinds: list[str]
    moves: list[tuple[str, str]]


class _Trap:
    def __init__(self) -> None:
        self._order: Order | None = None
        self._seen = 0

    def count(self, appends: Sequence[Append]) -> None:
        order = self._read()
        if order != self._order:
            self._order, self._seen = order, 0
        self._seen += order is not None and order.counts(appends)

    def spring(
        self, when: Literal["before", "after"], appends: Sequence[Append], about: Sequence[Append]
    ) -> None:
        order = self._order
        if order is None or not order.counts(appends):
            return
        if (order.pid, order.when, order.number) == (os.getpid(), when, self._seen):
            crashed = _crashed(about, is_stored=when == "after")
            (_room() / "crashed").write_bytes(json.encode(crashed))
            os.kill(os.getpid(), signal.SIGKILL)

    def _read(self) -> Order | None:
        if "TEST_ROOM" not in os.environ:
            # the process of the test, which reads the same store when all is over
            return None
        path = _room() / "crash"
        return json.decode(path.read_bytes(), type=Order) if path.exists() else None


def _crashed(appends: Sequence[Append], *, is_stored: bool) -> Crashed:
    rows = [Row(each.version + 1, each.at, each.body) for each in appends if each.body]
    events = [event for row in rows for event in decode_body(row).events]
    moves = [(event.call_id, type(event).__name__) for event in events if isinstance(event, CallStep)]
    return Crashed(is_stored, [type(event).__name__ for event in events], moves)


def _room() -> Path:
    return Path(os.environ["TEST_ROOM"])


def armed(append: Stored) -> Stored:
    async def append_or_die(store: object, appends: Sequence[Append]) -> list[AppendResult]:
        trap.count(appends)
        trap.spring("before", appends, appends)
        results = await append(store, appends)
        # another worker's append may have come first: then nothing of this one is there
        stored = [each for each, told in zip(appends, results, strict=True) if isinstance(told, Appended)]
        trap.spring("after", appends, stored)
        return results

    return append_or_die


trap = _Trap()
# the process of the test imports this file, too, and its stores stay as they are; servers are forked from a
# process that has imported it before their room is known
if "pytest" not in sys.modules:
    setattr(SqliteStore, "append", armed(SqliteStore.append))  # noqa: B010
    setattr(PostgresStore, "append", armed(PostgresStore.append))  # noqa: B010
