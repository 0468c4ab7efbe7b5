"""The server process: its sockets, its limits, and how it ends.

At the signal streams are ended so that their readers can resume, then everything closes; the process is gone
within ten seconds whatever hangs. Nothing is lost by that: what was under way is in the store.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from threading import Timer
from types import FrameType
from typing import NoReturn

import uvicorn

from farhand.cli.connection_limits import HEAD_BYTES
from farhand.cli.garbage import spare_collections
from farhand.cli.protocols import http_protocol, socket_protocol
from farhand.cli.repeated_lines import quieten_uvicorn
from farhand.errors import BadSetting
from farhand.server.app import DRAIN_SEC, App
from farhand.server.logs import with_access_log
from farhand.wire.address import is_loopback

GONE_AFTER_SEC = 9.5
CONNECTIONS = 21_000
PROXIES = "FORWARDED_ALLOW_IPS"
"""The addresses of proxies whose X-Forwarded-For is believed: the server below reads it under this name."""


def listen(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of the host, all on one port; `BadSetting` says why not."""
    sockets: list[socket.socket] = []
    try:
        for family, address in _addresses(host):
            sockets.append(_bound(family, address, port))
            port = port or sockets[0].getsockname()[1]
    except OSError as error:
        for each in sockets:
            each.close()
        raise BadSetting(_why_not(error, host, port), hint="Choose others with --host and --port.") from None
    return sockets


def require_loopback(host: str) -> None:
    """`BadSetting` if programs on other machines could reach it."""
    try:
        addresses = [address for _, address in _addresses(host)]
    except OSError as error:
        raise BadSetting(_why_not(error, host, 0)) from None
    if not all(is_loopback(address) for address in addresses):
        raise BadSetting(
            f"'{host}' can be reached from other machines, and no authenticate hook asks who they are.",
            hint="Serve an app of create_app(agent, authenticate=...), or listen on 127.0.0.1.",
        )


def serve(app: App, sockets: list[socket.socket], *, ready: Callable[[], None]) -> None:
    """A process for this app alone: runs it until a signal ends it, and is gone in time whatever hangs.

    `ready` is called once requests are answered.
    """

    def begin() -> None:
        spare_collections()
        ready()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve_sockets(app, sockets, ready=begin, gone_after=GONE_AFTER_SEC))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The fast loop where it is installed; None for Python's own."""
    try:
        # optional, and slow to load
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop


async def serve_sockets(
    app: App,
    sockets: list[socket.socket],
    *,
    ready: Callable[[], None],
    gone_after: float | None = None,
) -> None:
    """Serves until a signal. The process is ended so many seconds after it, unless that is left out."""
    _allow_many_files()
    quieten_uvicorn()
    try:
        await app.start()
        server = uvicorn.Server(_config(app))
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(sockets))
            await _until_started(server, serving)
            stop = _signalled(gone_after)
            ready()
            await asyncio.wait([serving, stop], return_when=asyncio.FIRST_COMPLETED)
            # left to itself the server would wait for streams that end only when the app is told to stop
            await app.drain(DRAIN_SEC)
            server.should_exit = True
    finally:
        for each in sockets:
            each.close()
        await app.stop()


async def _until_started(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    # uvicorn has nothing to wait for
    while not (server.started or serving.done()):  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def _signalled(gone_after: float | None) -> asyncio.Future[None]:
    """Done at the first signal; the second one ends the process at once."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()
    is_asked = False

    def handle(code: int, frame: FrameType | None) -> None:
        nonlocal is_asked
        if is_asked:
            _leave(128 + code)
        is_asked = True
        if gone_after is not None:
            last = Timer(gone_after, _leave, (1,))
            last.daemon = True
            last.start()
        loop.call_soon_threadsafe(stop.set_result, None)

    if threading.current_thread() is not threading.main_thread():
        return stop
    for each in (signal.SIGTERM, signal.SIGINT):
        # not the loop's own handlers, which a loop that stands still never calls; uvicorn's are replaced
        signal.signal(each, handle)
    return stop


def _config(app: App) -> uvicorn.Config:
    stalled_after = app.settings.limits.stalled_after_sec
    return uvicorn.Config(
        with_access_log(app.handle) if app.logs_access else app.handle,
        http=http_protocol(stalled_after),
        ws=socket_protocol(stalled_after) or "none",
        h11_max_incomplete_event_size=HEAD_BYTES,
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        # without a hook only this machine is let in, whatever a header says; with one, failed sign-ins are
        # counted by address, and a header that anybody may write would give each guess another
        proxy_headers=app.door.has_hook and not app.door.needs_peer and PROXIES in os.environ,
        ws_max_size=app.settings.limits.socket_frame,
        # a frame is one word or two: unpacking each costs its reader more than the bytes would
        ws_per_message_deflate=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=1,
    )


def _addresses(host: str) -> list[tuple[socket.AddressFamily, str]]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((address, port))
        # listening at once: two that start together must not both believe the port is theirs
        bound.listen(2048)
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


def _why_not(error: OSError, host: str, port: int) -> str:
    if isinstance(error, socket.gaierror):
        return f"There is no address '{host}'."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use by another program."
    if error.errno == errno.EACCES:
        return f"Port {port} of {host} may not be used by this user."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"'{host}' is not an address of this machine."
    return f"Cannot listen on port {port} of {host}: {error.strerror}."


def _allow_many_files() -> None:
    """One stream is one file, and the usual limit is a thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _leave(code: int) -> NoReturn:
    """At once, past everything that hangs: as safe as a power cut, which the store outlives."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
