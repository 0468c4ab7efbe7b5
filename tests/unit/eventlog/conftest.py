"""An event log on every store."""

from __future__ import annotations

import pytest

from farhand.eventlog.log import EventLog
from farhand.store.base import Store
from tests.unit.eventlog.thread_story import ThreadStory


@pytest.fixture
def eventlog(store: Store) -> EventLog:
    return EventLog(store)


@pytest.fixture
def story(eventlog: EventLog) -> ThreadStory:
    return ThreadStory(eventlog)
