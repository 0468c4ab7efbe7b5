"""`farhand run` and `farhand demo`: turns the command line into settings, an app and a server."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from farhand.agent.agent import Agent
from farhand.cli.options import ServeOptions
from farhand.cli.serve import prepare_server, say_ready, serve_process, set_up
from farhand.cli.target import load_target
from farhand.cli.workers import ParentLink, require_shared, supervise
from farhand.errors import BadSetting
from farhand.server.app import App, create_app
from farhand.server.settings import ServerSettings, load_settings


def serve_target(target: str, options: ServeOptions, *, workers: int, inherited: str | None) -> None:
    """`inherited` is what a worker gets from its parent process."""
    settings = load_settings(options.given(), config=options.config)
    found = load_target(target)
    app = found if isinstance(found, App) else create_app(found)
    app.configure(settings)
    require_shared(app.store_address, workers)
    if inherited is not None:
        _serve_inherited(app, settings, ParentLink.read(inherited))
    elif workers > 1:
        _supervise(app, settings, workers)
    else:
        _serve(app, settings)


def serve_demo(options: ServeOptions) -> None:
    settings = load_settings(options.given(), config=options.config)
    found = load_target("farhand.demo.agent:agent")
    assert isinstance(found, Agent), "the demo is an agent"
    app = create_app(found)
    app.configure(settings, default_store=settings.store or _demo_store())
    _serve(app, settings)


def _serve(app: App, settings: ServerSettings) -> None:
    sockets = prepare_server(app, settings)
    serve_process(app, sockets, ready=lambda: say_ready(app, settings))


def _serve_inherited(app: App, settings: ServerSettings, inherited: ParentLink) -> None:
    """One of several workers: the parent listens and speaks for all of them."""
    set_up(app, settings)
    app.auth.port = inherited.sockets[0].getsockname()[1]
    serve_process(app, inherited.sockets, ready=inherited.ready)


def _supervise(app: App, settings: ServerSettings, workers: int) -> None:
    sockets = prepare_server(app, settings)
    code = supervise(
        sockets, workers, token=app.auth.token, ready=lambda: say_ready(app, settings, workers=workers)
    )
    if code:
        raise typer.Exit(code)


def _demo_store() -> str:
    """A file in the user's home, so that a demo can be stopped and continued."""
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "farhand"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise BadSetting(
            f"Cannot make a folder for the demo's store: {error}.", hint="Name one with --store."
        ) from None
    return f"sqlite:///{folder / 'demo.db'}"
