"""What is written to feeds beside the journals of runs, and how a feed is read."""

from __future__ import annotations

from farhand.store.base import Tell
from farhand.store.sqlite.draft import Draft
from farhand.store.sqlite.rows import encode
from farhand.store.sqlite.told import Told

FEED = """
    SELECT feed_no, feed.at, coalesce(events.body, feed.body) AS told,
           coalesce(threads.thread_id, feed.thread_id), run_id
    FROM feed
        LEFT JOIN events USING (run_no, seq)
        LEFT JOIN runs USING (run_no)
        LEFT JOIN threads USING (thread_no)
    WHERE feed.tenant = ? AND feed.subject = ? AND feed_no > ? AND told IS NOT NULL
    ORDER BY feed_no LIMIT ?
"""

FEED_SPAN = """
    SELECT coalesce((SELECT min(feed_no) FROM feed WHERE tenant = ?1 AND subject = ?2), 1),
           coalesce((SELECT max(feed_no) FROM feed WHERE tenant = ?1 AND subject = ?2), 0)
"""


def tell(draft: Draft, told: Told, write: Tell) -> None:
    """Has no guard."""
    owner = write.owner
    first = draft.next_feed_no(owner, len(write.events))
    draft.news += [
        (owner.tenant, owner.subject, no, told.at, write.thread_id, encode(event))
        for no, event in enumerate(write.events, first)
    ]
    told.feeds.add(owner)
