"""Hints between processes: what others have written is told to the watchers of this one.

Only the store is the record. Over a connection that is alive no notification gets lost, so the connection is
asked for a sign of life twice a second; while there is none, every watcher looks at the record once a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress

from farhand.core.event import Entry
from farhand.core.principal import Owner
from farhand.errors import Broken
from farhand.store.draft.records import Columns, entry_of, number_of
from farhand.store.hub import CLIENTS_CHANGED, RUN_TAKEN, Hub
from farhand.store.postgres import hints
from farhand.store.postgres.hints import Hint, is_from, notifications, read_note
from farhand.store.postgres.line import Declined, Line, Lost, Raced, connect
from farhand.store.postgres.lines import Lines
from farhand.store.postgres.place import Place

log = logging.getLogger("farhand.store")

LISTENER = "farhand-listener"
"""How the connection is seen in the database: it does little by design, and should not be ended for it."""
PAUSE_SEC = 0.5
"""Between two signs of life that are asked for."""
SAID_SEC = 1.0
LOOK_SEC = 1.0
"""How often everybody looks at the record while nothing can be heard."""
AGAIN_SEC = 0.25
AT_ONCE = 2000
"""Topics that are told in one round trip: a slow line must not be taken for a dead one."""
SLICES = 4
"""With each sign of life one of so many slices of what is read here is told again."""


class Bell:
    def __init__(self, place: Place, lines: Lines, hub: Hub, name: str) -> None:
        self._place = place
        self._lines = lines
        self._hub = hub
        self._name = name
        self._grown: dict[str, int] = {}
        self._more = asyncio.Event()
        self._to_say: list[Hint] = []
        self._say_now = asyncio.Event()
        self._told: set[str] = set()
        """The runs that others know to be read here."""
        self._to_tell: deque[str] = deque()
        self._slice = 0
        self._slice_at = 0.0
        self._deaf = asyncio.Event()
        self.is_hearing = False
        """Whether there is a connection that hears."""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            group.create_task(self._look_while_deaf())
            group.create_task(self._fetch_entries())

    def say(self, hint: Hint) -> None:
        """To all other processes, soon, without a record behind it."""
        self._to_say.append(hint)
        self._say_now.set()

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear_until_lost()
            except (Lost, Declined, Raced, ValueError, TimeoutError) as error:
                if self.is_hearing:
                    log.warning(
                        "nothing is heard of the other servers: %s", str(error) or type(error).__name__
                    )
            self.is_hearing = False
            self._deaf.set()
            await asyncio.sleep(AGAIN_SEC)

    async def _look_while_deaf(self) -> None:
        """Not while the database is away: whoever waits shall go on waiting, and not be told to fail."""
        while True:
            await self._deaf.wait()
            with suppress(Broken):
                await self._lines.many("SELECT 1", (), number_of)
                self._hub.shake_all()
            await asyncio.sleep(LOOK_SEC)

    async def _hear_until_lost(self) -> None:
        line = await connect(self._place, settings={"application_name": LISTENER})
        try:
            await line.listen(self._place.channel, self._hear)
            # what was said before this moment is in the record alone
            self._hub.shake_all()
            self._deaf.clear()
            self.is_hearing = True
            while not line.is_closed:
                await self._speak(line)
                await self._pause()
        finally:
            line.cut()

    async def _speak(self, line: Line) -> None:
        said, self._to_say = self._to_say, []
        self._find_topics()
        some = min(AT_ONCE, len(self._to_tell))
        said += [(hints.READ, self._to_tell.popleft()) for _ in range(some)]
        if not said:
            await line.ask()
            return
        try:
            async with asyncio.timeout(SAID_SEC):
                # in one round trip, however much it is
                await line.fetch(SAY, self._place.channel, notifications(self._name, said))
        except TimeoutError as error:
            raise Lost(f"to say {len(said)} hints took longer than {SAID_SEC:g} s") from error

    def _find_topics(self) -> None:
        """What is new here, and a slice of the rest when its time has come."""
        read = set(self._hub.read_here())
        topics, self._told = read - self._told, read
        now = asyncio.get_running_loop().time()
        if now >= self._slice_at:
            self._slice, self._slice_at = (self._slice + 1) % SLICES, now + PAUSE_SEC
            topics |= {topic for topic in read if hash(topic) % SLICES == self._slice}
        self._to_tell.extend(topics.difference(self._to_tell))

    async def _pause(self) -> None:
        self._say_now.clear()
        if self._to_say or self._to_tell:
            return
        try:
            async with asyncio.timeout(PAUSE_SEC):
                await self._say_now.wait()
        except TimeoutError:
            return

    def _hear(self, text: str) -> None:
        if is_from(self._name, text):
            return
        _, heard = read_note(text)
        for hint in heard:
            self._take(hint)

    def _take(self, hint: list[str | int]) -> None:
        match hint:
            case [hints.GREW, str(run_id), int(seq)]:
                if self._hub.has(run_id):
                    self._grown[run_id] = min(seq, self._grown.get(run_id, seq))
                    self._more.set()
            case [hints.MOVED, str(topic)]:
                self._hub.tell(topic, None)
            case [hints.LOOK, str(topic)]:
                self._hub.shake(topic)
            case _:
                self._take_seldom(hint)

    def _take_seldom(self, hint: list[str | int]) -> None:
        match hint:
            case [hints.READ, str(topic)]:
                self._hub.seen_elsewhere(topic)
            case [hints.CLAIMED, str(run_id)]:
                self._hub.tell(RUN_TAKEN, run_id)
            case [hints.CLIENTS, str(tenant), str(subject)]:
                self._hub.tell(CLIENTS_CHANGED, Owner(tenant, subject))
            case [hints.ASIDE, str(topic), str(item)]:
                self._hub.tell(topic, item)
            case _:
                # of a newer version, perhaps
                self._hub.shake_all()

    async def _fetch_entries(self) -> None:
        """Reads what journals grew by and tells it, as if it had been written here."""
        while True:
            await self._more.wait()
            self._more.clear()
            grown, self._grown = self._grown, {}
            try:
                await self._tell_entries(grown)
            except Broken:
                for run_id in grown:
                    self._hub.shake(run_id)

    async def _tell_entries(self, grown: dict[str, int]) -> None:
        found = await self._lines.many(ENTRIES, (list(grown), list(grown.values())), _entry_of_run)
        added: dict[str, list[Entry]] = {}
        for run_id, entry in found:
            added.setdefault(run_id, []).append(entry)
        for run_id, entries in added.items():
            self._hub.tell(run_id, entries)


def _entry_of_run(row: Columns) -> tuple[str, Entry]:
    return row[0], entry_of(row[1:])


SAY = "SELECT pg_notify($1, note) FROM unnest($2::text[]) AS note"

ENTRIES = """
    SELECT run_id, seq, events.body, at
    FROM unnest($1::text[], $2::bigint[]) AS grown (run_id, first)
        JOIN runs USING (run_id)
        JOIN events ON events.run_no = runs.run_no AND seq >= first
    ORDER BY events.run_no, seq LIMIT 5000
"""
