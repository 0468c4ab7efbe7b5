"""The load client: users with raw connections, as cheap as possible in Python, in a process of its own.

Its argument says in JSON what to do. It prints the results as JSON, with the processor time of server and
client: a client that is busier than the server would measure itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import uvloop

from bench.chats import chats
from bench.connection import Connection, connect
from bench.dialects import DIALECTS, Dialect, ack_request, chat_request, get_request, post_request
from bench.machine import Meter, allow_many_files, memory_of

WITHIN_SEC = 240.0
PATIENCE = 10
"""How many times as long a load may take if there are few results."""
OK = b"HTTP/1.1 200"
_LENGTH = re.compile(rb"(?is)\r\ncontent-length: (\d+)\r\n(?:.*?\r\n)??\r\n")
_CHUNK_SIZE = re.compile(rb"\r\n[0-9a-f]+\r\n")


class User:
    """One user who makes round trips: message out, call in, result out, final text in."""

    def __init__(self, name: str, dialect: Dialect, book: Book, pause: float = 0.0) -> None:
        """`pause`: seconds between two trips."""
        self._name = name
        self._pause = pause
        self._dialect = dialect
        self._book = book
        self._trip = 0
        self._seen = bytearray()
        self._answered = False
        self._receipt = False
        self._begun = 0.0
        self._answered_at = 0.0
        self._stream: Connection
        self._post: Connection

    async def connect(self, ports: list[int]) -> None:
        self._stream = await connect(ports[0], self._on_data)
        # with a second worker, answers land on the other one
        self._post = await connect(ports[-1], self._on_receipt)

    def begin(self) -> None:
        self._trip += 1
        self._answered = False
        self._receipt = not self._dialect.has_receipt
        self._seen.clear()
        self._begun = time.perf_counter()
        self._stream.write(self._dialect.ask(self._name, self._trip))

    def _on_data(self, data: bytes) -> None:
        if not data:
            self._book.fail("the stream's connection was closed")
            return
        self._seen += data
        if not self._answered:
            self._answer_call()
            return
        if self._answered_at and self._dialect.value(self._name, self._trip) in self._seen:
            # the value shows that the run has received the answer; other data may arrive before it
            self._book.wakes.append(time.perf_counter() - self._answered_at)
            self._answered_at = 0.0
        if self._seen.endswith(b"0\r\n\r\n") and b"[DONE]" in self._seen:
            self._end()

    def _answer_call(self) -> None:
        found = self._dialect.find_call(self._seen)
        if found is None:
            if not self._seen.startswith(OK[: len(self._seen)]):
                self._book.fail(self._seen[:300].decode(errors="replace"))
            return
        self._answered = True
        self._answered_at = time.perf_counter()
        answer = self._dialect.answer(self._name, self._trip, found)
        if self._dialect.has_receipt:
            self._post.write(answer)
            return
        self._seen.clear()
        self._stream.write(answer)

    def _on_receipt(self, data: bytes) -> None:
        if data.startswith(b"{"):
            # the body arrives after the headers, in a separate packet
            data = OK + data
        if not data.startswith(OK):
            self._book.fail(data[:300].decode(errors="replace"))
            return
        if not data.endswith(b"}"):
            return
        self._receipt = True
        if not self._answered:
            self._next()

    def _end(self) -> None:
        if self._dialect.value(self._name, self._trip) not in self._seen:
            self._book.fail(f"the value is missing: {self._seen[-600:].decode(errors='replace')}")
            return
        self._answered = False
        if self._receipt:
            self._next()

    def _next(self) -> None:
        self._book.add(time.perf_counter() - self._begun)
        if self._pause:
            asyncio.get_running_loop().call_later(self._pause, self._continue)
        else:
            self._continue()

    def _continue(self) -> None:
        if not self._book.closed:
            self.begin()


class Book:
    """The trips of all users."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.wakes: list[float] = []
        self.closed = False
        self.fault: str | None = None
        self._over = asyncio.Event()

    def add(self, seconds: float) -> None:
        self.times.append(seconds)

    def fail(self, why: str) -> None:
        if not self.closed:
            self.fault = why
            self._over.set()

    async def run(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            return
        raise RuntimeError(f"the load found a fault: {self.fault}")


async def trips(spec: dict[str, Any]) -> dict[str, object]:
    book = Book()
    dialect = DIALECTS[spec.get("dialect", "held")]
    # a name that no earlier load used, so that the threads are new
    pause: float = spec.get("pause", 0.0)
    users = [User(f"{os.getpid()}-{number}", dialect, book, pause) for number in range(spec["users"])]
    for user in users:
        await user.connect(spec["ports"])
        user.begin()
        # users who pause do not start all at once
        await asyncio.sleep(pause / len(users))
    await book.run(spec.get("warm", 0.5))
    book.times.clear()
    book.wakes.clear()
    meter = Meter(spec["pids"], spec.get("database"))
    for _ in range(PATIENCE):
        await book.run(spec["seconds"])
        # a slow server gets enough time for one trip of each user; otherwise a few fast trips would distort
        # it
        if len(book.times) >= len(users):
            break
    used, done = meter.read(), book.times.copy()
    book.closed = True
    if not done:
        raise RuntimeError("no round trip was finished")
    done.sort()
    wakes = sorted(book.wakes)
    return {
        **used,
        "count": len(done),
        "rate": len(done) / used["seconds"],
        "each": used["cpu"] / len(done),
        "p50": median(done),
        "p99": done[int(len(done) * 0.99)],
        "wake": wakes[int(len(wakes) * 0.99)],
    }


async def deltas(spec: dict[str, Any]) -> dict[str, object]:
    """One reader of one long answer."""
    over = asyncio.get_running_loop().create_future()
    seen: list[bytes] = []

    def on_data(data: bytes) -> None:
        seen.append(data)
        if data.endswith(b"0\r\n\r\n") or not data:
            over.set_result(None)

    connection = await connect(spec["port"], on_data)
    meter = Meter(spec["pids"])
    connection.write(chat_request("reader", spec["thread"], f"{spec['pace']} {spec['count']}"))
    await asyncio.wait_for(over, WITHIN_SEC)
    used = meter.read()
    # a large event is sent in several chunks, and their sizes may stand inside a word
    body = _CHUNK_SIZE.sub(b"", b"".join(seen))
    # words that queue up may arrive in one event
    words, events = body.count(b"word "), body.count(b'"type":"text-delta"')
    if words < spec["count"]:
        raise RuntimeError(f"{words} words of {spec['count']}: {body[-300:]!r}")
    return {
        **used,
        "count": words,
        "events": events,
        "rate": words / used["seconds"],
        "each": used["cpu"] / words,
        "each_event": used["cpu"] / events,
    }


async def posts(spec: dict[str, Any]) -> dict[str, object]:
    """Posts a result for each of these calls, a few at a time."""
    text = await asyncio.to_thread(Path(spec["ids"]).read_text)
    requests = [ack_request("answerer", call_id, "v") for call_id in text.split()]
    return await _posted(spec, requests, end=b"}")


async def park(spec: dict[str, Any]) -> dict[str, object]:
    """Posts messages whose runs park, and measures the memory of the server afterwards."""
    # a name that no earlier load used, so that the threads are new
    requests = [
        chat_request(f"parker-{number % 100}", f"parked-{os.getpid()}-{number}", "trip", "turn")
        for number in range(spec["count"])
    ]
    used = await _posted(spec, requests, end=b"0\r\n\r\n")
    return {**used, "memory": sum(memory_of(pid) for pid in spec["pids"])}


async def _posted(spec: dict[str, Any], requests: list[bytes], *, end: bytes) -> dict[str, object]:
    poster = Poster(requests, spec["users"], end)
    meter = Meter(spec["pids"])
    await poster.run(spec["port"])
    used = meter.read()
    count = len(requests)
    return {
        **used,
        "count": count,
        "asked": poster.asked,
        "rate": count / used["seconds"],
        "each": used["cpu"] / count,
    }


class Poster:
    """Sends requests one after the other on each of several connections; `end` is the end of a response."""

    def __init__(self, requests: list[bytes], connections: int, end: bytes) -> None:
        self._left = iter(requests)
        self._open = connections
        self._end = end
        self._fault: bytes | None = None
        self._over = asyncio.Event()
        self.asked = 0
        """Calls that were shown in the answers."""

    async def run(self, port: int) -> None:
        for _ in range(self._open):
            connection = await connect(port, lambda data: None)
            connection.on_data = partial(self._on_data, connection)
            connection.write(next(self._left))
        await asyncio.wait_for(self._over.wait(), WITHIN_SEC)
        if self._fault is not None:
            raise RuntimeError(f"a request was refused: {self._fault!r}")

    def _on_data(self, connection: Connection, data: bytes) -> None:
        self.asked += data.count(b'"type":"tool-input-available"')
        # the headers, or more data after good ones
        if not data or (data.startswith(b"HTTP/") and not data.startswith(OK)):
            self._fault = data
            self._over.set()
        elif data.endswith(self._end):
            self._continue(connection)

    def _continue(self, connection: Connection) -> None:
        request = next(self._left, None)
        if request is not None:
            connection.write(request)
            return
        self._open -= 1
        if self._open == 0:
            self._over.set()


async def hold(spec: dict[str, Any]) -> dict[str, object]:
    """Opens streams that each have a waiting call."""
    count = min(spec["count"], allow_many_files() - 200)
    waiting, over = 0, asyncio.Event()
    find = DIALECTS["held"].find_call

    async def open_one(number: int) -> Connection:
        seen = bytearray()

        def on_data(data: bytes) -> None:
            nonlocal waiting
            seen.extend(data)
            if find(seen) is not None:
                seen.clear()
                waiting += 1
                over.set()

        connection = await connect(spec["port"], on_data)
        connection.write(chat_request(f"holder-{number}", f"held-{number}", "trip"))
        return connection

    # warm-up: one-time allocations of a server are not part of a stream
    kept = [await open_one(number) for number in range(100)]
    before = await _waiting(over, lambda: waiting, 100, spec["pids"])
    for number in range(100, 100 + count):
        kept.append(await open_one(number))
        if number % 100 == 0:
            await _waiting(over, lambda: waiting, number - 100, spec["pids"])
    after = await _waiting(over, lambda: waiting, 100 + count, spec["pids"])
    return {"count": count, "each": (after - before) / count, "connections": len(kept)}


async def _waiting(over: asyncio.Event, waiting: Callable[[], int], wanted: int, pids: list[int]) -> int:
    """The server's memory once this many calls wait."""
    async with asyncio.timeout(WITHIN_SEC):
        while waiting() < wanted:
            over.clear()
            await over.wait()
    return sum(memory_of(pid) for pid in pids)


async def bare_posts(spec: dict[str, Any]) -> dict[str, object]:
    """Small posts, one after the other on each connection, until the time is up."""
    done = 0
    request = post_request("/api/plain", "answerer", {"toolCallId": "call_" + "0" * 32, "status": "success"})

    async def post() -> None:
        connection: Connection

        def on_data(data: bytes) -> None:
            nonlocal done
            if data.endswith(b"}"):
                done += 1
                connection.write(request)

        connection = await connect(spec["port"], on_data)
        connection.write(request)

    for _ in range(spec["users"]):
        await post()
    await asyncio.sleep(0.3)
    meter, before = Meter(spec["pids"]), done
    await asyncio.sleep(spec["seconds"])
    used, count = meter.read(), done - before
    return {**used, "count": count, "rate": count / used["seconds"], "each": used["cpu"] / count}


async def gets(spec: dict[str, Any]) -> dict[str, object]:
    """Requests one after the other on one connection, each read to its end; `follow` requests the next page
    each time, and starts again after the last one."""
    answers: asyncio.Queue[bytes] = asyncio.Queue()
    connection = await connect(spec["port"], answers.put_nowait)
    meter = Meter(spec["pids"])
    path, size, times = spec["path"], 0, []
    for _ in range(spec["count"]):
        begun = time.perf_counter()
        connection.write(get_request(path, "answerer"))
        body = await asyncio.wait_for(_whole(answers), WITHIN_SEC)
        times.append(time.perf_counter() - begun)
        size = len(body)
        if spec.get("follow"):
            place = json.loads(body).get("next")
            path = spec["path"] + (f"&after={quote(place, safe='')}" if place else "")
    used = meter.read()
    return {**used, "p50": median(times), "each": used["cpu"] / len(times), "bytes": size}


async def _whole(answers: asyncio.Queue[bytes]) -> bytes:
    """The body of a response with a content length."""
    data = b""
    while (found := _LENGTH.search(data)) is None or len(data) < found.end() + int(found[1]):
        piece = await answers.get()
        data += piece
        if not piece or not data.startswith(OK[: len(data)]):
            raise RuntimeError(f"a request was refused: {data[:300]!r}")
    return data[found.end() :]


KINDS = {
    "trips": trips,
    "deltas": deltas,
    "posts": posts,
    "park": park,
    "hold": hold,
    "bare_posts": bare_posts,
    "chats": chats,
    "gets": gets,
}


def main() -> None:
    spec = json.loads(sys.argv[1])
    allow_many_files()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(KINDS[spec["kind"]](spec))))


if __name__ == "__main__":
    main()
