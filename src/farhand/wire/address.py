"""The host, the mount point and the query of a request. Owns how they are parsed, and what counts as local.

Must not know routes or which hosts are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple
from urllib.parse import parse_qsl

from starlette.types import Scope

from farhand.errors import Malformed
from farhand.wire.http import header


class Host(NamedTuple):
    """A name in lower case or an address without brackets, and the port if there is one."""

    name: str
    port: int | None


def host_of(scope: Scope) -> Host | None:
    """The Host header; None if it is missing, duplicated or malformed."""
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    values = [value for name, value in headers if name == b"host"]
    return _parse_host(values[0]) if len(values) == 1 else None


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether the host is this machine; an address may have brackets."""
    if host.lower() in {"localhost", "localhost."}:
        return True
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def root_path(scope: Scope) -> str:
    """The path under which a host mounts us; empty if none does."""
    return str(scope.get("root_path", ""))


def base_url(scope: Scope) -> str:
    """The address by which the visitor reached the server, without a slash at its end: what is shown to them
    with it works for them."""
    host = (header(scope, b"host") or b"").decode("latin-1")
    return f"{scope.get('scheme', 'http')}://{host}{root_path(scope)}"


def query(scope: Scope) -> dict[str, str]:
    """The query parameters. A duplicate is refused, since either value may be meant."""
    text: bytes = scope["query_string"]
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS
        )
    except ValueError:
        raise _bad_address("The query string cannot be parsed.") from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise _bad_address("A query parameter occurs twice.")
    return parameters


_MAX_PARAMETERS = 64
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]{2,45})\]|([A-Za-z0-9._-]{1,253}))(?::([0-9]{1,5}))?")


@lru_cache(maxsize=256)
def _parse_host(value: bytes) -> Host | None:
    found = _HOST.fullmatch(value.decode("latin-1"))
    if found is None:
        return None
    address, name, port = found.groups()
    if port is not None and int(port) > 65535:
        return None
    if address is None:
        return Host(name.lower().removesuffix("."), int(port) if port else None)
    try:
        return Host(str(IPv6Address(address)), int(port) if port else None)
    except ValueError:
        return None


def _bad_address(reason: str) -> Malformed:
    return Malformed(reason, hint="Check the URL of the request.")
