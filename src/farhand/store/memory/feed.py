"""The feeds of a memory store: what each owner is told, numbered without gaps."""

from __future__ import annotations

from collections.abc import Iterable

from farhand.core.event import TOLD, Event, Happening, News
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.store.memory.undo import Undo

_TOLD = frozenset(TOLD)


class Feeds:
    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self._news: dict[Owner, list[News]] = {}
        self._last: dict[Owner, int] = {}

    def tell(
        self,
        owner: Owner,
        events: Iterable[Happening],
        at: float,
        thread_id: str | None,
        run_id: str | None = None,
    ) -> None:
        first = self._last.get(owner, 0) + 1
        added = [News(no, at, event, thread_id, run_id) for no, event in enumerate(events, first)]
        self._undo.extend(self._news.setdefault(owner, []), added)
        self._undo.set(self._last, owner, first - 1 + len(added))

    def tell_run(self, run: Run, events: Iterable[Event], at: float) -> bool:
        """True if there was something worth telling among them."""
        told = [event for event in events if type(event) in _TOLD]
        if told:
            self.tell(run.owner, told, at, run.thread_id, run.run_id)
        return bool(told)

    def forget(self, owner: Owner, thread_id: str) -> None:
        """All that was told of this thread; numbers go on where they were."""
        kept = [news for news in self._news.get(owner, ()) if news.thread_id != thread_id]
        self._undo.set(self._news, owner, kept)

    def after(self, owner: Owner, no: int, limit: int) -> list[News]:
        return [news for news in self._news.get(owner, ()) if news.no > no][:limit]

    def span(self, owner: Owner) -> tuple[int, int]:
        kept, last = self._news.get(owner), self._last.get(owner, 0)
        return (kept[0].no if kept else last + 1), last

    def count_old(self, before: float) -> int:
        return sum(each.at < before for news in self._news.values() for each in news)

    def purge(self, before: float) -> None:
        for owner, news in self._news.items():
            self._news[owner] = [each for each in news if each.at >= before]
