"""An app as a host's own server carries it, and such servers as processes, without `farhand run`."""

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
from tests.guards.trip import OneCall, open_url

READY_WITHIN_SEC = 60
ROOT = Path(__file__).resolve().parents[2]
ADA, GUEST = "Bearer ada-may-chat", "Bearer guest-may-answer"


def authenticate(request: HTTPConnection) -> Principal | None:
    who = request.headers.get("authorization")
    if who == ADA:
        return Principal("house", "ada")
    return Principal("house", "guest", frozenset({"answer"})) if who == GUEST else None


app = create_app(
    Agent(model=OneCall(), frontend_tools=[open_url]), store="memory:", authenticate=authenticate
)

_APP = "tests.faces.under_other_servers:app"
SERVERS: dict[str, tuple[str, ...]] = {
    "uvicorn with httptools": ("uvicorn", _APP, "--http", "httptools", "--port", "{port}"),
    "uvicorn with h11": ("uvicorn", _APP, "--http", "h11", "--port", "{port}"),
    "hypercorn": ("hypercorn", _APP, "--bind", "127.0.0.1:{port}"),
    "granian": ("granian", "--interface", "asgi", "--host", "127.0.0.1", "--port", "{port}", _APP),
}


@contextmanager
def running(server: str) -> Iterator[int]:
    """The port of this server once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = [part.format(port=port) for part in SERVERS[server]]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
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
