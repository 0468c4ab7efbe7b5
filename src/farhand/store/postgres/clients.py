"""What is written to clients. Rare, so it goes straight to the database, inside the transaction.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from collections.abc import Sequence

from farhand.core.client import Client
from farhand.store.base import DropClient, PutClient, Why, Write
from farhand.store.draft.records import Columns, client_of, encode_with, unknown_in
from farhand.store.postgres.line import Line
from farhand.store.told import Told


async def lock_clients(line: Line, writes: Sequence[Write]) -> None:
    """One at a time for each owner: nobody else can take a name between the look and the write."""
    changed = [write.client for write in writes if isinstance(write, PutClient | DropClient)]
    for owner in sorted({client.owner for client in changed}):
        await line.fetch(LOCK, owner.tenant, owner.subject)


async def put_client(line: Line, told: Told, write: PutClient) -> Why | None:
    client = write.client
    others: Sequence[Columns] = await line.fetch(OF_OWNER, client.owner.tenant, client.owner.subject)
    stored = {client_id: (version, body) for client_id, version, body in others}
    version, body = stored.pop(client.client_id, (0, b"{}"))
    if version != client.version - 1:
        return "version"
    names = {tool.name for tool in client.tools}
    if any(tool.name in names for _, other in stored.values() for tool in client_of(other).tools):
        return "exists"
    record = encode_with(unknown_in(body, Client), client)
    await line.fetch(PUT, *_key(client), client.version, record)
    told.clients.add(client.owner)
    return None


async def drop_client(line: Line, told: Told, write: DropClient) -> Why | None:
    found: Sequence[Columns] = await line.fetch(VERSION, *_key(write.client))
    if not found:
        return "missing"
    if found[0][0] != write.client.version:
        return "version"
    if write.if_away and await line.fetch(HERE, *_key(write.client), told.at):
        return "held"
    await line.fetch(DROP, *_key(write.client))
    told.clients.add(write.client.owner)
    return None


def _key(client: Client) -> tuple[str, str, str]:
    return client.owner.tenant, client.owner.subject, client.client_id


LOCK = """
    SELECT pg_advisory_xact_lock(
        hashtextextended(format('clients of %s %s %s', current_schema(), $1::text, $2::text), 0))
"""

OF_OWNER = "SELECT client_id, version, body FROM clients WHERE tenant = $1 AND subject = $2"

VERSION = "SELECT version FROM clients WHERE tenant = $1 AND subject = $2 AND client_id = $3 FOR UPDATE"

PUT = """
    INSERT INTO clients (tenant, subject, client_id, version, body) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant, subject, client_id)
        DO UPDATE SET version = excluded.version, body = excluded.body
"""

HERE = """
    SELECT 1 FROM streams WHERE tenant = $1 AND subject = $2 AND client_id = $3 AND here_until > $4 FOR UPDATE
"""

DROP = "DELETE FROM clients WHERE tenant = $1 AND subject = $2 AND client_id = $3"
