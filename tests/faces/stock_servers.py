"""An app for any ASGI server, and such servers as processes of their own, without `farhand run`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.requests import HTTPConnection

from farhand import Agent, Principal, create_app
from farhand.core.principal import DEFAULT_SCOPES
from tests.guards.counted_round_trip import OneCall, open_url
from tests.postgres import free_port

READY_WITHIN_SEC = 60
ROOT = Path(__file__).resolve().parents[2]
ADA, GUEST = "Bearer ada-may-chat", "Bearer guest-may-answer"


def authenticate(request: HTTPConnection) -> Principal | None:
    who = request.headers.get("authorization")
    if who == ADA:
        return Principal("house", "ada", DEFAULT_SCOPES | {"client", "execute"})
    return Principal("house", "guest", frozenset({"answer"})) if who == GUEST else None


app = create_app(
    Agent(model=OneCall(), frontend_tools=[open_url]), store="memory:", authenticate=authenticate
)

_APP = "tests.faces.stock_servers:app"
UVICORN = ("uvicorn", _APP, "--port", "{port}", "--http")
OLDEST = "oldest uvicorn"
SERVERS: dict[str, tuple[str, ...]] = {
    "uvicorn with httptools": (*UVICORN, "httptools"),
    "uvicorn with h11": (*UVICORN, "h11"),
    f"{OLDEST} with httptools": (*UVICORN, "httptools"),
    "hypercorn": ("hypercorn", _APP, "--bind", "127.0.0.1:{port}"),
    "granian": ("granian", "--interface", "asgi", "--host", "127.0.0.1", "--port", "{port}", _APP),
}
OLDEST_AT = Path(sys.prefix) / "oldest-server"
"""Where `make` installs the oldest uvicorn that farhand supports."""


@contextmanager
def running(server: str) -> Iterator[int]:
    """The port of this server once it answers."""
    port = free_port()
    command = [part.format(port=port) for part in SERVERS[server]]
    folders = [str(ROOT)]
    if server.startswith(OLDEST):
        assert OLDEST_AT.is_dir(), "run `make test`, which installs it"
        folders.insert(0, str(OLDEST_AT))
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        )  # fmt: skip
        try:
            _wait_for(port, process)
            yield port
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise
        finally:
            process.terminate()
            try:
                process.wait(READY_WITHIN_SEC)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(READY_WITHIN_SEC * 10):
        assert process.poll() is None, "the server ended at once"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        else:
            return
    raise AssertionError("the server does not answer")
