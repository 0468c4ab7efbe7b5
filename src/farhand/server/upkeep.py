"""What the command line asks of a running server that has its store to itself: removing what is old.

Only for whoever started the server: with an `authenticate` hook it is off, since it reaches over all owners.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from farhand.agent.farhand import Farhand
from farhand.errors import FarhandError
from farhand.faces.base import Face, Request, Route
from farhand.store.base import Store
from farhand.wire.guard import read_as
from farhand.wire.json_out import encode


class PurgeRequest(Struct, rename="camel"):
    older_than_sec: Annotated[float, Meta(ge=0)]
    dry_run: bool = False


class Purged(Struct, rename="camel"):
    """What was removed, or would be; `before` is the store's time."""

    before: float
    dry_run: bool
    calls: int
    journals: int
    news: int
    files: int


def upkeep_face(farhand: Farhand) -> Face:
    async def purge(request: Request) -> None:
        asked = read_as(await request.json(), PurgeRequest)
        purged = await purge_store(
            farhand.kit.store, older_than_sec=asked.older_than_sec, dry_run=asked.dry_run
        )
        await request.reply(200, msgspec.json.encode(purged))

    return Face(
        name="upkeep",
        explain=_explain,
        routes=(Route("POST", "/api/purge", purge, scope="inspect", limit=1024),),
    )


async def purge_store(store: Store, *, older_than_sec: float, dry_run: bool) -> Purged:
    """Removes what was settled before that, or only counts it."""
    before = store.now() - older_than_sec
    # to count all that is old may take long: only for whoever wants just that
    asked = store.count_old if dry_run else store.purge
    old = await asked(settled_before=before)
    return Purged(before, dry_run, old.calls, old.journals, old.news, old.files)


def _explain(error: FarhandError, status: int) -> bytes:
    return encode({"error": {"code": error.code, "message": str(error)}})
