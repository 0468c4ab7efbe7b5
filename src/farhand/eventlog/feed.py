"""An owner's feed: what happened in all of the owner's threads, each entry with its own number."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from farhand.core.event import RunStarted
from farhand.core.position import News
from farhand.core.principal import Owner
from farhand.errors import StoreDown, Unreadable
from farhand.eventlog.codec import Body, decode_body, decode_notice
from farhand.eventlog.pubsub import STORE_RETRY_SEC, SubscribedReader, feed_topic
from farhand.store.base import FeedRow, Row, Store

if TYPE_CHECKING:
    from farhand.eventlog.log import EventLog

log = logging.getLogger("farhand.eventlog")

FEED_PAGE_SIZE = 200


def news_in(row: FeedRow) -> list[News]:
    """Its entries with their numbers; empty if another version wrote the row or a disk damaged it."""
    try:
        if row.version is None:
            return [News(row.no, row.at, decode_notice(row.body), row.thread_id)]
        return _of_body(row, decode_body(Row(row.version, row.at, row.body)))
    except Unreadable as error:
        log.warning("skipping unreadable feed entries up to number %d: %s", row.no, error)
        return []


def _of_body(row: FeedRow, body: Body) -> list[News]:
    found: list[News] = []
    current, no = body.run_id, row.no - row.count
    for place, event in enumerate(body.events):
        if isinstance(event, RunStarted):
            current = event.run_id
        if event.in_feed:
            no += 1
            run_id = None if place in body.outside else current
            found.append(News(no, row.at, event, row.thread_id, run_id))
    return found


async def read_feed(store: Store, owner: Owner, *, after: int, limit: int) -> tuple[list[News], int]:
    """The entries after this number, and the number up to which the feed was read: rows that this version
    cannot read have none."""
    rows = await store.feed(owner, after=after, limit=limit)
    news = [each for row in rows for each in news_in(row) if each.no > after]
    if len(news) > limit:
        return news[:limit], news[limit - 1].no
    return news, rows[-1].no if rows else after


class FeedReader(SubscribedReader):
    """Reads a feed after a number, then live. Use it as a context manager; `next()` returns the entries in
    order. A notification only says that there are more; the store has them."""

    def __init__(self, eventlog: EventLog, owner: Owner, after: int) -> None:
        super().__init__(eventlog.broker.subscribe(feed_topic(owner)))
        self.at = after
        self._log = eventlog
        self._owner = owner

    async def next(self, seconds: float) -> list[News] | None:
        """The entries after `at`; an empty list if none came in time; None if the reader has left, if this
        process is about to stop, or if the database has gone back in time: whoever connects again is told of
        the gap."""
        broker = self._log.broker
        while not self._is_left:
            # before the read, so that nothing published from here on is missed
            self._subscription.items.clear()
            pause, before = broker.recheck, self.at
            try:
                if self._subscription.is_stale and await self._is_ahead():
                    return None
                page, self.at = await read_feed(
                    self._log.store, self._owner, after=before, limit=FEED_PAGE_SIZE
                )
            except StoreDown as error:
                # an open stream stays open: its reader could not begin another one now
                log.debug("cannot read a feed yet: %s", error)
                page, pause = [], STORE_RETRY_SEC
            if page:
                return page
            if self.at > before:
                continue
            if broker.closed:
                return None
            if not await self._subscription.wait(min(seconds, pause)):
                return []
        return None

    async def _is_ahead(self) -> bool:
        """Whether the feed ends before the position. Asked once hints may have been lost, as they are when
        another database takes over."""
        _, last = await self._log.feed_span(self._owner)
        self._subscription.is_stale = False
        return self.at > last
