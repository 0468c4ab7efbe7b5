"""Serves an agent or an app with uvicorn: for `farhand run`, and for programs that call `farhand.serve`.

Owns sockets, signals and the lines printed at start. At a signal, streams end so that readers can resume; the
process exits within ten seconds even if something hangs. Nothing is lost: active runs are in the store.
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
from importlib.metadata import version
from threading import Timer
from types import FrameType
from typing import NoReturn

from farhand.agent.agent import Agent
from farhand.cli.console import address_of, print_facts, print_line, print_warning
from farhand.cli.gc_tuning import tune_gc
from farhand.cli.protocols import HEAD_BYTES, http_protocol, socket_protocol
from farhand.errors import BadSetting, not_installed
from farhand.server.app import DRAIN_SEC, App, create_app
from farhand.server.logs import configure_logging, limit_uvicorn_warnings, with_access_log
from farhand.server.settings import ServerSettings, load_settings
from farhand.store.open import redact_password
from farhand.tools.keyword_arguments import explain_arguments
from farhand.tools.toolbox import Toolbox
from farhand.wire.address import is_loopback

try:
    import uvicorn
except ModuleNotFoundError as error:
    raise not_installed("Servers", "serve") from error

GONE_AFTER_SEC = 9.5
CONNECTIONS = 21_000
PROXIES = "FORWARDED_ALLOW_IPS"
"""uvicorn's variable for the addresses of trusted proxies."""


@explain_arguments("serve()")
def serve(app: Agent | Toolbox | App, *, host: str | None = None, port: int | None = None) -> None:
    """Serve an agent or an app of `create_app` until a signal ends it, as `farhand run` does.

    Prints the address with the token, limits connections, and at SIGTERM or Ctrl-C ends streams so that they
    can be resumed. The default values come from `FARHAND_*` variables or the settings file.

        import farhand

        agent = farhand.Agent(farhand.ScriptedModel(lambda moment: "Hello."))
        farhand.serve(agent, port=8787)
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(aserve(app, host=host, port=port))


@explain_arguments("aserve()")
async def aserve(app: Agent | Toolbox | App, *, host: str | None = None, port: int | None = None) -> None:
    """The same inside a running event loop; returns after a signal, or when it is cancelled.

    Signals are handled in the main thread only. The previous handlers are restored when it returns.
    """
    served = _to_app(app)
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    settings = load_settings(given)
    served.auth.hint_at_arguments()
    served.configure(settings)
    sockets = prepare_server(served, settings)
    await serve_sockets(served, sockets, ready=lambda: print_ready(served, settings))
    print_stopped(served)


def prepare_server(app: App, settings: ServerSettings) -> list[socket.socket]:
    """Sets up logging and authentication, and opens the listening sockets."""
    set_up(app, settings)
    sockets = listen(settings.host, settings.port)
    app.auth.port = sockets[0].getsockname()[1]
    return sockets


def set_up(app: App, settings: ServerSettings) -> None:
    configure_logging(level=settings.log_level, style=settings.log_format, access_log=settings.access_log)
    app.logs_access = settings.access_log
    if not app.auth.has_hook:
        require_loopback(settings.host)
    if not settings.host.replace(".", "").isdigit() and ":" not in settings.host:
        # requests will use this name as their host
        app.auth.allow(hosts=(settings.host,))


def print_ready(app: App, settings: ServerSettings, *, workers: int = 1) -> None:
    assert app.auth.port is not None, "called once the sockets listen"
    address = address_of(settings.host, app.auth.port)
    sign_in = "" if app.auth.has_hook or app.auth.open else f"?token={app.auth.token}"
    if app.auth.open:
        print_warning("--open: every program on this machine can use this server without a token.")
    with_many = f" with {workers} workers" if workers > 1 else ""
    model, store, *others = app.describe()
    more = [("set", f"{name} = {value}") for name, value in others]
    pages = [("open", f"{address}{sign_in}")] if app.values.page else [("serves", address)]
    if app.shows_inspector:
        pages.append(("inspect", f"{address}_farhand{sign_in}"))
    facts = [*pages, model, store, *more, ("stop", "Ctrl-C")]
    print_facts(facts, title=f"farhand {version('farhand')} is ready{with_many}")


def print_stopped(app: App) -> None:
    """After a signal: says whether anything is lost."""
    if app.store_address == "memory:":
        print_line("farhand has stopped. Nothing is kept: the store was in memory.")
    else:
        store = redact_password(app.store_address)
        print_line(f"farhand has stopped. Chats and open calls are kept in {store}.")


# `object`: not every caller checks types
def _to_app(app: object) -> App:
    if isinstance(app, App):
        return app
    if isinstance(app, Agent | Toolbox):
        return create_app(app)
    raise BadSetting(
        f"farhand.serve() needs an Agent, a Toolbox or an app of create_app, not a value of type "
        f"{type(app).__name__}.",
        hint="To serve a host app that mounts farhand, use an ASGI server such as uvicorn.",
    )


def listen(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of the host, all on one port. Raises `BadSetting` if that fails."""
    sockets: list[socket.socket] = []
    try:
        for family, address in _addresses(host):
            sockets.append(_bind(family, address, port))
            port = port or sockets[0].getsockname()[1]
    except OSError as error:
        for each in sockets:
            each.close()
        raise BadSetting(
            _explain_bind_error(error, host, port), hint="Choose another address with --host and --port."
        ) from None
    return sockets


def require_loopback(host: str) -> None:
    """Raises `BadSetting` if other machines could reach the host."""
    try:
        addresses = [address for _, address in _addresses(host)]
    except OSError as error:
        raise BadSetting(_explain_bind_error(error, host, 0)) from None
    if not all(is_loopback(address) for address in addresses):
        raise BadSetting(
            f"'{host}' is reachable from other machines, and there is no authenticate hook.",
            hint="Serve an app of create_app(agent, authenticate=...), or listen on 127.0.0.1.",
        )


def serve_process(app: App, sockets: list[socket.socket], *, ready: Callable[[], None]) -> None:
    """Runs a process for this app alone until a signal, and exits in time even if something hangs.

    `ready` is called once requests are accepted.
    """

    def begin() -> None:
        tune_gc()
        ready()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve_sockets(app, sockets, ready=begin, gone_after=GONE_AFTER_SEC))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop if it is installed; None for asyncio's own loop."""
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
    """Serves until a signal. With `gone_after`, the process exits that many seconds later at the latest."""
    _allow_many_files()
    limit_uvicorn_warnings()
    try:
        await app.start()
        server = uvicorn.Server(_config(app))
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(sockets))
            await _until_started(server, serving)
            stop = _watch_signals(gone_after)
            ready()
            await asyncio.wait([serving, stop], return_when=asyncio.FIRST_COMPLETED)
            # uvicorn would wait for streams, which end only when the app drains
            await app.drain(DRAIN_SEC)
            server.should_exit = True
    finally:
        for each in sockets:
            each.close()
        await app.stop()


async def _until_started(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    # uvicorn has no event for this
    while not (server.started or serving.done()):  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def _watch_signals(gone_after: float | None) -> asyncio.Future[None]:
    """Done at the first signal; a second one exits the process immediately."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()
    is_asked = False

    def handle(code: int, frame: FrameType | None) -> None:
        nonlocal is_asked
        if is_asked:
            _exit_now(128 + code)
        is_asked = True
        if gone_after is not None:
            last = Timer(gone_after, _exit_now, (1,))
            last.daemon = True
            last.start()
        loop.call_soon_threadsafe(stop.set_result, None)

    if threading.current_thread() is not threading.main_thread():
        return stop
    for each in (signal.SIGTERM, signal.SIGINT):
        # not loop.add_signal_handler, which a blocked loop never runs; this replaces uvicorn's handlers
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
        # without a hook only this machine has access, whatever a header says; with one, failed sign-ins are
        # counted by address, and a forged header would give each guess a new address
        proxy_headers=app.auth.has_hook and not app.auth.needs_peer and PROXIES in os.environ,
        ws_max_size=app.settings.limits.socket_frame,
        # frames are short, and decompressing them costs the reader more than the bytes
        ws_per_message_deflate=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=1,
    )


def _addresses(host: str) -> list[tuple[socket.AddressFamily, str]]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _bind(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((address, port))
        # immediately: two processes that start together must not both get the port
        bound.listen(2048)
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


def _explain_bind_error(error: OSError, host: str, port: int) -> str:
    if isinstance(error, socket.gaierror):
        return f"The host '{host}' cannot be resolved."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use by another program."
    if error.errno == errno.EACCES:
        return f"This user may not listen on port {port} of {host}."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"'{host}' is not an address of this machine."
    return f"Cannot listen on port {port} of {host}: {error.strerror}."


def _allow_many_files() -> None:
    """Each stream needs a file descriptor, and the usual limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _exit_now(code: int) -> NoReturn:
    """Exits immediately, whatever hangs. As safe as a power failure, which the store survives."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
