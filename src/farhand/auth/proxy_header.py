"""A header in which a trusted proxy names the user. Accepted only from the proxy's address.

The address is that of the peer that connected: a server that rewrites it from `X-Forwarded-For` must not run
in front of this hook, and `farhand run` does not rewrite it when it sees this one.
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

    The proxy must remove the header from what it is sent, and be the only way in.
    """

    needs_peer = True

    def __init__(
        self, header: str, *, peers: Sequence[str], tenant: str, scopes: Collection[str] = DEFAULT_SCOPES
    ) -> None:
        if not _NAME.fullmatch(header):
            raise BadSetting(f"'{header}' is not a header name.")
        if not peers or isinstance(peers, str):
            raise BadSetting(
                "No peers are given.", hint='List the proxy: peers=["10.0.0.7"] or ["10.0.0.0/24"].'
            )
        if not is_name(tenant):
            raise BadSetting("The tenant must not be empty.")
        self._header = header.lower()
        self._networks = [_network(each) for each in peers]
        self._tenant = tenant
        self._scopes = check_scopes(scopes)
        self._is_peer = lru_cache(maxsize=256)(self._judge)

    def __call__(self, request: HTTPConnection) -> Principal | None:
        client = request.client
        if client is None or not self._is_peer(client.host):
            return None
        values = request.headers.getlist(self._header)
        # if it is sent twice, one may be the visitor's own
        if len(values) != 1:
            return None
        subject = values[0].strip()
        return Principal(self._tenant, subject, self._scopes) if is_name(subject) else None

    def _judge(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError:
        raise BadSetting(
            f"'{text}' is not an address.", hint="Use an address or a network, such as 10.0.0.0/24."
        ) from None
