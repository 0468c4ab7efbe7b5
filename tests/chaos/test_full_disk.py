"""SQLite on a disk that is really full: an error, nothing half-written, and normal operation when there is
room."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import httpx2
import pytest

from tests.chaos.small_disk import SmallDisk, small_disk
from tests.chaos.test_store_away import AGENT, ack, parked, until_accepted, until_ready
from tests.faces.ui_stream.page import Json, Page, user_message
from tests.process import FarhandProcess, farhand_process, run_farhand

# up to five programs are started one after the other: a busy machine takes its time
pytestmark = pytest.mark.timeout(180)
FILE = {"x-farhand": "1", "content-type": "image/png"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", mib=4) as disk:
        if disk is None:
            pytest.skip("this machine lets nobody make a namespace, and so no small disk")
        yield disk


async def test_a_disk_without_room_is_503_for_whoever_writes_and_nothing_is_half_written(
    disk: SmallDisk, tmp_path: Path
) -> None:
    async with serving(disk) as server, server.client() as client:
        call = await parked(client)
        disk.fill()
        before = (await client.get("/api/chat/chat")).json()
        for path, more in asked(call):
            refused(await client.post(path, **more))
        assert (await client.get("/api/chat/chat")).json() == before, "what was kept can be read"
        disk.free()
        await until_ready(client)
        await until_accepted(client, call)
        assert (await Page(client, "chat").resume()).finish == "stop"
        await server.restart()
        again = await client.post("/api/tools/ack", json=ack(call))
        assert again.json() == {"ok": True, "ignored": True}
        await server.kill()
    kept = disk.copy(tmp_path / "kept")
    with closing(sqlite3.connect(kept / "store.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT count(*) FROM files").fetchone() == (0,)
        assert db.execute("SELECT thread_id FROM threads").fetchall() == [("chat",)]


async def test_readiness_tells_of_a_full_disk_before_anybody_was_refused_and_of_room_by_itself(
    disk: SmallDisk,
) -> None:
    async with serving(disk) as server, server.client() as client:
        await parked(client)
        assert (await client.get("/readyz")).status_code == 200
        disk.fill()
        for _ in range(3):
            refused(await client.get("/readyz"))
        assert (await client.get("/healthz")).status_code == 200
        disk.free()
        assert (await client.get("/readyz")).status_code == 200


async def test_on_a_full_disk_a_start_and_the_doctor_say_to_make_room(disk: SmallDisk) -> None:
    store = f"sqlite:///{disk.folder}/store.db"
    disk.fill()
    ended = await run_farhand("run", AGENT, "--port", "0", "--store", store, inside=disk.enter)
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
    assert "cannot be used: No space left on device. Free space on its disk." in ended.err
    found = await run_farhand("doctor", "--store", store, inside=disk.enter)
    assert found.code == 1
    assert "the disk has 0 MiB left. Free some space" in found.out
    disk.free()
    async with serving(disk):
        healthy = await run_farhand("doctor", "--store", store, inside=disk.enter)
    assert healthy.code == 0, healthy.out


def serving(disk: SmallDisk) -> AbstractAsyncContextManager[FarhandProcess]:
    return farhand_process(AGENT, store=f"sqlite:///{disk.folder}/store.db", inside=disk.enter)


def asked(call: str) -> list[tuple[str, Json]]:
    return [
        ("/api/tools/ack", {"json": ack(call)}),
        ("/api/chat", {"json": {"id": "second", "messages": [user_message("open it")]}}),
        ("/agent/run", {"json": {"user_prompt": "open it"}}),
        ("/api/files", {"content": bytes(300_000), "headers": FILE}),
        ("/api/tools/ack", {"json": ack(call)}),
    ]


def refused(answer: httpx2.Response) -> None:
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), answer.text
    assert "the disk is full" in answer.text
    assert "/store.db" not in answer.text, "no path"
