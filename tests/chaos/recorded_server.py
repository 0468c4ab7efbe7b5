"""A server process with the recording agent, and the folder with its notes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.process import MANY_RUNS, FarhandProcess, farhand_process

# Any: notes are looked at by their fields, and a wrong one fails the test
Json = Any


@dataclass
class Room:
    server: FarhandProcess
    http: httpx2.AsyncClient
    folder: Path

    @property
    def executions(self) -> list[tuple[str, str]]:
        return [(each["tool"], each["subject"]) for each in self._read("executions")]

    @property
    def requests(self) -> list[Json]:
        """The results of each request to the model, oldest first."""
        return [each["results"] for each in self._read("requests")]

    def asked_at(self, thread: str) -> list[float]:
        """When the model was asked for this thread, by `time.monotonic()`, which all processes share."""
        return [each["at"] for each in self._read("requests") if each["thread"] == thread]

    def executed_at(self, tool: str, subject: str) -> list[float]:
        return [
            each["at"]
            for each in self._read("executions")
            if (each["tool"], each["subject"]) == (tool, subject)
        ]

    def open_gate(self, name: str) -> None:
        (self.folder / name).touch()

    async def until_executed(self, tool: str, times: int = 1) -> None:
        async with asyncio.timeout(30):
            # another process writes the notes: there is no event to wait for
            while [name for name, _ in self.executions].count(tool) < times:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def ack(self, call: str, **more: object) -> Json:
        return (
            await self.http.post("/api/tools/ack", json={"toolCallId": call, "status": "success", **more})
        ).json()

    def _read(self, book: str) -> list[Json]:
        path = self.folder / f"{book}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@asynccontextmanager
async def room(
    folder: Path, *arguments: str, agent: str = "tests.chaos.recording_agent:agent"
) -> AsyncIterator[Room]:
    # connections of a killed server are of no use, so none is kept
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    environment = {"TEST_ROOM": str(folder)}
    async with farhand_process(agent, *arguments, env=MANY_RUNS | environment) as server:
        headers = {"authorization": f"Bearer {server.token}"}
        async with httpx2.AsyncClient(
            base_url=server.url, headers=headers, timeout=60, limits=limits, verify=False, trust_env=False
        ) as http:
            yield Room(server, http, folder)
