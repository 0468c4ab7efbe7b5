"""The one door for every request: who comes in, as whom, to do what. Nothing behind it asks again.

Host and Origin are judged first (`screen.py`), then the credential: by the `authenticate` hook if there is
one, else by the development key, for this machine only.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from pathlib import Path
from typing import TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Scope

from farhand.core.principal import LOCAL, SCOPES, Principal
from farhand.errors import FarhandError, NotAllowed, ShuttingDown, SignInDown, SignInNeeded
from farhand.server.cors import with_cors
from farhand.server.key import Key
from farhand.server.screen import Heads, Screen
from farhand.server.strikes import AT_MOST, Strikes

log = logging.getLogger("farhand.door")

Authenticate: TypeAlias = Callable[[HTTPConnection], Awaitable[Principal | None] | Principal | None]
"""Sync or async; None means: not signed in. A sync one must not block."""

HOOK_WITHIN_SEC = 10.0
LONGEST_NAME = 1024


class Door:
    def __init__(
        self,
        *,
        authenticate: Authenticate | None = None,
        allow_origins: Sequence[str] = (),
        allow_hosts: Sequence[str] = (),
        allow_headers: Sequence[str] = (),
        failed_per_min: int = AT_MOST,
    ) -> None:
        self._authenticate = authenticate
        self._screen = Screen(
            origins=allow_origins, hosts=allow_hosts, headers=allow_headers, local=authenticate is None
        )
        self._key = Key()
        self._has_own_token = False
        self._strikes = Strikes(failed_per_min)
        self._good: dict[int, Principal] = {}
        """Credentials that were let in, by their hash, and as whom."""
        self._closed = False
        self.open = False
        """Every program on this machine comes in without the token."""
        self.port: int | None = None

    @property
    def has_hook(self) -> bool:
        return self._authenticate is not None

    @property
    def needs_peer(self) -> bool:
        """Whether the hook judges the address of whoever connected, which no header may change."""
        return bool(getattr(self._authenticate, "needs_peer", False))

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def token(self) -> str | None:
        """What lets programs of this machine in; None if the hook decides."""
        return None if self.has_hook else self._key.token

    @token.setter
    def token(self, token: str | None) -> None:
        self._key = Key(token)
        self._has_own_token = token is not None

    @property
    def own_token(self) -> str | None:
        """The token that Python code set here, if it did."""
        return self._key.token if self._has_own_token and not self.has_hook else None

    def limit_failed_sign_ins(self, per_min: int) -> None:
        self._strikes = Strikes(per_min)

    def hint_at_arguments(self) -> None:
        """A program serves this app: hints name arguments of `create_app`, not options of `farhand run`."""
        self._screen.has_options = False

    def allow(
        self, *, origins: Sequence[str] = (), hosts: Sequence[str] = (), headers: Sequence[str] = ()
    ) -> None:
        """Lets more pages and names in, and more headers of listed pages."""
        self._screen.allow(origins=origins, hosts=hosts, headers=headers)

    async def admit(self, scope: Scope, needs: str) -> Principal:
        """Who asks. `SignInNeeded`, `NotAllowed` or `TooMany` for whoever may not."""
        if self._closed:
            raise ShuttingDown("The server is about to stop.", hint="Come back in a moment; nothing is lost.")
        heads = self._screen.check(scope)
        principal = self._local(scope, heads) if self._authenticate is None else await self._ask(scope, heads)
        if needs not in principal.scopes and not _may(principal, needs):
            named = needs.replace("|", "' or '").replace("&", "' and '")
            raise NotAllowed(f"This sign-in has no scope '{named}'.", hint="Use one that has it.")
        return principal

    async def still_admits(self, scope: Scope, needs: str, principal: Principal) -> bool:
        """Whether what was let in as this principal would be let in as the same one now.

        No guess is counted: a sign-in that was taken back is nobody's attempt.
        """
        try:
            heads = self._screen.check(scope)
            if self._authenticate is None:
                now: Principal | None = self._local(scope, heads)
            else:
                now = await self._answer(scope)
        # also a hook that failed
        except FarhandError:
            return False
        # whoever may do less, or more, comes in again and is seen as what it is now
        return now == principal and _may(principal, needs)

    def check_place(self, scope: Scope) -> None:
        """Host and client alone: for what is shown to anybody who is allowed to connect."""
        self._screen.check_host(scope)

    def sign_in(self, scope: Scope, token: str) -> tuple[bytes, bytes]:
        """The Set-Cookies for a browser that was opened with the token in its address: one lets it in, one
        names this sign-in."""
        self._screen.check_host(scope)
        if self.has_hook:
            raise SignInNeeded(
                "This server has its own sign-in.", hint="The token in the address is not used."
            )
        if not self._key.fits(token):
            self._strikes.add(_address(scope), _now())
            raise SignInNeeded("The token is not the one of this server.", hint=_HOW)
        port = self._port(scope)
        return self._key.cookie(port), self._key.sign_in_cookie(port)

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """The app with what browsers ask before a listed page may use it."""
        return with_cors(app, self._screen)

    def reopen(self) -> None:
        """An app may be started again after it was stopped."""
        self._closed = False

    def close(self) -> None:
        """From now on nobody is let in: the server is about to stop."""
        self._closed = True

    def _local(self, scope: Scope, heads: Heads) -> Principal:
        """The right token opens also while others guess.

        No guess can hit a token of this length, and every program on this machine has its owner's address:
        if ten wrong ones shut the door, any of them could shut the owner out.
        """
        if self.open or self._key.opens(heads, self._port(scope)):
            return _ME
        if b"authorization" in heads:
            self._strikes.add(_address(scope), _now())
            raise SignInNeeded("The token is not the one of this server.", hint=_HOW)
        raise SignInNeeded("No valid credential was sent.", hint=_HOW)

    async def _ask(self, scope: Scope, heads: Heads) -> Principal:
        shown = hash((heads.get(b"authorization"), heads.get(b"cookie")))
        before = self._good.get(shown)
        # one bad guest behind a shared address must not lock out those who have been let in already
        if before is None:
            self._strikes.check(_address(scope), _now())
        try:
            principal = await self._answer(scope, before)
        # raised by the hook; one that raises at a wrong credential instead of saying no is guessed at too
        except (SignInNeeded, SignInDown):
            self._note_failed(shown, scope, heads)
            raise
        if principal is None:
            self._note_failed(shown, scope, heads)
            raise SignInNeeded("Sign in first.", hint="The request carries no credential that is valid here.")
        # the count of the address stays: whoever has one good credential could guess others for ever
        if principal != self._good.get(shown):
            self._remember(shown, principal)
        return principal

    def _note_failed(self, shown: int, scope: Scope, heads: Heads) -> None:
        self._good.pop(shown, None)
        if not _CREDENTIALS.isdisjoint(heads):
            self._strikes.add(_address(scope), _now())

    async def _answer(self, scope: Scope, before: Principal | None = None) -> Principal | None:
        """What the hook says, whatever it does; `before` is what it said the last time."""
        assert self._authenticate is not None, "asked only where there is a hook"
        try:
            answer = self._authenticate(HTTPConnection(scope))
            if type(answer) is not Principal and isawaitable(answer):
                async with asyncio.timeout(HOOK_WITHIN_SEC):
                    answer = await answer
        except HTTPException as error:
            raise _in_our_words(error) from error
        except TimeoutError:
            log.error("the authenticate hook did not answer within %g s", HOOK_WITHIN_SEC)
            raise _hook_failed() from None
        except FarhandError:
            raise
        # the outermost guard of this question: a hook may raise anything, and a broken one is a no
        except Exception as error:  # noqa: BLE001
            log.error("the authenticate hook raised %s", _named(error))
            raise _hook_failed() from None
        # what is equal to one that was looked at needs no second look
        if answer is None or (type(answer) is Principal and answer == before) or _is_principal(answer):
            return answer
        log.error("the authenticate hook answered %s, not a Principal or None", type(answer).__name__)
        raise _hook_failed()

    def _remember(self, shown: int, principal: Principal) -> None:
        if len(self._good) >= _REMEMBERED and shown not in self._good:
            del self._good[next(iter(self._good))]
        self._good[shown] = principal

    def _port(self, scope: Scope) -> int:
        """The port the cookie is named for: fixed with the first request if nobody set it."""
        if self.port is None:
            server = scope.get("server")
            self.port = (server[1] if server else None) or 0
        return self.port


# who sits at this machine, or holds the token it printed, may do everything
_ME = Principal(LOCAL.tenant, LOCAL.subject, SCOPES)
_REMEMBERED = 10_000
_CREDENTIALS = frozenset({b"authorization", b"cookie", b"x-api-key"})
_HOW = "Send Authorization: Bearer with the token in the address printed at start, or open that address."


def _may(principal: Principal, needs: str) -> bool:
    """`a|b`: one of them is enough; `a&b`: both are needed."""
    if needs in principal.scopes:
        return True
    if "&" in needs:
        return all(each in principal.scopes for each in needs.split("&"))
    return any(each in principal.scopes for each in needs.split("|"))


def _is_principal(answer: object) -> bool:
    if not isinstance(answer, Principal):
        return False
    # a struct takes whatever it is made with; a number as the subject would be nobody's space
    scopes: object = answer.scopes
    is_named = _can_be_stored(answer.tenant) and _can_be_stored(answer.subject)
    return is_named and isinstance(scopes, frozenset | set)


def _can_be_stored(name: object) -> bool:
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        return False
    # neither a NUL nor half a character has a place in every store; ASCII is told at once
    return "\0" not in name and (name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name))


def _in_our_words(error: HTTPException) -> FarhandError:
    """Hooks of FastAPI and Starlette programs say no in this way."""
    if error.status_code == 401:
        return SignInNeeded("Sign in first.", hint="The credential is missing or not valid.")
    if error.status_code == 403:
        return NotAllowed("This sign-in may not come in.")
    log.error("the authenticate hook failed with status %d", error.status_code)
    return _hook_failed()


def _named(error: Exception) -> str:
    """What was raised and where. Its words may hold a credential."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"


def _hook_failed() -> SignInDown:
    return SignInDown("The sign-in of this server failed.", hint="Its log has the details.")


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _now() -> float:
    return asyncio.get_running_loop().time()
