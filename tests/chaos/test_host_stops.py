"""A host that is stopped while a stream of its mounted app is held exits in time, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import httpx2
import pytest

from tests.postgres import free_port
from tests.process import ROOT, environment

TOKEN = "the-token-of-this-test"
GONE_SEC = 10.0


@asynccontextmanager
async def uvicorn_process(
    folder: Path, port: int, *options: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    env = environment(folder, {"FARHAND_STORE": f"sqlite:///{folder / 'store.db'}"})
    with (folder / "host.log").open("a") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "uvicorn", "--port", str(port), *options,
            cwd=folder, env=env, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def client(port: int) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{port}/assistant",
        headers={"authorization": f"Bearer {TOKEN}"},
        timeout=40.0,
        trust_env=False,
        verify=False,
    )


async def answers(http: httpx2.AsyncClient, path: str = "/api/inbox", words: str = "calls") -> None:
    """Returns once the host is there and says these words."""
    async with asyncio.timeout(40):
        # a host has no other way to tell that it has started again
        while words not in await said(http, path):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def said(http: httpx2.AsyncClient, path: str) -> str:
    try:
        return (await http.get(path)).text
    except httpx2.TransportError:
        return ""


async def read_to_its_end(http: httpx2.AsyncClient, held: asyncio.Event) -> str:
    """A chat that is held for a far hand, until the stream ends."""
    body = {
        "id": "chat1",
        "wait": "hold",
        "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "open it"}]}],
    }
    lines = []
    async with http.stream("POST", "/api/chat", json=body) as response:
        async for line in response.aiter_lines():
            lines.append(line)
            if "tool-input-available" in line:
                held.set()
    return "\n".join(lines)


async def resume(http: httpx2.AsyncClient) -> None:
    """The call that was held is open, is answered, and the run continues."""
    (call,) = (await http.get("/api/inbox")).json()["calls"]
    ack = {"toolCallId": call["callId"], "status": "success", "output": {"view": "v1"}}
    assert (await http.post("/api/tools/ack", json=ack)).json()["ok"] is True
    await answers(http, "/api/chat/chat1", "The page says")


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
async def test_a_host_with_a_held_stream_is_gone_within_ten_seconds(
    tmp_path: Path, sig: signal.Signals
) -> None:
    port = free_port()
    target = "tests.chaos.mounted_host:app"
    async with uvicorn_process(tmp_path, port, target) as host, client(port) as http:
        await answers(http)
        held = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(read_to_its_end(http, held))
            await asyncio.wait_for(held.wait(), 30)
            began = monotonic()
            host.send_signal(sig)
            await asyncio.wait_for(host.wait(), GONE_SEC)
            assert monotonic() - began < GONE_SEC
            # ended as a stream that can be resumed, not cut
            assert "finish" in await reading
    async with uvicorn_process(tmp_path, port, target), client(port) as http:
        await answers(http)
        await resume(http)


async def test_a_host_that_reloads_with_a_held_stream_serves_again_within_ten_seconds(tmp_path: Path) -> None:
    port = free_port()
    shutil.copy(ROOT / "tests/chaos/mounted_host.py", tmp_path / "host_program.py")
    options = ("host_program:app", "--reload", "--reload-dir", str(tmp_path), "--app-dir", str(tmp_path))
    async with uvicorn_process(tmp_path, port, *options) as host, client(port) as http:
        await answers(http)
        held = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(read_to_its_end(http, held))
            await asyncio.wait_for(held.wait(), 30)
            began = monotonic()
            with (tmp_path / "host_program.py").open("a") as program:
                program.write("\n# changed\n")
            await asyncio.wait_for(asyncio.shield(reading), GONE_SEC)
            await answers(http)
            assert monotonic() - began < 2 * GONE_SEC
        await resume(http)
        host.send_signal(signal.SIGTERM)
        await asyncio.wait_for(host.wait(), GONE_SEC)
