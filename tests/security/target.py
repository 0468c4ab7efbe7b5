"""A server under attack: a victim whose call waits during the attack, two authorized users, and a stranger.

Ada is the victim. Bob is of the same tenant, Eve has Ada's name in another tenant. After every attack the
server must have said nothing in the 500s, kept its loop and its memory free, and Ada's call is answered with
Ada's result.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx2
from starlette.requests import HTTPConnection
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from farhand.core.principal import SCOPES, Principal
from farhand.core.settings import Limits, Settings, Timeouts
from farhand.faces.base import Route
from farhand.models.scripted import Ask, Moment, Step
from farhand.server.app import App, create_app
from tests.faces.ui_stream.agents import Scene, told
from tests.faces.ui_stream.page import Live, Page
from tests.security.short_streams import listening

# Any: bodies of any wire
Json = Any
WITHIN_SEC = 15.0
BUSY_SEC = 1.0
"""Of processor time before the loop comes round again: so long may an attack keep everybody else waiting. The
longest is a large body that is read, a tenth of a second; the counting of covered lines adds to it.
"""
PAUSE_SEC = 0.02
"""Between two looks at how long the loop was busy."""
STILL_SEC = 10.0
"""The same by the clock, on a machine that has other things to do."""
GROWN_BYTES = 200 * 1024 * 1024

NOBODY = "nobody"
LISTED = "http://localhost:5173"
"""The one origin that a server without a hook is told of."""
PEOPLE = {
    "ada": Principal("house", "ada", SCOPES),
    "bob": Principal("house", "bob", SCOPES),
    "eve": Principal("other", "ada", SCOPES),
}
OTHERS = ("bob", "eve")


def token_of(who: str) -> str:
    return f"token-of-{who}-0123456789"


class People:
    """The hook: a token is a name. What a person may do, and whether they are known, can change."""

    def __init__(self) -> None:
        self.known = dict(PEOPLE)

    def __call__(self, request: HTTPConnection) -> Principal | None:
        said = request.headers.get("authorization", "")
        return next((each for who, each in self.known.items() if said == f"Bearer {token_of(who)}"), None)

    def may(self, who: str, *scopes: str) -> None:
        known = PEOPLE[who]
        self.known[who] = Principal(known.tenant, known.subject, frozenset(scopes))

    def may_not(self, who: str, *scopes: str) -> None:
        self.may(who, *(SCOPES - set(scopes)))

    def forget(self, who: str) -> None:
        del self.known[who]


@dataclass
class Target:
    app: App
    scene: Scene
    people: People
    url: str = ""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    statuses: list[tuple[str, int]] = field(default_factory=list)
    clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict)
    call: str = ""
    """The victim's open call."""
    approval: str = ""
    """The victim's open question."""
    victim: Live | None = None
    prepared: dict[str, str] = field(default_factory=dict)

    def credential(self, who: str) -> dict[str, str]:
        """On a server without a hook everybody who is known has its one token."""
        if self.app.auth.token is None or who == NOBODY:
            return credential(who)
        return {"authorization": f"Bearer {self.app.auth.token}"}

    async def http(self, who: str = NOBODY) -> httpx2.AsyncClient:
        """Whoever asks; what they are answered is written down."""
        if who not in self.clients:
            self.clients[who] = await self.stack.enter_async_context(_client(self, who))
        return self.clients[who]

    @asynccontextmanager
    async def socket(self, path: str, who: str = NOBODY, **headers: str) -> AsyncIterator[ClientConnection]:
        sent = {**self.credential(who), **headers}
        address = self.url.replace("http", "ws", 1) + path
        try:
            async with connect(address, additional_headers=sent, max_size=None, proxy=None) as socket:
                yield socket
        except InvalidStatus as refused:
            self.statuses.append((f"socket {path}", int(refused.response.status_code)))
            raise

    async def knock(self, face: str, who: str = NOBODY, headers: Json = None) -> int:
        """The status that the typical request of this face is answered with."""
        if face in PATHS_OF_SOCKETS:
            return await self._knock_at_socket(face, who, headers)
        http = await self.http(who)
        method, path, body = TYPICAL[face]
        given = await self.typical_headers(face, headers)
        async with http.stream(method, path, content=body, headers=given) as response:
            return int(response.status_code)

    async def knock_everywhere(self, face: str, who: str = NOBODY, headers: Json = None) -> dict[str, int]:
        """The status of every route that the face has, by its method and path."""
        if face in PATHS_OF_SOCKETS:
            return {face: await self._knock_at_socket(face, who, headers)}
        http = await self.http(who)
        given = await self.typical_headers(face, headers)
        found: dict[str, int] = {}
        for route in self.routes(face):
            path = _PARAMETER.sub("nothing", route.path)
            body = b"{}" if route.method not in ("GET", "HEAD") else None
            async with http.stream(route.method, path, content=body, headers=given) as response:
                found[f"{route.method} {route.path}"] = int(response.status_code)
        return found

    def routes(self, face: str) -> list[Route]:
        """As the server has them: a route that is added is attacked from then on."""
        [found] = [each.routes for each in self.app.faces if each.name == face]
        return list(found)

    async def typical_headers(self, face: str, headers: Json = None) -> list[tuple[str, str]]:
        more = list(headers.items()) if isinstance(headers, dict) else list(headers or [])
        plain = {"content-type": "text/plain", "x-farhand": "1"} if face == "files" else JSON
        return [*plain.items(), *more]

    async def send(self, who: str, method: str, path: str, body: Json = None) -> httpx2.Response:
        """A whole answer; a stream is left at once."""
        http = await self.http(who)
        content: Json = {} if body is None else {"json": body}
        if isinstance(body, bytes):
            content = {"content": body, "headers": JSON}
        async with asyncio.timeout(WITHIN_SEC), http.stream(method, path, **content) as response:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                await response.aread()
        return response

    async def open_call(self, who: str, tool: str = "open_url", chat: str = "") -> tuple[Page, str]:
        """A chat of this person that waits for this tool; the id of its call."""
        page = Page(await self.http(who), chat or f"of-{who}-{len(self.prepared)}")
        self.prepared[page.id] = who
        turn = await page.say(f"use {tool}")
        return page, turn.calls[-1]

    def approval_of(self, page: Page, call: str) -> str:
        return str(page.part(call)["approval"]["id"])

    async def hold_victim(self) -> None:
        """Ada's call, and a question to Ada, wait on a stream that stays open."""
        page = Page(await self.http("ada"), "victim", wait="hold")
        self.victim = live = await self.stack.enter_async_context(page.saying("use both"))
        self.approval = (await live.until("tool-approval-request"))["approvalId"]
        shown = [each for each in live.turn.chunks if each["type"] == "tool-input-available"]
        self.call = shown[0]["toolCallId"]

    async def victim_completes(self) -> None:
        assert self.victim is not None
        http = await self.http("ada")
        ack = {"toolCallId": self.call, "status": "success", "output": {"its": "own"}}
        assert (await http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
        no = {"approvalId": self.approval, "approved": False}
        assert (await http.post("/api/tools/approve", json=no)).json() == {"ok": True}
        turn = await self.victim.rest()
        assert turn.one("tool-output-available")["output"] == {"its": "own"}
        assert turn.finish == "stop"

    async def _knock_at_socket(self, face: str, who: str, headers: Json) -> int:
        sent = [
            *self.credential(who).items(),
            *(headers.items() if isinstance(headers, dict) else headers or []),
        ]
        address = self.url.replace("http", "ws", 1) + PATHS_OF_SOCKETS[face]
        status = 101
        try:
            async with connect(address, additional_headers=sent, proxy=None) as socket:
                # answered once it is known that it stays open
                await (await socket.ping())
        except InvalidStatus as refused:
            status = int(refused.response.status_code)
        except ConnectionClosed as closed:
            # a page is told in the words of the protocol: 4403 is a 403
            status = 0 if closed.rcvd is None else closed.rcvd.code - 4000
        self.statuses.append((f"socket {PATHS_OF_SOCKETS[face]}", status))
        return status


_PARAMETER = re.compile(r"\{\w+\}")
JSON = {"content-type": "application/json"}
PATHS_OF_SOCKETS = {"ws": "/api/chat/ws", "live": "/api/chat/live"}
_CHAT = b'{"id":"mine","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hello"}]}]}'
_RUN = b'{"threadId":"t","runId":"r","messages":[{"id":"m1","role":"user","content":"hello"}]}'
TYPICAL: dict[str, tuple[str, str, bytes | None]] = {
    "ack": ("POST", "/api/tools/ack", b'{"toolCallId":"call_0","status":"success","output":1}'),
    "awaiting": ("POST", "/agent/run", b'{"user_prompt":"hello"}'),
    "ui_stream": ("POST", "/api/chat", _CHAT),
    "agui": ("POST", "/ag-ui", _RUN),
    "threads": ("PATCH", "/api/chat/nothing", b'{"title":"x"}'),
    "files": ("POST", "/api/files", b"text"),
    "client_tools": ("POST", "/client-tools/register", b'{"clientID":"c","tools":[]}'),
    "events": ("GET", "/api/events", None),
    "inspector": ("POST", "/api/inspect/calls/nothing/again", b"{}"),
}
"""One request of each face, as it is meant."""

WELCOME = {
    "ack": 404, "awaiting": 200, "ui_stream": 200, "agui": 200, "threads": 404, "files": 201,
    "client_tools": 200, "events": 200, "inspector": 404, "ws": 101, "live": 101,
}  # fmt: skip
"""What whoever may come in is answered."""

NEEDS = {
    "ack": "answer", "awaiting": "chat", "ui_stream": "chat", "agui": "chat", "threads": "chat",
    "client_tools": "client",
    "events": "chat", "inspector": "answer", "ws": "chat", "live": "chat", "files": "chat",
}  # fmt: skip


def credential(who: str) -> dict[str, str]:
    return {} if who == NOBODY else {"authorization": f"Bearer {token_of(who)}"}


def script(moment: Moment) -> Step:
    """Uses the tool that the user names, and tells what came of it."""
    if moment.steps:
        return told(moment.last)
    if moment.text == "use both":
        return [Ask("open_url", {"url": "u"}), Ask("take_photo", {"camera": "front"})]
    if moment.text.startswith("use "):
        tool = moment.text.removeprefix("use ")
        return [Ask(tool, INPUTS.get(tool, {"text": "x"}))]
    return moment.text


INPUTS: dict[str, dict[str, object]] = {
    "open_url": {"url": "u"}, "ask_text": {"question": "q"}, "take_photo": {"camera": "front"},
    "delete_file": {"path": "p"}, "weather": {"city": "c"}, "slow": {"subject": "x"},
}  # fmt: skip


@asynccontextmanager
async def serve_target(
    limits: Limits | None = None, timeouts: Timeouts | None = None
) -> AsyncIterator[Target]:
    """A server with these limits, and Ada who waits."""
    people, scene = People(), Scene(script)
    settings = Settings(limits=limits or Limits(), timeouts=timeouts or Timeouts())
    app = create_app(scene.agent, store="memory:", authenticate=people, settings=settings, inspector=True)
    async with _serve_target(Target(app, scene, people)) as target:
        yield target


@asynccontextmanager
async def serve_development_target() -> AsyncIterator[Target]:
    """A server as it is during development: without a hook, with a token and a cookie."""
    people, scene = People(), Scene(script)
    app = create_app(scene.agent, store="memory:", allow_origins=[LISTED])
    async with _serve_target(Target(app, scene, people)) as target:
        yield target


@asynccontextmanager
async def _serve_target(target: Target) -> AsyncIterator[Target]:
    app = target.app
    await app.start()
    async with AsyncExitStack() as stack:
        stack.enter_context(no_tracebacks())
        target.stack, target.url = stack, await stack.enter_async_context(listening(app))
        # before the server waits for its connections, streams are ended
        stack.push_async_callback(app.drain)
        await target.hold_victim()
        async with watched(target):
            yield target
            await target.victim_completes()
    await app.stop()


@asynccontextmanager
async def watched(target: Target) -> AsyncIterator[None]:
    """What holds during every attack, and after it."""
    before = _resident()
    async with asyncio.TaskGroup() as group:
        with _Busy() as busy:
            watch = group.create_task(busy.watch())
            yield
            watch.cancel()
    assert busy.longest < BUSY_SEC, f"the loop was busy for {busy.longest:.2f} s without a pause"
    assert busy.stillest < STILL_SEC, f"the loop stood still for {busy.stillest:.1f} s"
    assert _resident() - before < GROWN_BYTES, "memory grew"
    broken = [each for each in target.statuses if each[1] >= 500]
    assert not broken, f"answered {broken}"


@contextmanager
def no_tracebacks() -> Iterator[None]:
    """Nothing was logged as broken. With a handler of its own: pytest's forgets when a test is torn down."""
    heard = _Heard()
    logging.getLogger().addHandler(heard)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(heard)
    bad = [each for each in heard.records if each.exc_info or each.levelno >= logging.ERROR]
    found = [each.getMessage() for each in bad if each.exc_info or each.getMessage() != _CUT]
    assert not found, f"logged: {found}"


_CUT = "ASGI callable returned without completing response."
"""What the server below says of a stream that is cut on purpose: there is no other way to cut one."""


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


class _Busy:
    """How long the loop worked at most before it came round again, in processor time and by the clock.

    Processor time leaves other programs out. The collection of garbage is subtracted: it goes through all
    that the tests of this process have left.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self.stillest = 0.0
        self._collected = 0.0
        self._collecting_since = 0.0

    def __enter__(self) -> Self:
        gc.callbacks.append(self._collect)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._collect)

    async def watch(self) -> None:
        while True:
            began, worked = time.monotonic(), time.thread_time() - self._collected
            await asyncio.sleep(PAUSE_SEC)
            self.stillest = max(self.stillest, time.monotonic() - began)
            # within the pause itself the loop may have come round many times
            self.longest = max(self.longest, time.thread_time() - self._collected - worked - PAUSE_SEC)

    def _collect(self, phase: str, _: object) -> None:
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collecting_since


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _client(target: Target, who: str) -> httpx2.AsyncClient:
    async def note(response: httpx2.Response) -> None:
        target.statuses.append(
            (f"{response.request.method} {response.request.url.path}", response.status_code)
        )

    return httpx2.AsyncClient(
        base_url=target.url,
        headers=target.credential(who),
        timeout=None,
        verify=False,
        trust_env=False,
        event_hooks={"response": [note]},
    )


async def holds_soon(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    """Waits for a fact that nobody announces."""
    async with asyncio.timeout(WITHIN_SEC):
        while True:
            found = holds()
            if found is True or (not isinstance(found, bool) and await found):
                return
            await asyncio.sleep(0.01)


async def heard_until(frames: AsyncIterator[str], word: str) -> str:
    """All that was heard of a stream up to this word."""
    heard = ""
    async with asyncio.timeout(WITHIN_SEC):
        while word not in heard:
            heard += await anext(frames)
    return heard
