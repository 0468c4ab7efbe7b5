"""What others wrote, as it was heard: read for the watchers of this process, and told as if written here.

One read serves all that was heard while the last one was under way, so that a held run goes on without
looking for itself. What cannot be read or is not there is told as a reason to look. Must not know how it was
heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from farhand.core.call import Call
from farhand.core.event import Entry
from farhand.core.run import Run
from farhand.errors import Broken
from farhand.store.draft.records import Columns, body_of_call, encode, entry_of, named_run_of
from farhand.store.hub import Hub, freed, is_feed, run_that_is_free
from farhand.store.postgres.lines import Lines
from farhand.store.postgres.sql import RUN_COLUMNS

ENTRIES_AT_MOST = 5000
"""What is read at once of journals that grew; of the rest their watchers are told to look."""


class _Wanted:
    """What the next read is about."""

    def __init__(self) -> None:
        self.grown: dict[str, int] = {}
        self.runs: dict[str, None] = {}
        self.calls: dict[str, None] = {}

    def keys(self) -> str:
        """As JSON, like those of all reads that are frequent: the statement is planned once."""
        keys = {"runs": list(self.runs), "calls": list(self.calls), "grown": list(self.grown.items())}
        return encode(keys).decode()

    def topics(self) -> list[str]:
        return [*map(freed, self.runs), *self.grown, *self.calls]


class Heard:
    def __init__(self, lines: Lines, hub: Hub) -> None:
        self._lines = lines
        self._hub = hub
        self._wanted = _Wanted()
        self._more = asyncio.Event()

    def grew(self, run_id: str, seq: int) -> None:
        """A journal has new entries, from this one on."""
        if self._hub.has(run_id):
            grown = self._wanted.grown
            grown[run_id] = min(seq, grown.get(run_id, seq))
            self._more.set()

    def moved(self, topic: str) -> None:
        """A feed grew, a held run could go on, or a call moved."""
        if not self._hub.has(topic):
            return
        if is_feed(topic):
            self._hub.tell(topic, None)
            return
        run_id = run_that_is_free(topic)
        if run_id is None:
            self._wanted.calls[topic] = None
        else:
            self._wanted.runs[run_id] = None
        self._more.set()

    async def run(self) -> None:
        """For ever: reads what was heard, and tells it."""
        while True:
            await self._more.wait()
            self._more.clear()
            wanted, self._wanted = self._wanted, _Wanted()
            try:
                await self._tell(wanted)
            except Exception as error:
                self._shake(wanted.topics())
                if not isinstance(error, Broken):
                    raise

    async def _tell(self, wanted: _Wanted) -> None:
        """In the order of `tell_commit`: a run first, so that what it says next leaves with what woke it."""
        [(runs, calls, found)] = await self._lines.many(NEWS, (wanted.keys(), ENTRIES_AT_MOST), _news_of)
        left = dict.fromkeys(wanted.topics())
        for run in runs:
            self._tell_one(left, freed(run.run_id), run)
        for run_id, entries in _by_run(found).items():
            self._tell_one(left, run_id, entries)
        for call in calls:
            self._tell_one(left, call.call_id, call)
        if len(found) >= ENTRIES_AT_MOST:
            # the last one may go on
            left[found[-1][0]] = None
        self._shake(left)

    def _tell_one(self, left: dict[str, None], topic: str, news: object) -> None:
        left.pop(topic, None)
        self._hub.tell(topic, news)

    def _shake(self, topics: Sequence[str] | dict[str, None]) -> None:
        for topic in topics:
            self._hub.shake(topic)


def _news_of(row: Columns) -> tuple[list[Run], list[Call], list[tuple[str, Entry]]]:
    readable = [run for _, run in map(named_run_of, row[0]) if run is not None]
    entries = [(entry[0], entry_of(entry[1:])) for entry in row[2]]
    return readable, [body_of_call(call) for call in row[1]], entries


def _by_run(found: Sequence[tuple[str, Entry]]) -> dict[str, list[Entry]]:
    added: dict[str, list[Entry]] = {}
    for run_id, entry in found:
        added.setdefault(run_id, []).append(entry)
    return added


_TEXTS = "ARRAY(SELECT jsonb_array_elements_text($1::jsonb->'{}'))"

# of parts of ours alone; what is sorted inside is looked up for each journal, however few there are in all
NEWS = f"""
    SELECT ARRAY(SELECT ROW({RUN_COLUMNS}) FROM runs WHERE run_id = ANY({_TEXTS.format("runs")})),
        ARRAY(SELECT ROW(body) FROM calls WHERE call_id = ANY({_TEXTS.format("calls")})),
        ARRAY(
            SELECT ROW(run_id, seq, body, at)
            FROM (SELECT key->>0, (key->>1)::bigint, place
                    FROM jsonb_array_elements($1::jsonb->'grown') WITH ORDINALITY AS each (key, place))
                    AS grown (run_id, first, place)
                CROSS JOIN LATERAL (
                    SELECT seq, body, at FROM events
                    WHERE run_no = (SELECT run_no FROM runs WHERE run_id = grown.run_id) AND seq >= first
                    ORDER BY seq) AS added
            ORDER BY place, seq LIMIT $2)
"""
