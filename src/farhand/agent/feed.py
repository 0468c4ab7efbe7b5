"""Reads an owner's feed after a number, then live. The hub only says that there is more; the store has it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from farhand.core.event import News
from farhand.core.principal import Owner
from farhand.store.base import Store
from farhand.store.hub import feed_of

PAGE = 200


class FeedReader:
    """Use it as a context manager; `next()` gives what there is, in order."""

    def __init__(self, store: Store, owner: Owner, after: int) -> None:
        self.at = after
        self._left = False
        self._store = store
        self._owner = owner
        self._watch = store.hub.watch(feed_of(owner))

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, trace)

    def leave(self) -> None:
        """Ends a `next()` that is under way; every later one ends at once."""
        self._left = True
        self._watch.wake()

    async def next(self, seconds: float) -> list[News] | None:
        """What comes after `at`; an empty list when nothing came in time; None when the reader has left or
        this process is about to stop."""
        while not self._left:
            # before the look: what is told from here on is not overlooked
            self._watch.news.clear()
            page = await self._store.feed(self._owner, after=self.at, limit=PAGE)
            if page:
                self.at = page[-1].no
                return page
            if self._store.hub.closed:
                return None
            if not await self._watch.wait(min(seconds, self._store.hub.recheck)):
                return []
        return None
