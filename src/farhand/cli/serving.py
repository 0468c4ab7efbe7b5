"""Serves an agent or an app: for `farhand run`, and for programs that call `farhand.serve`.

Owns the way from settings to a listening server, and the lines that a start prints.
"""

from __future__ import annotations

import asyncio
import socket
from importlib.metadata import version

from farhand.agent.agent import Agent
from farhand.cli.address import address_of
from farhand.cli.lines import say, warn
from farhand.cli.serve import listen, loop_factory, require_loopback, serve_sockets
from farhand.errors import BadSetting
from farhand.server.app import App, create_app
from farhand.server.logs import configure_logging
from farhand.server.settings import ServerSettings, load_settings


def serve(app: Agent | App, *, host: str | None = None, port: int | None = None) -> None:
    """Serves an agent or an app of `create_app` until a signal ends it, as `farhand run` does.

    Prints the address with the token, limits what connections may do, and ends streams so that they can be
    resumed when SIGTERM or Ctrl-C comes. What is left out comes from `FARHAND_*` variables or the file.

        import farhand

        agent = farhand.Agent(farhand.ScriptedModel(lambda moment: "Hello."))
        farhand.serve(agent, port=8787)
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(aserve(app, host=host, port=port))


async def aserve(app: Agent | App, *, host: str | None = None, port: int | None = None) -> None:
    """The same inside a running event loop; returns after the signal, or ends when it is cancelled.

    Signals are handled in the main thread alone. The handlers of the program are back when it returns.
    """
    served = _servable(app)
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    settings = load_settings(given)
    served.door.hint_at_arguments()
    served.configure(settings)
    sockets = prepare(served, settings)
    await serve_sockets(served, sockets, ready=lambda: say_ready(served, settings))


def prepare(app: App, settings: ServerSettings) -> list[socket.socket]:
    """Logging and the door are set, and somebody listens on the port."""
    set_up(app, settings)
    sockets = listen(settings.host, settings.port)
    app.door.port = sockets[0].getsockname()[1]
    return sockets


def set_up(app: App, settings: ServerSettings) -> None:
    configure_logging(level=settings.log_level, style=settings.log_format, access_log=settings.access_log)
    app.logs_access = settings.access_log
    if not app.door.has_hook:
        require_loopback(settings.host)
    if not settings.host.replace(".", "").isdigit() and ":" not in settings.host:
        # who listens under a name is asked for by that name
        app.door.allow(hosts=(settings.host,))


def say_ready(app: App, settings: ServerSettings, *, workers: int = 1) -> None:
    assert app.door.port is not None, "said once somebody listens"
    address = address_of(settings.host, app.door.port)
    entry = address if app.door.has_hook or app.door.open else f"{address}?token={app.door.token}"
    if app.door.open:
        warn("--open: every program on this machine may use this server without the token.")
    with_many = f" with {workers} workers" if workers > 1 else ""
    model, store, *others = app.describe()
    more = [("set", f"{name} = {value}") for name, value in others]
    facts = [("open", entry), model, store, *more, ("stop", "Ctrl-C")]
    say(facts, title=f"farhand {version('farhand')} is ready{with_many}")


# `object`: types are promises of those who check them, and not everybody does
def _servable(app: object) -> App:
    if isinstance(app, App):
        return app
    if isinstance(app, Agent):
        return create_app(app)
    raise BadSetting(
        f"farhand.serve takes an Agent or an app of create_app, not a {type(app).__name__}.",
        hint="A host that mounts farhand is served by a server of its own, such as uvicorn.",
    )
