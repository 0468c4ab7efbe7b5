"""The main scenes of the wire, as they are written down in schema/transcripts/client_tools.

`FARHAND_RECORD=1 pytest tests/faces/client_tools/test_transcripts.py` writes them again.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import pytest

from farhand import Agent, ScriptedModel
from farhand.wire.sse import Event
from tests.faces.client_tools.program import Json, Program, Stream, a_tool
from tests.faces.conftest import Serve
from tests.faces.served import Served

FOLDER = Path(__file__).parents[3] / "schema" / "transcripts" / "client_tools"
CALL_ID = re.compile(r"call_[0-9a-f]{32}")


class Recorder:
    """Sends as it is told, and keeps what went and what came; call ids are numbered as they appear."""

    def __init__(self, server: Served) -> None:
        self.lines: list[Json] = []
        self.http = server.http
        self._ids: dict[str, str] = {}

    async def send(self, method: str, path: str, body: Json = None) -> Json:
        self.lines.append({"send": {"method": method, "path": path, **({"body": body} if body else {})}})
        answer = await self.http.request(method, path, json=body)
        return self._came(answer)

    async def later(self, path: str, body: Json) -> Callable[[], Awaitable[Json]]:
        """Sends now; what comes is waited for, and written down, when it is asked for."""
        self.lines.append({"send": {"method": "POST", "path": path, "body": body}})
        # alive until it is awaited
        sending = asyncio.ensure_future(self.http.post(path, json=body))

        async def arrived() -> Json:
            return self._came(await sending)

        return arrived

    async def frame(self, stream: Stream) -> Json:
        event = await stream.event()
        assert isinstance(event, Event)
        data = json.loads(event.data) if event.data else ""
        told = {"event": event.event, "data": data}
        self.lines.append({"frame": {**told, "id": event.id} if event.event == "tool-request" else told})
        return data

    def text(self) -> str:
        written = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines)
        return CALL_ID.sub(
            lambda found: self._ids.setdefault(found[0], f"call_{len(self._ids) + 1}"), written
        )

    def _came(self, answer: httpx2.Response) -> Json:
        self.lines.append({"status": answer.status_code, "body": answer.json()})
        return answer.json()


async def life_of_a_call(page: Recorder) -> None:
    await page.send("POST", "/client-tools/register", {"clientID": "notes", "tools": [a_tool("read")]})
    await page.send("GET", "/client-tools/tools/notes")
    async with Program(page.http).listen() as stream:
        body = {
            "toolID": "client_notes_read",
            "sessionID": "s1",
            "messageID": "m1",
            "callID": "c1",
            "input": {"text": "todo"},
        }
        executed = await page.later("/client-tools/execute", body)
        request = await page.frame(stream)
        result = {"requestID": request["requestID"], "status": "success", "title": "Read", "output": "milk"}
        await page.send("POST", "/client-tools/result", result)
        await executed()
        await page.frame(stream)
    await page.send("DELETE", "/client-tools/unregister", {"clientID": "notes"})
    await page.send("GET", "/client-tools/tools")


async def both_dialects(page: Recorder) -> None:
    await page.send("POST", "/client-tools/register", {"clientID": "notes", "tools": [a_tool("read")]})
    async with Program(page.http).listen() as stream:
        executed = await page.later(
            "/client-tools/execute", {"toolID": "client_notes_read", "input": {"text": "a"}}
        )
        request = await page.frame(stream)
        nested = {"status": "error", "error": "no such note"}
        for _ in range(2):
            body = {"requestID": request["requestID"], "result": nested}
            await page.send("POST", "/client-tools/result", body)
        flat = {"requestID": request["requestID"], "status": "error", "error": "no such note"}
        await page.send("POST", "/client-tools/result", flat)
        await page.send("POST", "/client-tools/result", {**flat, "error": "another one"})
        await executed()


async def refusals(page: Recorder) -> None:
    await page.send("POST", "/client-tools/register", {"clientID": "a.b", "tools": []})
    await page.send("POST", "/client-tools/register", {"clientID": "a", "tools": [a_tool("b_c")]})
    await page.send("POST", "/client-tools/register", {"clientID": "a_b", "tools": [a_tool("c")]})
    await page.send("POST", "/client-tools/execute", {"toolID": "client_x_y", "input": {}})
    await page.send("POST", "/client-tools/execute", {"toolID": "client_a_b_c", "input": {}})
    await page.send(
        "POST", "/client-tools/execute", {"toolID": "client_a_b_c", "input": {"text": "a"}, "timeout": 20}
    )
    unknown = {"requestID": "nobody", "status": "success", "output": 1}
    await page.send("POST", "/client-tools/result", unknown)
    nested = {"requestID": "nobody", "result": {"status": "success", "title": "T", "output": 1}}
    await page.send("POST", "/client-tools/result", nested)


async def newest_wins(page: Recorder) -> None:
    await page.send("POST", "/client-tools/register", {"clientID": "notes", "tools": [a_tool("read")]})
    async with Program(page.http).listen() as old, Program(page.http).listen():
        await page.frame(old)


SCENES = {
    "life-of-a-call": life_of_a_call,
    "both-dialects": both_dialects,
    "refusals": refusals,
    "newest-wins": newest_wins,
}


@pytest.mark.parametrize("name", SCENES)
async def test_a_scene_is_played_as_it_is_written_down(serve: Serve, name: str) -> None:
    server = await serve(Agent(ScriptedModel(lambda moment: "hm")))
    recorder = Recorder(server)
    await SCENES[name](recorder)
    path = FOLDER / f"{name}.jsonl"
    if os.environ.get("FARHAND_RECORD"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(recorder.text())
    assert recorder.text() == path.read_text()


def test_every_transcript_is_of_a_scene() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.jsonl")) == sorted(SCENES)
