"""Finds runs by their state, and by words in titles, ids and tool names."""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from msgspec import Struct

from farhand.agent.service import AgentService
from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import printable, text_of
from farhand.errors import Unreadable
from farhand.faces.inspector.decode import Search
from farhand.faces.inspector.encode import run_row, run_state
from farhand.faces.inspector.shapes import InspectedRunRow

log = logging.getLogger("farhand.inspector")

RUNS_PER_READ = 50
LOOK_AT_MOST = 500
"""Runs that are read for one page of a search; the next page continues after them."""

ROW_TITLE_CHARS = 120


class RunSearchPage(Struct, frozen=True):
    rows: list[InspectedRunRow]
    following: str | None


class _Hit(NamedTuple):
    run: Run
    title: str
    calls: list[Call]


class RunSearch:
    def __init__(self, service: AgentService) -> None:
        self._service = service

    async def find(self, owner: Owner, search: Search) -> RunSearchPage:
        hits: list[_Hit] = []
        looked, after = 0, search.after
        while page := await self._service.log.runs(owner, limit=RUNS_PER_READ, after=after):
            for run in page:
                hit = await self._readable_hit(run, search)
                if hit is not None:
                    hits.append(hit)
                looked, after = looked + 1, run.run_id
                if len(hits) == search.limit or looked == LOOK_AT_MOST:
                    more = await self._service.log.runs(owner, limit=1, after=after)
                    return await self._found(hits, after if more else None)
        return await self._found(hits, None)

    async def title(self, run: Run) -> str:
        """The user's message; the thread's title if the message is no longer known."""
        return printable(await self.prompt(run))[:ROW_TITLE_CHARS]

    async def prompt(self, run: Run) -> str:
        message = await self._service.answered_by(run)
        if message is not None:
            return text_of(message)
        thread = await self._service.log.get_thread(run.owner, run.thread_id)
        return "" if thread is None else thread.title

    async def _found(self, hits: list[_Hit], following: str | None) -> RunSearchPage:
        now = self._service.log.now()
        # in a thread: redacting may take long
        return RunSearchPage(await asyncio.to_thread(_rows, hits, now), following)

    async def _readable_hit(self, run: Run, search: Search) -> _Hit | None:
        try:
            return await self._hit(run, search)
        except Unreadable as error:
            log.error("cannot list run %s: %s", run.run_id, type(error).__name__)
            return None

    async def _hit(self, run: Run, search: Search) -> _Hit | None:
        calls = await self._service.calls(run)
        if search.state is not None and run_state(run, calls) != search.state:
            return None
        title = await self.title(run)
        if search.words and search.words not in _searched(run, title, calls):
            return None
        return _Hit(run, title, calls)


def _rows(hits: list[_Hit], now: float) -> list[InspectedRunRow]:
    return [run_row(hit.run, hit.title, hit.calls, now) for hit in hits]


def _searched(run: Run, title: str, calls: list[Call]) -> str:
    """The text that is searched, with line breaks so that no match spans two fields."""
    parts = [title, run.run_id, run.thread_id]
    for call in calls:
        parts += [call.tool, call.call_id]
    return "\n".join(parts).casefold()
