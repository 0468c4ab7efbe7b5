"""`farhand run` and `farhand demo`: the command line becomes settings, an app and a server."""

from __future__ import annotations

import logging
import os
import socket
from importlib.metadata import version
from pathlib import Path

import typer

from farhand.agent.agent import Agent
from farhand.cli.address import address_of
from farhand.cli.lines import say, warn
from farhand.cli.options import Options
from farhand.cli.serve import listen, require_loopback, serve
from farhand.cli.target import load_target
from farhand.cli.workers import Inherited, require_shared, supervise
from farhand.errors import BadSetting
from farhand.server.app import App, create_app
from farhand.server.settings import ServerSettings, load_settings


def serve_target(target: str, options: Options, *, workers: int, inherited: str | None) -> None:
    """`inherited` is what a worker has from its parent."""
    settings = load_settings(options.said(), config=options.config)
    found = load_target(target)
    app = found if isinstance(found, App) else create_app(found)
    app.configure(settings)
    require_shared(app.store_address, workers)
    if inherited is not None:
        _serve_inherited(app, settings, options, Inherited.read(inherited))
    elif workers > 1:
        _supervise(app, settings, options, workers)
    else:
        _serve(app, settings, options)


def serve_demo(options: Options) -> None:
    settings = load_settings(options.said(), config=options.config)
    found = load_target("farhand.demo.agent:agent")
    assert isinstance(found, Agent), "the demo is an agent"
    app = create_app(found)
    app.configure(settings, default_store=settings.store or _demo_store())
    _serve(app, settings, options)


def _serve(app: App, settings: ServerSettings, options: Options) -> None:
    sockets = _prepare(app, settings, options)
    serve(app, sockets, ready=lambda: _say_ready(app, settings))


def _serve_inherited(app: App, settings: ServerSettings, options: Options, inherited: Inherited) -> None:
    """One of several workers: the parent listens and speaks for all of them."""
    _log(options)
    _set_door(app, settings)
    app.door.port = inherited.sockets[0].getsockname()[1]
    serve(app, inherited.sockets, ready=inherited.ready)


def _supervise(app: App, settings: ServerSettings, options: Options, workers: int) -> None:
    sockets = _prepare(app, settings, options)
    code = supervise(
        sockets, workers, token=app.door.token, ready=lambda: _say_ready(app, settings, workers=workers)
    )
    if code:
        raise typer.Exit(code)


def _prepare(app: App, settings: ServerSettings, options: Options) -> list[socket.socket]:
    """The door is set and somebody listens on the port."""
    _log(options)
    _set_door(app, settings)
    sockets = listen(settings.host, settings.port)
    app.door.port = sockets[0].getsockname()[1]
    return sockets


def _say_ready(app: App, settings: ServerSettings, *, workers: int = 1) -> None:
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


def _set_door(app: App, settings: ServerSettings) -> None:
    if not app.door.has_hook:
        require_loopback(settings.host)
    if not settings.host.replace(".", "").isdigit() and ":" not in settings.host:
        # who listens under a name is asked for by that name
        app.door.allow(hosts=(settings.host,))


def _log(options: Options) -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    if options.verbose:
        logging.getLogger("farhand").setLevel(logging.INFO)


def _demo_store() -> str:
    """A file of the user's own, so that a demo that was stopped can go on."""
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "farhand"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise BadSetting(
            f"There is no place for the demo's store: {error}.", hint="Name one with --store."
        ) from None
    return f"sqlite:///{folder / 'demo.db'}"
