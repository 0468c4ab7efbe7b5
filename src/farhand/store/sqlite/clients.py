"""What is written to clients. Rare, so it goes straight to the database, inside the transaction.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from farhand.core.client import Client
from farhand.store.base import DropClient, PutClient, Why
from farhand.store.draft.records import client_of, encode_with, unknown_in
from farhand.store.sqlite.draft import SqliteDraft


def put_client(draft: SqliteDraft, write: PutClient) -> Why | None:
    client = write.client
    stored = _stored(draft, client)
    if (0 if stored is None else stored[0]) != client.version - 1:
        return "version"
    if _has_name_of_another(draft, client):
        return "exists"
    unknown = {} if stored is None else unknown_in(stored[1], Client)
    draft.db.execute(
        "INSERT OR REPLACE INTO clients (tenant, subject, client_id, version, body) VALUES (?, ?, ?, ?, ?)",
        (*_key(client), client.version, encode_with(unknown, client)),
    )
    return None


def drop_client(draft: SqliteDraft, write: DropClient) -> Why | None:
    stored = _stored(draft, write.client)
    if stored is None:
        return "missing"
    if stored[0] != write.client.version:
        return "version"
    draft.db.execute(
        "DELETE FROM clients WHERE tenant = ? AND subject = ? AND client_id = ?", _key(write.client)
    )
    return None


def _stored(draft: SqliteDraft, client: Client) -> tuple[int, bytes] | None:
    found: tuple[int, bytes] | None = draft.db.execute(
        "SELECT version, body FROM clients WHERE tenant = ? AND subject = ? AND client_id = ?", _key(client)
    ).fetchone()
    return found


def _has_name_of_another(draft: SqliteDraft, client: Client) -> bool:
    names = {tool.name for tool in client.tools}
    others = draft.db.execute(
        "SELECT body FROM clients WHERE tenant = ? AND subject = ? AND client_id <> ?", _key(client)
    )
    return any(tool.name in names for (body,) in others for tool in client_of(body).tools)


def _key(client: Client) -> tuple[str, str, str]:
    return client.owner.tenant, client.owner.subject, client.client_id
