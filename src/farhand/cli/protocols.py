"""Which classes of uvicorn's read and write a connection, and with which limits of ours."""

from __future__ import annotations

import asyncio
import logging

from farhand.cli.connection_limits import StallGuard

log = logging.getLogger("farhand.server")

EVENTS = (
    "data_received",
    "on_header",
    "on_headers_complete",
    "on_body",
    "on_message_complete",
    "on_response_complete",
)
"""What our HTTP protocol overrides: in a uvicorn without one of them, a limit would silently be missing."""


def http_protocol(stalled_after_sec: float) -> type[asyncio.Protocol]:
    """For uvicorn's `http` setting: our limits on its httptools protocol, or its h11 protocol instead.

    h11 limits the size of a head and keeps trailers apart by itself; nothing limits how long a head may take.
    """
    try:
        # httptools may not be installed
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # noqa: PLC0415

        missing = [name for name in EVENTS if not hasattr(HttpToolsProtocol, name)]
    except ImportError:
        missing = ["httptools_impl"]
    if not missing:
        # only where the class below it is there
        from farhand.cli.http_protocol import HttpProtocol  # noqa: PLC0415

        return _guarded(HttpProtocol, stalled_after_sec)
    # loaded only where it serves
    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415

    log.warning(
        "This uvicorn has no %s: requests are read by h11, with no time limit for a head.", missing[0]
    )
    return _guarded(H11Protocol, stalled_after_sec)


def socket_protocol(stalled_after_sec: float) -> type[asyncio.Protocol] | None:
    """For uvicorn's `ws` setting; None where no WebSocket library is installed."""
    # loads a WebSocket library, which other commands do not need
    from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol  # noqa: PLC0415

    found: object = AutoWebSocketsProtocol
    return _guarded(found, stalled_after_sec) if isinstance(found, type) else None


def _guarded(base: type, stalled_after_sec: float) -> type[asyncio.Protocol]:
    bases = (base,) if issubclass(base, StallGuard) else (StallGuard, base)
    return type(base.__name__, bases, {"stalled_after_sec": stalled_after_sec})
