"""Measures what a few operations cost on this machine with PostgreSQL: the input of the growth simulation.

`bench/costs.json` has the costs in docs/explanation/scale.md.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.held_streams import transactions
from bench.machine import ROOT
from farhand import Agent, ScriptedModel, Success, tool
from farhand.core.principal import LOCAL
from farhand.models import Ask, Moment, Step
from farhand.store.base import Append, CallFilter, Store, ThreadRow
from farhand.store.open import open_store
from farhand.store.postgres.connection import Connection, connect, parse_address
from tests.postgres import Cluster, running_cluster

TRIPS, IN_FLIGHT, ROUNDS = 384, 64, 3
FILE = Path(__file__).parent / "costs.json"
PAGE = ROOT / "docs" / "explanation" / "scale.md"
DATABASE = "PostgreSQL with fsync on"
NOTIFIERS, NOTIFICATIONS = 8, 50
"""Concurrent connections that commit with a NOTIFY, and how often each of them does."""


@dataclass(frozen=True)
class Costs:
    """In seconds and bytes."""

    trip_cpu: float
    """Processor time of a worker for one round trip."""
    trip_database_cpu: float
    batch: float
    """An empty transaction."""
    commit: float
    """What each commit adds to its transaction."""
    alone: float
    """How long a transaction with a NOTIFY blocks all others of the server."""
    parked_bytes: float
    scan_few: float
    scan_many: float
    """A scan for overdue calls and abandoned runs, with few and with many parked runs."""
    idle_transactions: float
    held_transactions: float
    """Per second, of an idle worker without streams and with `HELD` idle streams."""


def measure_costs() -> Costs:
    with running_cluster() as cluster:
        cluster.keep_what_is_written()
        idle, held = asyncio.run(transactions(cluster))
        return replace(asyncio.run(_measure(cluster)), idle_transactions=idle, held_transactions=held)


def load_costs() -> tuple[Costs, dict[str, str]]:
    """The saved costs, and the circumstances of their measurement."""
    read = json.loads(FILE.read_text())
    return Costs(**read["costs"]), read["about"]


def save_costs(costs: Costs, about: dict[str, str]) -> None:
    FILE.write_text(json.dumps({"about": about, "costs": asdict(costs)}, indent=1) + "\n")


async def _measure(cluster: Cluster) -> Costs:
    address = cluster.address("scale")
    store = await open_store(address)
    agent = Agent(ScriptedModel(_script), frontend_tools=[open_page], store=address)
    try:
        alone, together = await _commit_sec(store, 1), await _commit_sec(store, IN_FLIGHT)
        cpu, database_cpu = await _trip_cpu(cluster, agent)
        notify = await _notify_sec(address)
        few, before = await _scan_sec(store), await _size(address)
        await _trips(agent, "parked", answer=False)
        many, grown = await _scan_sec(store), await _size(address) - before
    finally:
        await agent.close()
        await store.close()
    per_commit = max(0.0, (together - alone) / (IN_FLIGHT - 1))
    batch = max(0.0, alone - per_commit)
    return Costs(cpu, database_cpu, batch, per_commit, notify, grown / TRIPS, few, many, 0.0, 0.0)


@tool(executor="frontend")
def open_page(address: str) -> dict[str, object]:
    """Open a page.

    Args:
        address: Its address.

    Returns:
        The key of the view.
    """
    raise NotImplementedError(address)


def _script(moment: Moment) -> Step:
    return "Done." if moment.results else Ask("open_page", {"address": "https://example.org/"})


async def _trip_cpu(cluster: Cluster, agent: Agent) -> tuple[float, float]:
    """Of this process and of the database; the best of several rounds, since other processes only add to
    it."""
    spent: list[tuple[float, float]] = []
    for number in range(ROUNDS):
        began, database_began = time.process_time(), cluster.cpu_sec()
        await _trips(agent, f"answered-{number}", answer=True)
        spent.append((time.process_time() - began, cluster.cpu_sec() - database_began))
    return min(own for own, _ in spent) / TRIPS, min(other for _, other in spent) / TRIPS


async def _trips(agent: Agent, name: str, *, answer: bool) -> None:
    """From the message to the answer, or until the run is parked."""
    turn = asyncio.Semaphore(IN_FLIGHT)

    async def trip(thread: str) -> None:
        async with turn:
            paused = await agent.run("open", thread=thread)
            if answer:
                [pending] = paused.pending
                await agent.answer(thread, [(pending.call_id, Success({"viewKey": "v"}))])

    await asyncio.gather(*(trip(f"{name}-{number}") for number in range(TRIPS)))


async def _commit_sec(store: Store, at_once: int) -> float:
    """The time until this many concurrent commits are stored; the best of several rounds."""
    best = 1.0
    for round_ in range(20):
        row = ThreadRow(title="", created_at=0.0, updated_at=0.0)
        appends = [
            Append(
                owner=LOCAL,
                thread_id=f"c{at_once}-{round_}-{number}",
                version=0,
                at=0.0,
                body=b"[]",
                thread=row,
            )
            for number in range(at_once)
        ]
        began = time.perf_counter()
        await asyncio.gather(*(store.append([each]) for each in appends))
        best = min(best, time.perf_counter() - began)
    return best


async def _notify_sec(address: str) -> float:
    """Between the ends of two transactions with a NOTIFY, when many queue; the best of several rounds."""
    lines = [await connect(parse_address(address)) for _ in range(NOTIFIERS)]

    async def notify(line: Connection) -> None:
        for _ in range(NOTIFICATIONS):
            # assigns a transaction id, so that there is something to write
            await line.fetch("SELECT pg_notify('scale', txid_current()::text)")

    spent: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await asyncio.gather(*map(notify, lines))
        spent.append((time.perf_counter() - began) / (NOTIFIERS * NOTIFICATIONS))
    for line in lines:
        await line.close()
    return min(spent)


async def _scan_sec(store: Store) -> float:
    """The best of several rounds."""
    best = 1.0
    for _ in range(20):
        began = time.perf_counter()
        await store.open_calls(CallFilter(due_before=store.now() + 30), limit=500)
        await store.claimable(limit=500)
        best = min(best, time.perf_counter() - began)
    return best


async def _size(address: str) -> float:
    line = await connect(parse_address(address))
    [row] = await line.fetch("SELECT pg_database_size(current_database())")
    await line.close()
    assert isinstance(row[0], int), "a size"
    return float(row[0])
