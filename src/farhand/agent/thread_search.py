"""The chats of an owner that contain some words: in their titles, or in the person's messages.

Owns how far one request searches. There is no word index: threads are read one after the other, most recently
used first, and a search that has read enough of them says where to continue.
"""

from __future__ import annotations

from typing import NamedTuple

from farhand.core.principal import Owner
from farhand.core.thread import ListedThread, ThreadCursor, UserMessage, text_of
from farhand.errors import Unreadable
from farhand.eventlog.log import EventLog

THREADS_PER_SEARCH = 500
"""Threads per request."""
_AT_ONCE = 100


class Matches(NamedTuple):
    threads: list[ListedThread]
    following: ThreadCursor | None
    """Where the next request continues; None after the last thread."""


async def search_threads(
    log: EventLog, owner: Owner, words: str, *, limit: int, after: ThreadCursor | None = None
) -> Matches:
    """All of the words, anywhere, ignoring case."""
    wanted = words.casefold().split()
    found: list[ListedThread] = []
    for _ in range(THREADS_PER_SEARCH // _AT_ONCE):
        page = await log.threads_of(owner, limit=_AT_ONCE, after=after)
        for thread in page:
            if len(found) == limit:
                return Matches(found, after)
            if await _has(log, thread, wanted):
                found.append(thread)
            after = thread.cursor
        if len(page) < _AT_ONCE:
            return Matches(found, None)
    return Matches(found, after)


async def _has(log: EventLog, thread: ListedThread, wanted: list[str]) -> bool:
    title = thread.title.casefold()
    if all(word in title for word in wanted):
        return True
    try:
        messages = await log.messages(thread.owner, thread.thread_id)
    except Unreadable:
        # lists leave it out too
        return False
    said = "\n".join(
        [title, *(text_of(each).casefold() for each in messages if isinstance(each, UserMessage))]
    )
    return all(word in said for word in wanted)
