"""The feeds of a memory store: what each owner is told, numbered without gaps."""

from __future__ import annotations

from msgspec import Struct, field

from farhand.core.event import Happening, News
from farhand.core.principal import Owner
from farhand.store.memory.undo import Undo
from farhand.store.told import Told


class Saying(Told):
    """A commit under way. `news` is what feeds get if it holds: to whom, what, of which thread and run."""

    news: list[tuple[Owner, Happening, str | None, str | None]] = field(default_factory=list)


class _Feed(Struct):
    news: list[News]
    last: int = 0
    """The number of the last one, also when that is not kept any more."""


class Feeds:
    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self._feeds: dict[Owner, _Feed] = {}

    def keep(self, told: Saying) -> None:
        """The commit holds."""
        for owner, event, thread_id, run_id in told.news:
            feed = self._feeds.get(owner)
            if feed is None:
                feed = self._feeds[owner] = _Feed([])
            feed.last += 1
            feed.news.append(News(feed.last, told.at, event, thread_id, run_id))
            told.feeds.add(owner)

    def forget(self, owner: Owner, thread_id: str, told: Saying) -> None:
        """All that was told of this thread; numbers go on where they were."""
        told.news = [each for each in told.news if (each[0], each[2]) != (owner, thread_id)]
        feed = self._feeds.get(owner)
        if feed is not None:
            kept = [news for news in feed.news if news.thread_id != thread_id]
            self._undo.set(self._feeds, owner, _Feed(kept, feed.last))

    def after(self, owner: Owner, no: int, limit: int) -> list[News]:
        feed = self._feeds.get(owner)
        return [] if feed is None else [news for news in feed.news if news.no > no][:limit]

    def span(self, owner: Owner) -> tuple[int, int]:
        feed = self._feeds.get(owner)
        if feed is None:
            return 1, 0
        return (feed.news[0].no if feed.news else feed.last + 1), feed.last

    def count_old(self, before: float) -> int:
        return sum(news.at < before for feed in self._feeds.values() for news in feed.news)

    def purge(self, before: float) -> None:
        for feed in self._feeds.values():
            feed.news = [news for news in feed.news if news.at >= before]
