"""Several server processes behind one port: starts them, restarts those that die, and stops them.

The parent process owns the listening sockets and serves no requests. Connections wait in their backlog while
a worker restarts, so none is refused. A worker is a normal `farhand run` that has a `ParentLink`.
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
from farhand.store.open import is_shared, redact_password

log = logging.getLogger("farhand.workers")

MAX_WORKERS = 256
FIRST_PAUSE_SEC = 0.5
LONGEST_PAUSE_SEC = 30.0
STEADY_SEC = 30.0
"""After running this long, a worker did not fail at its start, so the pause is reset."""
GONE_WITHIN_SEC = 9.0
"""A worker that is still running after this time is killed, so that everything ends within 10 s."""


NAME_A_DATABASE = "Name a database with --store postgresql://user@host/name, or leave --workers out."


def require_shared(store: str, workers: int) -> None:
    """Raises `BadSetting` unless several processes may open the store at once."""
    if not 1 <= workers <= MAX_WORKERS:
        raise BadSetting(f"--workers must be a number from 1 to {MAX_WORKERS}, not {workers}.")
    if workers > 1 and not is_shared(store):
        raise BadSetting(
            f"--workers {workers} needs a store that processes can share; '{redact_password(store)}' "
            "belongs to one process.",
            hint=NAME_A_DATABASE,
        )


@dataclass(frozen=True)
class ParentLink:
    """A worker's link to its parent: the sockets, and a channel that reports readiness and the end."""

    sockets: list[socket.socket]
    _channel: socket.socket

    @classmethod
    def read(cls, text: str) -> ParentLink:
        *sockets, channel = (socket.socket(fileno=int(number)) for number in text.split(","))
        for each in sockets:
            each.setblocking(False)
        return cls(sockets, channel)

    def ready(self) -> None:
        """Reports that this worker is ready. From now on, the worker ends when its parent does."""
        self._channel.setblocking(True)
        self._channel.send(_READY)
        Thread(target=self._watch, name="parent", daemon=True).start()

    def _watch(self) -> None:
        with suppress(OSError):
            self._channel.recv(1)
        os.kill(os.getpid(), signal.SIGTERM)


def run_workers(
    sockets: list[socket.socket], count: int, *, token: str | None, ready: Callable[[], None]
) -> int:
    """Runs this command in `count` processes until a signal; returns the exit code."""
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
        """The first signal terminates the workers, the second one kills them."""
        self._send(signal.SIGKILL if self._stopping.is_set() else signal.SIGTERM)
        self._stopping.set()
        self._tried.set()

    def _send(self, sig: signal.Signals) -> None:
        for process in self._alive:
            if process.returncode is None:
                process.send_signal(sig)

    async def _keep(self, number: int) -> None:
        """Runs one of the workers, and restarts it when it dies."""
        if number > 1:
            # the first worker creates the tables, or fails for all of them
            await self._tried.wait()
        pause = FIRST_PAUSE_SEC
        while not self._stopping.is_set():
            began = monotonic()
            code = await self._run_once()
            if self._stopping.is_set():
                # a worker that was just starting had no handler for the signal yet
                self._code = self._code or int(code not in (0, -signal.SIGTERM))
                return
            if not self._was_ready:
                self._code = code if code > 0 else 1
                self._stop()
                return
            pause = FIRST_PAUSE_SEC if monotonic() - began > STEADY_SEC else pause
            log.warning("worker %d ended with %s; restarting it in %g s", number, _exit_text(code), pause)
            await self._pause(pause)
            pause = min(LONGEST_PAUSE_SEC, pause * 2)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    async def _run_once(self) -> int:
        """Runs one process to its end; returns its exit code, negative for a signal."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        inherited = [*self.sockets, theirs]
        numbers = [each.fileno() for each in inherited]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "farhand", *sys.argv[1:], "--inherited", ",".join(map(str, numbers)),
            # in its own session: Ctrl-C in the terminal reaches only the parent, which terminates the workers
            pass_fds=numbers, start_new_session=True, stdin=asyncio.subprocess.DEVNULL,
            env=os.environ | ({} if self.token is None else {"FARHAND_TOKEN": self.token}),
        )  # fmt: skip
        theirs.close()
        self._alive.add(process)
        try:
            # a signal may have arrived while the process was starting
            if self._stopping.is_set():
                process.terminate()
            await self._wait_until_ready(ours)
            return await process.wait()
        finally:
            self._alive.discard(process)
            ours.close()

    async def _wait_until_ready(self, channel: socket.socket) -> None:
        try:
            received = await asyncio.get_running_loop().sock_recv(channel, 1)
        except OSError:
            return
        if received != _READY:
            return
        self._was_ready += 1
        self._tried.set()
        if self._was_ready == self.count:
            self.on_ready()


def _exit_text(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"code {code}"
