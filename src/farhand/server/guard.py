"""One path of one face: lets in who may come in, runs the endpoint, words what went wrong.

The outermost guard: whatever an endpoint raises becomes an answer with a code, never a traceback.
"""

from __future__ import annotations

import logging

from starlette.types import Message, Receive, Scope, Send

from farhand.core.settings import Settings
from farhand.errors import Broken, FarhandError, Misuse, TooMany, WrongMethod
from farhand.faces.base import Face, Request, Route, SocketRequest, SocketRoute, status_of
from farhand.server.door import Door
from farhand.wire.http import Header, respond_json
from farhand.wire.websocket import INTERNAL, NO_CREDENTIAL, NOT_ALLOWED, Socket, refuse

log = logging.getLogger("farhand.server")


class Guarded:
    def __init__(self, face: Face, door: Door, settings: Settings) -> None:
        self.routes: dict[str, Route] = {}
        self.face = face
        self._door = door
        self._settings = settings

    def add(self, route: Route) -> None:
        self.routes[route.method] = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        try:
            await self._run(scope, receive, answer)
        except FarhandError as error:
            await self._refuse(answer, error)
        except Exception:
            log.exception("%s %s broke", scope.get("method"), scope["path"])
            await self._refuse(
                answer, Broken("Something broke inside the server.", hint="Its log has the details.")
            )

    async def _run(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        route = self.routes.get(scope["method"])
        if route is None:
            raise WrongMethod(f"This path takes {', '.join(sorted(self.routes))}.")
        principal = await self._door.admit(scope, route.scope)
        await route.endpoint(Request(scope, receive, answer, principal, route.limit, self._settings))

    async def _refuse(self, answer: _Answer, error: FarhandError) -> None:
        if answer.started:
            # the answer is under way and can't be taken back: the connection is cut, and the reader can tell
            raise error
        status = status_of(error)
        if isinstance(error, Broken | Misuse) and status == 500:
            log.error("%s: %s", error.code, error)
        await respond_json(answer, status, self.face.explain(error, status), self._headers(error, status))

    def _headers(self, error: FarhandError, status: int) -> tuple[Header, ...]:
        if status == 405:
            return ((b"allow", ", ".join(sorted(self.routes)).encode()),)
        if isinstance(error, TooMany):
            return ((b"retry-after", str(error.retry_after).encode()),)
        if status == 401:
            return ((b"www-authenticate", b"Bearer"),)
        return ((b"retry-after", b"1"),) if status == 503 else ()


class GuardedSocket:
    """One WebSocket path: turned away before it is accepted, or served until it ends."""

    def __init__(self, route: SocketRoute, door: Door, settings: Settings) -> None:
        self.route = route
        self._door = door
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            principal = await self._door.admit(scope, self.route.scope)
        except FarhandError as error:
            await refuse(receive, send, NO_CREDENTIAL if error.code == "unauthenticated" else NOT_ALLOWED)
            return
        socket = Socket(receive, send, max_bytes=self._settings.limits.socket_frame)
        await socket.accept()
        try:
            await self.route.endpoint(SocketRequest(scope, socket, principal))
        except* Exception:
            log.exception("%s broke", scope["path"])
            await socket.close(INTERNAL)


class _Answer:
    """`send`, remembering whether the answer has begun."""

    __slots__ = ("_send", "started")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        self.started = True
        await self._send(message)
