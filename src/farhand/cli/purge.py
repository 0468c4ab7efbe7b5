"""`farhand purge`: removes old data, directly in a store or through the server that has it open.

A SQLite store belongs to one process: while a server has it open, that server does the purge.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from http import HTTPStatus

import msgspec

from farhand.cli.console import print_facts
from farhand.cli.options import ServerOptions
from farhand.cli.remote.http import ServerUnreachable, remote_server
from farhand.cli.remote.render import print_json
from farhand.errors import BadSetting, Rejected, StoreLocked
from farhand.eventlog.log import EventLog
from farhand.server.admin import PurgeReport, PurgeRequest, purge_log
from farhand.server.settings import load_settings
from farhand.store.open import DEFAULT, open_store

LONGEST_AGE_SEC = 100 * 365.25 * 86_400
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def remove_old(to: ServerOptions, *, older_than: str | None, dry_run: bool, store: str | None) -> None:
    if to.url is not None and store is not None:
        # neither is preferred: what is removed is gone
        raise BadSetting("Give --url or --store, not both.", hint="A server purges its own store.")
    settings = load_settings({} if store is None else {"store": store})
    seconds = settings.settings.timeouts.keep_settled if older_than is None else parse_age(older_than)
    if seconds > LONGEST_AGE_SEC:
        raise BadSetting("--older-than: the longest age is 100 years.", hint="Write 90s, 30m, 12h, 7d or 4w.")
    request = PurgeRequest(older_than_sec=seconds, dry_run=dry_run)
    address = settings.store or DEFAULT
    if to.url is not None or (store is None and address.startswith("memory:")):
        purged = _ask_server(request, to)
    else:
        _refuse_memory(address)
        try:
            purged = asyncio.run(_purge(address, request))
        except StoreLocked as locked:
            purged = _ask_holder(request, locked, to, is_named=store is not None)
    _show(purged, as_json=to.as_json)


def parse_age(age: str) -> float:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhdw]?)", age.strip().lower())
    if found is None:
        raise BadSetting(f"--older-than: '{age}' is not an age.", hint="Write 90s, 30m, 12h, 7d or 4w.")
    return float(found[1]) * _UNITS[found[2]]


def _refuse_memory(address: str) -> None:
    if address == "memory:":
        raise BadSetting(
            "A store in memory cannot be opened from outside its server.",
            hint="Name the server: --url http://127.0.0.1:8787.",
        )


async def _purge(address: str, request: PurgeRequest) -> PurgeReport:
    opened = await open_store(address, as_is=True)
    try:
        log = EventLog(opened)
        return await purge_log(log, older_than_sec=request.older_than_sec, dry_run=request.dry_run)
    finally:
        await opened.close()


def _ask_holder(
    request: PurgeRequest, locked: StoreLocked, to: ServerOptions, *, is_named: bool
) -> PurgeReport:
    """Asks the server of the settings, unless the store was named: it may belong to another server."""
    in_use = BadSetting(
        locked.message,
        hint="Purge through the server that has it: farhand purge --url http://127.0.0.1:8787 --token ...",
    )
    if is_named:
        raise in_use
    try:
        return _ask_server(request, to)
    except ServerUnreachable:
        raise in_use from None


def _ask_server(request: PurgeRequest, to: ServerOptions) -> PurgeReport:
    server = remote_server(to.url, to.token)
    try:
        answer = server.post("/api/purge", msgspec.to_builtins(request), within=None)
    except Rejected as refused:
        if refused.status != HTTPStatus.NOT_FOUND:
            raise
        raise _explain_hook(server.url) from None
    return msgspec.convert(answer, PurgeReport)


def _explain_hook(url: str) -> BadSetting:
    """A server with an `authenticate` hook has no such route: a purge covers all owners."""
    return BadSetting(
        f"The server at {url} has an authenticate hook, so it accepts no purge requests.",
        hint="Purge its store instead: farhand purge --store ADDRESS (a SQLite file only while the server is "
        "stopped). The server itself removes data that is older than timeouts.keep_settled.",
    )


def _show(purged: PurgeReport, *, as_json: bool) -> None:
    if as_json:
        print_json(purged)
        return
    day = datetime.fromtimestamp(purged.before, UTC).strftime("%Y-%m-%d %H:%M UTC")
    title = f"{'would remove' if purged.dry_run else 'removed'} everything that ended before {day}"
    print_facts(
        [
            ("calls", str(purged.calls)),
            ("events", f"of {purged.runs} runs"),
            ("feed", f"{purged.feed_entries} entries"),
            ("files", str(purged.files)),
        ],
        title=title,
    )
