"""Starts servers quickly: one process imports farhand, and each server is forked from it.

A start takes a tenth of a second instead of a second, so a fault test can kill fifty servers, and every test
can have its own. A forked process runs the command line, or a function of a program that uses farhand, and
ends like any interpreter.

    async with own_fork_server("tests.chaos.storm.agent") as fork_server:
        server = await fork_server.start(["run", "tests.chaos.storm.agent:agent", ...], environment, folder)
        server.kill()
        await server.wait()
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import json
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
READY_WITHIN_SEC = 40.0
COMMAND_LINE = "farhand.cli:main"
PRELOADED = (
    "farhand.cli.commands",
    "farhand.cli.doctor",
    "farhand.cli.purge",
    "farhand.cli.run",
    "farhand.store.postgres",
    "farhand.store.sqlite",
    "httptools",
    "uvloop",
    "websockets.server",
)
"""What a server imports while it starts."""
_ADDRESS = re.compile(r"^  open +http://[^:]+:(\d+)/", re.MULTILINE)


class ForkedProcess(asyncio.Protocol):
    """One process. The port of a server is known once it is ready."""

    def __init__(self, out: Path) -> None:
        self.port = 0
        self._out = out
        self._unread = b""
        # if the fork server ends, it kills its processes and sends no code
        self._code = -signal.SIGKILL
        loop = asyncio.get_running_loop()
        self._pid: asyncio.Future[int] = loop.create_future()
        self._ended: asyncio.Future[int] = loop.create_future()

    def data_received(self, data: bytes) -> None:
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            message: dict[str, int] = json.loads(line)
            if "pid" in message:
                self._pid.set_result(message["pid"])
            else:
                self._code = message["code"]

    def connection_lost(self, exc: Exception | None) -> None:
        """The fork server closes the connection when the process has ended."""
        if not self._pid.done():
            self._pid.cancel()
        self._ended.set_result(self._code)

    async def started(self) -> None:
        await asyncio.wait_for(self._pid, READY_WITHIN_SEC)

    @property
    def pid(self) -> int:
        return self._pid.result()

    @property
    def returncode(self) -> int | None:
        """Negative for a signal; None while it is alive."""
        return self._ended.result() if self._ended.done() else None

    @property
    def is_alive(self) -> bool:
        return not self._ended.done()

    def send_signal(self, sig: int) -> None:
        # an ended process is reaped already: its id may belong to another process
        if self.is_alive:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Its exit code, negative for a signal."""
        return await asyncio.wait_for(asyncio.shield(self._ended), READY_WITHIN_SEC)

    async def ready(self) -> bool:
        """False if it ended instead."""
        async with asyncio.timeout(READY_WITHIN_SEC):
            # another process writes the file: there is no event to wait for
            while not (found := _ADDRESS.search(self._out.read_text())):
                if not self.is_alive:
                    return False
                await asyncio.sleep(0.01)
        self.port = int(found[1])
        return True

    async def line(self, number: int) -> str:
        """A line of its output, counted from 0, once it has been printed."""
        async with asyncio.timeout(READY_WITHIN_SEC):
            while True:
                was_alive = self.is_alive
                lines = self._out.read_text().split("\n")[:-1]
                if len(lines) > number:
                    return lines[number]
                assert was_alive, f"it ended: {self._out.with_suffix('.err').read_text()}"
                await asyncio.sleep(0.01)


class ForkServer:
    """A process that has imported farhand. Usable from any event loop."""

    def __init__(self, *preload: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="farhand-fork-"))
        self._path = str(self._folder / "requests")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._path)
            # from now on requests wait until the process accepts them
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", str(listener.fileno()), *preload],
                cwd=ROOT, env=os.environ | {"COLUMNS": "200"}, stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
            )  # fmt: skip

    async def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        out: Path,
        main: str = COMMAND_LINE,
        *,
        err: Path | None = None,
        cwd: Path = ROOT,
    ) -> ForkedProcess:
        """Output goes into the file `out`, errors into `err`, by default `out` with the suffix `.err`. `main`
        is a module and its function."""
        # an empty file: this blocks the event loop for no noticeable time
        out.write_text("")  # noqa: ASYNC240
        request = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "out": str(out),
            "err": str(err or out.with_suffix(".err")),
            "cwd": str(cwd),
            "main": main,
        }
        loop = asyncio.get_running_loop()
        transport, process = await loop.create_unix_connection(lambda: ForkedProcess(out), self._path)
        transport.write(json.dumps(request).encode() + b"\n")
        await process.started()
        return process

    def close(self) -> None:
        """Its processes end with it."""
        assert self._process.stdin is not None, "made with a pipe"
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


@asynccontextmanager
async def own_fork_server(*preload: str) -> AsyncIterator[ForkServer]:
    """One that also imports these modules."""
    fork_server = ForkServer(*preload)
    try:
        yield fork_server
    finally:
        fork_server.close()


@cache
def shared_fork_server() -> ForkServer:
    """For all tests of this process."""
    fork_server = ForkServer()
    atexit.register(fork_server.close)
    return fork_server


def main() -> None:
    """The process itself: one request per connection, until its standard input ends."""
    # Ctrl-C is for the test run, which then closes the input
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener = socket.socket(fileno=int(sys.argv[1]))
    for module in (*PRELOADED, *sys.argv[2:]):
        importlib.import_module(module)
    request = _Parent(listener).serve()
    if request is not None:
        _run(request)


# Any: the JSON that `start` has written
Request = dict[str, Any]


class _Parent:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._connections: dict[int, socket.socket] = {}
        """By the ids of the processes that are alive."""
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = socket.socketpair()
        self._wake.setblocking(False)

    def serve(self) -> Request | None:
        """Returns the request in each forked process, and None at the end."""
        signal.set_wakeup_fd(self._wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for each in (0, self._listener, self._woken):
            self._selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    self._end()
                    return None
                request = self._handle(key)
                if request is not None:
                    return request

    def _handle(self, key: selectors.SelectorKey) -> Request | None:
        if key.fileobj is self._listener:
            return self._fork()
        if key.fileobj is self._woken:
            self._woken.recv(4096)
            self._reap()
        elif key.data in self._connections:
            # the test that started it is gone, and nobody else could end it
            self._selector.unregister(key.fileobj)
            os.kill(key.data, signal.SIGKILL)
        return None

    def _fork(self) -> Request | None:
        connection, _ = self._listener.accept()
        with connection.makefile("rb") as received:
            text = received.readline()
        if not text:
            connection.close()
            return None
        pid = os.fork()
        if pid == 0:
            connection.close()
            self._leave()
            request: Request = json.loads(text)
            return request
        self._connections[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)
        _send(connection, pid=pid)
        return None

    def _leave(self) -> None:
        """In a forked process: closes what belongs to its parent."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        for each in (self._listener, self._woken, self._wake, *self._connections.values()):
            each.close()

    def _reap(self) -> None:
        for pid in list(self._connections):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                connection = self._connections.pop(pid)
                if connection in {key.fileobj for key in self._selector.get_map().values()}:
                    self._selector.unregister(connection)
                _send(connection, code=os.waitstatus_to_exitcode(status))
                connection.close()

    def _end(self) -> None:
        for pid in self._connections:
            os.kill(pid, signal.SIGKILL)
        for pid in self._connections:
            os.waitpid(pid, 0)


def _run(request: Request) -> None:
    os.chdir(request["cwd"])
    # where `python -m` looks first
    sys.path.insert(0, request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    _point(0, os.devnull, os.O_RDONLY)
    _point(1, request["out"], os.O_WRONLY | os.O_APPEND)
    _point(2, request["err"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    sys.argv = ["farhand", *request["arguments"]]
    module, _, function = request["main"].partition(":")
    getattr(importlib.import_module(module), function)()


def _point(descriptor: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


def _send(connection: socket.socket, **message: int) -> None:
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        # the test that started it is gone
        return


if __name__ == "__main__":
    main()
