"""The ids under which programs know calls of their own, in a memory store. Each is used once by its owner."""

from __future__ import annotations

from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.store.memory.undo import Undo


class Requests:
    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self._call_ids: dict[tuple[Owner, str], str] = {}

    def find(self, owner: Owner, request_id: str) -> str | None:
        """The call that was made under this id."""
        return self._call_ids.get((owner, request_id))

    def add(self, call: Call) -> bool:
        """False if the owner used the call's id before."""
        key = _key(call)
        if key is None:
            return True
        if key in self._call_ids:
            return False
        self._undo.set(self._call_ids, key, call.call_id)
        return True

    def is_unnamed(self, call: Call) -> bool:
        """Whether its program can't ask for it again."""
        return _key(call) is None

    def drop(self, call: Call) -> None:
        key = _key(call)
        if key is not None:
            self._undo.drop(self._call_ids, key)


def _key(call: Call) -> tuple[Owner, str] | None:
    if call.request is None or call.request.request_id is None:
        return None
    return call.owner, call.request.request_id
