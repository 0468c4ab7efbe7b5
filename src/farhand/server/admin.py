"""Purging old records over HTTP: `farhand purge` uses it when a running server has the store locked.

Off with an `authenticate` hook, because a purge affects all owners.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from farhand.agent.service import AgentService
from farhand.eventlog.log import EventLog
from farhand.faces.base import Face, Request, Route
from farhand.wire.json_reader import read_as


class PurgeRequest(Struct, rename="camel"):
    older_than_sec: Annotated[float, Meta(ge=0)]
    dry_run: bool = False


class PurgeReport(Struct, rename="camel"):
    """What was removed, or would be with `dryRun`; `before` is in the store's time. `runs` counts those whose
    events were removed."""

    before: float
    dry_run: bool
    calls: int
    runs: int
    feed_entries: int
    files: int


def admin_face(service: AgentService) -> Face:
    async def purge(request: Request) -> None:
        """Remove what is old, for the operator of the server."""
        asked = read_as(await request.json(), PurgeRequest)
        purged = await purge_log(service.log, older_than_sec=asked.older_than_sec, dry_run=asked.dry_run)
        await request.reply(200, msgspec.json.encode(purged))

    return Face(
        name="admin",
        routes=(
            Route(
                "POST",
                "/api/purge",
                purge,
                scope="inspect",
                limit=1024,
                takes=PurgeRequest,
                gives=PurgeReport,
            ),
        ),
    )


async def purge_log(eventlog: EventLog, *, older_than_sec: float, dry_run: bool) -> PurgeReport:
    """Removes what ended before then, or only counts it."""
    before = eventlog.now() - older_than_sec
    # counting may take long, so it is done only if asked for
    old = await eventlog.purge(before=before, dry_run=dry_run)
    return PurgeReport(before, dry_run, old.calls, old.runs, old.feed_entries, old.files)
