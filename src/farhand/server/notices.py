"""Small pages for people: the path is unknown, the request failed, or they are not signed in.

Owns what they say, in the agent's own name and words. Programs get JSON, as from every other path. Must not
know who is signed in: `pages.py` decides.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Scope, Send

from farhand.agent.branding import Branding, LogoFile
from farhand.errors import FarhandError, NotFound, SignInNeeded
from farhand.faces.base import ErrorEncoder, explain_error, status_of
from farhand.faces.threads.encode import LOGO_PATH
from farhand.server.endpoint import refusal_headers
from farhand.server.landing import NOTICE_HEADERS, Brand, Notice, notice_page
from farhand.server.static_files import wants_page
from farhand.wire.address import root_path
from farhand.wire.http import Header, respond_body, respond_json

WORDS = {
    "notFound": "Page not found",
    "notFoundText": "There is nothing at this address.",
    "notShown": "This page cannot be shown",
    "openChat": "Open the chat",
    "notSignedIn": "You are not signed in",
    "signInFirst": "Sign in, then open this page again.",
    "signInToken": "Open the address that the server printed at start, or enter its token: the part of that "
    "address after “token=”. If that leads back to this page, allow cookies for this site in your browser.",
    "token": "Token",
    "signIn": "Sign in",
}
"""By the names under which an agent replaces them."""

_UNKNOWN_PATH = "Unknown path."
_ALLOWED: tuple[Header, ...] = ((b"allow", b"GET, HEAD"),)


def unknown_path() -> NotFound:
    return NotFound(_UNKNOWN_PATH, hint="GET / lists what is served.")


class Notices:
    """`is_local`: the person who opens a page has started the server, so an error says what to change."""

    def __init__(self, branding: Branding, *, has_chat: bool, is_local: bool) -> None:
        self._words = {**WORDS, **_known(branding.words or {})}
        self._title = branding.title or "farhand"
        self._has_logo = isinstance(branding.logo, LogoFile)
        self._has_chat = has_chat
        self._is_local = is_local

    async def sign_in(self, scope: Scope, send: Send, problem: SignInNeeded | None, token_to: str) -> None:
        """`token_to` is the path that takes the token; empty where people sign in elsewhere."""
        notice = Notice(
            brand=self._brand(scope),
            heading=self._words["notSignedIn"],
            text=self._words["signInToken" if token_to else "signInFirst"],
            problem="" if problem is None else problem.message,
            form=(token_to, self._words["token"], self._words["signIn"]) if token_to else None,
        )
        await _send(send, 200 if problem is None else 401, notice)

    async def refuse(
        self, scope: Scope, send: Send, error: FarhandError, explain: ErrorEncoder = explain_error
    ) -> None:
        """A page for a browser that opens the path; for everyone else what `explain` makes of it."""
        status = status_of(error)
        headers = _ALLOWED if status == 405 else refusal_headers(error, status)
        if not wants_page(scope) or not (status == 404 or status >= 500):
            await respond_json(send, status, explain(error, status), headers)
            return
        notice = Notice(
            brand=self._brand(scope),
            heading=self._words["notFound" if status == 404 else "notShown"],
            text=self._reason(error),
            link=self._link(scope) if status == 404 else None,
        )
        await _send(send, status, notice, headers)

    async def explain_code(self, scope: Scope, send: Send, code: str, text: str) -> None:
        """What an error code means: the chat page links here."""
        notice = Notice(self._brand(scope), heading=code, text=text, link=self._link(scope))
        await _send(send, 200, notice)

    def _reason(self, error: FarhandError) -> str:
        if self._is_local and error.message != _UNKNOWN_PATH:
            return f"{error.message} {error.hint}".strip()
        return self._words["notFoundText"] if isinstance(error, NotFound) else error.message

    def _link(self, scope: Scope) -> tuple[str, str] | None:
        return (f"{root_path(scope)}/", self._words["openChat"]) if self._has_chat else None

    def _brand(self, scope: Scope) -> Brand:
        return Brand(self._title, f"{root_path(scope)}{LOGO_PATH}" if self._has_logo else "")


def _known(words: Mapping[str, str]) -> dict[str, str]:
    return {name: word for name, word in words.items() if name in WORDS}


async def _send(send: Send, status: int, notice: Notice, headers: tuple[Header, ...] = ()) -> None:
    body = notice_page(notice)
    await respond_body(send, status, b"text/html; charset=utf-8", body, (*NOTICE_HEADERS, *headers))
