"""`farhand run` and `farhand demo`: makes settings, an app and a server of parsed options."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import typer

from farhand.agent.agent import Agent
from farhand.cli.console import address_of
from farhand.cli.options import ServeOptions
from farhand.cli.serve import prepare_server, print_ready, print_stopped, serve_process, set_up
from farhand.cli.target import load_target
from farhand.cli.workers import ParentLink, require_shared, run_workers
from farhand.errors import BadSetting, StoreLocked
from farhand.server.app import App, create_app
from farhand.server.auth.dev_token import kept_token
from farhand.server.settings import ServerSettings, load_settings

FILE = "sqlite:///"
WITH_MAKE = "With make: PORT=9000, STORE=... and MODEL=...; for other options, ARGS='--host ...'."


def serve_target(target: str, options: ServeOptions, *, workers: int, inherited: str | None) -> None:
    """`inherited` is set for a worker: the link to its parent process."""
    settings = load_settings(options.given(), config=options.config)
    found = load_target(target)
    app = found if isinstance(found, App) else create_app(found)
    app.configure(settings)
    require_shared(app.store_address, workers)
    if inherited is not None:
        _serve_inherited(app, settings, ParentLink.read(inherited))
    elif workers > 1:
        _run_workers(app, settings, workers)
    else:
        _serve(app, settings)


def serve_demo(options: ServeOptions, *, opens_browser: bool) -> None:
    try:
        _serve_demo(options, opens_browser=opens_browser)
    except (BadSetting, StoreLocked) as error:
        # make sets it: `make demo` takes no options
        if "MAKELEVEL" not in os.environ or "--" not in error.hint:
            raise
        raise type(error)(error.message, hint=f"{error.hint} {WITH_MAKE}") from None


def _serve_demo(options: ServeOptions, *, opens_browser: bool) -> None:
    settings = load_settings(options.given(), config=options.config)
    found = load_target("farhand.demo.agent:agent")
    assert isinstance(found, Agent), "the demo is an agent"
    app = create_app(found)
    app.configure(settings, default_store=settings.store or _demo_store())
    if app.values.token is None:
        # a page that is open keeps working, and so does a bookmark
        token_file = _token_file(app.store_address)
        app.auth.token = app.auth.token if token_file is None else kept_token(token_file)
    _serve(app, settings, opens_browser=opens_browser)


def _serve(app: App, settings: ServerSettings, *, opens_browser: bool = False) -> None:
    sockets = prepare_server(app, settings)
    assert app.auth.port is not None, "the sockets listen"
    address = address_of(settings.host, app.auth.port)
    on_served = app.agent.spec.branding.on_served
    if on_served is not None:
        on_served(address)

    def ready() -> None:
        print_ready(app, settings)
        if opens_browser:
            code = "" if app.auth.open else f"?token={app.auth.issue_code()}"
            open_browser(f"{address}{code}")

    serve_process(app, sockets, ready=ready)
    print_stopped(app)


def _token_file(store: str) -> Path | None:
    """The file for the token of a demo with this store; None if the store is not a file."""
    if not store.startswith(FILE):
        return None
    path = Path(store.removeprefix(FILE).partition("?")[0])
    return path.with_name(f"{path.name}.token")


def _serve_inherited(app: App, settings: ServerSettings, inherited: ParentLink) -> None:
    """One of several workers: the parent listens and prints for all of them."""
    set_up(app, settings)
    app.auth.port = inherited.sockets[0].getsockname()[1]
    serve_process(app, inherited.sockets, ready=inherited.ready)


def _run_workers(app: App, settings: ServerSettings, workers: int) -> None:
    sockets = prepare_server(app, settings)
    code = run_workers(
        sockets, workers, token=app.auth.token, ready=lambda: print_ready(app, settings, workers=workers)
    )
    if code:
        raise typer.Exit(code)
    print_stopped(app)


def _demo_store() -> str:
    """A file in the user's home, so that a demo can be stopped and continued."""
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "farhand"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise BadSetting(
            f"Cannot create a folder for the demo's store: {str(error).removesuffix('.')}.",
            hint="Name a store with --store.",
        ) from None
    return f"sqlite:///{folder / 'demo.db'}"


def open_browser(address: str) -> bool:
    """Opens the address in the user's browser. False if there is no browser or no display; never raises."""
    opener = opener_for(sys.platform, os.environ)
    if opener is None:
        return False
    try:
        # in its own session: Ctrl-C at the server must not close the browser; the address is our own
        opened = subprocess.Popen(  # noqa: S603
            [opener, address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    # nothing waits for it, but it must not stay behind as a zombie
    threading.Thread(target=opened.wait, daemon=True).start()
    return True


def opener_for(platform: str, environment: Mapping[str, str]) -> str | None:
    """The program that opens addresses; None in continuous integration, over SSH and without a display."""
    if environment.get("CI") or environment.get("SSH_CONNECTION"):
        return None
    if platform == "darwin":
        return shutil.which("open", path=environment.get("PATH"))
    if not (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")):
        return None
    return shutil.which("xdg-open", path=environment.get("PATH"))
