"""Checks the Host and Origin of a request against allow-lists.

Owns the allowed hosts, origins and request headers. Must not know how callers are authenticated. Runs before
any credential is checked: a page from another origin is refused even with the user's cookies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import Scope

from farhand.errors import BadSetting, NotAllowed
from farhand.tools.to_json import shorten
from farhand.wire.address import Host, host_of, is_loopback

HeaderMap = Mapping[bytes, bytes]


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
"""What pages from allowed origins may send by default: what the faces read and common clients add."""


class HostOriginPolicy:
    """`local`: only this machine has access, so by default only its own names are allowed hosts."""

    def __init__(
        self, *, origins: Iterable[str], hosts: Iterable[str], headers: Iterable[str] = (), local: bool
    ) -> None:
        self._origins: frozenset[bytes] = frozenset()
        self._hosts: frozenset[str] = frozenset()
        self._headers: frozenset[str] = DEFAULT_HEADERS
        self._local = local
        self._passed: set[bytes] = set()
        self.has_options = True
        """Whether hints name options of `farhand run`; a host program has none."""
        self.has_origins = False
        """Whether any other origin is allowed."""
        self.allow(origins=origins, hosts=hosts, headers=headers)

    @property
    def headers(self) -> bytes:
        """The allowed request headers, as a preflight response lists them."""
        return ", ".join(sorted(self._headers)).encode()

    def allow(
        self, *, origins: Iterable[str] = (), hosts: Iterable[str] = (), headers: Iterable[str] = ()
    ) -> None:
        self._origins |= {_origin(each) for each in origins}
        self.has_origins = bool(self._origins)
        self._hosts |= {_host(each) for each in hosts}
        self._headers |= {_header_name(each) for each in headers}

    def check(self, scope: Scope) -> HeaderMap:
        """The headers by name; `NotAllowed` for a foreign host or a page from another origin."""
        headers = self.check_host(scope)
        origin = headers.get(b"origin")
        if origin is not None:
            self.check_origin(origin, scope, headers)
        elif b"cookie" in headers or b"sec-fetch-site" in headers:
            _check_without_origin(scope, headers)
        return headers

    def check_page(self, scope: Scope) -> HeaderMap:
        """For a page that a person opens: it is the same for everyone, and only they see it.

        Over plain http browsers do not say which site led to a page, and from a link on another site every
        page may be opened. As a frame or a picture in a page of another site it may not.
        """
        headers = self.check_host(scope)
        origin = headers.get(b"origin")
        if origin is not None:
            self.check_origin(origin, scope, headers)
        is_opened = headers.get(b"sec-fetch-dest") == b"document"
        if headers.get(b"sec-fetch-site") not in _OWN_SITE and not is_opened:
            raise _other_site()
        return headers

    def check_host(self, scope: Scope) -> HeaderMap:
        listed: list[tuple[bytes, bytes]] = scope["headers"]
        headers = dict(listed)
        if len(headers) != len(listed):
            _join_doubled(headers, listed)
        if headers.get(b"host") not in self._passed:
            self._check_host_name(host_of(scope), headers.get(b"host", b""))
        client = scope.get("client")
        if self._local and client is not None and not is_loopback(client[0]):
            raise NotAllowed(
                "Only programs on this machine may use this server.",
                hint="To serve other machines, pass an `authenticate` hook to create_app.",
            )
        return headers

    def check_origin(self, origin: bytes, scope: Scope, headers: HeaderMap) -> None:
        if origin in self._origins or _is_same(origin, scope, headers):
            return
        if origin == b"null":
            raise NotAllowed(
                "Pages with a null origin may not use this server.",
                hint="Serve the page over HTTP: files and sandboxed frames have no origin.",
            )
        name = shorten(origin.decode("latin-1"), 100)
        raise NotAllowed(
            f"Pages from '{name}' may not use this server.",
            hint=f"If the page is yours, {self._how('origin', name)}.",
        )

    def lists(self, origin: bytes) -> bool:
        """Whether this origin is in the allow-list, and the response needs CORS headers."""
        return origin in self._origins

    def _check_host_name(self, host: Host | None, value: bytes) -> None:
        if host is None:
            raise NotAllowed("The Host header is missing, duplicated or malformed.", hint="Send exactly one.")
        if not self._allows(host.name):
            raise NotAllowed(
                f"This server does not serve the host '{host.name}'.",
                hint=f"If the name is yours, {self._how('host', host.name)}.",
            )
        if len(self._passed) >= _MAX_PASSED:
            self._passed.clear()
        self._passed.add(value)

    def _how(self, kind: str, name: str) -> str:
        if self.has_options:
            return f"start the server with --allow-{kind} {name}"
        return f'list it: create_app(..., allow_{kind}s=["{name}"])'

    def _allows(self, name: str) -> bool:
        # a DNS name can be made to point here (rebinding), an IP address cannot
        return name in self._hosts or is_loopback(name) or (not self._local and _is_address(name))


_MAX_PASSED = 256
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'+.^_`|~-]{1,128}")
_OWN_SITE = (None, b"same-origin", b"none")
_PORTS = {"http": 80, "https": 443}
_ONCE = (b"host", b"origin", b"authorization", b"sec-fetch-site")


def _origin(text: str) -> bytes:
    """As browsers send it: lower case, no path, no default port."""
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
            f"'{text}' is not a header name.",
            hint="Name each one exactly, for example X-Tenant; no *.",
        )
    return name


def _is_same(origin: bytes, scope: Scope, headers: HeaderMap) -> bool:
    """Whether the page came from this server."""
    scheme, _, place = origin.partition(b"://")
    if place != headers.get(b"host", b"").lower():
        return False
    # TLS may end at a proxy, so https is fine on http; the reverse may be a forged page
    return scheme == b"https" or (scheme == b"http" and scope.get("scheme", "http") in {"http", "ws"})


def _check_without_origin(scope: Scope, headers: HeaderMap) -> None:
    """Without an Origin: a program, or a browser request that no page of another site made."""
    site = headers.get(b"sec-fetch-site")
    if site not in _OWN_SITE:
        raise _other_site()
    if site is not None:
        return
    # no page can make a browser send this header without an Origin
    if headers.get(b"authorization", b"")[:7].lower() == b"bearer ":
        return
    if not _is_same(_origin_of(headers.get(b"referer", b"")), scope, headers):
        raise NotAllowed(
            "A request with cookies must name its origin.",
            hint="Send an Origin or Referer header, or Authorization: Bearer instead of the cookie.",
        )


def _other_site() -> NotAllowed:
    return NotAllowed("Pages from other sites may not use this server.", hint="Open the address directly.")


def _origin_of(address: bytes) -> bytes:
    return b"/".join(address.split(b"/", 3)[:3]).lower()


def _join_doubled(headers: dict[bytes, bytes], listed: list[tuple[bytes, bytes]]) -> None:
    """Duplicate headers are ambiguous and refused; only cookies may be split."""
    names = [name for name, _ in listed]
    for name in _ONCE:
        if names.count(name) > 1:
            raise NotAllowed(f"The header {name.decode()} is sent twice.", hint="Send it once.")
    if names.count(b"cookie") > 1:
        headers[b"cookie"] = b"; ".join(value for name, value in listed if name == b"cookie")


@lru_cache(maxsize=256)
def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
