"""A record that this version cannot read is left out of lists and named; it hides no other."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from farhand.core.client import Client
from farhand.core.run import RunState
from farhand.store.address import look_at_store, open_store
from farhand.store.base import PutClient, Store, WriteRun
from farhand.store.draft import listed
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import ANN, Given
from tests.postgres import Cluster
from tests.requirement import requirement

SPOILED = {
    "thread t2": "UPDATE {schema}threads SET body = 'no JSON' WHERE thread_id = 't2'",
    "call": "UPDATE {schema}calls SET body = 'no JSON' WHERE call_id = '{call}'",
    "client odd": "UPDATE {schema}clients SET body = 'no JSON' WHERE client_id = 'odd'",
    "run": "UPDATE {schema}runs SET state = 'dancing' WHERE run_id = '{run}'",
}


async def filled(store: Store) -> tuple[str, str]:
    """Three of each; the ids of a call and of a run in the middle."""
    given = Given(store, FakeClock())
    runs = [await given.run(f"t{number}") for number in (1, 2, 3)]
    calls = [await given.call(run) for run in runs]
    for name in ("even", "odd", "third"):
        client = Client(owner=ANN, client_id=name, tools=(), grace_sec=5.0, registered_at=0.0)
        await given.write(PutClient(client))
    await given.write(WriteRun(run_id=runs[1].run_id, fence=1, state=RunState.WAITING))
    return calls[1].call_id, runs[1].run_id


async def check(address: str, spoil: Callable[[str], None], caplog: pytest.LogCaptureFixture) -> None:
    listed._named.clear()
    store = await open_store(address)
    call, run = await filled(store)
    await store.close()
    for statement in SPOILED.values():
        spoil(statement.replace("{call}", call).replace("{run}", run))
    store = await open_store(address)
    try:
        with caplog.at_level(logging.ERROR, "farhand.store"):
            assert [each.thread_id for each in await store.threads(ANN, limit=2)] == ["t3", "t1"]
            assert len(await store.runs(ANN, limit=2)) == 2
            # the page after one that cannot be read
            assert [each.thread_id for each in await store.runs(ANN, limit=5, after=run)] == ["t1"]
            assert len(await store.open_calls(ANN)) == 2
            assert {each.client_id for each in await store.clients(ANN)} == {"even", "third"}
            await store.threads(ANN, limit=2)
        told = [
            record.getMessage() for record in caplog.records if "left out of lists" in record.getMessage()
        ]
        assert sorted(line.partition(" cannot")[0] for line in told) == sorted(
            [f"call {call}", "client odd", f"run {run}", "thread t2"]
        )
    finally:
        await store.close()
    facts = await look_at_store(address)
    assert set(facts.unreadable) == {f"call {call}", "client odd", "thread t2"}


@requirement("store:unreadable-rows")
async def test_lists_of_a_sqlite_store_leave_out_what_cannot_be_read(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def spoil(statement: str) -> None:
        with sqlite3.connect(path) as db:
            db.execute(statement.replace("{schema}", "").replace("'no JSON'", "CAST('no JSON' AS BLOB)"))
        db.close()

    await check(f"sqlite:///{path}", spoil, caplog)


@requirement("store:unreadable-rows")
async def test_lists_of_a_postgres_store_leave_out_what_cannot_be_read(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await check(
        cluster.address("spoiled"),
        lambda statement: cluster.query(statement.replace("{schema}", "spoiled.")),
        caplog,
    )
