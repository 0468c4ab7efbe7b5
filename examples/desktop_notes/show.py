"""Starts the server and the desktop program, chats with the server, and checks the results.

Run it with `python -m examples.desktop_notes.show`.
"""

from __future__ import annotations

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

NOTES = {
    "shopping": "Buy milk, bread and a lamp.",
    "lamp": "The lamp in the hall needs a small bulb. Milk glass would be nice.",
    "holidays": "Book the train to Lisbon.",
}
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, text in NOTES.items():
            (place / f"{name}.txt").write_text(text)
        token = secrets.token_urlsafe()
        async with _server(place, token) as url, httpx2.AsyncClient(base_url=url, timeout=30.0) as http:
            http.headers["authorization"] = f"Bearer {token}"
            await _show(http, url, place, token)


async def _show(http: httpx2.AsyncClient, url: str, place: Path, token: str) -> None:
    answer = await _say(http, "find milk")
    assert answer == "Your desk is not connected.", answer
    async with _desk(url, place, token) as desk:
        tools = sorted((await http.get("/client-tools/tools")).json())
        _print("offered to the chat", ", ".join(tools))
        assert tools == ["client_desk_notify", "client_desk_read_note", "client_desk_search_notes"]

        answer = await _say(http, "find milk")
        _print("find milk", answer)
        assert answer == f"{NOTES['lamp']} / {NOTES['shopping']}", answer
        assert await _line(desk) == "notification: I read 2 of your notes."

        answer = await _say(http, "find milk lisbon")
        _print("find milk lisbon", answer)
        assert answer == "There is no such note.", answer

        wanted = {"toolID": "client_desk_read_note", "input": {"name": "../secret"}}
        outside = (await http.post("/client-tools/execute", json=wanted)).json()
        _print("a name that leads out of the folder", outside["error"])
        assert outside == {"status": "error", "error": "ValueError: there is no note '../secret'"}
    left = (await http.get("/client-tools/tools")).json()
    _print("left after the desk was closed", str(left))
    assert left == {}


async def _say(http: httpx2.AsyncClient, text: str) -> str:
    """The text of the answer to one message, in a new chat."""
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}
    body = {"id": f"chat-{secrets.token_urlsafe(8)}", "messages": [message]}
    answer = await http.post("/api/chat", json=body)
    chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    return "".join(chunk.get("delta", "") for chunk in chunks if chunk["type"] == "text-delta")


@asynccontextmanager
async def _server(place: Path, token: str) -> AsyncIterator[str]:
    arguments = ("-m", "farhand", "run", "examples.desktop_notes.assistant:agent", "--port", "0")
    async with _process(token, *arguments, "--store", f"sqlite:///{place / 'farhand.db'}") as server:
        while not (found := ADDRESS.search(await _line(server))):
            pass
        yield found[0]


@asynccontextmanager
async def _desk(url: str, place: Path, token: str) -> AsyncIterator[Process]:
    async with _process(token, "-m", "examples.desktop_notes.notes", url, str(place)) as desk:
        assert await _line(desk) == "the desk is connected"
        yield desk


@asynccontextmanager
async def _process(token: str, *arguments: str) -> AsyncIterator[Process]:
    """A process that is terminated at the end of the block."""
    environment = {**os.environ, "FARHAND_TOKEN": token}
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, env=environment, stdout=PIPE)
    try:
        yield process
    finally:
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
    asyncio.run(main())
