"""A store that fails on demand: it is away, it refuses some appends, or it keeps one and does not say so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from farhand.core.event import Event
from farhand.core.principal import Owner
from farhand.errors import StoreDown
from farhand.eventlog.codec import decode_body
from farhand.store.base import Append, AppendResult, Loaded, Row, Store


class Moods:
    """Stands between a store and who uses it. Events are named by their kinds."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_away = False
        self.refuses: type[Event] | None = None
        """Appends with an event of this kind are not written."""
        self.loses: type[Event] | None = None
        """The next append with an event of this kind is written, and its answer is lost."""
        self._refused = asyncio.Event()
        self._append, self._load = store.append, store.load
        monkeypatch.setattr(store, "append", self.append)
        monkeypatch.setattr(store, "load", self.load)

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        if self.is_away or _has(appends, self.refuses):
            raise self._down()
        results = await self._append(appends)
        if _has(appends, self.loses):
            self.loses = None
            raise self._down()
        return results

    async def load(self, owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        if self.is_away:
            raise self._down()
        return await self._load(owner, thread_id, after=after)

    async def has_lost(self) -> bool:
        return self.loses is None

    async def fails_somebody(self) -> None:
        """Until the next time that somebody asked without success."""
        self._refused.clear()
        async with asyncio.timeout(10):
            await self._refused.wait()

    def go_back(self) -> None:
        self.is_away, self.refuses = False, None

    def _down(self) -> StoreDown:
        self._refused.set()
        return StoreDown("The store is away.")


def events_of(append: Append) -> tuple[Event, ...]:
    return decode_body(Row(append.version + 1, append.at, append.body)).events if append.body else ()


def _has(appends: Sequence[Append], kind: type[Event] | None) -> bool:
    if kind is None:
        return False
    return any(isinstance(event, kind) for append in appends for event in events_of(append))
