"""The HTTP client under a provider's library: its hooks, and the transport under it.

Owns the choice of the transport: aiohttp if it is installed, except through a proxy, which aiohttp supports
only in part. Otherwise the library uses its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.request import getproxies

from farhand.models.retry_after import retry_hooks

try:
    from farhand.models.aiohttp_transport import AiohttpTransport
except ModuleNotFoundError:
    make_transport: Callable[[], object] | None = None
else:
    make_transport = AiohttpTransport

_PROXIED = ("http", "https", "all")


# Any: arguments of different types
def client_options(provider: str, max_retries: int) -> dict[str, Any]:
    """Arguments for the default HTTP client of a library."""
    hooks = {"event_hooks": retry_hooks(provider, max_retries)}
    if make_transport is None or _has_proxy():
        return hooks
    return {**hooks, "transport": make_transport()}


def _has_proxy() -> bool:
    proxies = getproxies()
    return any(proxies.get(scheme) for scheme in _PROXIED)
