"""Searches every order in which two workers can decide and append.

The world is a log, a clock that passes the deadline once, and actors that work through a worker each. An
actor decides on what its worker has seen of the log, which may be old, then appends at that version: if the
thread has moved on, it decides again. Between any two of these steps any other actor may act, the deadline
may pass, and the first worker may be killed. Knows of a store only that an append at a passed version, or out
of its time, writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import msgspec

from farhand.core import fold
from farhand.core.decide.decision import Decision
from farhand.core.event import Event
from farhand.core.state import ThreadState
from tests.unit.core.thread_log import ANN

_decoder = msgspec.json.Decoder(tuple[Event, ...])
Rows = tuple[tuple[float, bytes], ...]
Command = Callable[[ThreadState, float], Decision[object]]


@cache
def state_of(rows: Rows) -> ThreadState:
    """Never changed by whoever gets it: decisions only read."""
    thread = ThreadState(owner=ANN, thread_id="t1")
    for at, body in rows:
        fold.append(thread, _decoder.decode(body), at)
    return thread


def events_of(rows: Rows) -> list[Event]:
    return [event for _, body in rows for event in _decoder.decode(body)]


@dataclass(frozen=True)
class Act:
    """One thing an actor does. `command` is decided and appended; `effect` is what it does to the outside."""

    name: str
    command: Callable[[dict[str, object]], Command] | None = None
    effect: str = ""
    unless: Callable[[object], bool] = lambda answer: False
    """An answer after which the actor goes home instead of on to its next act."""


@dataclass(frozen=True)
class Actor:
    name: str
    worker: int
    acts: tuple[Act, ...]


@dataclass(frozen=True)
class Place:
    """How far one actor is: its next act, the version and the time it decided on, and what it was told."""

    act: int = 0
    decided_on: int | None = None
    decided_at: float = 0.0
    told: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True)
class World:
    rows: Rows
    places: tuple[Place, ...]
    seen: tuple[int, ...]
    is_late: bool = False
    dead: frozenset[int] = frozenset()
    effects: tuple[str, ...] = ()
    written_late: frozenset[str] = frozenset()
    """The acts that wrote something after the deadline."""

    @property
    def thread(self) -> ThreadState:
        return state_of(self.rows)

    def now(self) -> float:
        return LATE if self.is_late else EARLY

    def told(self, name: str) -> list[object]:
        return [answer for place in self.places for act, answer in place.told if act == name]


EARLY, LATE = 1_000.0, 2_000_000.0
"""Before and after every deadline."""


class Search:
    def __init__(self, actors: tuple[Actor, ...], *, kills: bool = False, time_passes: bool = False) -> None:
        self.actors = actors
        self._kills = kills
        self._time_passes = time_passes

    def ends(self, start: Rows) -> Iterator[World]:
        """Every world in which nobody has anything left to do; each state of the world is looked at once."""
        workers = 1 + max(actor.worker for actor in self.actors)
        first = World(start, tuple(Place() for _ in self.actors), (len(start),) * workers)
        known, waiting = {first}, [first]
        while waiting:
            world = waiting.pop()
            following = list(self._next(world))
            if not any(self._can_act(world, number) for number in range(len(self.actors))):
                yield world
            for each in following:
                if each not in known:
                    known.add(each)
                    waiting.append(each)

    def _next(self, world: World) -> Iterator[World]:
        if self._time_passes and not world.is_late:
            yield replace(world, is_late=True)
        if self._kills and 0 not in world.dead:
            yield replace(world, dead=world.dead | {0})
        for number in range(len(self.actors)):
            if self._can_act(world, number):
                yield from self._act(world, number)

    def _can_act(self, world: World, number: int) -> bool:
        actor, place = self.actors[number], world.places[number]
        return place.act < len(actor.acts) and actor.worker not in world.dead

    def _act(self, world: World, number: int) -> Iterator[World]:
        actor, place = self.actors[number], world.places[number]
        act = actor.acts[place.act]
        if act.command is None:
            gone_on = _at(world, number, replace(place, act=place.act + 1))
            yield replace(gone_on, effects=(*world.effects, act.effect))
        elif place.decided_on is None:
            # a worker decides on what it has seen, or on anything newer
            for version in range(world.seen[actor.worker], len(world.rows) + 1):
                yield _at(world, number, replace(place, decided_on=version, decided_at=world.now()))
        else:
            yield self._append(world, number, act)

    def _append(self, world: World, number: int, act: Act) -> World:
        actor, place = self.actors[number], world.places[number]
        assert act.command is not None
        assert place.decided_on is not None
        seen = _seen(world, actor.worker)
        if place.decided_on != len(world.rows):
            # an answer without events is confirmed by a look at the log, too
            return _at(seen, number, replace(place, decided_on=None))
        decision = act.command(dict(place.told))(world.thread, place.decided_at)
        if not _is_in_time(decision, world.now()):
            return _at(seen, number, replace(place, decided_on=None))
        rows = world.rows
        if decision.events:
            rows = (*rows, (place.decided_at, msgspec.json.encode(decision.events)))
        told = (*place.told, (act.name, decision.answer))
        following = len(actor.acts) if act.unless(decision.answer) else place.act + 1
        late = {act.name} if decision.events and world.is_late else set()
        after = replace(seen, rows=rows, written_late=world.written_late | late)
        return _at(after, number, Place(following, told=told))


def _is_in_time(decision: Decision[object], now: float) -> bool:
    """By the clock of the store, when it writes: the deadline may have passed since the decision."""
    is_late = decision.not_after is not None and now >= decision.not_after
    is_early = decision.not_before is not None and now < decision.not_before
    return not is_late and not is_early


def _at(world: World, number: int, place: Place) -> World:
    places = (*world.places[:number], place, *world.places[number + 1 :])
    return replace(world, places=places)


def _seen(world: World, worker: int) -> World:
    seen = (*world.seen[:worker], len(world.rows), *world.seen[worker + 1 :])
    return replace(world, seen=seen)
