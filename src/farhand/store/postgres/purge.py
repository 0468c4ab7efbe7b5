"""Removes what has been kept for long enough, a slice at a time. Threads and messages stay.

Any number of processes may do so at once: each takes rows that no other has in hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from farhand.errors import StoreDown
from farhand.store.base import Old
from farhand.store.draft.records import Columns
from farhand.store.postgres.files import purge_files
from farhand.store.postgres.line import Declined, Line, Lost, connect
from farhand.store.postgres.lines import Lines
from farhand.store.postgres.place import Place
from farhand.store.rules import ARRIVING_SEC
from farhand.store.slices import in_slices

CALLS = 500
"""Removed in one transaction, so that commits get their turn in between."""
JOURNALS = 20
NEWS = 5000
COUNT_SEC = 600
"""For counting what is old, which only somebody who asks for it waits for."""


async def purge(lines: Lines, settled_before: float, *, now: float) -> Old:
    transact, arriving = lines.transact, now - ARRIVING_SEC
    removed = Old(
        calls=await in_slices(lambda: transact(lambda line: _purge_calls(line, settled_before))),
        journals=await in_slices(lambda: transact(lambda line: _purge_journals(line, settled_before))),
        news=await in_slices(lambda: transact(lambda line: _purge_feed(line, settled_before))),
        files=await in_slices(
            lambda: transact(lambda line: purge_files(line, settled_before, arriving_before=arriving))
        ),
    )
    await lines.do(lambda line: line.fetch("DELETE FROM writers WHERE at < now() - interval '1 day'"))
    return removed


async def count_old(place: Place, settled_before: float, *, now: float) -> Old:
    """On a connection of its own: over all that is kept, this may take longer than any reader's patience."""
    arriving = max(settled_before, now - ARRIVING_SEC)
    try:
        line = await connect(place, settings={"statement_timeout": str(COUNT_SEC * 1000)})
        try:
            # the database gives up first, and says so
            found: Sequence[Columns] = await line.fetch(
                COUNT_OLD, settled_before, arriving, seconds=COUNT_SEC + 5
            )
        finally:
            await line.close()
    except (Lost, Declined, ValueError) as error:
        raise StoreDown(
            f"What is old could not be counted: {error}.", hint="Try again in a moment."
        ) from error
    return Old(*found[0])


async def _purge_calls(line: Line, settled_before: float) -> int:
    """Settled calls. Those of a run that goes on stay: it may still hand their outcomes to the model."""
    return len(await line.fetch(DELETE_CALLS, settled_before, CALLS))


async def _purge_journals(line: Line, ended_before: float) -> int:
    """The events of some ended runs; how many runs that were."""
    found = await line.fetch(JOURNALS_OF, ended_before, JOURNALS)
    runs = [row[0] for row in found]
    await line.fetch("DELETE FROM events WHERE run_no = ANY($1::bigint[])", runs)
    await line.fetch("UPDATE runs SET has_journal = false WHERE run_no = ANY($1::bigint[])", runs)
    return len(runs)


async def _purge_feed(line: Line, before: float) -> int:
    """What was told before this time. The last row of each owner stays, as the place where readers are."""
    return len(await line.fetch(DELETE_FEED, before, NEWS))


DELETE_CALLS = """
    DELETE FROM calls WHERE call_no IN (
        SELECT call_no FROM calls LEFT JOIN runs USING (run_no)
        WHERE settled_at < $1 AND (run_id IS NULL OR ended_at IS NOT NULL)
        LIMIT $2 FOR UPDATE OF calls SKIP LOCKED)
    RETURNING 1
"""

JOURNALS_OF = """
    SELECT run_no FROM runs WHERE ended_at < $1 AND has_journal LIMIT $2 FOR UPDATE SKIP LOCKED
"""

DELETE_FEED = """
    DELETE FROM feed WHERE (tenant, subject, feed_no) IN (
        SELECT old.tenant, old.subject, old.feed_no FROM feed AS old
            JOIN feed_ends USING (tenant, subject)
        WHERE old.at < $1 AND old.feed_no < feed_ends.last_no
        LIMIT $2 FOR UPDATE OF old SKIP LOCKED)
    RETURNING 1
"""

COUNT_OLD = """
    SELECT
        (SELECT count(*) FROM calls LEFT JOIN runs USING (run_no)
         WHERE settled_at < $1 AND (run_id IS NULL OR ended_at IS NOT NULL)),
        (SELECT count(*) FROM runs WHERE ended_at < $1 AND has_journal),
        (SELECT count(*) FROM feed AS old JOIN feed_ends USING (tenant, subject)
         WHERE old.at < $1 AND old.feed_no < feed_ends.last_no),
        (SELECT count(*) FROM files WHERE NOT bound AND written_at < $2 AND (written_at < $1 OR NOT arrived))
"""
