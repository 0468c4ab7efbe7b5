"""Where a request comes from and whom it is addressed to.

Owns the lists of hosts, origins and request headers that are let in, and the rules.

Must not know who signs in or how. Judged before any credential is looked at: a page from elsewhere is refused
even when the browser lends it the user's cookies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import Scope

from farhand.errors import BadSetting, NotAllowed
from farhand.wire.address import Host, host_of, is_loopback

Heads = Mapping[bytes, bytes]


DEFAULT_HEADERS = frozenset(
    {
        "authorization",
        "content-type",
        "last-event-id",
        "x-api-key",
        "x-farhand",
        "x-file-name",
        "x-requested-with",
    }
)
"""What a listed page may send without a setting: what our own wires read, and what common clients add."""


class Screen:
    """`local`: only this machine is meant to come in, so only its own names are taken unasked."""

    def __init__(
        self, *, origins: Iterable[str], hosts: Iterable[str], headers: Iterable[str] = (), local: bool
    ) -> None:
        self._origins: frozenset[bytes] = frozenset()
        self._hosts: frozenset[str] = frozenset()
        self._headers: frozenset[str] = DEFAULT_HEADERS
        self._local = local
        self._passed: set[bytes] = set()
        self.has_options = True
        """Whether a hint may name options of `farhand run`: a program that hosts the app has none."""
        self.has_origins = False
        """Whether pages of other origins may come at all."""
        self.allow(origins=origins, hosts=hosts, headers=headers)

    @property
    def headers(self) -> bytes:
        """The request headers that a listed page may send, as a preflight response names them."""
        return ", ".join(sorted(self._headers)).encode()

    def allow(
        self, *, origins: Iterable[str] = (), hosts: Iterable[str] = (), headers: Iterable[str] = ()
    ) -> None:
        self._origins |= {_origin(each) for each in origins}
        self.has_origins = bool(self._origins)
        self._hosts |= {_host(each) for each in hosts}
        self._headers |= {_header_name(each) for each in headers}

    def check(self, scope: Scope) -> Heads:
        """The headers by name. `NotAllowed` if it is not meant for us, or made by a page from elsewhere."""
        heads = self.check_host(scope)
        origin = heads.get(b"origin")
        if origin is not None:
            self.check_origin(origin, scope, heads)
        elif b"cookie" in heads or b"sec-fetch-site" in heads:
            _check_silent(scope, heads)
        return heads

    def check_host(self, scope: Scope) -> Heads:
        listed: list[tuple[bytes, bytes]] = scope["headers"]
        heads = dict(listed)
        if len(heads) != len(listed):
            _join_doubled(heads, listed)
        if heads.get(b"host") not in self._passed:
            self._judge_host(host_of(scope), heads.get(b"host", b""))
        client = scope.get("client")
        if self._local and client is not None and not is_loopback(client[0]):
            raise NotAllowed(
                "Only programs on this machine may use this server.",
                hint="To serve others, give create_app an `authenticate` hook.",
            )
        return heads

    def check_origin(self, origin: bytes, scope: Scope, heads: Heads) -> None:
        if origin in self._origins or _is_same(origin, scope, heads):
            return
        if origin == b"null":
            raise NotAllowed(
                "Pages without an origin of their own may not use this server.",
                hint="Serve the page from an address: files and sandboxed frames all look alike.",
            )
        shown = _shown(origin)
        raise NotAllowed(
            f"Pages of '{shown}' may not use this server.",
            hint=f"If the page is yours, {self._how('origin', shown)}.",
        )

    def lists(self, origin: bytes) -> bool:
        """Whether pages of this origin are let in by name, so that the browser has to be told."""
        return origin in self._origins

    def _judge_host(self, host: Host | None, value: bytes) -> None:
        if host is None:
            raise NotAllowed(
                "The Host header is missing, given twice or malformed.", hint="Send exactly one."
            )
        if not self._knows(host.name):
            raise NotAllowed(
                f"This server does not answer for the host '{host.name}'.",
                hint=f"If the name is yours, {self._how('host', host.name)}.",
            )
        if len(self._passed) >= _REMEMBERED:
            self._passed.clear()
        self._passed.add(value)

    def _how(self, kind: str, name: str) -> str:
        if self.has_options:
            return f"start the server with --allow-{kind} {name}"
        return f'list it: create_app(..., allow_{kind}s=["{name}"])'

    def _knows(self, name: str) -> bool:
        # a name can be made to point anywhere, an address can't: no page of another site has ours as its host
        return name in self._hosts or is_loopback(name) or (not self._local and _is_address(name))


_REMEMBERED = 256
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'+.^_`|~-]{1,128}")
_PORTS = {"http": 80, "https": 443}
_ONCE = (b"host", b"origin", b"authorization", b"sec-fetch-site")


def _origin(text: str) -> bytes:
    """As a browser sends it: lower case, no path, no default port."""
    origin = text.strip().lower().removesuffix("/")
    if not _ORIGIN.fullmatch(origin):
        raise BadSetting(
            f"'{text}' is not an origin.",
            hint="Name each one exactly, for example http://localhost:5173; no *.",
        )
    parts = urlsplit(origin)
    if parts.port is not None and parts.port == _PORTS.get(parts.scheme):
        origin = origin.rpartition(":")[0]
    return origin.encode()


def _host(text: str) -> str:
    host = host_of({"headers": [(b"host", text.strip().encode())]})
    if host is None or host.port is not None:
        raise BadSetting(
            f"'{text}' is not a host.",
            hint="Name each one exactly and without a port, for example agent.example.org; no *.",
        )
    return host.name


def _header_name(text: str) -> str:
    name = text.strip().lower()
    if not _HEADER_NAME.fullmatch(name):
        raise BadSetting(
            f"'{text}' is not the name of a header.",
            hint="Name each one exactly, for example X-Tenant; no *.",
        )
    return name


def _is_same(origin: bytes, scope: Scope, heads: Heads) -> bool:
    """Whether the page came from this very server."""
    scheme, _, place = origin.partition(b"://")
    if place != heads.get(b"host", b"").lower():
        return False
    # TLS may end before us, so https is fine on http; the other way round somebody may have forged the page
    return scheme == b"https" or (scheme == b"http" and scope.get("scheme", "http") in {"http", "ws"})


def _check_silent(scope: Scope, heads: Heads) -> None:
    """Without an Origin: a program, or a browser that was not asked by a page of another site."""
    site = heads.get(b"sec-fetch-site")
    if site in {b"same-origin", b"none"}:
        return
    if site is not None:
        raise NotAllowed("A page of another site may not use this server.", hint="Open the address itself.")
    # no page can make a browser add this header to a request that carries no Origin
    if heads.get(b"authorization", b"")[:7].lower() == b"bearer ":
        return
    if not _is_same(_origin_of(heads.get(b"referer", b"")), scope, heads):
        raise NotAllowed(
            "A request with cookies has to say which page it comes from.",
            hint="Send an Origin header, or Authorization: Bearer instead of the cookie.",
        )


def _origin_of(address: bytes) -> bytes:
    return b"/".join(address.split(b"/", 3)[:3]).lower()


def _join_doubled(heads: dict[bytes, bytes], listed: list[tuple[bytes, bytes]]) -> None:
    """A header given twice may mean one thing here and another there; only cookies come in parts."""
    names = [name for name, _ in listed]
    for name in _ONCE:
        if names.count(name) > 1:
            raise NotAllowed(f"The header {name.decode()} is given twice.", hint="Send it once.")
    if names.count(b"cookie") > 1:
        heads[b"cookie"] = b"; ".join(value for name, value in listed if name == b"cookie")


@lru_cache(maxsize=256)
def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _shown(value: bytes) -> str:
    """Foreign words in a sentence of ours: short and printable."""
    return "".join(letter if letter.isprintable() else "?" for letter in value.decode("latin-1"))[:100]
