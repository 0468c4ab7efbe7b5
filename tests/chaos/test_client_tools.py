"""Registered clients as separate processes, on real sockets: killed, cut, restarted.

The same tests for both clients that there are: the one of Python and the one of Node.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.process import ROOT, FarhandProcess, environment, farhand_process
from tests.requirement import requirement
from tests.unit.client.relay import relayed

# a thousand calls, and servers and clients that start: a busy machine takes its time
pytestmark = pytest.mark.timeout(300)
AGENT = "tests.chaos.client_agents:agent"
WITHIN_SEC = 40.0
PATIENT_SEC = 120.0
"""Of whoever waits for a call, where nothing is said about time: the call itself has as long."""
TS = ROOT / "ts"

Command = tuple[str, ...]


@pytest.fixture(scope="session")
def node_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program for Node, bundled once."""
    bundled = tmp_path_factory.mktemp("node") / "program.mjs"
    source = TS / "packages/node/tests/chaos-program.ts"
    command = ["node", str(TS / "bundle-program.mjs"), str(source), str(bundled)]
    subprocess.run(command, cwd=TS, check=True, timeout=120)
    return bundled


@pytest.fixture(params=["python", "node"])
def program(request: pytest.FixtureRequest) -> Command:
    """How the client's program is started."""
    if request.param == "python":
        return (sys.executable, "-m", "tests.chaos.client_program")
    return ("node", str(request.getfixturevalue("node_program")))


class ClientProcess:
    def __init__(self, process: asyncio.subprocess.Process, runs: Path) -> None:
        self._process = process
        self._runs = runs

    @property
    def runs(self) -> list[int]:
        """What its handlers ran, over all processes of this name."""
        return [int(line) for line in self._runs.read_text().split()] if self._runs.exists() else []

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def client_process(
    server: FarhandProcess,
    client_id: str,
    folder: Path,
    *,
    program: Command,
    url: str | None = None,
    grace: float = 1.0,
) -> AsyncIterator[ClientProcess]:
    """A client that the server can reach."""
    arguments = (url or server.url, server.token, client_id, str(folder), str(grace))
    process = await asyncio.create_subprocess_exec(
        *program, *arguments,
        cwd=ROOT, env=environment(folder), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    client = ClientProcess(process, folder / f"{client_id}.runs")
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), WITHIN_SEC) == b"connected\n"
        yield client
    finally:
        await client.kill()


async def say(http: httpx2.AsyncClient, text: str) -> str:
    """The text of the whole answer."""
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}
    response = await http.post("/api/chat", json={"id": "t1", "messages": [message]})
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    return "".join(json.loads(line).get("delta", "") for line in lines)


async def ran(client: ClientProcess, number: int) -> None:
    for _ in range(4_000):
        if number in client.runs:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{number} was never run")


async def test_of_two_clients_one_is_killed_in_mid_call_and_the_model_continues(
    program: Command, tmp_path: Path
) -> None:
    async with (
        farhand_process(AGENT) as server,
        client_process(server, "one", tmp_path, program=program) as one,
        client_process(server, "two", tmp_path, program=program) as two,
        server.client() as http,
    ):
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(say(http, "one.work two.hang"))
            await ran(one, 7)
            await ran(two, 7)
            await two.kill()
        first, _, second = answer.result().partition(" | ")
        assert json.loads(first[first.index('{"by"') :]) == {"by": "one", "number": 7}
        assert "client disconnected" in second
        tools = (await http.get("/client-tools/tools")).json()
    assert sorted(tools) == ["client_one_hang", "client_one_work"]
    assert (one.runs, two.runs) == ([7], [7])


@pytest.mark.sweep
async def test_a_thousand_calls_over_a_line_that_is_cut_twenty_times(
    program: Command, tmp_path: Path
) -> None:
    chance = random.Random(20)
    async with (
        farhand_process(AGENT) as server,
        relayed(server.port) as relay,
        client_process(server, "one", tmp_path, program=program, url=relay.url, grace=PATIENT_SEC) as one,
        server.client(timeout=PATIENT_SEC) as http,
    ):
        waiting = iter(range(1_000))
        results: list[int] = []
        cuts_at = sorted(chance.sample(range(50, 950), 20))

        async def worker() -> None:
            for number in waiting:
                body = {"toolID": "client_one_work", "input": {"number": number}}
                answer = (await http.post("/client-tools/execute", json=body)).json()
                assert answer["status"] == "success", answer
                results.append(answer["output"]["number"])
                # a cut counts only if there was a line to cut
                if cuts_at and len(results) >= cuts_at[0] and relay.cut():
                    cuts_at.pop(0)

        async with asyncio.TaskGroup() as group:
            for _ in range(32):
                group.create_task(worker())
    assert not cuts_at
    assert sorted(results) == list(range(1_000))
    assert sorted(one.runs) == list(range(1_000))


@pytest.mark.sweep
async def test_a_thousand_calls_over_cut_lines_and_killed_servers_are_run_once_each(
    program: Command, tmp_path: Path
) -> None:
    chance = random.Random(20)
    async with (
        farhand_process(AGENT) as server,
        relayed(server.port) as relay,
        client_process(server, "one", tmp_path, program=program, url=relay.url, grace=PATIENT_SEC) as one,
        server.client(timeout=PATIENT_SEC) as http,
    ):
        waiting = iter(range(1_000))
        results: list[int] = []
        faults_at = sorted(chance.sample(range(50, 950), 20))
        kills = set(faults_at[::5])
        mending = asyncio.Lock()

        async def fault() -> None:
            async with mending:
                if not faults_at or len(results) < faults_at[0]:
                    return
                if faults_at[0] in kills:
                    await server.restart()
                    faults_at.pop(0)
                elif relay.cut():
                    # a cut counts only if there was a line to cut
                    faults_at.pop(0)

        async def worker() -> None:
            for number in waiting:
                results.append(await _executed(http, number))
                await fault()

        async with asyncio.TaskGroup() as group:
            for _ in range(32):
                group.create_task(worker())
    assert not faults_at
    assert sorted(results) == list(range(1_000))
    assert sorted(one.runs) == list(range(1_000))


async def _executed(http: httpx2.AsyncClient, number: int) -> int:
    """Asked for by its name until its stored answer is there: the server may be gone for a while."""
    body = {"toolID": "client_one_work", "input": {"number": number}, "requestID": f"job-{number}"}
    while True:
        try:
            answer = await http.post("/client-tools/execute", json=body)
        except httpx2.TransportError:
            await asyncio.sleep(0.05)
            continue
        read = answer.json()
        if answer.status_code == 200 and read["status"] == "success":
            return int(read["output"]["number"])
        assert answer.status_code in {404, 409, 503}, read
        await asyncio.sleep(0.05)


@requirement("client:once")
async def test_a_call_that_a_crash_of_the_client_interrupted_is_a_failure_and_not_run_again(
    program: Command, tmp_path: Path
) -> None:
    async with (
        farhand_process(AGENT) as server,
        server.client() as http,
        client_process(server, "one", tmp_path, program=program, grace=30.0) as first,
        asyncio.TaskGroup() as group,
    ):
        answer = group.create_task(say(http, "one.hang"))
        await ran(first, 7)
        await first.kill()
        async with client_process(server, "one", tmp_path, program=program, grace=30.0) as second:
            assert "restarted while it had this call" in await answer
            assert second.runs == [7]


@requirement("client-tools:restart")
async def test_a_killed_server_finds_its_clients_and_their_calls_again(
    program: Command, tmp_path: Path
) -> None:
    hang: dict[str, object] = {"toolID": "client_one_hang", "input": {"number": 3}, "requestID": "job-1"}
    async with (
        farhand_process(AGENT) as server,
        client_process(server, "one", tmp_path, program=program, grace=30.0) as one,
    ):
        await _execute_until_killed(server, one, hang)
        await server.start()
        async with server.client() as again:
            tools = (await again.get("/client-tools/tools/one")).json()
            assert [tool["id"] for tool in tools] == ["client_one_work", "client_one_hang"]
            pending = await again.post("/client-tools/execute", json=hang)
            assert (pending.status_code, pending.json()["error"]["code"]) == (409, "CONFLICT")
            work = {"toolID": "client_one_work", "input": {"number": 4}}
            done = await again.post("/client-tools/execute", json=work)
            assert done.json()["output"] == {"number": 4, "by": "one"}
        assert one.runs == [3, 4]


async def _execute_until_killed(server: FarhandProcess, one: ClientProcess, body: dict[str, object]) -> None:
    async def cut() -> None:
        with pytest.raises(httpx2.TransportError):
            await http.post("/client-tools/execute", json=body)

    async with server.client() as http, asyncio.TaskGroup() as group:
        group.create_task(cut())
        await ran(one, 3)
        await server.kill()
