"""Authenticates every request, stream and socket, and checks its scope. Nothing behind it checks again.

Host and Origin are checked first (`host_origin.py`), then the credential: by the `authenticate` hook if there
is one, else by the development token, for this machine only.
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

from farhand.core.principal import LOCAL, SCOPES, Principal, are_claims
from farhand.errors import (
    BadSetting,
    FarhandError,
    Misuse,
    NotAllowed,
    ShuttingDown,
    SignInDown,
    SignInNeeded,
    suggest_name,
)
from farhand.server.auth.cors import with_cors
from farhand.server.auth.dev_token import DevToken
from farhand.server.auth.host_origin import HeaderMap, HostOriginPolicy
from farhand.server.auth.login_limiter import LoginLimiter

log = logging.getLogger("farhand.auth")

Authenticate: TypeAlias = Callable[[HTTPConnection], Awaitable[Principal | None] | Principal | None]
"""Sync or async; None means not authenticated. A sync hook must not block."""

HOOK_WITHIN_SEC = 10.0
LONGEST_NAME = 1024
LONGEST_SCOPE = 64
"""How much of an unknown scope is logged."""


class Authenticator:
    def __init__(
        self,
        *,
        authenticate: Authenticate | None = None,
        allow_origins: Sequence[str] = (),
        allow_hosts: Sequence[str] = (),
        allow_headers: Sequence[str] = (),
    ) -> None:
        _check_hook(authenticate)
        self._authenticate = authenticate
        self._policy = HostOriginPolicy(
            origins=allow_origins, hosts=allow_hosts, headers=allow_headers, local=authenticate is None
        )
        self._dev_token = DevToken()
        self._has_own_token = False
        self._limiter = LoginLimiter()
        self._accepted: dict[int, Principal] = {}
        """Principals by the hash of a credential that was accepted."""
        self._closed = False
        self.open = False
        """Every program on this machine has access without the token."""
        self.port: int | None = None

    @property
    def has_hook(self) -> bool:
        return self._authenticate is not None

    @property
    def needs_peer(self) -> bool:
        """Whether the hook relies on the peer's address, which no header may override."""
        return bool(getattr(self._authenticate, "needs_peer", False))

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def token(self) -> str | None:
        """The token for programs on this machine; None with a hook."""
        return None if self.has_hook else self._dev_token.token

    @token.setter
    def token(self, token: str | None) -> None:
        self._dev_token = DevToken(token)
        self._has_own_token = token is not None

    def issue_code(self) -> str:
        """Signs a browser in once, instead of the token."""
        return self._dev_token.issue_code()

    @property
    def own_token(self) -> str | None:
        """The token that Python code has set, if any."""
        return self._dev_token.token if self._has_own_token and not self.has_hook else None

    def limit_failed_sign_ins(self, per_min: int) -> None:
        self._limiter = LoginLimiter(per_min)

    def hint_at_arguments(self) -> None:
        """For an app in a host program: hints name `create_app` arguments, not options of `farhand run`."""
        self._policy.has_options = False

    def allow(
        self, *, origins: Sequence[str] = (), hosts: Sequence[str] = (), headers: Sequence[str] = ()
    ) -> None:
        """Allows more origins, hosts, and request headers of allowed origins."""
        self._policy.allow(origins=origins, hosts=hosts, headers=headers)

    async def admit(self, scope: Scope, needs: str) -> Principal:
        """The principal of the request; `SignInNeeded`, `NotAllowed` or `TooMany` if there is none."""
        return await self._admit(scope, needs, self._policy.check)

    async def admit_to_page(self, scope: Scope) -> Principal:
        """The principal for opening a page. The page contains nothing of that person; its own requests go
        through `admit`."""
        return await self._admit(scope, "chat", self._policy.check_page)

    async def _admit(self, scope: Scope, needs: str, check: Callable[[Scope], HeaderMap]) -> Principal:
        if self._closed:
            raise ShuttingDown("The server is shutting down.", hint="Try again in a moment; nothing is lost.")
        headers = check(scope)
        principal = (
            self._authenticate_local(scope, headers)
            if self._authenticate is None
            else await self._authenticate_by_hook(scope, headers)
        )
        if not _may(principal, needs):
            named = needs.replace("|", "' or '").replace("&", "' and '")
            raise NotAllowed(f"This credential has no scope '{named}'.", hint="Use a credential that has it.")
        return principal

    async def still_accepts(self, scope: Scope, needs: str, principal: Principal) -> bool:
        """Whether the request would be accepted as the same principal now.

        A refusal is not counted as a failed sign-in: a revoked credential is not a guess.
        """
        try:
            headers = self._policy.check(scope)
            if self._authenticate is None:
                current: Principal | None = self._authenticate_local(scope, headers)
            else:
                current = await self._call_hook(scope)
        # includes a hook that failed
        except FarhandError:
            return False
        # with other scopes or claims, the client has to connect again
        return current == principal and _may(principal, needs)

    def check_host(self, scope: Scope) -> None:
        """Checks Host and client address alone, for what needs no credential."""
        self._policy.check_host(scope)

    def sign_in(self, scope: Scope, token: str) -> tuple[bytes, bytes]:
        """The Set-Cookie values for a browser that was opened with the token in its address: the credential,
        and an id of this sign-in."""
        self._policy.check_host(scope)
        if self.has_hook:
            raise SignInNeeded(
                "This server uses its own sign-in.", hint="The token in the address is not used."
            )
        if not self._dev_token.matches(token):
            self._limiter.add(_address(scope), _now())
            raise SignInNeeded("The token is not valid for this server.", hint=_HOW, takes_token=True)
        port = self._port(scope)
        return self._dev_token.cookie(port), self._dev_token.sign_in_cookie(port)

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """The app with CORS."""
        return with_cors(app, self._policy)

    def reopen(self) -> None:
        """For an app that is started again after a stop."""
        self._closed = False

    def close(self) -> None:
        """Refuses all requests from now on: the server is shutting down."""
        self._closed = True

    def _authenticate_local(self, scope: Scope, headers: HeaderMap) -> Principal:
        """The right token is accepted however many wrong ones were tried.

        A token of this length cannot be guessed, and all programs on this machine share one address: with a
        lockout, any of them could lock the owner out.
        """
        if self.open or self._dev_token.accepts(headers, self._port(scope)):
            return _OPERATOR
        if b"authorization" in headers:
            self._limiter.add(_address(scope), _now())
            raise SignInNeeded("The token is not valid for this server.", hint=_HOW, takes_token=True)
        raise SignInNeeded("No valid credential was sent.", hint=_HOW, takes_token=True)

    async def _authenticate_by_hook(self, scope: Scope, headers: HeaderMap) -> Principal:
        key = hash((headers.get(b"authorization"), headers.get(b"cookie")))
        before = self._accepted.get(key)
        # failures from a shared address must not lock out credentials that were accepted before
        if before is None:
            self._limiter.check(_address(scope), _now())
        try:
            principal = await self._call_hook(scope, before)
        # a hook may raise instead of returning None, so this counts as a failed sign-in too
        except (SignInNeeded, SignInDown):
            self._note_failed(key, scope, headers)
            raise
        if principal is None:
            self._note_failed(key, scope, headers)
            raise SignInNeeded("Sign in first.", hint="The request has no valid credential.")
        # the count of the address is not reset: one valid credential must not allow endless guesses
        if principal != self._accepted.get(key):
            self._remember(key, principal)
        return principal

    def _note_failed(self, key: int, scope: Scope, headers: HeaderMap) -> None:
        self._accepted.pop(key, None)
        if not _CREDENTIALS.isdisjoint(headers):
            self._limiter.add(_address(scope), _now())

    async def _call_hook(self, scope: Scope, before: Principal | None = None) -> Principal | None:
        """The checked result of the hook; `before` is its previous result for this credential."""
        assert self._authenticate is not None, "called only with a hook"
        try:
            answer = self._authenticate(HTTPConnection(scope))
            if type(answer) is not Principal and isawaitable(answer):
                async with asyncio.timeout(HOOK_WITHIN_SEC):
                    answer = await answer
        except HTTPException as error:
            raise _translate_http_error(error) from error
        except TimeoutError:
            log.error("the authenticate hook did not return within %g s", HOOK_WITHIN_SEC)
            raise _hook_failed() from None
        except Misuse as error:
            # a mistake in the hook, such as a misspelled argument: for the log, not for the client
            log.error("the authenticate hook failed: %s", error)
            raise _hook_failed() from None
        except FarhandError:
            raise
        # a hook may raise anything, and then nobody is authenticated
        except Exception as error:  # noqa: BLE001
            log.error("the authenticate hook raised %s", _describe(error))
            raise _hook_failed() from None
        # one that equals a checked principal needs no second check
        if answer is None or (type(answer) is Principal and answer == before) or _is_principal(answer):
            return answer
        log.error("the authenticate hook returned %s", _describe_wrong(answer))
        raise _hook_failed()

    def _remember(self, key: int, principal: Principal) -> None:
        if len(self._accepted) >= _MAX_ACCEPTED and key not in self._accepted:
            del self._accepted[next(iter(self._accepted))]
        self._accepted[key] = principal

    def _port(self, scope: Scope) -> int:
        """The port in the name of the cookie: that of the first request, unless it was set."""
        if self.port is None:
            server = scope.get("server")
            self.port = (server[1] if server else None) or 0
        return self.port


# the operator may do everything
_OPERATOR = Principal(LOCAL.tenant, LOCAL.subject, SCOPES)
_MAX_ACCEPTED = 10_000
_CREDENTIALS = frozenset({b"authorization", b"cookie", b"x-api-key"})
_HOW = "Send Authorization: Bearer with the token in the address printed at start, or open that address."


# `object`: not every caller checks types
def _check_hook(hook: object) -> None:
    if hook is not None and not callable(hook):
        # not the value: it may be a token
        raise BadSetting(
            f"authenticate must be a function of the credentials, not a value of type {type(hook).__name__}.",
            hint="For tokens in a file, pass farhand.auth.TokenFile(path).",
        )


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
    # a struct does not check its fields
    scopes: object = answer.scopes
    is_named = _can_be_stored(answer.tenant) and _can_be_stored(answer.subject)
    return is_named and isinstance(scopes, frozenset | set) and scopes <= SCOPES and are_claims(answer.claims)


def _describe_wrong(answer: object) -> str:
    """What is wrong with it, without its values, which may identify a person."""
    if not isinstance(answer, Principal):
        return f"{type(answer).__name__}, not a Principal or None"
    names: dict[str, object] = {"tenant": answer.tenant, "subject": answer.subject}
    for name, value in names.items():
        if not isinstance(value, str):
            return f"a Principal whose {name} must be a str, not {type(value).__name__}"
        if not _can_be_stored(value):
            return f"a Principal whose {name} is too long (at most {LONGEST_NAME} characters) or is not text"
    scopes: object = answer.scopes
    if not isinstance(scopes, frozenset | set):
        return f"a Principal whose scopes must be a set, not {type(scopes).__name__}"
    unknown = sorted(str(each) for each in scopes - SCOPES)
    if unknown:
        name = unknown[0][:LONGEST_SCOPE]
        return f"a Principal with the scope {name!r}, which does not exist{suggest_name(name, SCOPES)}"
    return "a Principal whose claims must be a JSON object of at most 4 KiB"


def _can_be_stored(name: object) -> bool:
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        return False
    # not every store can hold NUL or lone surrogates; the check for ASCII is fast
    return "\0" not in name and (name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name))


def _translate_http_error(error: HTTPException) -> FarhandError:
    """FastAPI and Starlette hooks refuse by raising it."""
    if error.status_code == 401:
        return SignInNeeded("Sign in first.", hint="The credential is missing or invalid.")
    if error.status_code == 403:
        return NotAllowed("This credential is not allowed here.")
    log.error("the authenticate hook failed with status %d", error.status_code)
    return _hook_failed()


def _describe(error: Exception) -> str:
    """The type and place of an exception, without its text, which may contain a credential."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"


def _hook_failed() -> SignInDown:
    return SignInDown("Authentication failed because of a server error.", hint="See the server's log.")


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _now() -> float:
    return asyncio.get_running_loop().time()
