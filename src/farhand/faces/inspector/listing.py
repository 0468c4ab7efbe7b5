"""Finds runs by their state, and by words in titles, ids and names of tools. Reads through the agent."""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from msgspec import Struct

from farhand.agent.farhand import Farhand
from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import printable, text_of
from farhand.errors import Unreadable
from farhand.faces.inspector.decode import Search
from farhand.faces.inspector.encode import run_row, state_of
from farhand.faces.inspector.shapes import RunRow

log = logging.getLogger("farhand.inspector")

PAGE = 50
LOOK_AT_MOST = 500
"""Runs looked at for one page of a search: the rest is for the next page."""

TITLE_CHARS = 120


class Found(Struct, frozen=True):
    rows: list[RunRow]
    following: str | None


class _Hit(NamedTuple):
    run: Run
    title: str
    calls: list[Call]


class Listing:
    def __init__(self, farhand: Farhand) -> None:
        self._farhand = farhand

    async def find(self, owner: Owner, search: Search) -> Found:
        hits: list[_Hit] = []
        looked, after = 0, search.after
        while page := await self._farhand.runs(owner, limit=PAGE, after=after):
            for run in page:
                hit = await self._readable_hit(run, search)
                if hit is not None:
                    hits.append(hit)
                looked, after = looked + 1, run.run_id
                if len(hits) == search.limit or looked == LOOK_AT_MOST:
                    more = await self._farhand.runs(owner, limit=1, after=after)
                    return await self._found(hits, after if more else None)
        return await self._found(hits, None)

    async def title(self, run: Run) -> str:
        """What the user said; the thread's own title if that is not known any more."""
        return printable(await self.prompt(run))[:TITLE_CHARS]

    async def prompt(self, run: Run) -> str:
        message = await self._farhand.answered_by(run)
        if message is not None:
            return text_of(message)
        thread = await self._farhand.thread(run.owner, run.thread_id)
        return "" if thread is None else thread.title

    async def _found(self, hits: list[_Hit], following: str | None) -> Found:
        now = self._farhand.kit.store.now()
        # in a thread: what is masked may be long
        return Found(await asyncio.to_thread(_rows, hits, now), following)

    async def _readable_hit(self, run: Run, search: Search) -> _Hit | None:
        try:
            return await self._hit(run, search)
        except Unreadable as error:
            log.error("run %s is left out of the list: %s", run.run_id, type(error).__name__)
            return None

    async def _hit(self, run: Run, search: Search) -> _Hit | None:
        if search.state is not None and state_of(run) != search.state:
            return None
        title = await self.title(run)
        calls = await self._farhand.calls(run)
        if search.words and search.words not in _searched(run, title, calls):
            return None
        return _Hit(run, title, calls)


def _rows(hits: list[_Hit], now: float) -> list[RunRow]:
    return [run_row(hit.run, hit.title, hit.calls, now) for hit in hits]


def _searched(run: Run, title: str, calls: list[Call]) -> str:
    """All that words are looked for in, with breaks between, so that none spans two of them."""
    parts = [title, run.run_id, run.thread_id]
    for call in calls:
        parts += [call.tool, call.call_id]
    return "\n".join(parts).casefold()
