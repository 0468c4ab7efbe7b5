"""The smallest possible store: appends at a version, through JSON, and a state that is their fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from farhand.core import fold
from farhand.core.decide.decision import Decision
from farhand.core.event import Event
from farhand.core.principal import Owner
from farhand.core.state import ThreadState

ANN = Owner("acme", "ann")

T = TypeVar("T")
Command = Callable[[ThreadState, float], Decision[T]]

_decoder = msgspec.json.Decoder(tuple[Event, ...])


class Log:
    def __init__(self) -> None:
        self.now = 1000.0
        self.rows: list[tuple[float, bytes]] = []
        self.state = ThreadState(owner=ANN, thread_id="t1")

    def do(self, command: Command[T]) -> T:
        decision = command(self.state, self.now)
        assert self.append(self.state.version, decision)
        return decision.answer

    def race(self, first: Command[T], second: Command[T]) -> tuple[T, T]:
        """Both are decided on the same state; the second is decided again."""
        version = self.state.version
        winner, loser = first(self.state, self.now), second(self.state, self.now)
        assert self.append(version, winner)
        if winner.events:
            assert not loser.events or not self.append(version, loser)
            loser = second(self.state, self.now)
            version += 1
        assert self.append(version, loser)
        return winner.answer, loser.answer

    def append(self, version: int, decision: Decision[T]) -> bool:
        if decision.events and version != self.state.version:
            return False
        assert decision.not_after is None or self.now < decision.not_after
        assert decision.not_before is None or self.now >= decision.not_before
        if decision.events:
            body = msgspec.json.encode(decision.events)
            self.rows.append((self.now, body))
            fold.append(self.state, _decoder.decode(body), self.now)
        return True

    def read_again(self) -> ThreadState:
        state = ThreadState(owner=ANN, thread_id="t1")
        for at, body in self.rows:
            fold.append(state, _decoder.decode(body), at)
        return state

    def events(self) -> list[Event]:
        return [event for _, body in self.rows for event in _decoder.decode(body)]
