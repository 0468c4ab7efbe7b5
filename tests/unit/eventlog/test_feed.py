"""A feed is read past rows that this version cannot read."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.event import ClientRegistered
from farhand.eventlog import feed as feed_module
from farhand.eventlog.codec import encode_notice
from farhand.eventlog.feed import FeedReader
from farhand.eventlog.log import EventLog
from farhand.store.base import Store
from tests.unit.core.thread_log import ANN

NEWER = b'{"type":"odd"}'


async def test_many_entries_of_a_newer_version_do_not_hide_what_follows(
    store: Store, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "FEED_PAGE_SIZE", 2)
    for _ in range(5):
        await store.add_to_feed(ANN, NEWER)
    await store.add_to_feed(ANN, encode_notice(ClientRegistered("notes", ("read",))))
    with FeedReader(eventlog, ANN, 0) as reader:
        async with asyncio.timeout(10):
            page = await reader.next(60.0)
    assert page is not None
    assert [news.no for news in page] == [6]


async def test_an_entry_of_a_newer_version_is_logged_once_by_each_reader(
    store: Store, eventlog: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    await store.add_to_feed(ANN, NEWER)
    with FeedReader(eventlog, ANN, 0) as reader:
        for _ in range(3):
            assert await reader.next(0.001) == []
    assert caplog.text.count("skipping unreadable feed entries") == 1
