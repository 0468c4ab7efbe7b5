"""The servers of a fault run: forked from one process, each behind its own proxy, killed and stopped."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx2

from tests.chaos.fault_proxy import FaultProxy
from tests.chaos.storm.director import Fault
from tests.fork_server import ForkedProcess, ForkServer, own_fork_server
from tests.postgres import free_port
from tests.process import environment

AGENT = "tests.chaos.storm.agent"
TOKEN = "storm-storm-storm-storm"
SETTINGS = {
    "FARHAND_TOKEN": TOKEN,
    # parks are as frequent as holds
    "FARHAND_TIMEOUTS__HOLD_FOR": "2",
    "FARHAND_TIMEOUTS__UNREAD_FOR": "0.5",
    # whoever answers is late on a busy machine, and deadlines are proven elsewhere
    "FARHAND_TIMEOUTS__HELD_CALL": "600",
    # by these a reader can tell a dead line from a quiet one
    "FARHAND_TIMEOUTS__KEEP_ALIVE": "0.5",
    "FARHAND_TIMEOUTS__LEASE": "1",
    # a registered client whose line is dead is given up soon
    "FARHAND_TIMEOUTS__CLIENT_PING": "0.5",
    "FARHAND_TIMEOUTS__CLIENT_CALL": "5",
    # everybody here is the same person
    "FARHAND_LIMITS__STREAMS_PER_PRINCIPAL": "20000",
    "FARHAND_LIMITS__RUNNING_PER_PRINCIPAL": "20000",
    "FARHAND_LIMITS__RUNNING_PER_TENANT": "20000",
    "FARHAND_LIMITS__RUNS_PER_MIN": "1000000",
    "FARHAND_LIMITS__RUNS_PER_MIN_OF_TENANT": "1000000",
    "FARHAND_LIMITS__RESULTS_PER_SEC": "100000",
    "FARHAND_LIMITS__RESULTS_BURST": "100000",
    "FARHAND_LIMITS__REGISTRATIONS_PER_MIN": "100000",
}
SILENCE_SEC = 3.0
STARTS = 100
GONE_WITHIN_SEC = 60.0
"""A process that was asked to stop is gone within ten seconds of its own time, and the machine is busy."""


class Server:
    """One of them: always there again, on the same port."""

    def __init__(
        self,
        fork_server: ForkServer,
        store: str,
        folder: Path,
        number: int = 0,
        *,
        hands: int = 1,
        agent: str = AGENT,
    ) -> None:
        self.port = free_port()
        self._fork_server = fork_server
        self._out = folder / f"server-{number}.out"
        self._arguments = ["run", f"{agent}:agent", "--store", store]
        self._environment = environment(
            folder, {**SETTINGS, "TEST_ROOM": str(folder), "TEST_HANDS": str(hands)}
        )
        self._process: ForkedProcess | None = None
        self._changing = asyncio.Lock()

    @property
    def pid(self) -> int:
        return self._there().pid

    @property
    def errors(self) -> str:
        return self._out.with_suffix(".err").read_text()

    async def start(self) -> None:
        """As a supervisor does: again and again, since a server that finds no database gives up."""
        arguments = [*self._arguments, "--port", str(self.port)]
        for _ in range(STARTS):
            self._process = await self._fork_server.start(arguments, self._environment, self._out)
            if await self._process.ready():
                return
        raise AssertionError(f"it does not start: {self.errors[-2000:]}")

    async def kill(self) -> int:
        async with self._changing:
            process = self._there()
            process.kill()
            await process.wait()
            await self.start()
        return 1

    async def until_gone(self) -> int:
        """Its exit code: it has ended by itself, or was killed."""
        assert self._process is not None, "start() comes first"
        return await self._process.wait()

    async def replace(self) -> int:
        """As a deployment does: asked to stop, with all that is in progress, and started again."""
        async with self._changing:
            async with asyncio.timeout(GONE_WITHIN_SEC):
                code = await self.stop()
            # cut off from its store it has nothing to wait for, and leaves with what it could hand over
            assert code in (0, 1), f"it ended with {code}:\n{self.errors[-2000:]}"
            await self.start()
        return 1

    async def freeze(self, seconds: float) -> int:
        async with self._changing:
            process = self._there()
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            process.send_signal(signal.SIGCONT)
        return 1

    async def stop(self) -> int:
        process = self._there()
        process.send_signal(signal.SIGTERM)
        return await process.wait()

    def _there(self) -> ForkedProcess:
        assert self._process is not None, "start() comes first"
        assert self._process.is_alive, f"it ended by itself:\n{self.errors}"
        return self._process


class Servers:
    def __init__(
        self, each: list[Server], lines: list[FaultProxy], clients: list[httpx2.AsyncClient], folder: Path
    ) -> None:
        self.each = each
        self.lines = lines
        self.clients = clients
        self.folder = folder

    async def stop(self) -> list[int]:
        return list(await asyncio.gather(*(server.stop() for server in self.each)))


@asynccontextmanager
async def servers(stores: list[str], folder: Path) -> AsyncIterator[Servers]:
    """One for each address; the addresses are of one store, by different ways."""
    async with AsyncExitStack() as stack:
        fork_server = await stack.enter_async_context(own_fork_server(AGENT))
        hands = len(stores)
        each = [
            Server(fork_server, store, folder, number, hands=hands) for number, store in enumerate(stores)
        ]
        for server in each:
            await server.start()
        lines = [await stack.enter_async_context(FaultProxy(("127.0.0.1", server.port))) for server in each]
        clients = [await stack.enter_async_context(_client(line)) for line in lines]
        yield Servers(each, lines, clients, folder)


def process_faults(each: list[Server], dice: random.Random, *, stopped_for: float) -> list[Fault]:
    async def kill() -> int:
        return await dice.choice(each).kill()

    async def stop() -> int:
        return await dice.choice(each).freeze(dice.uniform(0.05, stopped_for))

    return [Fault("kill", kill), Fault("stop", stop)]


def deployments(each: list[Server], dice: random.Random) -> list[Fault]:
    """A lane of its own: what is handed over meets whatever else breaks."""

    async def replace() -> int:
        return await dice.choice(each).replace()

    return [Fault("asked-to-stop", replace)]


def _client(line: FaultProxy) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{line.port}",
        headers={"authorization": f"Bearer {TOKEN}"},
        timeout=SILENCE_SEC,
        limits=httpx2.Limits(max_connections=None),
        trust_env=False,
        verify=False,
    )
