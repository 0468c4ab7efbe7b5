"""Starts the server and the editor's program, chats with the server, and checks the results.

Run it with `python -m examples.vscode_like.show`, or `--seconds 8` for tests that do not take two minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import secrets
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
SUM = """\
export function sum(numbers) {
  return numbers.reduce((total, number) => total - number, 0);
}
"""
TESTS = """\
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { sum } from "./sum.mjs";

test("two numbers are added up", () => assert.equal(sum([1, 2]), 3));
for (let part = 1; part <= PARTS; part += 1) {
  test(`part ${part} of a long test`, () => setTimeout(1_000));
}
"""


async def main(seconds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        workspace = place / "workspace"
        workspace.mkdir()
        (workspace / "sum.mjs").write_text(SUM)
        (workspace / "sum.test.mjs").write_text(TESTS.replace("PARTS", str(seconds)))
        program = place / "editor.mjs"
        source = Path(__file__).with_name("editor.ts")
        async with _process(
            {}, "node", str(ROOT / "ts/bundle-program.mjs"), str(source), str(program)
        ) as bundler:
            assert await bundler.wait() == 0
        token = secrets.token_urlsafe()
        # half of the time that the tests take: without progress, the call would time out before they end
        silence = {"EDITOR_SILENCE_SEC": str(max(1, seconds // 2))}
        async with (
            _server(place, token) as url,
            httpx2.AsyncClient(base_url=url, timeout=600.0) as http,
            _process(
                {"FARHAND_TOKEN": token, **silence}, "node", str(program), url, str(workspace)
            ) as editor,
        ):
            assert await _line(editor) == "the editor is connected"
            http.headers["authorization"] = f"Bearer {token}"
            await _show(http, workspace, seconds)


async def _show(http: httpx2.AsyncClient, workspace: Path, seconds: int) -> None:
    wanted = {"toolID": "client_editor_read_file", "input": {"path": "../editor.mjs"}}
    outside = (await http.post("/client-tools/execute", json=wanted)).json()
    _print("a path that leads out of the folder", outside["error"])
    assert outside["error"] == "path: must be inside the open folder"

    async with asyncio.TaskGroup() as group:
        answer = group.create_task(_say(http, "fix the sum"))
        approval = await _next_approval(http)
        _print("a person is asked before", approval["tool"])
        assert approval["tool"] == "client_editor_apply_patch"
        assert (workspace / "sum.mjs").read_text() == SUM, "nothing is changed before the approval"
        yes = {"approvalId": approval["approvalId"], "approved": True}
        assert (await http.post("/api/tools/approve", json=yes)).json() == {"ok": True}
    _print("fix the sum", answer.result())
    expected = {"passed": seconds + 1, "failed": []}
    assert json.loads(answer.result().partition("The tests say: ")[2]) == expected, answer.result()
    assert "total + number" in (workspace / "sum.mjs").read_text()

    lines = await _read_progress(http)
    _print("progress that people saw", f"{len(lines)} lines, among them {lines[len(lines) // 2]!r}")
    assert any("of a long test" in line for line in lines)


async def _say(http: httpx2.AsyncClient, text: str) -> str:
    """The whole text of the answer to one message. A response is held for at most 90 seconds; the run
    continues without it, and the thread has everything."""
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}
    await http.post("/api/chat", json={"id": "chat", "messages": [message], "wait": "hold"})
    while True:
        thread = (await http.get("/api/chat/chat")).json()
        if thread["state"] in {"done", "failed"}:
            break
        await asyncio.sleep(0.1)
    return "".join(part["text"] for part in thread["messages"][-1]["parts"] if part["type"] == "text")


async def _next_approval(http: httpx2.AsyncClient) -> dict[str, str]:
    """The next call in the inbox that waits for approval."""
    while True:
        calls: list[dict[str, str]] = (await http.get("/api/inbox?thread=chat")).json()["calls"]
        asked = [call for call in calls if "approvalId" in call]
        if asked:
            return asked[0]
        await asyncio.sleep(0.1)


async def _read_progress(http: httpx2.AsyncClient) -> list[str]:
    """The progress texts of the tests, up to the end of the run."""
    lines: list[str] = []
    async with http.stream("GET", "/api/events", params={"thread": "chat", "after": "0"}) as events:
        async for line in events.aiter_lines():
            event = json.loads(line[6:]) if line.startswith("data: {") else {}
            if event.get("type") == "call-progressed":
                lines.append(event["text"])
            if event.get("type") == "run-finished":
                break
    return lines


@asynccontextmanager
async def _server(place: Path, token: str) -> AsyncIterator[str]:
    command = (sys.executable, "-m", "farhand", "run", "examples.vscode_like.assistant:agent", "--port", "0")
    store = ("--store", f"sqlite:///{place / 'farhand.db'}")
    async with _process({"FARHAND_TOKEN": token}, *command, *store) as server:
        while not (found := ADDRESS.search(await _line(server))):
            pass
        yield found[0]


@asynccontextmanager
async def _process(environment: dict[str, str], *command: str) -> AsyncIterator[Process]:
    """A process that is terminated at the end of the block."""
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **environment}, stdout=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _line(process: Process) -> str:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 30)
    assert line, "the process ended"
    return line.decode().rstrip("\n")


def _print(what: str, shown: str) -> None:
    sys.stdout.write(f"{what}: {shown}\n")


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=int, default=120, help="how long the tests of the workspace take")
    asyncio.run(main(options.parse_args().seconds))
