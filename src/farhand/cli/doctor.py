"""`farhand doctor`: one line for each check, and what to do if it fails. Changes nothing."""

from __future__ import annotations

import asyncio
import platform
import sqlite3
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from farhand.cli.options import ServerOptions
from farhand.cli.remote.http import RemoteServer, ServerUnreachable, remote_server
from farhand.cli.remote.render import print_json
from farhand.errors import FarhandError
from farhand.server.settings import load_settings
from farhand.store.health import ROOM_BYTES, ServerLoad, StoreHealth
from farhand.store.open import DEFAULT, inspect_store, redact_password

CLOCK_SEC = 2.0
PER_WORKER = 10
"""Connections that one worker may open to a shared database."""
QUEUE_SHARE = 0.1
UNREADABLE_SHOWN = 10
_EXTRAS = {"anthropic": "anthropic", "openai": "openai", "backboard": "backboard-sdk", "postgres": "asyncpg"}
_COLOURS = {"ok": "green", "note": "yellow", "bad": "red"}


class Finding(Struct, frozen=True, omit_defaults=True):
    about: str
    verdict: Literal["ok", "note", "bad"]
    text: str
    do: str = ""


def examine(to: ServerOptions, *, store: str | None) -> None:
    """Runs all checks and prints them. Exits with code 1 if a check fails."""
    findings = list(_check_all(store, to.url, to.token))
    if to.as_json:
        print_json(findings)
    else:
        for finding in findings:
            _print(finding)
    if any(finding.verdict == "bad" for finding in findings):
        raise typer.Exit(1)


def _check_all(store: str | None, url: str | None, token: str | None) -> Iterator[Finding]:
    yield from _list_versions()
    try:
        settings = load_settings({} if store is None else {"store": store})
    except FarhandError as error:
        yield Finding("settings", "bad", error.message, error.hint)
        return
    yield Finding("settings", "ok", "can be read")
    if url is None or store is not None:
        yield from _check_store(settings.store or DEFAULT)
    if url is not None:
        yield _check_server(url, token)
    yield _check_streaming(url, token)


def _list_versions() -> Iterator[Finding]:
    yield Finding("farhand", "ok", version("farhand"))
    yield Finding("python", "ok", platform.python_version())
    yield Finding("sqlite", "ok", sqlite3.sqlite_version)
    for extra, package in _EXTRAS.items():
        try:
            yield Finding(extra, "ok", f"{package} {version(package)}")
        except PackageNotFoundError:
            yield Finding(extra, "note", "not installed", f"If you need it: pip install 'farhand[{extra}]'.")


def _check_store(address: str) -> Iterator[Finding]:
    try:
        facts = asyncio.run(inspect_store(address))
    except FarhandError as error:
        yield Finding("store", "bad", error.message, error.hint)
        return
    # a folder that this user may not read, or a home that does not exist
    except (OSError, RuntimeError) as error:
        text = f"{redact_password(address)} cannot be read: {str(error).removesuffix('.')}"
        yield Finding("store", "bad", text, "Check its address, and the permissions of its folder.")
        return
    if facts.problem is not None:
        do = facts.hint or "Check its address, and that it exists."
        yield Finding("store", "bad", f"{facts.what}: {facts.problem}", do)
        return
    used = f", in use by {facts.in_use_by}" if facts.in_use_by else ""
    yield Finding("store", "ok", facts.what + used)
    if facts.free_bytes is not None:
        yield _check_disk(facts.free_bytes)
    yield _check_tables(facts)
    if facts.unreadable:
        yield _check_records(facts.unreadable)
    yield _check_clock(facts)
    if facts.busy is not None:
        yield _check_connections(facts.busy)
        yield _check_queue(facts.busy)


def _check_disk(free: int) -> Finding:
    text = f"the disk has {free / 2**20:,.0f} MiB left"
    if free < ROOM_BYTES:
        return Finding("disk", "bad", text, "Free some space: nothing can be written.")
    if free < 100 * ROOM_BYTES:
        return Finding("disk", "note", text, "Free some space before the disk is full, or purge.")
    return Finding("disk", "ok", text)


def _check_tables(facts: StoreHealth) -> Finding:
    if facts.version is None or facts.version == 0:
        return Finding("tables", "note", "not created yet", "The first server that starts creates them.")
    if facts.version > facts.latest:
        text = f"version {facts.version}, but this farhand supports {facts.latest}"
        return Finding("tables", "bad", text, "Use the newer farhand that wrote them.")
    if facts.version < facts.latest:
        text = f"version {facts.version} of {facts.latest}"
        return Finding("tables", "note", text, "The next server that starts upgrades them.")
    return Finding("tables", "ok", f"version {facts.version}")


def _check_records(names: tuple[str, ...]) -> Finding:
    more = f" and {len(names) - UNREADABLE_SHOWN} more" if len(names) > UNREADABLE_SHOWN else ""
    text = f"this version cannot read {', '.join(names[:UNREADABLE_SHOWN])}{more}"
    return Finding("records", "bad", text, "Use the farhand that wrote them, or restore them from a backup.")


def _check_clock(facts: StoreHealth) -> Finding:
    if facts.behind is None:
        return Finding("clock", "ok", "the clock of this machine")
    text = f"this machine and the store differ by {abs(facts.behind):.3f} s"
    if abs(facts.behind) < CLOCK_SEC:
        return Finding("clock", "ok", text)
    return Finding("clock", "note", text, "Deadlines use the store's clock. Synchronize both with NTP.")


def _check_connections(busy: ServerLoad) -> Finding:
    workers = max(0, busy.at_most - busy.connections) // PER_WORKER
    text = f"{busy.connections} of {busy.at_most} in use: enough for {workers} more workers with ten each"
    if workers:
        return Finding("connections", "ok", text)
    return Finding("connections", "note", text, "Raise max_connections before another worker starts.")


def _check_queue(busy: ServerLoad) -> Finding:
    text = f"the NOTIFY queue is {busy.queue:.0%} full"
    if busy.queue <= QUEUE_SHARE:
        return Finding("queue", "ok", text)
    # the queue keeps what the slowest session has not read; a full queue fails every commit that notifies
    return Finding(
        "queue",
        "note",
        text,
        "Find the session that listens inside a transaction that stays open, and end it.",
    )


def _check_server(url: str, token: str | None) -> Finding:
    """The server that was named: its store cannot be checked from here."""
    try:
        remote_server(url, token).get("/readyz")
    except ServerUnreachable as error:
        return Finding("server", "bad", error.message, error.hint)
    except FarhandError as error:
        return Finding("server", "bad", f"{url} is not ready: {error.message}", "See its log.")
    return Finding("server", "ok", f"{url} is ready, and so is its store")


def _check_streaming(url: str | None, token: str | None) -> Finding:
    found = check_stream(remote_server(url, token))
    # a running server is required only if it was named
    is_missing = found.verdict == "note" and url is not None
    return replace(found, verdict="bad") if is_missing else found


def _print(finding: Finding) -> None:
    line = Text.assemble(
        (f"{finding.verdict:<5}", _COLOURS[finding.verdict]), (f"{finding.about:<12}", "bold"), finding.text
    )
    if finding.do:
        # some texts are already sentences
        line.append(f" {finding.do}" if finding.text.endswith(".") else f". {finding.do}", "dim")
    Console().print(line, soft_wrap=True, highlight=False)


STREAM_WITHIN_SEC = 5.0


def check_stream(server: RemoteServer) -> Finding:
    """A note if streaming could not be tested."""
    try:
        with server.open("/api/events?keepAlive=1", within=STREAM_WITHIN_SEC) as response:
            return _check_response(response)
    except TimeoutError:
        return Finding(
            "stream",
            "bad",
            f"nothing arrived within {STREAM_WITHIN_SEC:g} s: something buffers the response",
            _UNBUFFER,
        )
    except (OSError, HTTPException) as error:
        url = server.url.rstrip("/")
        return Finding(
            "stream", "note", f"no server answers at {url}: {error}", "Start a server, or name one: --url."
        )


_UNBUFFER = "Turn off buffering and compression of responses in the proxy (nginx: proxy_buffering off)."


def _check_response(response: HTTPResponse) -> Finding:
    if response.status in (401, 403):
        return Finding(
            "stream", "note", f"the server refused access ({response.status})", "Name a token: --token."
        )
    if response.status != 200:
        return Finding("stream", "note", f"the server answered {response.status}", "See GET /readyz.")
    if response.getheader("content-encoding"):
        return Finding(
            "stream", "bad", "something compresses the response, which delays small chunks", _UNBUFFER
        )
    arrived = b""
    # until something follows the first event
    while not arrived.partition(b"\n\n")[2]:
        try:
            piece = response.read1(4096)
        except TimeoutError:
            what = "only the first part of the body" if arrived else "no body"
            return Finding(
                "stream", "bad", f"the headers arrived, but {what}: something buffers the response", _UNBUFFER
            )
        if not piece:
            return Finding(
                "stream", "bad", "the stream ended immediately", "Look for a proxy that ends responses early."
            )
        arrived += piece
    return Finding("stream", "ok", "arrives piece by piece")
