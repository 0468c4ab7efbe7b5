"""The HTTP client under a provider's library: its hooks, and the transport under it.

Owns the choice of the transport: aiohttp if it is installed, except through a proxy, which aiohttp supports
only in part. Otherwise the library uses its own.
"""

from __future__ import annotations

from typing import Any
from urllib.request import getproxies

from farhand.models.retry_after import retry_hooks

try:
    from farhand.models.aiohttp_transport import AiohttpTransport
except ModuleNotFoundError:
    HAS_AIOHTTP = False
else:
    HAS_AIOHTTP = True

_PROXIED = ("http", "https", "all")


# Any: arguments of different types
def client_options(provider: str, max_retries: int) -> dict[str, Any]:
    """Arguments for the default HTTP client of a library."""
    hooks = {"event_hooks": retry_hooks(provider, max_retries)}
    if not HAS_AIOHTTP or _has_proxy():
        return hooks
    return {**hooks, "transport": AiohttpTransport()}


def _has_proxy() -> bool:
    proxies = getproxies()
    return any(proxies.get(scheme) for scheme in _PROXIED)
