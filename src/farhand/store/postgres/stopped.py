"""Listeners that have stopped: the database keeps every notification until the slowest listener took it.

A process that is stopped takes nothing and loses nothing. When what is kept for it fills the queue, nobody
can commit any more. The network's own patience ends such a connection where it is TCP all the way; behind a
proxy or on a local socket the other processes do. Must not know what is notified.
"""

from __future__ import annotations

from farhand.store.postgres.line import Line

LISTENER = "farhand-listener"
"""How the connection is seen in the database: it does little by design, and should not be ended for it."""
STOPPED_SEC = 15.0
"""A listener asks for a sign of life twice a second: one that has not for so long is not running."""


async def end_stopped(line: Line) -> int:
    """Ends those of this database and this user that the database waits for; how many there were. Whoever
    goes on later finds its connection closed, and makes a new one."""
    return len(await line.fetch(END_STOPPED, LISTENER, STOPPED_SEC))


async def queue_usage(line: Line) -> float:
    """How full the queue of all notifications is: 0 is empty, and at 1 nobody can commit."""
    [row] = await line.fetch("SELECT pg_notification_queue_usage()")
    return float(str(row[0]))


END_STOPPED = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = $1 AND datname = current_database() AND usename = current_user
        AND wait_event = 'ClientWrite'
        AND state_change < clock_timestamp() - $2::float8 * interval '1 second'
"""
