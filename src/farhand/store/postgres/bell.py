"""Hints between processes: what others have written is told to the watchers of this one.

Only the store is the record. Over a connection that is alive no notification gets lost, so the connection is
asked for a sign of life twice a second; and since one may live and hear nothing, whatever is said over it
must be heard over it, too. While that is not so, every watcher looks at the record once a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from farhand.core.principal import Owner
from farhand.errors import Broken
from farhand.store.draft.records import number_of
from farhand.store.hub import CLIENTS_CHANGED, RUN_TAKEN, Hub
from farhand.store.postgres import hints
from farhand.store.postgres.heard import Heard
from farhand.store.postgres.hints import Hint, is_from, notifications, read_note
from farhand.store.postgres.line import Declined, Line, Lost, Raced, connect
from farhand.store.postgres.lines import Lines
from farhand.store.postgres.place import Place
from farhand.store.postgres.stopped import LISTENER, end_stopped

log = logging.getLogger("farhand.store")

PAUSE_SEC = 0.5
"""Between two signs of life that are asked for."""
SAID_SEC = 1.0
LOOK_SEC = 1.0
"""How often everybody looks at the record while nothing can be heard."""
AGAIN_SEC = 0.25
AT_ONCE = 2000
"""Topics that are told in one round trip: a slow line must not be taken for a dead one."""
BEAT_SEC = 2.0
"""How often the others are told that this process is there."""
SLICES = 15
"""With each of those one of so many slices of what is read here is told again: who knows who missed it."""
STOPPED_BEATS = 5
"""With each fifth of them it is looked whether a listener has stopped."""


class Bell:
    def __init__(self, place: Place, lines: Lines, hub: Hub, name: str) -> None:
        self._place = place
        self._lines = lines
        self._hub = hub
        self._name = name
        self._heard = Heard(lines, hub)
        self._to_say: list[Hint] = []
        self._say_now = asyncio.Event()
        self._told: set[str] = set()
        """The runs that others know to be read here."""
        self._tell_all = False
        self._to_tell: deque[Hint] = deque()
        self._slice = 0
        self._beat_at = 0.0
        self._echo = asyncio.Event()
        """Something that was said here was heard here."""
        self._deaf = asyncio.Event()
        self._is_said = False
        """Whether it was logged that nothing is heard."""
        self.is_hearing = False
        """Whether there is a connection that hears."""

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for loop in (self._listen, self._look_while_deaf, self._heard.run):
                    group.create_task(_again_if_broken(loop))
        finally:
            self.is_hearing = False

    def say(self, hint: Hint) -> None:
        """To all other processes, soon, without a record behind it."""
        self._to_say.append(hint)
        self._say_now.set()

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear_until_lost()
            except (Lost, Declined, Raced, ValueError, TimeoutError) as error:
                why = str(error) or type(error).__name__
                level = logging.DEBUG if self._is_said else logging.WARNING
                log.log(level, "nothing is heard of the other servers: %s", why)
                self._is_said = True
            finally:
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
            # first: while the queue is full nothing can be said
            await self._end_stopped(line)
            # what was said before this moment is in the record alone
            self._tell_all, self._beat_at = True, 0.0
            self._to_say.append((hints.WHO,))
            await self._speak(line)
            self._hub.shake_all()
            self._deaf.clear()
            self.is_hearing, self._is_said = True, False
            while not line.is_closed:
                await self._pause()
                await self._speak(line)
        finally:
            line.cut()

    async def _end_stopped(self, line: Line) -> None:
        if count := await end_stopped(line):
            log.warning("%d listeners of stopped servers were ended: they held up the hints of all", count)

    async def _speak(self, line: Line) -> None:
        said, self._to_say = self._to_say, []
        self._find_topics()
        if asyncio.get_running_loop().time() >= self._beat_at:
            said += self._beat()
            if self._slice % STOPPED_BEATS == 0:
                await self._end_stopped(line)
        some = min(AT_ONCE, len(self._to_tell))
        said += [self._to_tell.popleft() for _ in range(some)]
        if not said:
            await line.ask()
            return
        self._echo.clear()
        try:
            async with asyncio.timeout(SAID_SEC):
                # in one round trip, however much it is
                await line.fetch(SAY, self._place.channel, notifications(self._name, said))
        except TimeoutError as error:
            raise Lost(f"to say {len(said)} hints took longer than {SAID_SEC:g} s") from error
        await self._hear_oneself()

    async def _hear_oneself(self) -> None:
        if self._echo.is_set():
            return
        try:
            async with asyncio.timeout(SAID_SEC):
                await self._echo.wait()
        except TimeoutError as error:
            raise Lost("what is said is not heard; is there a pooler before the database?") from error

    def _beat(self) -> list[Hint]:
        """A sign of life, and a slice of what was told before."""
        self._beat_at = asyncio.get_running_loop().time() + BEAT_SEC
        self._slice = (self._slice + 1) % SLICES
        again = [(hints.READ, topic) for topic in self._told if hash(topic) % SLICES == self._slice]
        self._to_tell.extend(set(again).difference(self._to_tell))
        return [(hints.HERE,)]

    def _find_topics(self) -> None:
        """What began or ended since the last time."""
        read, told = set(self._hub.read_here()), self._told
        begun = read if self._tell_all else read - told
        self._told, self._tell_all = read, False
        self._to_tell.extend((hints.READ, topic) for topic in begun)
        self._to_tell.extend((hints.UNREAD, topic) for topic in told - read)

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
            self._echo.set()
            return
        who, heard = read_note(text)
        self._hub.elsewhere.is_here(who)
        for hint in heard:
            if not self._take_of_readers(who, hint):
                self._take(hint)

    def _take_of_readers(self, who: str, hint: list[str | int]) -> bool:
        match hint:
            case [hints.READ, str(topic)]:
                self._hub.elsewhere.begun(who, topic)
            case [hints.UNREAD, str(topic)]:
                self._hub.elsewhere.ended(who, topic)
            case [hints.WHO]:
                self._tell_all = True
            case [hints.HERE]:
                pass
            case _:
                return False
        return True

    def _take(self, hint: list[str | int]) -> None:
        match hint:
            case [hints.GREW, str(run_id), int(seq)]:
                self._heard.grew(run_id, seq)
            case [hints.MOVED, str(topic)]:
                self._heard.moved(topic)
            case [hints.LOOK, str(topic)]:
                self._hub.shake(topic)
            case _:
                self._take_seldom(hint)

    def _take_seldom(self, hint: list[str | int]) -> None:
        match hint:
            case [hints.CLAIMED, str(run_id)]:
                self._hub.tell(RUN_TAKEN, run_id)
            case [hints.CLIENTS, str(tenant), str(subject)]:
                self._hub.tell(CLIENTS_CHANGED, Owner(tenant, subject))
            case [hints.ASIDE, str(topic), str(item)]:
                self._hub.tell(topic, item)
            case _:
                # of a newer version, perhaps
                self._hub.shake_all()


async def _again_if_broken(loop: Callable[[], Awaitable[None]]) -> None:
    """Whatever was not foreseen in one of them must not end it: nobody would hear anything any more."""
    while True:
        try:
            return await loop()
        except Exception:
            log.exception("something broke in hearing the other servers; it begins again")
            await asyncio.sleep(AGAIN_SEC)


SAY = "SELECT pg_notify($1, note) FROM unnest($2::text[]) AS note"
