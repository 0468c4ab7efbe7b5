"""One path of one face: authenticates, checks limits, runs the endpoint, turns errors into responses.

The error boundary: whatever an endpoint raises becomes a response with a code, never a traceback.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial

from starlette.types import Receive, Scope, Send

from farhand.core.principal import Owner, Principal
from farhand.errors import Broken, FarhandError, Misuse, ShuttingDown, SignInNeeded, TooMany, WrongMethod
from farhand.faces.base import Face, Request, Route, SocketRequest, SocketRoute, explain_error, status_of
from farhand.server.app_state import AppState
from farhand.server.auth.authenticator import Authenticator
from farhand.server.streams import OpenStream
from farhand.wire.http import Header, HttpExchange, respond_json
from farhand.wire.websocket import INTERNAL, NO_CREDENTIAL, NOT_ALLOWED, TOO_MANY, Socket, refuse

log = logging.getLogger("farhand.server")


class HttpEndpoint:
    def __init__(self, face: Face, auth: Authenticator, state: AppState) -> None:
        self.routes: dict[str, Route] = {}
        self.face = face
        self._auth = auth
        self._state = state
        self._times = state.times
        self._rates = state.rates
        self._now = state.now

    def add(self, route: Route) -> None:
        self.routes[route.method] = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = HttpExchange(receive, send)
        opened: OpenStream | None = None
        try:
            route = self.routes.get(scope["method"])
            if route is None:
                raise self._wrong_method(scope)
            principal = await self._auth.admit(scope, route.scope)
            owner = Owner(principal.tenant, principal.subject)
            request = Request(scope, exchange, principal, owner, route.limit, self._times)
            if route.rate is not None:
                self._rates[route.rate].count(owner, self._now())
            if route.streams:
                # aborted when its credential is revoked: a reader can tell that from a normal end
                opened = self._state.streams.begin(
                    OpenStream(scope, route.scope, principal, owner, exchange.cut), self._now()
                )
            await route.endpoint(request)
        except FarhandError as error:
            await self._refuse(scope, exchange, error)
        except asyncio.CancelledError:
            await self._refuse_cut_short(scope, exchange)
            raise
        except Exception:
            log.exception("unhandled exception in %s %s", scope.get("method"), scope["path"])
            await self._refuse(
                scope, exchange, Broken("Internal server error.", hint="See the server's log.")
            )
        finally:
            if opened is not None:
                self._state.streams.end(opened)

    def _wrong_method(self, scope: Scope) -> WrongMethod:
        self._auth.check_host(scope)
        return WrongMethod(f"This path takes {', '.join(sorted(self.routes))}.")

    async def _refuse_cut_short(self, scope: Scope, exchange: HttpExchange) -> None:
        """A request cancelled by a shutdown gets a response that says to retry; the HTTP server would answer
        with a 500."""
        if not exchange.has_answered:
            with suppress(OSError):
                await self._refuse(scope, exchange, _cut_short())

    async def _refuse(self, scope: Scope, exchange: HttpExchange, error: FarhandError) -> None:
        if exchange.has_answered:
            # the response has begun and cannot be changed: the connection is aborted, which the reader can
            # detect
            raise error
        self._state.count_refusal(self.face.name, error)
        status = status_of(error)
        if isinstance(error, Broken | Misuse) and status == 500:
            log.error("%s: %s", error.code, error)
        headers = self._headers(scope, error, status)
        await respond_json(exchange.send, status, self.face.explain(error, status), headers)

    def _headers(self, scope: Scope, error: FarhandError, status: int) -> list[Header]:
        usual = refusal_headers(error, status)
        if status == 405:
            usual = ((b"allow", ", ".join(sorted(self.routes)).encode()),)
        own = () if self.face.refusal_headers is None else self.face.refusal_headers(error, scope)
        replaced = {name for name, _ in own}
        return [*(each for each in usual if each[0] not in replaced), *own]


class WebSocketEndpoint:
    """One WebSocket path: refused before it is accepted, or served until it closes."""

    def __init__(self, face: Face, route: SocketRoute, auth: Authenticator, state: AppState) -> None:
        self.route = route
        self._face = face
        self._auth = auth
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self._state.settings.limits
        socket = Socket(
            receive,
            send,
            max_bytes=limits.socket_frame,
            per_second=limits.socket_frames_per_sec,
            idle_after=limits.socket_idle_sec,
            stall_after=limits.stalled_after_sec,
        )
        try:
            principal = await self._auth.admit(scope, self.route.scope)
        except FarhandError as error:
            self._state.count_refusal(self._face.name, error)
            await refuse(receive, send, _refusal_code(error), error.message, is_page=_is_page(scope))
            return
        cut = partial(socket.close, NO_CREDENTIAL, "You are no longer signed in.")
        opened = OpenStream(scope, self.route.scope, principal, principal.owner, cut)
        try:
            with self._state.streams.counted(opened, self._state.now()):
                await self._serve(scope, socket, principal)
        except TooMany as error:
            self._state.count_refusal(self._face.name, error)
            # accepted first: browsers tell a page the close code only of an open connection
            await socket.accept()
            await socket.close(TOO_MANY, error.message)

    async def _serve(self, scope: Scope, socket: Socket, principal: Principal) -> None:
        await socket.accept()
        try:
            await self.route.endpoint(SocketRequest(scope, socket, principal))
        except* Exception:
            log.exception("unhandled exception in %s", scope["path"])
            await socket.close(INTERNAL)


def _cut_short() -> ShuttingDown:
    return ShuttingDown(
        "The server stopped before it could answer.",
        hint="Send the same request again in a moment; nothing is applied twice.",
    )


async def refuse_unstarted(scope: Scope, receive: Receive, send: Send) -> None:
    """For a request to an app that could not be started; the reason is for the log alone."""
    error = ShuttingDown(
        "The server has not started yet.", hint="Try again in a moment; nothing was applied."
    )
    if scope["type"] == "websocket":
        await refuse(receive, send, INTERNAL, error.message, is_page=_is_page(scope))
        return
    status = status_of(error)
    await respond_json(send, status, explain_error(error, status), refusal_headers(error, status))


def _refusal_code(error: FarhandError) -> int:
    if isinstance(error, Broken):
        return INTERNAL
    if isinstance(error, TooMany):
        return TOO_MANY
    return NO_CREDENTIAL if error.code == "unauthenticated" else NOT_ALLOWED


def _is_page(scope: Scope) -> bool:
    """Browsers send the origin of the page; programs do not."""
    return any(name == b"origin" for name, _ in scope["headers"])


_OWN_TOKEN = b'Bearer realm="farhand development token"'
"""Lets a page distinguish a server that takes the token printed at start from one with a host's own
sign-in."""


def refusal_headers(error: FarhandError, status: int) -> tuple[Header, ...]:
    """How to authenticate, or when to retry."""
    if isinstance(error, TooMany):
        return ((b"retry-after", str(error.retry_after).encode()),)
    if status == 401:
        takes_token = isinstance(error, SignInNeeded) and error.takes_token
        return ((b"www-authenticate", _OWN_TOKEN if takes_token else b"Bearer"),)
    return ((b"retry-after", b"1"),) if status == 503 else ()
