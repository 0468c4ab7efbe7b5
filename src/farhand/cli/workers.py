"""Several server processes behind one port: starts them, starts a dead one again, passes the end on.

The parent owns the listening sockets and serves nobody. A connection waits in them while a worker is away, so
none is refused. A worker is `farhand run` as it is; that it has a parent it learns from `Inherited`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread
from time import monotonic

from farhand.errors import BadSetting
from farhand.store.address import is_shared, shown

log = logging.getLogger("farhand.workers")

AT_MOST = 256
FIRST_PAUSE_SEC = 0.5
LONGEST_PAUSE_SEC = 30.0
STEADY_SEC = 30.0
"""A worker that lived for so long was no failed start: the pause begins anew."""
GONE_WITHIN_SEC = 9.0
"""Who is not gone by then is killed: all is over within 10 s, also if a worker stands still."""


NAME_A_DATABASE = "Name a database with --store postgresql://user@host/name, or leave --workers out."


def require_shared(store: str, workers: int) -> None:
    """`BadSetting` unless several processes may open the store at once."""
    if not 1 <= workers <= AT_MOST:
        raise BadSetting(f"--workers takes a number from 1 to {AT_MOST}, not {workers}.")
    if workers > 1 and not is_shared(store):
        kept = f"'{shown(store)}' belongs to one process"
        raise BadSetting(
            f"--workers {workers} needs a store that processes share, and {kept}.", hint=NAME_A_DATABASE
        )


@dataclass(frozen=True)
class Inherited:
    """What a worker has from its parent: the sockets, and a line that tells of the beginning and the end."""

    sockets: list[socket.socket]
    _line: socket.socket

    @classmethod
    def read(cls, text: str) -> Inherited:
        *sockets, line = (socket.socket(fileno=int(number)) for number in text.split(","))
        for each in sockets:
            each.setblocking(False)
        return cls(sockets, line)

    def ready(self) -> None:
        """Tells the parent; from now on this process ends when the parent does."""
        self._line.setblocking(True)
        self._line.send(_READY)
        Thread(target=self._watch, name="parent", daemon=True).start()

    def _watch(self) -> None:
        with suppress(OSError):
            self._line.recv(1)
        os.kill(os.getpid(), signal.SIGTERM)


def supervise(
    sockets: list[socket.socket], count: int, *, token: str | None, ready: Callable[[], None]
) -> int:
    """Runs this very command in `count` processes until a signal ends it; the exit code."""
    return asyncio.run(_Parent(sockets, count, token, ready).run())


_READY = b"r"


@dataclass
class _Parent:
    sockets: Sequence[socket.socket]
    count: int
    token: str | None
    on_ready: Callable[[], None]
    _alive: set[asyncio.subprocess.Process] = field(default_factory=set)
    _was_ready: int = 0
    _code: int = 0
    _tried: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for sig in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sig, self._stop)
        async with asyncio.TaskGroup() as group:
            kept = [group.create_task(self._keep(number)) for number in range(1, self.count + 1)]
            await self._stopping.wait()
            await asyncio.wait(kept, timeout=GONE_WITHIN_SEC)
            self._send(signal.SIGKILL)
        return self._code

    def _stop(self) -> None:
        """The first signal asks, the second insists."""
        self._send(signal.SIGKILL if self._stopping.is_set() else signal.SIGTERM)
        self._stopping.set()
        self._tried.set()

    def _send(self, sig: signal.Signals) -> None:
        for process in self._alive:
            if process.returncode is None:
                process.send_signal(sig)

    async def _keep(self, number: int) -> None:
        """One place among the workers: whoever dies there is replaced."""
        if number > 1:
            # the first one makes the tables, or says for all of them why they cannot work
            await self._tried.wait()
        pause = FIRST_PAUSE_SEC
        while not self._stopping.is_set():
            began = monotonic()
            code = await self._live()
            if self._stopping.is_set():
                # one that was still being born had no handler for the signal yet
                self._code = self._code or int(code not in (0, -signal.SIGTERM))
                return
            if not self._was_ready:
                self._code = code if code > 0 else 1
                self._stop()
                return
            pause = FIRST_PAUSE_SEC if monotonic() - began > STEADY_SEC else pause
            log.warning("worker %d ended with %s; it starts again in %g s", number, _said(code), pause)
            await self._rest(pause)
            pause = min(LONGEST_PAUSE_SEC, pause * 2)

    async def _rest(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    async def _live(self) -> int:
        """One process from its start to its end; its exit code, negative for a signal."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        given = [*self.sockets, theirs]
        numbers = [each.fileno() for each in given]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "farhand", *sys.argv[1:], "--inherited", ",".join(map(str, numbers)),
            # a group of its own: Ctrl-C in the terminal reaches the parent, and the parent asks once
            pass_fds=numbers, start_new_session=True, stdin=asyncio.subprocess.DEVNULL,
            env=os.environ | ({} if self.token is None else {"FARHAND_TOKEN": self.token}),
        )  # fmt: skip
        theirs.close()
        self._alive.add(process)
        try:
            # a signal may have come while it was being born
            if self._stopping.is_set():
                process.terminate()
            await self._hear(ours)
            return await process.wait()
        finally:
            self._alive.discard(process)
            ours.close()

    async def _hear(self, line: socket.socket) -> None:
        try:
            told = await asyncio.get_running_loop().sock_recv(line, 1)
        except OSError:
            return
        if told != _READY:
            return
        self._was_ready += 1
        self._tried.set()
        if self._was_ready == self.count:
            self.on_ready()


def _said(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"code {code}"
