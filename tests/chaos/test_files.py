"""A server dies while a file arrives: nothing of it is left, and files that had arrived are whole."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from farhand.core.file import PIECE_BYTES
from tests.faces.ui_stream.page import Page
from tests.process import FarhandProcess, farhand_process
from tests.requirement import requirement

WITHIN_SEC = 30.0
HEAD = {"x-farhand": "1", "content-type": "image/png"}


def rows(store: Path, table: str) -> int:
    with closing(sqlite3.connect(store)) as db:
        [(count,)] = db.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(count)


async def half_sent(server: FarhandProcess, store: Path, pieces: int) -> asyncio.StreamWriter:
    """An upload of which so many pieces are stored, and that is not at its end."""
    before = rows(store, "file_pieces")
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = f"POST /api/files HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
    head += f"X-Farhand: 1\r\nContent-Type: image/png\r\nContent-Length: {9 * 1024 * 1024}\r\n\r\n"
    writer.write(head.encode() + bytes((pieces + 1) * PIECE_BYTES))
    async with asyncio.timeout(WITHIN_SEC):
        # another process stores them: there is no event to wait for
        while rows(store, "file_pieces") < before + pieces:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return writer


@requirement("files:nothing-half")
@pytest.mark.parametrize("pieces", [1, 20])
async def test_after_a_kill_in_mid_upload_nothing_of_it_is_left(tmp_path: Path, pieces: int) -> None:
    store = tmp_path / "store.db"
    async with farhand_process("tests.chaos.agents:agent", store=f"sqlite:///{store}") as server:
        body = bytes(range(256)) * 2048
        async with server.client() as http:
            whole = (await http.post("/api/files", content=body, headers=HEAD)).json()["ref"]
        writer = await half_sent(server, store, pieces)
        await server.kill()
        writer.close()
        assert (rows(store, "files"), rows(store, "file_pieces")) == (2, 2 + pieces)
        await server.start()
        # only what had arrived
        assert (rows(store, "files"), rows(store, "file_pieces")) == (1, 2)
        async with server.client() as http:
            assert (await http.get(f"/api/files/{whole}")).content == body


@requirement("files:nothing-half")
async def test_a_server_that_stops_in_mid_upload_keeps_nothing_of_it(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    async with farhand_process("tests.chaos.agents:agent", store=f"sqlite:///{store}") as server:
        writer = await half_sent(server, store, 2)
        assert await server.stop() == 0
        writer.close()
        await server.start()
        # bytes that the stop left no time to sweep away are rubbish, which the next purge takes
        left = rows(store, "file_pieces WHERE file_no NOT IN (SELECT file_no FROM removed_files)")
        assert (rows(store, "files"), left) == (0, 0)
        async with server.client() as http:
            assert (await http.post("/api/purge", json={"olderThanSec": 0})).status_code == 200
        assert rows(store, "file_pieces") == 0


@requirement("files:any-worker")
async def test_an_upload_that_was_answered_survives_the_kill_right_behind_it(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    async with farhand_process("tests.chaos.agents:agent", store=f"sqlite:///{store}") as server:
        for number in range(3):
            body = bytes([number]) * (3 * PIECE_BYTES + number)
            async with server.client() as http:
                response = await http.post("/api/files", content=body, headers=HEAD)
            await server.restart()
            async with server.client() as http:
                ref = response.json()["ref"]
                found: httpx2.Response = await http.get(f"/api/files/{ref}")
                assert found.content == body


@pytest.mark.parametrize("prompt", ["Pick a file", "Take a photo"])
async def test_the_demo_takes_a_picked_file_by_its_ref(prompt: str) -> None:
    async with farhand_process("demo") as server:
        body = b"\x89PNG" + bytes(PIECE_BYTES)
        async with server.client() as http:
            page = Page(http, "chat")
            turn = await page.say(prompt)
            [call] = turn.calls
            for asked in turn.of("tool-approval-request"):
                yes = {"approvalId": asked["approvalId"], "approved": True}
                assert (await http.post("/api/tools/approve", json=yes)).json() == {"ok": True}
            head = {**HEAD, "x-file-name": "me.png"}
            picked = (await http.post("/api/files", content=body, headers=head)).json()
            ack = {"toolCallId": call, "status": "success", "output": picked}
            assert (await http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
            answer = (await page.resume()).text
        assert "me.png" in answer
        assert str(len(body)) in answer
        await server.restart()
        async with server.client() as http:
            assert (await http.get(f"/api/files/{picked['ref']}")).content == body
            assert (await http.delete("/api/chat/chat")).json() == {"ok": True}
            assert (await http.get(f"/api/files/{picked['ref']}")).status_code == 404
