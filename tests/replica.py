"""A PostgreSQL that waits for a replica which is not there: commits do not return until it no longer does."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from farhand.store.postgres.connection import Connection, ConnectionLost, connect, parse_address

WITHIN_SEC = 30.0
_WAITS = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep'"


async def wait_for_replica(address: str, name: str) -> None:
    """From now on every commit waits for the replica of this name, or for none if it is empty."""
    admin = await connect(parse_address(address))
    await admin.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    await admin.execute("SELECT pg_reload_conf()")
    if name:
        # the database applies its settings some time after it has read them
        async with asyncio.timeout(WITHIN_SEC):
            while not await _commit_waits(admin, address):
                pass
    await admin.close()


async def _commit_waits(admin: Connection, address: str) -> bool:
    """By what the database says of it: on a busy machine a commit may be slow without waiting for anyone."""
    probe = await connect(parse_address(address))
    [[pid]] = await probe.fetch("SELECT pg_backend_pid()")
    async with asyncio.TaskGroup() as group:
        committing = group.create_task(_commit(probe))
        while not committing.done():
            [[waiting]] = await admin.fetch(_WAITS, pid)
            if waiting:
                probe.abort()
                return True
    probe.abort()
    return False


async def _commit(probe: Connection) -> None:
    """Until it has returned, or its connection is gone."""
    with suppress(ConnectionLost):
        await probe.execute("SELECT pg_logical_emit_message(true, 'probe', '')")
