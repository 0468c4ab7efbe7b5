"""Servers that start at once: farhand is imported one time, and each server is a process forked from that.

A restart costs a few milliseconds and not a second, so that a fault test can afford fifty kills. What runs in
such a process is the command line as it is, or the function of a program that uses farhand.

    async with nursery("tests.chaos.storm.agent") as home:
        server = await home.start(["run", "tests.chaos.storm.agent:agent", ...], environment, folder)
        server.kill()
        await server.wait()
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import select
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

from tests.process import ROOT

READY_WITHIN_SEC = 40.0
COMMAND_LINE = "farhand.cli:main"
PRELOADED = (
    "farhand.cli.commands",
    "farhand.cli.run",
    "farhand.store.postgres",
    "farhand.store.sqlite",
    "httptools",
    "uvloop",
    "websockets.server",
)
"""What a server would import one by one while it starts."""
_ADDRESS = re.compile(r"^  open +http://[^:]+:(\d+)/", re.MULTILINE)


class Nursed:
    """One server. Its port is known once it is ready."""

    def __init__(self, pid: int, out: Path, ended: asyncio.Future[int]) -> None:
        self.pid = pid
        self.port = 0
        self._out = out
        self._ended = ended

    @property
    def is_alive(self) -> bool:
        return not self._ended.done()

    def signal(self, sig: int) -> None:
        # one that has ended is reaped already: its number may be somebody else's
        if self.is_alive:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)

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
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._born: asyncio.Queue[int] = asyncio.Queue()
        self._ends: dict[int, asyncio.Future[int]] = {}
        self._starting = asyncio.Lock()

    async def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], out: Path, main: str = COMMAND_LINE
    ) -> Nursed:
        """What it prints goes into `out`, its errors beside it with the suffix `.err`. `main` is a module and
        its function."""
        assert self._process.stdin is not None, "made with a pipe"
        # tiny, and nothing else of the test goes on meanwhile that would mind
        out.write_text("")  # noqa: ASYNC240
        order = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "out": str(out),
            "main": main,
        }
        async with self._starting:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            pid = await asyncio.wait_for(self._born.get(), READY_WITHIN_SEC)
        return Nursed(pid, out, self._ends[pid])

    async def listen(self) -> None:
        assert self._process.stdout is not None, "made with a pipe"
        async for line in self._process.stdout:
            told: dict[str, int] = json.loads(line)
            if "born" in told:
                self._ends[told["born"]] = asyncio.get_running_loop().create_future()
                self._born.put_nowait(told["born"])
            else:
                self._ends.pop(told["ended"]).set_result(told["code"])


@asynccontextmanager
async def nursery(*preload: str) -> AsyncIterator[Nursery]:
    """Whoever was born there ends with it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.chaos.fork_server", *preload,
        cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None, "made with a pipe"
    home = Nursery(process)
    listening = asyncio.create_task(home.listen())
    try:
        yield home
    finally:
        process.stdin.close()
        await process.wait()
        await listening


def main() -> None:
    """The process itself: an order a line, until its input ends."""
    for module in (*PRELOADED, *sys.argv[1:]):
        importlib.import_module(module)
    alive: set[int] = set()
    pending = b""
    while True:
        readable, _, _ = select.select([0], [], [], 0.01)
        if readable:
            piece = os.read(0, 65536)
            if not piece:
                break
            *orders, pending = (pending + piece).split(b"\n")
            for order in orders:
                alive.add(_bear(json.loads(order)))
        _reap(alive)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    while alive:
        _reap(alive)


# Any: an order is read as it was written above
def _bear(order: dict[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        _live(order)
    _say(born=pid)
    return pid


def _live(order: dict[str, Any]) -> NoReturn:
    code = 1
    try:
        os.environ.clear()
        os.environ.update(order["environment"])
        out = Path(order["out"])
        _point(0, os.devnull, os.O_RDONLY)
        _point(1, str(out), os.O_WRONLY | os.O_APPEND)
        _point(2, str(out.with_suffix(".err")), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        sys.argv = ["farhand", *order["arguments"]]
        module, _, function = order["main"].partition(":")
        getattr(importlib.import_module(module), function)()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _point(descriptor: int, path: str, flags: int) -> None:
    os.dup2(os.open(path, flags, 0o600), descriptor)


def _reap(alive: set[int]) -> None:
    for pid in list(alive):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            alive.discard(pid)
            _say(ended=pid, code=os.waitstatus_to_exitcode(status))


def _say(**told: int) -> None:
    os.write(1, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
