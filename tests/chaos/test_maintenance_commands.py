"""`farhand purge`, `farhand doctor` and `farhand run --workers` as real processes, on both stores."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from farhand.cli.doctor import check_stream
from farhand.cli.remote.http import RemoteServer
from farhand.store.open import inspect_store, open_store
from farhand.store.postgres.connection import connect, parse_address
from tests.chaos.fault_proxy import FaultProxy
from tests.faces.ui_stream.page import Page
from tests.postgres import Cluster, running_cluster
from tests.process import FarhandProcess, farhand_process, run_farhand
from tests.requirement import requirement

# up to five programs are started one after the other, beside a database: a busy machine takes its time
pytestmark = pytest.mark.timeout(180)
AGENT = "tests.chaos.agents:agent"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


async def talked(server: FarhandProcess) -> None:
    """A run with a call, to its end."""
    async with server.client() as client:
        page = Page(client, "chat")
        call = (await page.say("open it")).of("tool-input-available")[-1]["toolCallId"]
        ack = {"toolCallId": call, "status": "success", "output": {"viewKey": "v1"}}
        assert (await client.post("/api/tools/ack", json=ack)).json() == {"ok": True}
        assert (await page.resume()).finish == "stop"


async def purged(*arguments: str, **variables: str) -> tuple[int, int, bool]:
    ended = await run_farhand("purge", "--older-than", "0", "--json", *arguments, env=variables)
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    return told["calls"], told["runs"], told["dryRun"]


@requirement("cli:purge")
async def test_purge_counts_and_removes_through_the_server_and_then_in_the_file(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with farhand_process(AGENT, store=store) as server:
        await talked(server)
        known = ("--url", server.url, "--token", server.token)
        assert await purged("--dry-run", *known) == (1, 1, True)
        in_use = {"FARHAND_STORE": store, "FARHAND_PORT": str(server.port), "FARHAND_TOKEN": server.token}
        assert await purged("--dry-run", **in_use) == (1, 1, True), "the server that has the file is asked"
        assert (await run_farhand("purge", *known)).out.splitlines()[1:3] == [
            "  calls   0",
            "  events  of 0 runs",
        ]
        assert await server.stop() == 0
    assert await purged("--store", store) == (1, 1, False)
    assert await purged("--store", store) == (0, 0, False)


@requirement("cli:purge")
async def test_purge_reaches_a_shared_store_beside_its_servers(cluster: Cluster) -> None:
    store = cluster.address("purged")
    async with farhand_process(AGENT, store=store) as server:
        await talked(server)
        assert await purged("--store", store) == (1, 1, False)
        assert await purged("--store", store) == (0, 0, False)


@requirement("cli:purge")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--older-than", "soon"), "'soon' is not an age"),
        (("--store", "sqlite:////nowhere/at/all.db"), "There is no store"),
        (("--url", "http://127.0.0.1:1"), "No server answers"),
        (("--store", "sqlite:///a.db", "--url", "http://127.0.0.1:1"), "Give --url or --store, not both"),
        (("--store", "memory:"), "A store in memory cannot be opened from outside its server"),
        (("--older-than", "400000000d"), "the longest age is 100 years"),
        (("--older-than", "99999999999999999999w"), "the longest age is 100 years"),
        (("--older-than", "9" * 400), "the longest age is 100 years"),
    ],
)
async def test_a_purge_that_cannot_be_is_one_line(arguments: tuple[str, ...], told: str) -> None:
    ended = await run_farhand("purge", *arguments)
    assert (ended.code, len(ended.err.splitlines()), told in ended.err) == (2, 1, True), ended


@requirement("cli:purge")
@pytest.mark.parametrize("token", [(), ("--token", "ada")])
async def test_a_purge_of_a_server_with_a_hook_says_what_it_needs(token: tuple[str, ...]) -> None:
    async with farhand_process("tests.chaos.agents:app") as server:
        ended = await run_farhand("purge", "--url", server.url, *token)
    assert (ended.code, ended.out) == (2, "")
    [line] = ended.err.splitlines()
    assert "has an authenticate hook, so it accepts no purge requests" in line
    assert "farhand purge --store ADDRESS" in line


@requirement("cli:purge")
async def test_a_purge_makes_no_store_and_brings_none_up_to_date(cluster: Cluster, tmp_path: Path) -> None:
    missing = cluster.address("mistyped")
    for more in ((), ("--dry-run",)):
        ended = await run_farhand("purge", "--store", missing, *more)
        assert (ended.code, len(ended.err.splitlines())) == (2, 1), ended
        assert "has no farhand tables" in ended.err
    facts = await inspect_store(missing)
    assert facts.version is None, "nothing was made"

    file, live = f"sqlite:///{tmp_path}/store.db", cluster.address("live")
    for store in (file, live):
        await (await open_store(store)).close()
    sqlite3.connect(tmp_path / "store.db").execute("PRAGMA user_version = 99").close()
    line = await connect(parse_address(live))
    await line.execute("UPDATE meta SET farhand_version = 99")
    await line.close()
    for store in (file, live):
        ended = await run_farhand("purge", "--dry-run", "--store", store)
        assert (ended.code, len(ended.err.splitlines())) == (2, 1), ended
        assert "has tables of version 99; this farhand uses version" in ended.err
        assert (await inspect_store(store)).version == 99, "as it was"


@requirement("cli:purge")
async def test_a_named_file_that_a_server_has_is_reported_to_be_in_use_and_no_other_server_is_asked(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with farhand_process(AGENT, store=store), farhand_process(AGENT) as other:
        await talked(other)
        settings = {"FARHAND_PORT": str(other.port), "FARHAND_TOKEN": other.token}
        ended = await run_farhand("purge", "--older-than", "0", "--store", store, env=settings)
        assert (ended.code, len(ended.err.splitlines())) == (2, 1), ended
        assert "is in use by another farhand server (process" in ended.err
        assert "farhand purge --url" in ended.err
        known = ("--url", other.url, "--token", other.token)
        assert await purged("--dry-run", *known) == (1, 1, True), "what the other one has is still there"


async def findings(*arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
    ended = await run_farhand("doctor", "--json", *arguments)
    assert ended.err == ""
    return ended.code, {each["about"]: (each["verdict"], each["text"]) for each in json.loads(ended.out)}


@requirement("cli:doctor")
async def test_the_doctor_finds_a_healthy_server_healthy(cluster: Cluster, tmp_path: Path) -> None:
    for store in (cluster.address("healthy"), f"sqlite:///{tmp_path}/store.db"):
        async with farhand_process(AGENT, store=store) as server:
            code, found = await findings("--store", store, "--url", server.url, "--token", server.token)
        assert code == 0
        assert {found[about][0] for about in ("python", "store", "tables", "clock", "stream")} == {"ok"}
        assert found["stream"][1] == "arrives piece by piece"
        if store.startswith("postgresql:"):
            assert (found["connections"][0], found["queue"][0]) == ("ok", "ok")
            assert "more workers with ten each" in found["connections"][1]


@requirement("cli:doctor")
async def test_the_doctor_names_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    code, found = await findings("--store", "postgresql://127.0.0.1:1/nothing")
    assert (code, found["store"][0]) == (1, "bad")
    (tmp_path / "other.db").write_text("this is no database, and long enough to be taken for one" * 9)
    code, found = await findings("--store", f"sqlite:///{tmp_path}/other.db")
    assert (code, found["store"][0]) == (1, "bad")
    for unreadable in ("sqlite:///~no-such-user/x.db", f"sqlite:///{'long' * 100}.db"):
        code, found = await findings("--store", unreadable)
        assert (code, found["store"][0], "cannot be read" in found["store"][1]) == (1, "bad", True)
    ended = await run_farhand("doctor", "--store", "carrier-pigeon")
    assert (ended.code, "is not a store address. Use" in ended.out) == (1, True)


async def test_the_doctor_finds_bad_what_a_server_refuses_and_gives_the_same_advice(cluster: Cluster) -> None:
    line = await connect(parse_address(cluster.address("postgres")))
    await line.execute(
        "CREATE ROLE visitor LOGIN; CREATE SCHEMA looked_at; GRANT USAGE ON SCHEMA looked_at TO visitor"
    )
    await line.close()
    store = cluster.address("looked_at").replace("farhand@", "visitor@")
    told = await run_farhand("doctor", "--store", store)
    refused = await run_farhand("run", AGENT, "--port", "0", "--store", store)
    assert (told.code, refused.code) == (1, 2)
    for ended in (told.out, refused.err):
        assert "permission denied for schema looked_at" in ended
        assert "GRANT USAGE, CREATE ON SCHEMA looked_at" in ended
        assert ".." not in ended


@requirement("cli:doctor")
async def test_the_doctor_tells_a_stream_that_is_kept_back_from_one_that_arrives() -> None:
    async with farhand_process(AGENT) as server, FaultProxy(("127.0.0.1", server.port)) as line:
        known = ("--url", f"http://127.0.0.1:{line.port}", "--token", server.token)
        assert (await findings(*known))[1]["stream"][0] == "ok"
        line.hang()
        code, found = await findings(*known)
        assert (code, found["stream"][0]) == (1, "bad")
        assert "buffers the response" in found["stream"][1]
        line.flow()
    code, found = await findings("--url", "http://127.0.0.1:1")
    assert (code, found["stream"][0]) == (1, "bad")


@requirement("cli:doctor")
async def test_the_doctor_is_not_content_with_what_left_with_the_head() -> None:
    async with farhand_process(AGENT) as server:

        async def keep_back(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
            """As a proxy does that fills a buffer once it has passed the head on."""
            far, forth = await asyncio.open_connection("127.0.0.1", server.port)
            forth.write(await near.readuntil(b"\r\n\r\n"))
            back.write(await far.readuntil(b"\r\n\r\n"))
            back.write(await far.readuntil(b"\n\n"))
            await near.read()
            forth.close()
            back.close()

        async with await asyncio.start_server(keep_back, "127.0.0.1", 0) as between:
            port = between.sockets[0].getsockname()[1]
            proxied = RemoteServer(f"http://127.0.0.1:{port}", server.token)
            found = await asyncio.to_thread(check_stream, proxied)
        assert found.verdict == "bad"
        assert "only the first part of the body" in found.text


@requirement("cli:doctor")
async def test_the_doctor_looks_at_the_server_that_was_named_and_not_at_the_file_that_lies_here(
    tmp_path: Path,
) -> None:
    (tmp_path / "other.db").write_text("this is no database, and long enough to be taken for one" * 9)
    here = {"FARHAND_STORE": f"sqlite:///{tmp_path}/other.db"}
    async with farhand_process(AGENT) as server:
        known = ("--url", server.url, "--token", server.token)
        ended = await run_farhand("doctor", "--json", *known, env=here)
        found = {each["about"]: each["verdict"] for each in json.loads(ended.out)}
        assert (ended.code, found["server"], found["stream"]) == (0, "ok", "ok")
        assert "store" not in found
    code, away = await findings("--url", "http://127.0.0.1:1")
    assert (code, away["server"][0]) == (1, "bad")


@requirement("cli:workers")
async def test_workers_end_within_ten_seconds_also_when_one_stands_still(cluster: Cluster) -> None:
    async with farhand_process(AGENT, "--workers", "2", store=cluster.address("still")) as server:
        os.kill(workers_of(server)[0], signal.SIGSTOP)
        began = time.monotonic()
        await server.stop()
        assert time.monotonic() - began < 10.0


@requirement("cli:workers")
@pytest.mark.parametrize("store", ["sqlite:///workers.db", "memory:"])
async def test_many_workers_without_a_shared_store_is_one_line_and_code_2(store: str) -> None:
    ended = await run_farhand("run", AGENT, "--workers", "3", "--store", store)
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    assert "belongs to one process" in ended.err
    assert "--store postgresql://" in ended.err


@requirement("cli:workers")
async def test_workers_that_cannot_start_say_why_once() -> None:
    ended = await run_farhand(
        "run", AGENT, "--workers", "3", "--port", "0", "--store", "postgresql://127.0.0.1:1/x"
    )
    assert (ended.code, len(ended.err.splitlines())) == (2, 1), ended


def workers_of(server: FarhandProcess) -> list[int]:
    return sorted(map(int, Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()))


@requirement("cli:workers")
async def test_a_worker_that_dies_is_replaced_and_nobody_is_refused_meanwhile(cluster: Cluster) -> None:
    async with farhand_process(AGENT, "--workers", "2", store=cluster.address("replaced")) as server:
        assert "is ready with 2 workers" in server.out
        before = workers_of(server)
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        async with asyncio.timeout(40), server.client() as client:
            while len(workers_of(server)) < 2 or workers_of(server) == before:
                await ask(client)
        await talked(server)
        assert await server.stop() == 0
        assert "ended with signal 9; restarting it" in server.err


async def ask(client: httpx2.AsyncClient) -> None:
    # what was in progress at the one that died may be lost; nobody is refused
    with suppress(httpx2.RemoteProtocolError, httpx2.ReadError):
        assert (await client.get("/healthz", headers={"connection": "close"})).status_code == 200


@requirement("cli:workers")
async def test_workers_end_with_their_parent_however_it_ends(cluster: Cluster) -> None:
    async with farhand_process(AGENT, "--workers", "2", store=cluster.address("orphans")) as server:
        workers = workers_of(server)
        await server.kill()
        async with asyncio.timeout(30):
            # they are nobody's children any more: there is no event to wait for
            while any(Path(f"/proc/{pid}").exists() for pid in workers):  # noqa: ASYNC110, ASYNC240
                await asyncio.sleep(0.05)
