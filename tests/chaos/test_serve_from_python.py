"""`farhand.serve` and `farhand.aserve` behave like `farhand run`, in their own processes."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

import farhand
from farhand.errors import BadSetting
from tests.chaos.test_host_stops import read_to_its_end
from tests.process import ROOT, environment, farhand_process

AGENT = "tests.chaos.agents:agent"


@pytest.mark.parametrize(
    ("how", "last"), [("serve", "serve returned"), ("aserve", "aserve returned; handlers restored")]
)
async def test_a_program_serves_prints_the_token_and_drains_at_the_signal(
    tmp_path: Path, how: str, last: str
) -> None:
    env = environment(tmp_path, {"FARHAND_STORE": f"sqlite:///{tmp_path / 'store.db'}"})
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.chaos.served_by_program", how,
        cwd=ROOT, env=env, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        lines = [(await asyncio.wait_for(process.stdout.readline(), 40)).decode() for _ in range(5)]
        address = re.search(r"open +(http://\S+?)/\?token=(\S+)", "".join(lines))
        assert address is not None, lines
        assert "(FARHAND_STORE)" in "".join(lines)
        headers = {"authorization": f"Bearer {address[2]}"}
        async with httpx2.AsyncClient(
            base_url=address[1], headers=headers, timeout=40, trust_env=False, verify=False
        ) as http:
            foreign = await http.get("/api/inbox", headers={"host": "evil.example"})
            assert 'create_app(..., allow_hosts=["evil.example"])' in foreign.json()["error"]["message"]
            held = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(read_to_its_end(http, held))
                await asyncio.wait_for(held.wait(), 30)
                process.send_signal(signal.SIGTERM)
                assert "finish" in await reading
        rest = (await asyncio.wait_for(process.stdout.read(), 10)).decode()
        assert await asyncio.wait_for(process.wait(), 10) == 0
        assert last in rest
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_what_cannot_be_served_is_reported() -> None:
    with pytest.raises(BadSetting, match="an app of create_app, not a value of type FastAPI"):
        # a program without a type checker
        farhand.serve(FastAPI())  # type: ignore[arg-type]


async def test_a_server_logs_json_one_object_a_line_with_exceptions_inside(tmp_path: Path) -> None:
    options = ("--log-format", "json", "--log-level", "info", "--access-log")
    async with farhand_process("tests.chaos.failing_agent:agent", *options) as server:
        async with server.client() as client:
            await client.get(f"/?token={server.token}")
            body = {
                "id": "t1",
                "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "x"}]}],
            }
            await client.post("/api/chat", json=body)
            body["id"] = "t2"
            body["messages"][0]["parts"][0]["text"] = "raise"  # type: ignore[index]
            await client.post("/api/chat", json=body)
        await server.stop()
        lines = [json.loads(line) for line in server.err.splitlines()]
    assert server.token not in str(lines)
    (tool,) = [line for line in lines if line["logger"] == "farhand.tools" and line["level"] == "WARNING"]
    assert "ZeroDivisionError: division by zero" in tool["exception"]
    (failed,) = [line for line in lines if line["level"] == "ERROR"]
    assert (failed["logger"], failed["thread_id"], failed["code"]) == ("farhand.runs", "t2", "model_fault")
    assert failed["run_id"].startswith("run_")
    accesses = [
        (line["method"], line["path"], line["status"]) for line in lines if line["logger"] == "farhand.access"
    ]
    assert accesses == [("GET", "/", 303), ("POST", "/api/chat", 200), ("POST", "/api/chat", 200)]


async def test_a_server_logs_text_and_warnings_unless_told_otherwise() -> None:
    async with farhand_process("tests.chaos.failing_agent:agent") as server, server.client() as client:
        body = {
            "id": "t1",
            "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "x"}]}],
        }
        await client.post("/api/chat", json=body)
        assert "WARNING farhand.tools: tool divide raised ZeroDivisionError\nTraceback" in server.err
        assert " INFO " not in server.err
