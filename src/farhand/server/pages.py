"""The paths around the faces: the pages, a browser's sign-in, the health checks, the unknown.

None of them needs a credential; each answers only for a host of this server. The chat page and the Inspector
are for browsers that are signed in; everybody else, and every program, gets the plain page that says how to
begin.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from farhand.agent.farhand import Farhand
from farhand.errors import (
    Broken,
    FarhandError,
    NotFound,
    PeerFault,
    ShuttingDown,
    SignInNeeded,
    StoreDown,
    TooMany,
    WrongMethod,
)
from farhand.faces.base import Explain, Face, status_of
from farhand.server.door import Door
from farhand.server.landing import PAGE_HEADERS, Facts, example_for, landing
from farhand.server.ui import CHAT, INSPECTOR, Ui, wants_page
from farhand.wire.address import query
from farhand.wire.http import Header, header, respond, respond_json
from farhand.wire.json_out import encode

log = logging.getLogger("farhand.server")

PING_WITHIN_SEC = 2.0


def pages(farhand: Farhand, door: Door, ui: Ui, *, shows_inspector: bool) -> list[BaseRoute]:
    shown = _Pages(farhand, door, ui, shows_inspector=shows_inspector)
    return [
        Route("/", _Page(door, shown.front)),
        Route("/_farhand", _Page(door, shown.inspector)),
        Route("/assets/{name}", _Page(door, shown.asset)),
        Route("/healthz", _Page(door, shown.health)),
        Route("/readyz", _Page(door, shown.readiness)),
    ]


def unknown_paths(door: Door, faces: Sequence[Face]) -> list[BaseRoute]:
    """Below a folder that one face has for itself, also what is not there is said in its words."""
    owners: dict[str, dict[str, Explain]] = {}
    for face in faces:
        for route in face.routes:
            owners.setdefault(route.path.split("/")[1], {})[face.name] = face.explain
    return [
        Route(path, not_found(door, *explains.values()))
        for folder, explains in owners.items()
        if len(explains) == 1
        for path in (f"/{folder}", f"/{folder}/{{rest:path}}")
    ]


def not_found(door: Door, explain: Explain | None = None) -> ASGIApp:
    """What a path is answered that nobody has."""
    return _Nothing(door, explain or _explain)


class _Nothing:
    def __init__(self, door: Door, explain: Explain) -> None:
        self._door = door
        self._explain = explain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000, "reason": ""})
            return
        try:
            # a host that is not this server's is told of no path, be it there or not
            self._door.check_place(scope)
        except FarhandError as error:
            await _refuse(send, error, self._explain)
            return
        await _refuse(send, _nothing(), self._explain)


class _Pages:
    def __init__(self, farhand: Farhand, door: Door, ui: Ui, *, shows_inspector: bool) -> None:
        self._shows_inspector = shows_inspector
        self._farhand = farhand
        self._door = door
        self._ui = ui

    async def front(self, scope: Scope, send: Send) -> None:
        token = query(scope).get("token")
        if token is not None:
            await self._sign_in(scope, send, token)
            return
        await self._show_page(scope, send, CHAT)

    async def inspector(self, scope: Scope, send: Send) -> None:
        if not self._shows_inspector:
            raise NotFound(
                "The Inspector is off here.",
                hint="Switch it on with --inspector; where nobody signs in (--open) it stays off.",
            )
        if not self._ui.is_built:
            raise _nothing()
        await self._show_page(scope, send, INSPECTOR)

    async def asset(self, scope: Scope, send: Send) -> None:
        """Scripts and styles: the same for everybody, so nobody is asked who they are."""
        if not await self._ui.asset(scope, send):
            raise _nothing()

    async def health(self, scope: Scope, send: Send) -> None:
        """The process answers."""
        await respond_json(send, 200, _OK)

    async def readiness(self, scope: Scope, send: Send) -> None:
        """New work is welcome: the store answers and nobody is stopping the server."""
        if self._door.closed:
            raise ShuttingDown("The server is about to stop.")
        try:
            async with asyncio.timeout(PING_WITHIN_SEC):
                await self._farhand.ping()
        except TimeoutError:
            raise StoreDown("The store does not answer.", hint="Try again in a moment.") from None
        await respond_json(send, 200, _OK)

    async def _sign_in(self, scope: Scope, send: Send, token: str) -> None:
        """The token leaves the address bar, and with it the history and every copied link."""
        try:
            cookies = self._door.sign_in(scope, token)
        except SignInNeeded as error:
            await self._show(scope, send, error)
            return
        home = scope.get("root_path", "").encode() + b"/"
        signed_in = tuple((b"set-cookie", cookie) for cookie in cookies)
        headers = ((b"location", home), *signed_in, *PAGE_HEADERS)
        await respond(send, 303, b"text/plain", b"", headers)

    async def _show_page(self, scope: Scope, send: Send, name: str) -> None:
        if self._ui.is_built and wants_page(scope) and await self._is_known(scope):
            await self._ui.page(scope, send, name)
            return
        await self._show(scope, send)

    async def _show(self, scope: Scope, send: Send, problem: SignInNeeded | None = None) -> None:
        is_known = await self._is_known(scope)
        tools = self._farhand.spec.toolbox.tools() if is_known else None
        facts = Facts(
            address=_address(scope),
            notice=str(problem) if problem else _notice(self._door, is_known=is_known),
            needs_token=not self._door.has_hook and not self._door.open,
            has_hook=self._door.has_hook,
            tools=tools,
            # it names one of them
            example=example_for(tools or ()),
            chat_id=f"chat-{self._farhand.clock.fresh('thr')[-8:]}",
        )
        status = 200 if problem is None else 401
        await respond(send, status, b"text/html; charset=utf-8", landing(facts), PAGE_HEADERS)

    async def _is_known(self, scope: Scope) -> bool:
        try:
            await self._door.admit(scope, "chat")
        except PeerFault:
            return False
        return True


class _Page:
    """One path; the outermost guard around it."""

    def __init__(self, door: Door, show: Callable[[Scope, Send], Awaitable[None]]) -> None:
        self._door = door
        self._show = show

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._door.check_place(scope)
            if scope["method"] not in {"GET", "HEAD"}:
                raise WrongMethod("This path takes GET.")
            await self._show(scope, send)
        except FarhandError as error:
            await _refuse(send, error)
        except Exception:
            log.exception("%s %s broke", scope["method"], scope["path"])
            await _refuse(send, Broken("Something broke inside the server.", hint="Its log has the details."))


_OK = encode({"ok": True})


def _nothing() -> NotFound:
    return NotFound("There is nothing at this path.", hint="GET / says what there is.")


def _explain(error: FarhandError, status: int) -> bytes:
    return encode({"error": {"code": error.code, "message": str(error)}})


async def _refuse(send: Send, error: FarhandError, explain: Explain = _explain) -> None:
    status = status_of(error)
    await respond_json(send, status, explain(error, status), _refusal_headers(error, status))


def _refusal_headers(error: FarhandError, status: int) -> tuple[Header, ...]:
    if status == 405:
        return ((b"allow", b"GET, HEAD"),)
    if isinstance(error, TooMany):
        return ((b"retry-after", str(error.retry_after).encode()),)
    return ((b"retry-after", b"1"),) if status == 503 else ()


def _address(scope: Scope) -> str:
    """As the visitor reached it, so that the commands work from where they are."""
    host = (header(scope, b"host") or b"").decode("latin-1")
    return f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '')}"


def _notice(door: Door, *, is_known: bool) -> str:
    if is_known:
        return "You are signed in." if not door.open else "Every program on this machine is let in."
    if door.has_hook:
        return "You are not signed in."
    return "You are not signed in. Open the address that the server printed at start; it ends in ?token=…"
