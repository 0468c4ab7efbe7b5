"""Removes what has been kept for long enough, a slice at a time. Threads and messages stay."""

from __future__ import annotations

import sqlite3

from farhand.store.base import Old
from farhand.store.sqlite.file import StoreFile
from farhand.store.sqlite.sql import COUNT_OLD, DELETE_CALLS, DELETE_JOURNAL, END_JOURNAL, ENDED_RUNS

CALLS = 500
"""Removed in one transaction, so that commits get their turn in between."""
JOURNALS = 20
NEWS = 5000


def purge_calls(db: sqlite3.Connection, settled_before: float) -> int:
    return db.execute(DELETE_CALLS, (settled_before, CALLS)).rowcount


def purge_journals(db: sqlite3.Connection, ended_before: float) -> int:
    """The events of some ended runs; how many runs that were."""
    runs: list[tuple[int]] = db.execute(ENDED_RUNS, (ended_before, JOURNALS)).fetchall()
    # what the journal told is kept in the run: new events are numbered after it
    db.executemany(END_JOURNAL, runs)
    db.executemany(DELETE_JOURNAL, runs)
    return len(runs)


def purge_feed(db: sqlite3.Connection, before: float) -> int:
    """What was told before this time. The last row of each owner stays: the next number follows on it."""
    return db.execute(
        "DELETE FROM feed WHERE (tenant, subject, feed_no) IN ("
        " SELECT tenant, subject, feed_no FROM feed AS old WHERE at < ? AND feed_no < ("
        "  SELECT max(feed_no) FROM feed WHERE tenant = old.tenant AND subject = old.subject) LIMIT ?)",
        (before, NEWS),
    ).rowcount


def count_old(file: StoreFile, before: float, arriving_before: float) -> Old:
    """On a connection of its own, in a thread of its own."""
    db = file.connect()
    try:
        calls, journals, news, files = db.execute(COUNT_OLD, (before, arriving_before)).fetchone()
    finally:
        db.close()
    return Old(calls, journals, news, files)
