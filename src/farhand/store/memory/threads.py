"""The threads of a memory store, and what was said in them."""

from __future__ import annotations

from typing import TypeAlias

from msgspec.structs import replace

from farhand.core.principal import Owner, is_of
from farhand.core.thread import Message, Thread, Used, apart
from farhand.store.base import AllowTool, CutThread, InsertMessage, InsertThread, RenameThread, Why
from farhand.store.draft.records import encode
from farhand.store.memory.undo import ABSENT, Undo
from farhand.store.told import Told

ThreadKey: TypeAlias = tuple[Owner, str]


class Threads:
    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self._threads: dict[ThreadKey, Thread] = {}
        self._messages: dict[ThreadKey, dict[str, Message]] = {}

    def __contains__(self, key: ThreadKey) -> bool:
        return key in self._threads

    def get(self, key: ThreadKey) -> Thread | None:
        return self._threads.get(key)

    def page(self, owner: Owner, limit: int, after: Used | None) -> list[Thread]:
        own = [thread for key, thread in self._threads.items() if key[0] == owner]
        rest = [thread for thread in own if after is None or thread.used < after]
        return sorted(rest, key=lambda thread: thread.used, reverse=True)[:limit]

    def count(self, owner: Owner) -> int:
        return sum(key[0] == owner for key in self._threads)

    def messages(self, key: ThreadKey) -> list[Message]:
        # as from a file, the reader's own: whoever changes an input in place changes no record
        return list(map(apart, self._messages.get(key, {}).values()))

    def message_bytes(self, tenant: str, subject: str | None) -> int:
        own = [said for key, said in self._messages.items() if is_of(key[0], tenant, subject)]
        return sum(len(encode(message)) for said in own for message in said.values())

    def drop(self, key: ThreadKey) -> None:
        self._undo.drop(self._threads, key)
        self._undo.drop(self._messages, key)

    def insert(self, write: InsertThread, told: Told) -> Why | None:
        key = (write.thread.owner, write.thread.thread_id)
        known = self._threads.get(key)
        if known is None:
            told.begun = True
        thread = replace(known, updated_at=write.thread.updated_at) if known else write.thread
        self._undo.set(self._threads, key, thread)
        return None

    def allow_tool(self, write: AllowTool, _: Told) -> Why | None:
        thread = self._threads.get((write.owner, write.thread_id))
        if thread is None:
            return "missing"
        allowed = tuple(dict.fromkeys((*thread.allowed, write.tool_version)))
        self._undo.set(self._threads, (write.owner, write.thread_id), replace(thread, allowed=allowed))
        return None

    def rename(self, write: RenameThread, _: Told) -> Why | None:
        key = (write.owner, write.thread_id)
        if key not in self._threads:
            return "missing"
        self._undo.set(self._threads, key, replace(self._threads[key], title=write.title))
        return None

    def cut(self, write: CutThread, _: Told) -> Why | None:
        key = (write.owner, write.thread_id)
        messages = self._messages.get(key, {})
        if write.message_id not in messages:
            return "missing"
        kept = list(messages)[: list(messages).index(write.message_id)]
        self._undo.set(self._messages, key, {message_id: messages[message_id] for message_id in kept})
        return None

    def insert_message(self, write: InsertMessage, _: Told) -> Why | None:
        key = (write.owner, write.thread_id)
        if key not in self._threads:
            return "missing"
        messages = self._messages.setdefault(key, {})
        message_id = write.message.message_id
        if message_id in messages:
            return "exists"
        self._undo.append((messages, message_id, ABSENT))
        messages[message_id] = write.message
        return None
