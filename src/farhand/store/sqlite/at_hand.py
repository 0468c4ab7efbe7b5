"""What this process wrote a moment ago, as records: whoever reads it again need not ask the database.

A connection that reads forgets its pages with each commit of another one, so that a look-up right after a
commit costs as much as the commit. Only one process writes the file, and it tells what it wrote in the order
of its commits: so what is at hand is what was answered last, never more and never less. What the database
removes on its own, or a chore does, empties all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from msgspec import Struct

from farhand.core.call import Call, Phase
from farhand.core.principal import Owner
from farhand.core.thread import Message
from farhand.store.told import Told

SHELF_BYTES = 8 * 2**20
SHELF_LENGTH = 2048
"""How much stays at hand, of calls and of threads: what is used at this moment."""

K = TypeVar("K")
V = TypeVar("V")


class Chat(Struct):
    """The messages of a thread, and the ids of its open calls, if they are known."""

    messages: dict[str, Message]
    open_calls: set[str] | None


class Shelf(Generic[K, V]):
    """The newest of some things; `size` is what they take as JSON."""

    def __init__(self) -> None:
        self._things: dict[K, V] = {}
        self._sizes: dict[K, int] = {}
        self._size = 0

    def get(self, key: K) -> V | None:
        return self._things.get(key)

    def put(self, key: K, thing: V, size: int) -> None:
        if key in self._things:
            self.drop(key)
        self._things[key] = thing
        self._sizes[key] = 0
        self.grow(key, size)

    def grow(self, key: K, size: int) -> None:
        self._sizes[key] += size
        self._size += size
        while self._size > SHELF_BYTES or len(self._things) > SHELF_LENGTH:
            self.drop(next(iter(self._things)))

    def drop(self, key: K) -> None:
        if self._things.pop(key, None) is not None:
            self._size -= self._sizes.pop(key)

    def clear(self) -> None:
        self._things.clear()
        self._sizes.clear()
        self._size = 0


class AtHand:
    def __init__(self) -> None:
        self._calls: Shelf[str, Call] = Shelf()
        self._chats: Shelf[tuple[Owner, str], Chat] = Shelf()

    def call(self, call_id: str) -> Call | None:
        """One that was opened here and is open."""
        return self._calls.get(call_id)

    def messages(self, owner: Owner, thread_id: str) -> list[Message] | None:
        chat = self._chats.get((owner, thread_id))
        return None if chat is None else list(chat.messages.values())

    def count_open(self, owner: Owner, thread_id: str) -> int | None:
        chat = self._chats.get((owner, thread_id))
        return None if chat is None or chat.open_calls is None else len(chat.open_calls)

    def learn(self, told: Told) -> None:
        """What a commit wrote, once it is durable."""
        for key, is_free in told.begun:
            self._chats.put(key, Chat({}, set() if is_free else None), 0)
        for key, message, size in told.said:
            self._hear(key, message, size)
        for call, size in told.written:
            self._see(call, size)

    def read(self, owner: Owner, thread_id: str, messages: Iterable[tuple[Message, int]]) -> None:
        """All messages of a thread, as the database has them at this moment: what is told later may be among
        them."""
        found = list(messages)
        chat = Chat({message.message_id: message for message, _ in found}, None)
        self._chats.put((owner, thread_id), chat, sum(size for _, size in found))

    def forget(self) -> None:
        self._calls.clear()
        self._chats.clear()

    def _hear(self, key: tuple[Owner, str], message: Message, size: int) -> None:
        chat = self._chats.get(key)
        if chat is not None:
            chat.messages[message.message_id] = message
            self._chats.grow(key, size)

    def _see(self, call: Call, size: int) -> None:
        """A call that is not at hand stays so: whoever read it from the database may have seen more of it."""
        chat = self._chats.get((call.owner, call.thread_id))
        open_calls = None if chat is None else chat.open_calls
        if call.phase is Phase.SETTLED:
            self._calls.drop(call.call_id)
            if open_calls is not None:
                open_calls.discard(call.call_id)
        elif call.version == 1:
            self._calls.put(call.call_id, call, size)
            if open_calls is not None:
                open_calls.add(call.call_id)
        elif self._calls.get(call.call_id) is not None:
            self._calls.put(call.call_id, call, size)
