"""`farhand run` and `farhand demo`: what was said becomes settings, an app and a server."""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import typer

from farhand.agent.agent import Agent
from farhand.cli.address import address_of
from farhand.cli.lines import say, warn
from farhand.cli.options import Options
from farhand.cli.serve import listen, require_loopback, serve
from farhand.cli.target import load_target
from farhand.cli.workers import NAME_IT_THERE, Inherited, require_shared, supervise
from farhand.errors import BadSetting
from farhand.models.named import model_named
from farhand.server.app import App, create_app
from farhand.server.settings import ServerSettings, load_settings
from farhand.store.address import DEFAULT, check_address, shown


def serve_target(target: str, options: Options, *, workers: int, inherited: str | None) -> None:
    """`inherited` is what a worker has from its parent."""
    settings = load_settings(options.said(), config=options.config)
    found = load_target(target)
    if isinstance(found, App):
        app = _adjusted(found, settings, options)
        require_shared(app.store_address, workers, hint=NAME_IT_THERE)
    else:
        app = _app(found, settings, settings.store or DEFAULT)
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
    _serve(_app(found, settings, settings.store or _demo_store()), settings, options)


def _app(agent: Agent, settings: ServerSettings, store: str) -> App:
    check_address(store)
    if settings.model is not None:
        agent.spec = replace(agent.spec, model=model_named(settings.model))
    return create_app(
        agent,
        store=store,
        allow_origins=settings.allow_origin,
        allow_hosts=settings.allow_host,
        allow_headers=settings.allow_header,
        settings=settings.settings,
        client_tools=settings.client_tools,
        inspector=settings.inspector,
    )


def _adjusted(app: App, settings: ServerSettings, options: Options) -> App:
    """An app that was made in Python keeps what it was made with; what would be ignored is refused."""
    for name in sorted({"store", "model", "hold_for"} & options.said().keys()):
        option = "--" + name.replace("_", "-")
        raise BadSetting(
            f"{option} does not reach an app of create_app.", hint="Set it where the app is made."
        )
    app.door.allow(origins=settings.allow_origin, hosts=settings.allow_host, headers=settings.allow_header)
    if settings.inspector is not None:
        app.inspector = settings.inspector
    return app


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
    model, store = app.agent.spec.model.name, shown(app.store_address)
    if app.door.open:
        warn("--open: every program on this machine may use this server without the token.")
    with_many = f" with {workers} workers" if workers > 1 else ""
    facts = [("open", entry), ("model", model), ("store", store), ("stop", "Ctrl-C")]
    say(facts, title=f"farhand {version('farhand')} is ready{with_many}")


def _set_door(app: App, settings: ServerSettings) -> None:
    door = app.door
    if not door.has_hook:
        require_loopback(settings.host)
        door.token = settings.token
        door.open = settings.open
    elif settings.open:
        raise BadSetting("--open does not go with an authenticate hook.", hint="Leave one of them out.")
    if not settings.host.replace(".", "").isdigit() and ":" not in settings.host:
        # who listens under a name is asked for by that name
        door.allow(hosts=(settings.host,))


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
