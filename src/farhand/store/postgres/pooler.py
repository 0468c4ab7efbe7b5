"""Whether a pooler stands between farhand and its database that shares connections between clients.

Through such a one LISTEN hears nothing and the settings of a session are lost: the server would start, and
fail at its first request. So it is looked for at start, with two connections as the server opens them.
"""

from __future__ import annotations

import asyncio
import os

from farhand.store.postgres.line import Line, connect
from farhand.store.postgres.lines import BY_INDEX
from farhand.store.postgres.place import Place

HEARD_SEC = 5.0
HINT = (
    "LISTEN does not work through a transaction pooler (PgBouncer with pool_mode = transaction): "
    "name the database itself in the address."
)


async def pooler_fault(place: Place) -> str | None:
    """What is lost between here and the database; None if nothing is."""
    listener = await connect(place, settings=BY_INDEX)
    try:
        speaker = await connect(place, settings=BY_INDEX)
        try:
            return await _fault(listener, speaker, place)
        finally:
            await speaker.close()
    finally:
        await listener.close()


async def _fault(listener: Line, speaker: Line, place: Place) -> str | None:
    [row] = await listener.fetch("SELECT current_setting('search_path')")
    if row[0] != place.schema:
        return "the settings of a session (search_path) are lost on the way"
    heard = asyncio.Event()
    # a channel of this look alone: what others say is not ours
    channel = f"farhand_look_{os.urandom(8).hex()}"
    await listener.listen(channel, lambda _text: heard.set())
    await speaker.fetch("SELECT pg_notify($1, '')", channel)
    try:
        async with asyncio.timeout(HEARD_SEC):
            await heard.wait()
    except TimeoutError:
        return "our own NOTIFY did not arrive"
    return None
