"""farhand as a separate process, for tests that kill, stop and restart it.

    async with farhand_process("tests.chaos.agents:agent", "--hold-for", "5") as server:
        async with server.client() as client:
            await client.post("/api/chat", json=...)
        await server.kill()
        await server.restart()

The store, the port and the token stay the same from one start to the next. The environment and the folders of
whoever runs the tests are kept out. A process is forked from one that has imported farhand, unless a test
needs an interpreter of its own (`fresh`, `inside`) or sets how Python starts: imports are most of a start.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2

from tests.fork_server import ForkedProcess, shared_fork_server
from tests.postgres import free_port

ROOT = Path(__file__).resolve().parents[1]
READY_WITHIN_SEC = 40.0
GONE_WITHIN_SEC = 30.0
MANY_RUNS = {
    "FARHAND_LIMITS__RUNNING_PER_PRINCIPAL": "1000",
    "FARHAND_LIMITS__RUNS_PER_MIN": "10000",
    "FARHAND_LIMITS__RUNS_PER_MIN_OF_TENANT": "10000",
}
"""For a server where one sign-in does what many people do."""
_ADDRESS = re.compile(r"^  open +(http://\S+?)/(?:\?token=(\S+))?$", re.MULTILINE)


class Ended(NamedTuple):
    """A process that came to its end by itself."""

    code: int
    out: str
    err: str


class FarhandProcess:
    """One server; alive between `start()` and `stop()` or `kill()`."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        environment: Mapping[str, str],
        inside: tuple[str, ...] = (),
        *,
        fresh: bool = False,
    ) -> None:
        self.url = ""
        self.port = free_port()
        self.token = secrets.token_urlsafe(24)
        self._arguments = arguments
        self._folder = folder
        self._inside = inside
        self._fresh = fresh
        self._environment = {**environment, "FARHAND_TOKEN": self.token}
        self._process: asyncio.subprocess.Process | ForkedProcess | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        """What it logged, over all starts."""
        return self._err.read_text()

    def client(self, *, signed_in: bool = True, timeout: float = 30.0) -> httpx2.AsyncClient:
        """Talks to it, with the token unless said otherwise. Follows no redirect."""
        headers = {"authorization": f"Bearer {self.token}"} if signed_in else {}
        any_number = httpx2.Limits(max_connections=None)
        return httpx2.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=timeout,
            limits=any_number,
            trust_env=False,
            verify=False,
        )

    async def start(self) -> None:
        """Returns once it answers requests."""
        arguments = (*self._arguments, "--port", str(self.port))
        self._process = await (self._start_fresh(arguments) if self._fresh else self._fork(arguments))
        self.url = await asyncio.wait_for(self._address(), READY_WITHIN_SEC)

    async def _start_fresh(self, arguments: tuple[str, ...]) -> asyncio.subprocess.Process:
        with self._out.open("w") as out, self._err.open("a") as err:
            return await asyncio.create_subprocess_exec(
                *self._inside, sys.executable, "-m", "farhand", *arguments,
                cwd=ROOT, env=self._environment, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=err,
            )  # fmt: skip

    async def _fork(self, arguments: tuple[str, ...]) -> ForkedProcess:
        return await shared_fork_server().start(arguments, self._environment, self._out, err=self._err)

    async def restart(self) -> None:
        """Kills it if it is still alive, and starts it again on the same store and port."""
        await self.kill()
        await self.start()

    async def restart_with_another_token(self) -> None:
        """The sign-ins of before are over."""
        self.token = secrets.token_urlsafe(24)
        self._environment = {**self._environment, "FARHAND_TOKEN": self.token}
        await self.restart()

    async def stop(self, sig: int = signal.SIGTERM) -> int:
        """Asks it to stop and waits until it is gone; its exit code."""
        process = self._running()
        process.send_signal(sig)
        return await asyncio.wait_for(process.wait(), GONE_WITHIN_SEC)

    def signal(self, sig: int) -> None:
        self._running().send_signal(sig)

    async def wait(self) -> int:
        return await asyncio.wait_for(self._running().wait(), GONE_WITHIN_SEC)

    async def kill(self) -> None:
        """As a power cut would: no signal handler, no clean-up."""
        process = self._process
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    @property
    def _out(self) -> Path:
        return self._folder / "out.txt"

    @property
    def _err(self) -> Path:
        return self._folder / "err.txt"

    def _running(self) -> asyncio.subprocess.Process | ForkedProcess:
        assert self._process is not None, "start() comes first"
        return self._process

    async def _address(self) -> str:
        """Looks at what it prints until the address is there: printed only when it is ready."""
        while not (found := _ADDRESS.search(self.out)):
            assert self._running().returncode is None, f"it ended at once:\n{self.err}"
            await asyncio.sleep(0.02)
        return found[1]


@asynccontextmanager
async def farhand_process(
    target: str,
    *arguments: str,
    store: str | None = None,
    env: Mapping[str, str] | None = None,
    inside: tuple[str, ...] = (),
    fresh: bool = False,
) -> AsyncIterator[FarhandProcess]:
    """A running `farhand run target …`, or `farhand demo …` for the target `demo`; started by the command
    `inside`, which becomes it."""
    with tempfile.TemporaryDirectory(prefix="farhand-test-") as folder:
        place = Path(folder)
        address = store or f"sqlite:///{place / 'store.db'}"
        command = ("demo",) if target == "demo" else ("run", target)
        # an app of create_app brings its own store
        kept = () if target.endswith(":app") else ("--store", address)
        variables = environment(place, env)
        process = FarhandProcess(
            (*command, *kept, *arguments), place, variables, inside, fresh=fresh or _needs_own(inside, env)
        )
        try:
            await process.start()
            yield process
        finally:
            await process.kill()


async def run_farhand(
    *arguments: str,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    within: float = READY_WITHIN_SEC,
    inside: tuple[str, ...] = (),
    fresh: bool = False,
) -> Ended:
    """A farhand that is expected to end by itself, with everything it printed."""
    with tempfile.TemporaryDirectory(prefix="farhand-test-") as folder:
        place = Path(folder)
        out, err = place / "out.txt", place / "err.txt"
        process: asyncio.subprocess.Process | ForkedProcess
        if fresh or _needs_own(inside, env):
            with out.open("w") as to_out, err.open("w") as to_err:
                process = await asyncio.create_subprocess_exec(
                    *inside, sys.executable, "-m", "farhand", *arguments,
                    cwd=cwd, env=environment(place, env), stdin=asyncio.subprocess.DEVNULL,
                    stdout=to_out, stderr=to_err,
                )  # fmt: skip
        else:
            process = await shared_fork_server().start(
                arguments, environment(place, env), out, err=err, cwd=cwd
            )
        try:
            code = await asyncio.wait_for(process.wait(), within)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return Ended(code, out.read_text(), err.read_text())


def _needs_own(inside: tuple[str, ...], env: Mapping[str, str] | None) -> bool:
    """True where a forked process could not be what it should be."""
    return bool(inside) or any(name.startswith("PYTHON") for name in env or ())


def environment(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """That of the tests, without settings and folders of the user's own."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FARHAND_")}
    homes = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))
    # wide, so that a sentence in a box stays on one line
    return {**plain, **homes, "COLUMNS": "200", "PYTHONPATH": path, **(more or {})}
