"""`farhand doctor`: one line for each thing that may be wrong, and what to do about it. Changes nothing."""

import asyncio
import platform
import sqlite3
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import msgspec
import typer
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from farhand.cli.options import Asked
from farhand.cli.remote import NotReached, remote
from farhand.cli.stream_check import check_stream
from farhand.cli.tables import show_json
from farhand.errors import FarhandError
from farhand.server.settings import load_settings
from farhand.store.address import DEFAULT, look_at_store
from farhand.store.facts import ROOM_BYTES, Busy, StoreFacts

CLOCK_SEC = 2.0
PER_WORKER = 10
"""Connections that one worker may open to a shared database."""
QUEUE_SHARE = 0.1
SHOWN = 10
_EXTRAS = {"anthropic": "anthropic", "openai": "openai", "backboard": "backboard-sdk", "postgres": "asyncpg"}
_COLOURS = {"ok": "green", "note": "yellow", "bad": "red"}


class Finding(Struct, frozen=True, omit_defaults=True):
    about: str
    verdict: Literal["ok", "note", "bad"]
    told: str
    do: str = ""


def examine(to: Asked, *, store: str | None) -> None:
    """Exits with code 1 if something is bad."""
    findings = list(_findings(store, to.url, to.token))
    if to.as_json:
        show_json(msgspec.to_builtins(findings))
    else:
        for finding in findings:
            _print(finding)
    if any(finding.verdict == "bad" for finding in findings):
        raise typer.Exit(1)


def _findings(store: str | None, url: str | None, token: str | None) -> Iterator[Finding]:
    yield from _versions()
    try:
        settings = load_settings({} if store is None else {"store": store})
    except FarhandError as error:
        yield Finding("settings", "bad", error.message, error.hint)
        return
    yield Finding("settings", "ok", "can be read")
    if url is None or store is not None:
        yield from _of_store(settings.store or DEFAULT)
    if url is not None:
        yield _of_server(url, token)
    yield _of_stream(url, token)


def _versions() -> Iterator[Finding]:
    yield Finding("farhand", "ok", version("farhand"))
    yield Finding("python", "ok", platform.python_version())
    yield Finding("sqlite", "ok", sqlite3.sqlite_version)
    for extra, package in _EXTRAS.items():
        try:
            yield Finding(extra, "ok", f"{package} {version(package)}")
        except PackageNotFoundError:
            yield Finding(extra, "note", "not installed", f"If you need it: pip install 'farhand[{extra}]'.")


def _of_store(address: str) -> Iterator[Finding]:
    try:
        facts = asyncio.run(look_at_store(address))
    except FarhandError as error:
        yield Finding("store", "bad", error.message, error.hint)
        return
    if facts.problem is not None:
        do = facts.hint or "Check its address, and that it is there."
        yield Finding("store", "bad", f"{facts.what}: {facts.problem}", do)
        return
    used = f", in use by {facts.in_use_by}" if facts.in_use_by else ""
    yield Finding("store", "ok", facts.what + used)
    if facts.room is not None:
        yield _of_room(facts.room)
    yield _of_tables(facts)
    if facts.unreadable:
        yield _of_unreadable(facts.unreadable)
    yield _of_clock(facts)
    if facts.busy is not None:
        yield _of_connections(facts.busy)
        yield _of_queue(facts.busy)


def _of_room(room: int) -> Finding:
    told = f"its disk has {room / 2**20:,.0f} MiB left"
    if room < ROOM_BYTES:
        return Finding("room", "bad", told, "Make room: nothing can be written.")
    if room < 100 * ROOM_BYTES:
        return Finding("room", "note", told, "Make room before it is full, or purge.")
    return Finding("room", "ok", told)


def _of_tables(facts: StoreFacts) -> Finding:
    if facts.version is None or facts.version == 0:
        return Finding("tables", "note", "not made yet", "The first server that starts makes them.")
    if facts.version > facts.latest:
        told = f"version {facts.version}, and this farhand knows {facts.latest}"
        return Finding("tables", "bad", told, "Use the newer farhand that wrote them.")
    if facts.version < facts.latest:
        told = f"version {facts.version} of {facts.latest}"
        return Finding("tables", "note", told, "The next server that starts brings them up to date.")
    return Finding("tables", "ok", f"version {facts.version}")


def _of_unreadable(names: tuple[str, ...]) -> Finding:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    told = f"this version cannot read {', '.join(names[:SHOWN])}{more}"
    return Finding("records", "bad", told, "Use the farhand that wrote them, or restore them from a backup.")


def _of_clock(facts: StoreFacts) -> Finding:
    if facts.behind is None:
        return Finding("clock", "ok", "that of this machine")
    told = f"this machine and the store differ by {abs(facts.behind):.3f} s"
    if abs(facts.behind) < CLOCK_SEC:
        return Finding("clock", "ok", told)
    return Finding("clock", "note", told, "Deadlines go by the store's clock. Set both by NTP.")


def _of_connections(busy: Busy) -> Finding:
    workers = max(0, busy.at_most - busy.connections) // PER_WORKER
    told = f"{busy.connections} of {busy.at_most} are taken: room for {workers} more workers at ten each"
    if workers:
        return Finding("connections", "ok", told)
    return Finding("connections", "note", told, "Raise max_connections before another worker starts.")


def _of_queue(busy: Busy) -> Finding:
    told = f"the queue of NOTIFY is {busy.queue:.0%} full"
    if busy.queue <= QUEUE_SHARE:
        return Finding("queue", "ok", told)
    # what one session has not read is kept for all; a full queue fails every commit that tells something
    return Finding("queue", "note", told, "End the session that listens in a transaction which stays open.")


def _of_server(url: str, token: str | None) -> Finding:
    """Of one that was named: its store is where it is, not here."""
    try:
        remote(url, token).get("/readyz")
    except NotReached as error:
        return Finding("server", "bad", error.message, error.hint)
    except FarhandError as error:
        return Finding("server", "bad", f"{url} is not ready: {error.message}", "See its log.")
    return Finding("server", "ok", f"{url} is ready, and so is its store")


def _of_stream(url: str | None, token: str | None) -> Finding:
    server = remote(url, token)
    found = check_stream(server.url.rstrip("/"), server.token)
    if found.works is None:
        # a server that nobody named need not be there
        return Finding("stream", "note" if url is None else "bad", found.told, found.do)
    return Finding("stream", "ok" if found.works else "bad", found.told, found.do)


def _print(finding: Finding) -> None:
    line = Text.assemble(
        (f"{finding.verdict:<5}", _COLOURS[finding.verdict]), (f"{finding.about:<12}", "bold"), finding.told
    )
    if finding.do:
        # some are sentences already
        line.append(f" {finding.do}" if finding.told.endswith(".") else f". {finding.do}", "dim")
    Console().print(line, soft_wrap=True, highlight=False)
