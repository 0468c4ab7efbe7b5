"""The paths outside the faces: pages, browser sign-in, health checks, and unknown paths.

None of them needs a credential; all of them check the Host header. The chat page and the Inspector are shown
to browsers that are signed in; other browsers are asked to sign in, and programs get the plain page with
instructions.
"""

from __future__ import annotations

import asyncio
import logging
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from farhand.agent.branding import LogoFile, ShownImage
from farhand.agent.service import AgentService
from farhand.errors import (
    Broken,
    FarhandError,
    NotFound,
    PeerFault,
    ShuttingDown,
    SignInNeeded,
    StoreDown,
    WrongMethod,
)
from farhand.faces.base import ErrorEncoder, Face, explain_error
from farhand.faces.threads.encode import LOGO_PATH
from farhand.server.auth.authenticator import Authenticator
from farhand.server.error_codes import ERROR_CODES
from farhand.server.landing import PAGE_HEADERS, Facts, example_for, landing
from farhand.server.notices import Notices, unknown_path
from farhand.server.static_files import CHAT, GALLERY, INSPECTOR, BuiltPages, wants_page
from farhand.wire.address import base_url, query, root_path
from farhand.wire.http import Header, respond_body, respond_json
from farhand.wire.json_writer import encode

log = logging.getLogger("farhand.server")

_Show: TypeAlias = Callable[[Scope, Send], Awaitable[None]]

PING_WITHIN_SEC = 2.0
INSPECTOR_PATH = "/_farhand"
_EXTRA_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; frame-ancestors 'self'"
)
_EXTRA_HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", _EXTRA_POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
_PASTED = re.compile(r"[?&]token=([^&#\s]+)")
_IMAGE_BYTES = 8 * 1024 * 1024
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_LOGO_HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; sandbox"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"private, max-age=300"),
)


class PageRoutes(Struct, frozen=True):
    """The paths of the pages, and the response for unknown paths."""

    routes: Sequence[BaseRoute]
    auth: Authenticator
    notices: Notices

    def unknown_paths(self, faces: Sequence[Face]) -> list[BaseRoute]:
        """Below a first path segment that only one face uses, a 404 is written in the format of that face."""
        owners: dict[str, dict[str, ErrorEncoder]] = {}
        for face in faces:
            for route in face.routes:
                owners.setdefault(route.path.split("/")[1], {})[face.name] = face.explain
        return [
            Route(path, self.unknown_path(*explains.values()))
            for folder, explains in owners.items()
            if len(explains) == 1
            for path in (f"/{folder}", f"/{folder}/{{rest:path}}")
        ]

    def unknown_path(self, explain: ErrorEncoder = explain_error) -> ASGIApp:
        """Answers any path with a 404."""
        return _UnknownPath(self.auth, self.notices, explain)


def pages(
    service: AgentService, auth: Authenticator, ui: BuiltPages, *, shows_chat: bool, shows_inspector: bool
) -> PageRoutes:
    notices = Notices(service.spec.branding, has_chat=shows_chat, is_local=not auth.has_hook)
    handlers = _Pages(service, auth, ui, notices, shows_chat=shows_chat, shows_inspector=shows_inspector)
    shown: dict[str, _Show] = {
        "/": handlers.front,
        INSPECTOR_PATH: handlers.inspector,
        f"{INSPECTOR_PATH}/cards": handlers.gallery,
        "/assets/{name}": handlers.asset,
        LOGO_PATH: handlers.logo,
        "/errors/{code}": handlers.error_code,
        **dict.fromkeys(service.spec.branding.pages, handlers.extra),
        "/healthz": handlers.health,
        "/readyz": handlers.readiness,
    }
    return PageRoutes(
        [Route(path, _Page(auth, notices, show)) for path, show in shown.items()], auth, notices
    )


class _UnknownPath:
    def __init__(self, auth: Authenticator, notices: Notices, explain: ErrorEncoder) -> None:
        self._auth = auth
        self._notices = notices
        self._explain = explain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000, "reason": ""})
            return
        error: FarhandError = unknown_path()
        try:
            # for a foreign host, no path is revealed to exist or not
            self._auth.check_host(scope)
        except FarhandError as refused:
            error = refused
        await self._notices.refuse(scope, send, error, self._explain)


class _Pages:
    def __init__(
        self,
        service: AgentService,
        auth: Authenticator,
        ui: BuiltPages,
        notices: Notices,
        *,
        shows_chat: bool,
        shows_inspector: bool,
    ) -> None:
        self._notices = notices
        self._shows_chat = shows_chat
        self._shows_inspector = shows_inspector
        self._service = service
        self._auth = auth
        self._ui = ui

    async def front(self, scope: Scope, send: Send) -> None:
        token = query(scope).get("token")
        if token is not None:
            await self._sign_in(scope, send, token, "/" if self._shows_chat else INSPECTOR_PATH)
            return
        if not self._shows_chat:
            raise NotFound(
                "The chat page is off.", hint="Turn it on with create_app(…, page=True) or --page."
            )
        await self._show_page(scope, send, CHAT)

    async def inspector(self, scope: Scope, send: Send) -> None:
        if not self._shows_inspector:
            raise NotFound(
                "The Inspector is off.",
                hint="Turn it on with --inspector; it stays off with --open.",
            )
        token = query(scope).get("token")
        if token is not None:
            await self._sign_in(scope, send, token, INSPECTOR_PATH)
            return
        if not self._ui.is_built:
            raise unknown_path()
        await self._show_page(scope, send, INSPECTOR)

    async def gallery(self, scope: Scope, send: Send) -> None:
        """Every card in every state, for people who restyle them: only on a development server."""
        if not self._shows_inspector or self._auth.has_hook or not self._ui.has(GALLERY):
            raise unknown_path()
        await self._show_page(scope, send, GALLERY)

    async def asset(self, scope: Scope, send: Send) -> None:
        """Scripts and styles are the same for everyone and need no credential."""
        if not await self._ui.asset(scope, send):
            raise unknown_path()

    async def logo(self, scope: Scope, send: Send) -> None:
        """The agent's own image. It may be an SVG, which may do nothing when it is opened as a page."""
        logo = self._service.spec.branding.logo
        if not isinstance(logo, LogoFile):
            raise unknown_path()
        await respond_body(send, 200, logo.media_type.encode(), logo.content, _LOGO_HEADERS)

    async def error_code(self, scope: Scope, send: Send) -> None:
        """The same for everyone, so it needs no credential."""
        code = scope["path_params"]["code"]
        if code not in ERROR_CODES:
            raise unknown_path()
        meaning, next_step = ERROR_CODES[code]
        await self._notices.explain_code(scope, send, code, f"{meaning} {next_step}")

    async def extra(self, scope: Scope, send: Send) -> None:
        """A page that comes with the agent; the chat page may frame it."""
        page = self._service.spec.branding.pages[scope["path"].removeprefix(root_path(scope))]
        content = await page(query(scope), partial(self._image, scope))
        await respond_body(send, 200, b"text/html; charset=utf-8", content, _EXTRA_HEADERS)

    async def _image(self, scope: Scope, ref: str) -> ShownImage | None:
        """In the page itself: a framed page has no cookie with which it could ask for a file."""
        try:
            principal = await self._auth.admit(scope, "chat")
        except PeerFault:
            return None
        found = await self._service.files.load(principal.owner, ref, at_most=_IMAGE_BYTES)
        if found is None or found[0].media_type not in _IMAGE_TYPES:
            return None
        file, data = found
        return ShownImage(file.name, f"data:{file.media_type};base64,{b64encode(data).decode()}")

    async def health(self, scope: Scope, send: Send) -> None:
        """The process is alive."""
        await respond_json(send, 200, _OK)

    async def readiness(self, scope: Scope, send: Send) -> None:
        """Ready for new work: the store responds and the server is not shutting down."""
        if self._auth.closed:
            raise ShuttingDown("The server is shutting down.")
        try:
            async with asyncio.timeout(PING_WITHIN_SEC):
                await self._service.ping()
        except TimeoutError:
            raise StoreDown("The store is not responding.", hint="Try again in a moment.") from None
        await respond_json(send, 200, _OK)

    async def _sign_in(self, scope: Scope, send: Send, token: str, to: str) -> None:
        """Redirects, so that the token does not stay in the address bar, the history or copied links."""
        try:
            cookies = self._auth.sign_in(scope, _token_in(token))
        except SignInNeeded as error:
            await self._show(scope, send, error)
            return
        home = f"{root_path(scope)}{to}".encode()
        signed_in = tuple((b"set-cookie", cookie) for cookie in cookies)
        headers = ((b"location", home), *signed_in, *PAGE_HEADERS)
        await respond_body(send, 303, b"text/plain", b"", headers)

    async def _show_page(self, scope: Scope, send: Send, name: str) -> None:
        if self._ui.is_built and wants_page(scope) and await self._is_known(scope):
            logo = self._service.spec.branding.logo
            await self._ui.page(scope, send, name, logo=logo if isinstance(logo, str) else None)
            return
        await self._show(scope, send)

    async def _show(self, scope: Scope, send: Send, problem: SignInNeeded | None = None) -> None:
        is_known = await self._is_known(scope)
        if not is_known and (self._auth.has_hook or wants_page(scope)):
            token_to = "" if self._auth.has_hook else _home(scope)
            await self._notices.sign_in(scope, send, problem, token_to)
            return
        tools = self._service.spec.toolbox.tools() if is_known else None
        facts = Facts(
            address=base_url(scope),
            notice=problem.message if problem else _notice(self._auth, is_known=is_known),
            needs_token=not self._auth.has_hook and not self._auth.open,
            has_hook=self._auth.has_hook,
            tools=tools,
            home=_home(scope),
            # the example calls one of them
            example=example_for(tools or ()),
            chat_id=f"chat-{self._service.clock.fresh('thr')[-8:]}",
        )
        status = 200 if problem is None else 401
        await respond_body(send, status, b"text/html; charset=utf-8", landing(facts), PAGE_HEADERS)

    async def _is_known(self, scope: Scope) -> bool:
        try:
            await self._auth.admit_to_page(scope)
        except PeerFault:
            return False
        return True


class _Page:
    """One path, with its error boundary."""

    def __init__(self, auth: Authenticator, notices: Notices, show: _Show) -> None:
        self._auth = auth
        self._notices = notices
        self._show = show

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._auth.check_host(scope)
            if scope["method"] not in {"GET", "HEAD"}:
                raise WrongMethod("This path accepts GET only.")
            await self._show(scope, send)
        except FarhandError as error:
            await self._notices.refuse(scope, send, error)
        except Exception:
            log.exception("unhandled exception in %s %s", scope["method"], scope["path"])
            broken = Broken("Internal server error.", hint="See the server's log.")
            await self._notices.refuse(scope, send, broken)


_OK = encode({"ok": True})


def _home(scope: Scope) -> str:
    """A visitor who came for the Inspector gets there after signing in; everyone else gets to the chat."""
    inspector = f"{root_path(scope)}{INSPECTOR_PATH}"
    return inspector if scope["path"] == inspector else f"{root_path(scope)}/"


def _token_in(text: str) -> str:
    """The token itself, or the whole address that has it, as somebody pasted it into the sign-in page."""
    found = _PASTED.search(text)
    return text.strip() if found is None else found[1]


def _notice(auth: Authenticator, *, is_known: bool) -> str:
    if is_known:
        return "You are signed in." if not auth.open else "Every program on this machine has access."
    return (
        "You are not signed in. Open the address that the server printed at start, or enter the token: "
        "the part of that address after ?token="
    )
