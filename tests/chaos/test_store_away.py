"""A store that is away, full or locked: all requests get an error with a retry time, and nothing is
half-written."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from tests.faces.ui_stream.page import Json, Page, user_message
from tests.postgres import running_cluster
from tests.process import FarhandProcess, farhand_process
from tests.replica import wait_for_replica
from tests.requirement import requirement

AGENT = "tests.chaos.agents:agent"
WITHIN_SEC = 30.0
ASKED: tuple[tuple[str, str, Json], ...] = (
    ("POST", "/api/chat", {"id": "c2", "messages": [user_message("hello")]}),
    ("GET", "/api/chat/chat/stream", None),
    ("GET", "/api/chat/chat", None),
    ("GET", "/api/chat", None),
    ("POST", "/api/chat/chat/stop", {}),
    ("POST", "/api/tools/ack", {"toolCallId": "call_" + "0" * 32, "status": "success"}),
    ("POST", "/api/tools/approve", {"approvalId": "apr_" + "0" * 32, "approved": True}),
    ("POST", "/agent/run", {"user_prompt": "hello"}),
    ("GET", "/api/events", None),
    ("GET", "/readyz", None),
)


async def parked(client: httpx2.AsyncClient, chat: str = "chat") -> str:
    turn = await Page(client, chat).say("open it")
    return str(turn.of("tool-input-available")[-1]["toolCallId"])


def ack(call: str) -> dict[str, object]:
    return {"toolCallId": call, "status": "success", "output": {"viewKey": "v1"}}


async def until_accepted(client: httpx2.AsyncClient, call: str) -> None:
    async with asyncio.timeout(WITHIN_SEC):
        while True:
            answer = await client.post("/api/tools/ack", json=ack(call))
            if answer.status_code == 200:
                # the first that was taken; what was refused before left no trace
                assert answer.json() == {"ok": True}
                return
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            await asyncio.sleep(0.05)


@requirement("store-away:every-route")
async def test_every_route_says_503_while_the_database_is_away_and_works_again_by_itself() -> None:
    with running_cluster() as cluster:
        async with farhand_process(AGENT, store=cluster.address()) as server, server.client() as client:
            call = await parked(client)
            cluster.kill()
            for method, path, body in ASKED:
                answer = await client.request(method, path, json=body)
                assert (path, answer.status_code) == (path, 503), answer.text
                assert answer.headers["retry-after"] == "1"
                assert "postgres" not in answer.text.lower(), "no details"
            assert (await client.get("/healthz")).status_code == 200
            await asyncio.to_thread(cluster.start)
            await until_accepted(client, call)
            await until_ready(client)


@requirement("postgres:doubt")
async def test_a_commit_that_does_not_end_is_503_in_time_for_all_and_the_same_again_is_told_the_truth() -> (
    None
):
    with running_cluster() as cluster:
        address = cluster.address("doubt")
        async with farhand_process(AGENT, store=address) as server, server.client() as client:
            call, second = await parked(client), await parked(client, "second")
            await wait_for_replica(address, "ghost")
            in_doubt = asyncio.create_task(client.post("/api/tools/ack", json=ack(call)))
            await until_not_ready(client)
            answer = await client.post("/api/tools/ack", json=ack(second))
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), answer.text
            answer = await asyncio.wait_for(in_doubt, WITHIN_SEC)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), answer.text
            assert "not confirmed yet whether this was stored" in answer.text
            await wait_for_replica(address, "")
            await until_ready(client)
            # it was kept, though nobody could say so
            again = await client.post("/api/tools/ack", json=ack(call))
            assert again.json() == {"ok": True, "ignored": True}
            # kept or not, the same again is taken
            again = await client.post("/api/tools/ack", json=ack(second))
            assert again.json()["ok"] is True


async def until_not_ready(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(WITHIN_SEC):
        # another process finds out: there is no event to wait for
        while (await client.get("/readyz")).status_code == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def until_ready(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(WITHIN_SEC):
        # another process becomes ready: there is no event to wait for
        while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@asynccontextmanager
async def on_file(folder: Path) -> AsyncIterator[tuple[FarhandProcess, httpx2.AsyncClient]]:
    async with (
        farhand_process(AGENT, store=f"sqlite:///{folder}/store.db") as server,
        server.client() as client,
    ):
        yield server, client


async def test_a_file_that_another_program_has_locked_is_503_and_nothing_is_half_written(
    tmp_path: Path,
) -> None:
    async with on_file(tmp_path) as (_, client):
        call = await parked(client)
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answer = await client.post("/api/tools/ack", json=ack(call))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["reason"] == "store_down"
        assert "another program has locked the file" in answer.text
        assert (await client.get("/readyz")).status_code == 503
        other.execute("ROLLBACK")
        other.close()
        await until_ready(client)
        await until_accepted(client, call)


async def test_a_full_disk_is_503_and_what_was_accepted_before_is_whole_after_a_restart(
    tmp_path: Path,
) -> None:
    async with on_file(tmp_path) as (server, client):
        call = await parked(client)
        largest = largest_in(tmp_path)
        unlimited = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        # no file of this process may grow: what a full disk does to it
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (largest // 2, unlimited[1]))
        answer = await client.post("/api/tools/ack", json=ack(call))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), answer.text
        assert "the disk is full" in answer.text
        assert str(tmp_path) not in answer.text, "no path"
        for _ in range(3):
            assert (await client.get("/readyz")).status_code == 503, "as long as it lasts"
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, unlimited)
        await until_ready(client)
        await until_accepted(client, call)
        assert (await Page(client, "chat").resume()).finish == "stop"
        await server.restart()
        again = await client.post("/api/tools/ack", json=ack(call))
        assert again.json() == {"ok": True, "ignored": True}
        assert sqlite3.connect(tmp_path / "store.db").execute("PRAGMA integrity_check").fetchone() == ("ok",)


def largest_in(folder: Path) -> int:
    return max(file.stat().st_size for file in folder.iterdir())
