"""Servers that start at once: farhand is imported one time, and each server is a process forked from that.

A start costs a tenth of a second and not a whole one, so that a fault test can afford fifty kills and every
test a server of its own. What runs in such a process is the command line as it is, or the function of a
program that uses farhand; it ends as any interpreter does.

    async with nursery("tests.chaos.storm.agent") as home:
        server = await home.start(["run", "tests.chaos.storm.agent:agent", ...], environment, folder)
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
"""What a server would import one by one while it starts."""
_ADDRESS = re.compile(r"^  open +http://[^:]+:(\d+)/", re.MULTILINE)


class Nursed(asyncio.Protocol):
    """One process. The port of a server is known once it is ready."""

    def __init__(self, out: Path) -> None:
        self.port = 0
        self._out = out
        self._told = b""
        # what it is if its nursery is gone, and everybody with it
        self._code = -signal.SIGKILL
        loop = asyncio.get_running_loop()
        self._born: asyncio.Future[int] = loop.create_future()
        self._ended: asyncio.Future[int] = loop.create_future()

    def data_received(self, data: bytes) -> None:
        *lines, self._told = (self._told + data).split(b"\n")
        for line in lines:
            told: dict[str, int] = json.loads(line)
            if "born" in told:
                self._born.set_result(told["born"])
            else:
                self._code = told["ended"]

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side closes it at the end; only then has this one nothing left to close."""
        if not self._born.done():
            self._born.cancel()
        self._ended.set_result(self._code)

    async def born(self) -> None:
        await asyncio.wait_for(self._born, READY_WITHIN_SEC)

    @property
    def pid(self) -> int:
        return self._born.result()

    @property
    def returncode(self) -> int | None:
        """Negative for a signal; None while it is alive."""
        return self._ended.result() if self._ended.done() else None

    @property
    def is_alive(self) -> bool:
        return not self._ended.done()

    def send_signal(self, sig: int) -> None:
        # one that has ended is reaped already: its number may be somebody else's
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
            # another process writes it: there is no event to wait for
            while not (found := _ADDRESS.search(self._out.read_text())):
                if not self.is_alive:
                    return False
                await asyncio.sleep(0.01)
        self.port = int(found[1])
        return True

    async def line(self, number: int) -> str:
        """What it printed, the first line being 0, once it has."""
        async with asyncio.timeout(READY_WITHIN_SEC):
            while True:
                was_alive = self.is_alive
                lines = self._out.read_text().split("\n")[:-1]
                if len(lines) > number:
                    return lines[number]
                assert was_alive, f"it ended: {self._out.with_suffix('.err').read_text()}"
                await asyncio.sleep(0.01)


class Nursery:
    """A process that has imported farhand. Usable from any event loop."""

    def __init__(self, *preload: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="farhand-fork-"))
        self._path = str(self._folder / "orders")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._path)
            # from now on orders wait for it
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
    ) -> Nursed:
        """What it prints goes into `out`, its errors into `err`, by default beside it with the suffix `.err`.
        `main` is a module and its function."""
        # tiny, and nothing else of the test goes on meanwhile that would mind
        out.write_text("")  # noqa: ASYNC240
        order = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "out": str(out),
            "err": str(err or out.with_suffix(".err")),
            "cwd": str(cwd),
            "main": main,
        }
        loop = asyncio.get_running_loop()
        line, nursed = await loop.create_unix_connection(lambda: Nursed(out), self._path)
        line.write(json.dumps(order).encode() + b"\n")
        await nursed.born()
        return nursed

    def close(self) -> None:
        """Whoever was born there ends with it."""
        assert self._process.stdin is not None, "made with a pipe"
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


@asynccontextmanager
async def nursery(*preload: str) -> AsyncIterator[Nursery]:
    """One with modules of a test's own."""
    home = Nursery(*preload)
    try:
        yield home
    finally:
        home.close()


@cache
def shared_nursery() -> Nursery:
    """For all tests of this process."""
    home = Nursery()
    atexit.register(home.close)
    return home


def main() -> None:
    """The process itself: an order for each connection, until its input ends."""
    # Ctrl-C is for the test run, which then closes the input
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener = socket.socket(fileno=int(sys.argv[1]))
    for module in (*PRELOADED, *sys.argv[2:]):
        importlib.import_module(module)
    order = _Parent(listener).serve()
    if order is not None:
        _live(order)


# Any: an order is read as it was written above
Order = dict[str, Any]


class _Parent:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._lines: dict[int, socket.socket] = {}
        """Of whoever is alive."""
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = socket.socketpair()
        self._wake.setblocking(False)

    def serve(self) -> Order | None:
        """Returns an order in each forked process, and None at the end."""
        signal.set_wakeup_fd(self._wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for each in (0, self._listener, self._woken):
            self._selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    self._end()
                    return None
                order = self._handle(key)
                if order is not None:
                    return order

    def _handle(self, key: selectors.SelectorKey) -> Order | None:
        if key.fileobj is self._listener:
            return self._bear()
        if key.fileobj is self._woken:
            self._woken.recv(4096)
            self._reap()
        elif key.data in self._lines:
            # nobody is there any more who could end it
            self._selector.unregister(key.fileobj)
            os.kill(key.data, signal.SIGKILL)
        return None

    def _bear(self) -> Order | None:
        line, _ = self._listener.accept()
        with line.makefile("rb") as told:
            text = told.readline()
        if not text:
            line.close()
            return None
        pid = os.fork()
        if pid == 0:
            line.close()
            self._leave()
            order: Order = json.loads(text)
            return order
        self._lines[pid] = line
        self._selector.register(line, selectors.EVENT_READ, pid)
        _say(line, born=pid)
        return None

    def _leave(self) -> None:
        """In a forked process: nothing of its parent is left."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        for each in (self._listener, self._woken, self._wake, *self._lines.values()):
            each.close()

    def _reap(self) -> None:
        for pid in list(self._lines):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                line = self._lines.pop(pid)
                if line in {key.fileobj for key in self._selector.get_map().values()}:
                    self._selector.unregister(line)
                _say(line, ended=os.waitstatus_to_exitcode(status))
                line.close()

    def _end(self) -> None:
        for pid in self._lines:
            os.kill(pid, signal.SIGKILL)
        for pid in self._lines:
            os.waitpid(pid, 0)


def _live(order: Order) -> None:
    os.chdir(order["cwd"])
    # where `python -m` looks first
    sys.path.insert(0, order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    _point(0, os.devnull, os.O_RDONLY)
    _point(1, order["out"], os.O_WRONLY | os.O_APPEND)
    _point(2, order["err"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    sys.argv = ["farhand", *order["arguments"]]
    module, _, function = order["main"].partition(":")
    getattr(importlib.import_module(module), function)()


def _point(descriptor: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


def _say(line: socket.socket, **told: int) -> None:
    try:
        line.sendall(json.dumps(told).encode() + b"\n")
    except OSError:
        # whoever asked for it has left
        return


if __name__ == "__main__":
    main()
