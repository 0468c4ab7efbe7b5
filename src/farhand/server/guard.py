"""One path of one face: lets in who may come in, runs the endpoint, words what went wrong.

The outermost guard: whatever an endpoint raises becomes an answer with a code, never a traceback.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial

from starlette.types import Receive, Scope, Send

from farhand.core.principal import Owner, Principal
from farhand.errors import Broken, FarhandError, Misuse, ShuttingDown, TooMany, WrongMethod
from farhand.faces.base import Face, Request, Route, SocketRequest, SocketRoute, status_of
from farhand.server.door import Door
from farhand.server.streams import Open
from farhand.server.traffic import Traffic
from farhand.wire.http import Header, respond_json
from farhand.wire.line import Line
from farhand.wire.websocket import INTERNAL, NO_CREDENTIAL, NOT_ALLOWED, TOO_MANY, Socket, refuse

log = logging.getLogger("farhand.server")


class Guarded:
    def __init__(self, face: Face, door: Door, traffic: Traffic) -> None:
        self.routes: dict[str, Route] = {}
        self.face = face
        self._door = door
        self._traffic = traffic
        self._settings = traffic.settings
        self._rates = traffic.rates
        self._now = traffic.now

    def add(self, route: Route) -> None:
        self.routes[route.method] = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line = Line(receive, send)
        opened: Open | None = None
        try:
            route = self.routes.get(scope["method"])
            if route is None:
                raise self._wrong_method(scope)
            principal = await self._door.admit(scope, route.scope)
            owner = Owner(principal.tenant, principal.subject)
            request = Request(scope, line, principal, owner, route.limit, self._settings)
            if route.rate is not None:
                self._rates[route.rate].count(owner, self._now())
            if route.streams:
                # when its sign-in ends, the connection is cut: a reader can tell that from an end
                opened = self._traffic.streams.begin(
                    Open(scope, route.scope, principal, owner, line.cut), self._now()
                )
            await route.endpoint(request)
        except FarhandError as error:
            await self._refuse(line, error)
        except asyncio.CancelledError:
            await self._say_cut_short(line)
            raise
        except Exception:
            log.exception("%s %s broke", scope.get("method"), scope["path"])
            await self._refuse(
                line, Broken("Something broke inside the server.", hint="Its log has the details.")
            )
        finally:
            if opened is not None:
                self._traffic.streams.end(opened)

    def _wrong_method(self, scope: Scope) -> WrongMethod:
        self._door.check_place(scope)
        return WrongMethod(f"This path takes {', '.join(sorted(self.routes))}.")

    async def _say_cut_short(self, line: Line) -> None:
        """A stop is no fault, and can be waited for; left alone, the server below would say that it broke."""
        if not line.has_answered:
            with suppress(OSError):
                await self._refuse(line, _cut_short())

    async def _refuse(self, line: Line, error: FarhandError) -> None:
        if line.has_answered:
            # the answer is under way and can't be taken back: the connection is cut, and the reader can tell
            raise error
        self._traffic.note(self.face.name, error)
        status = status_of(error)
        if isinstance(error, Broken | Misuse) and status == 500:
            log.error("%s: %s", error.code, error)
        await respond_json(line.send, status, self.face.explain(error, status), self._headers(error, status))

    def _headers(self, error: FarhandError, status: int) -> tuple[Header, ...]:
        if status == 405:
            return ((b"allow", ", ".join(sorted(self.routes)).encode()),)
        return refusal_headers(error, status)


class GuardedSocket:
    """One WebSocket path: turned away before it is accepted, or served until it ends."""

    def __init__(self, face: Face, route: SocketRoute, door: Door, traffic: Traffic) -> None:
        self.route = route
        self._face = face
        self._door = door
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self._traffic.settings.limits
        socket = Socket(
            receive,
            send,
            max_bytes=limits.socket_frame,
            per_second=limits.socket_frames_per_sec,
            idle_after=limits.socket_idle_sec,
            stall_after=limits.stalled_after_sec,
        )
        try:
            principal = await self._door.admit(scope, self.route.scope)
        except FarhandError as error:
            self._traffic.note(self._face.name, error)
            await refuse(receive, send, _refusal_code(error), error.message, is_page=_is_page(scope))
            return
        cut = partial(socket.close, NO_CREDENTIAL, "You are no longer signed in.")
        opened = Open(scope, self.route.scope, principal, principal.owner, cut)
        try:
            with self._traffic.streams.place(opened, self._traffic.now()):
                await self._serve(scope, socket, principal)
        except TooMany as error:
            self._traffic.note(self._face.name, error)
            # accepted first: a page is told the code of a connection that was open, and of no other
            await socket.accept()
            await socket.close(TOO_MANY, error.message)

    async def _serve(self, scope: Scope, socket: Socket, principal: Principal) -> None:
        await socket.accept()
        try:
            await self.route.endpoint(SocketRequest(scope, socket, principal))
        except* Exception:
            log.exception("%s broke", scope["path"])
            await socket.close(INTERNAL)


def _cut_short() -> ShuttingDown:
    return ShuttingDown(
        "The server stopped before it could answer.",
        hint="Send the same again in a moment: what was applied is not applied twice.",
    )


def _refusal_code(error: FarhandError) -> int:
    if isinstance(error, Broken):
        return INTERNAL
    if isinstance(error, TooMany):
        return TOO_MANY
    return NO_CREDENTIAL if error.code == "unauthenticated" else NOT_ALLOWED


def _is_page(scope: Scope) -> bool:
    """Browsers name the origin of the page that asks; programs do not."""
    return any(name == b"origin" for name, _ in scope["headers"])


def refusal_headers(error: FarhandError, status: int) -> tuple[Header, ...]:
    """What goes with a no: how to sign in, or when to come back."""
    if isinstance(error, TooMany):
        return ((b"retry-after", str(error.retry_after).encode()),)
    if status == 401:
        return ((b"www-authenticate", b"Bearer"),)
    return ((b"retry-after", b"1"),) if status == 503 else ()
