"""Registered clients in processes of their own, on real sockets: killed, cut, started again."""

from __future__ import annotations

import asyncio
import json
import random
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
pytestmark = pytest.mark.timeout(180)
AGENT = "tests.chaos.client_agents:agent"
WITHIN_SEC = 40.0


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
    server: FarhandProcess, client_id: str, folder: Path, *, url: str | None = None, grace: float = 1.0
) -> AsyncIterator[ClientProcess]:
    """A client that the server can reach."""
    arguments = (url or server.url, server.token, client_id, str(folder), str(grace))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.chaos.client_program", *arguments,
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


@requirement("client-tools:killed")
async def test_of_two_clients_one_is_killed_in_mid_call_and_the_model_goes_on(tmp_path: Path) -> None:
    async with (
        farhand_process(AGENT) as server,
        client_process(server, "one", tmp_path) as one,
        client_process(server, "two", tmp_path) as two,
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


@requirement("client-tools:thousand")
async def test_a_thousand_calls_over_a_line_that_is_cut_twenty_times(tmp_path: Path) -> None:
    chance = random.Random(20)
    async with (
        farhand_process(AGENT) as server,
        relayed(server.port) as relay,
        client_process(server, "one", tmp_path, url=relay.url, grace=30.0) as one,
        server.client() as http,
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


@requirement("client:once")
async def test_a_call_that_a_crash_of_the_client_interrupted_is_a_failure_and_not_run_again(
    tmp_path: Path,
) -> None:
    async with (
        farhand_process(AGENT) as server,
        server.client() as http,
        client_process(server, "one", tmp_path, grace=30.0) as first,
        asyncio.TaskGroup() as group,
    ):
        answer = group.create_task(say(http, "one.hang"))
        await ran(first, 7)
        await first.kill()
        async with client_process(server, "one", tmp_path, grace=30.0) as second:
            assert "restarted while it had this call" in await answer
            assert second.runs == [7]


@requirement("client-tools:restart")
async def test_a_killed_server_finds_its_clients_and_their_calls_again(tmp_path: Path) -> None:
    hang: dict[str, object] = {"toolID": "client_one_hang", "input": {"number": 3}, "requestID": "job-1"}
    async with (
        farhand_process(AGENT) as server,
        client_process(server, "one", tmp_path, grace=30.0) as one,
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
