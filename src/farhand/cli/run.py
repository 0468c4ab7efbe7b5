"""`farhand run` and `farhand demo`: the command line becomes settings, an app and a server."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from farhand.agent.agent import Agent
from farhand.cli.options import Options
from farhand.cli.serve import serve
from farhand.cli.serving import prepare, say_ready, set_up
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
        _serve_inherited(app, settings, Inherited.read(inherited))
    elif workers > 1:
        _supervise(app, settings, workers)
    else:
        _serve(app, settings)


def serve_demo(options: Options) -> None:
    settings = load_settings(options.said(), config=options.config)
    found = load_target("farhand.demo.agent:agent")
    assert isinstance(found, Agent), "the demo is an agent"
    app = create_app(found)
    app.configure(settings, default_store=settings.store or _demo_store())
    _serve(app, settings)


def _serve(app: App, settings: ServerSettings) -> None:
    sockets = prepare(app, settings)
    serve(app, sockets, ready=lambda: say_ready(app, settings))


def _serve_inherited(app: App, settings: ServerSettings, inherited: Inherited) -> None:
    """One of several workers: the parent listens and speaks for all of them."""
    set_up(app, settings)
    app.door.port = inherited.sockets[0].getsockname()[1]
    serve(app, inherited.sockets, ready=inherited.ready)


def _supervise(app: App, settings: ServerSettings, workers: int) -> None:
    sockets = prepare(app, settings)
    code = supervise(
        sockets, workers, token=app.door.token, ready=lambda: say_ready(app, settings, workers=workers)
    )
    if code:
        raise typer.Exit(code)


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
