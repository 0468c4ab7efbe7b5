"""Reads the user from a header that a trusted proxy sets. Accepted only from the proxy's address.

That is the address of the connected peer: a server that replaces it with the one in `X-Forwarded-For` must
not be used with this hook. `farhand run` does not replace it if the app uses this hook.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.requests import HTTPConnection

from farhand.auth.credentials import check_scopes, is_name
from farhand.core.principal import DEFAULT_SCOPES, Principal
from farhand.errors import BadSetting

_NAME = re.compile(r"[A-Za-z0-9-]+")


class ProxyHeader:
    """A hook: `ProxyHeader("X-Forwarded-User", peers=["10.0.0.7"], tenant="acme")`.

    The proxy must remove this header from incoming requests and be the only way to reach the server.
    """

    needs_peer = True

    def __init__(
        self, header: str, *, peers: Sequence[str], tenant: str, scopes: Collection[str] = DEFAULT_SCOPES
    ) -> None:
        if not _NAME.fullmatch(header):
            raise BadSetting(f"'{header}' is not a header name.", hint="Use letters, digits and hyphens.")
        if not peers or isinstance(peers, str):
            raise BadSetting(
                "`peers` must be a list of addresses.", hint='For example ["10.0.0.7"] or ["10.0.0.0/24"].'
            )
        if not is_name(tenant):
            raise BadSetting("`tenant` must be a printable name.", hint="It is the tenant of every user.")
        self._header = header.lower()
        self._networks = [_parse_network(each) for each in peers]
        self._tenant = tenant
        self._scopes = check_scopes(scopes)
        self._is_peer = lru_cache(maxsize=256)(self._is_in_networks)

    def __call__(self, request: HTTPConnection) -> Principal | None:
        client = request.client
        if client is None or not self._is_peer(client.host):
            return None
        values = request.headers.getlist(self._header)
        # if there are two, one may have been sent by the visitor
        if len(values) != 1:
            return None
        subject = values[0].strip()
        return Principal(self._tenant, subject, self._scopes) if is_name(subject) else None

    def _is_in_networks(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def _parse_network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError:
        raise BadSetting(
            f"'{text}' in `peers` is not an address.",
            hint="Use an address or a network, such as 10.0.0.0/24.",
        ) from None
