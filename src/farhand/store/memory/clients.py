"""The registrations of a memory store."""

from __future__ import annotations

from farhand.core.client import Client
from farhand.core.principal import Owner
from farhand.store.base import DropClient, PutClient, Why
from farhand.store.memory.undo import Undo
from farhand.store.told import Told


class Clients:
    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self._clients: dict[tuple[Owner, str], Client] = {}

    def all(self) -> list[Client]:
        return list(self._clients.values())

    def put(self, write: PutClient, _: Told) -> Why | None:
        client = write.client
        key = (client.owner, client.client_id)
        stored = self._clients.get(key)
        if (0 if stored is None else stored.version) != client.version - 1:
            return "version"
        names = {tool.name for tool in client.tools}
        others = (each for other, each in self._clients.items() if other[0] == client.owner and other != key)
        if any(tool.name in names for other in others for tool in other.tools):
            return "exists"
        self._undo.set(self._clients, key, client)
        return None

    def drop(self, write: DropClient, _: Told) -> Why | None:
        key = (write.client.owner, write.client.client_id)
        stored = self._clients.get(key)
        if stored is None:
            return "missing"
        if stored.version != write.client.version:
            return "version"
        self._undo.drop(self._clients, key)
        return None
