"""The tables of a memory store: calls, clients, feeds and files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import partial
from operator import attrgetter
from typing import Literal, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from farhand.clock import Clock
from farhand.core.call import Call
from farhand.core.client import Client
from farhand.core.file import Kept, StoredFile
from farhand.core.principal import Owner, is_of
from farhand.store.base import ARRIVING_SEC, Append, CallFilter, CallKey, FeedRow, FoundCall
from farhand.store.guards import has_key, is_open, is_wanted, key_of, sort_key

KINDS: tuple[CallKey, ...] = get_args(CallKey)


class MemoryCalls:
    def __init__(self) -> None:
        self._by_key: dict[CallKey, dict[tuple[Owner, str], FoundCall]] = {kind: {} for kind in KINDS}
        self._open: dict[tuple[Owner, str], FoundCall] = {}

    def find(self, owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        return self._by_key[kind].get((owner, value))

    def is_taken(self, append: Append) -> bool:
        """Whether another call of the owner has the request id of one of these."""
        requests = self._by_key["request"]
        seen: dict[str, str] = {}
        for call in append.calls:
            request_id = key_of(call, "request")
            if request_id is None:
                continue
            found = requests.get((append.owner, request_id))
            holder = seen.setdefault(request_id, call.call_id if found is None else found.call.call_id)
            if holder != call.call_id:
                return True
        return False

    def is_request_lost(self, owner: Owner, call: Call) -> bool:
        """Whether another call of the owner, opened no earlier, has its request id."""
        holder = self._holder(owner, call)
        return holder is not None and holder.call.opened_at >= call.opened_at

    def take_request(self, owner: Owner, call: Call) -> None:
        """Drops the other call with its request id."""
        holder = self._holder(owner, call)
        if holder is not None:
            self.drop(owner, holder.call.call_id)

    def _holder(self, owner: Owner, call: Call) -> FoundCall | None:
        request_id = key_of(call, "request")
        found = None if request_id is None else self.find(owner, "request", request_id)
        return None if found is None or found.call.call_id == call.call_id else found

    def put(self, found: FoundCall) -> None:
        self.drop(found.owner, found.call.call_id)
        for kind in KINDS:
            value = key_of(found.call, kind)
            if value is not None:
                self._by_key[kind][found.owner, value] = found
        if is_open(found.call):
            self._open[found.owner, found.call.call_id] = found

    def drop(self, owner: Owner, call_id: str) -> None:
        found = self._by_key["call"].get((owner, call_id))
        if found is None:
            return
        for kind in KINDS:
            value = key_of(found.call, kind)
            if value is not None:
                self._by_key[kind].pop((owner, value), None)
        self._open.pop((owner, call_id), None)

    def settled_before(self, before: float) -> list[FoundCall]:
        calls = self._by_key["call"].values()
        return [
            each
            for each in calls
            if each.call.settled_at is not None and each.call.settled_at < before and not has_key(each.call)
        ]

    def list_open(self, which: CallFilter) -> list[FoundCall]:
        found = [each for each in self._open.values() if is_wanted(which, each)]
        return sorted(found, key=partial(sort_key, which))


def drop_all(calls: MemoryCalls, owner: Owner, call_ids: Collection[str]) -> None:
    for call_id in call_ids:
        calls.drop(owner, call_id)


class MemoryClients:
    def __init__(self, feeds: MemoryFeeds, clock: Clock) -> None:
        self._feeds = feeds
        self._clock = clock
        self._clients: dict[Owner, dict[str, Client]] = {}

    async def all(self, owner: Owner | None = None) -> list[Client]:
        if owner is not None:
            return list(self._clients.get(owner, {}).values())
        return [client for clients in self._clients.values() for client in clients.values()]

    async def put(self, client: Client, notice: bytes = b"") -> Literal["put", "moved", "name_taken"]:
        clients = self._clients.get(client.owner, {})
        stored = clients.get(client.client_id)
        if (0 if stored is None else stored.version) != client.version - 1:
            return "moved"
        names = {tool.name for tool in client.tools}
        others = [each for each in clients.values() if each.client_id != client.client_id]
        if any(tool.name in names for other in others for tool in other.tools):
            return "name_taken"
        self._clients.setdefault(client.owner, {})[client.client_id] = client
        self._tell(client.owner, notice)
        return "put"

    async def drop(
        self, client: Client, notice: bytes = b"", *, if_away: bool = False
    ) -> Literal["dropped", "moved", "here"]:
        """This process knows its own streams, so no client is `here` for the store."""
        clients = self._clients.get(client.owner, {})
        stored = clients.get(client.client_id)
        if stored is None or stored.version != client.version:
            return "moved"
        del clients[client.client_id]
        self._tell(client.owner, notice)
        return "dropped"

    def _tell(self, owner: Owner, body: bytes) -> None:
        if body:
            self._feeds.add(owner, body, at=self._clock.now())


_no = attrgetter("no")


class _Feed(Struct):
    rows: list[FeedRow] = field(default_factory=list)
    first: int = 1
    """The number after the last purged entry."""
    last: int = 0


class MemoryFeeds:
    def __init__(self) -> None:
        self._feeds: dict[Owner, _Feed] = {}

    def add(
        self,
        owner: Owner,
        body: bytes,
        *,
        at: float,
        count: int = 1,
        thread_id: str | None = None,
        version: int | None = None,
    ) -> None:
        feed = self._feeds.setdefault(owner, _Feed())
        feed.last += count
        feed.rows.append(FeedRow(feed.last, count, at, body, thread_id, version))

    def after(self, owner: Owner, no: int, limit: int) -> list[FeedRow]:
        rows = self._feeds.get(owner, _Feed()).rows
        start = bisect_right(rows, no, key=_no)
        return rows[start : start + limit]

    def span(self, owner: Owner) -> tuple[int, int]:
        feed = self._feeds.get(owner, _Feed())
        return feed.first, feed.last

    def drop_thread(self, owner: Owner, thread_id: str) -> None:
        feed = self._feeds.get(owner, _Feed())
        feed.rows = [each for each in feed.rows if each.thread_id != thread_id]

    def count_old(self, before: float) -> int:
        return sum(row.count for feed in self._feeds.values() for row in feed.rows if row.at < before)

    def purge(self, before: float) -> None:
        for feed in self._feeds.values():
            old = [row.no for row in feed.rows if row.at < before]
            if old:
                feed.first = old[-1] + 1
                feed.rows = [row for row in feed.rows if row.at >= before]


class _Stored(Struct):
    file: StoredFile
    written_at: float
    pieces: list[bytes] = field(default_factory=list)
    is_complete: bool = False
    threads: set[str] = field(default_factory=set)


class MemoryFiles:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stored: dict[str, _Stored] = {}

    async def get(self, owner: Owner, ref: str) -> StoredFile | None:
        stored = self._complete(owner, ref)
        return None if stored is None else stored.file

    async def piece(self, owner: Owner, ref: str, no: int) -> bytes | None:
        stored = self._complete(owner, ref)
        return stored.pieces[no] if stored is not None and 0 <= no < len(stored.pieces) else None

    async def kept(self, tenant: str, subject: str | None = None) -> Kept:
        files = [each.file for each in self._stored.values() if is_of(each.file.owner, tenant, subject)]
        return Kept(len(files), sum(file.size for file in files))

    async def put(self, file: StoredFile, no: int, pieces: Sequence[bytes], *, is_last: bool) -> bool:
        stored = self._stored.get(file.ref)
        if stored is None and no == 0:
            stored = self._stored[file.ref] = _Stored(replace(file, size=0), self._clock.now())
        elif stored is None or no == 0 or stored.file.owner != file.owner:
            return False
        if stored.is_complete or no != len(stored.pieces):
            return False
        stored.pieces += pieces
        stored.file = replace(stored.file, size=stored.file.size + sum(map(len, pieces)))
        stored.written_at = self._clock.now()
        stored.is_complete = is_last
        return True

    async def drop(self, owner: Owner, ref: str) -> None:
        stored = self._stored.get(ref)
        if stored is not None and stored.file.owner == owner:
            del self._stored[ref]

    def bind(self, owner: Owner, thread_id: str, refs: Sequence[str]) -> None:
        for ref in refs:
            stored = self._complete(owner, ref)
            if stored is not None:
                stored.threads.add(thread_id)

    def drop_thread(self, owner: Owner, thread_id: str) -> None:
        """Removes the files that no other thread has."""
        bound = [
            ref
            for ref, each in self._stored.items()
            if each.file.owner == owner and thread_id in each.threads
        ]
        for ref in bound:
            self._stored[ref].threads.discard(thread_id)
            if not self._stored[ref].threads:
                del self._stored[ref]

    def count_old(self, before: float) -> int:
        return len(self._old(before))

    def purge(self, before: float) -> None:
        for ref in self._old(before):
            del self._stored[ref]

    def _old(self, before: float) -> list[str]:
        arriving = max(before, self._clock.now() - ARRIVING_SEC)
        return [
            ref
            for ref, each in self._stored.items()
            if not each.threads and each.written_at < (before if each.is_complete else arriving)
        ]

    def _complete(self, owner: Owner, ref: str) -> _Stored | None:
        stored = self._stored.get(ref)
        return stored if stored is not None and stored.is_complete and stored.file.owner == owner else None
