"""`farhand purge`: removes what has been kept for long enough, in a store or through the server that has it.

A SQLite store belongs to one process: while a server runs, that server is asked.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from http import HTTPStatus

import msgspec

from farhand.cli.lines import say
from farhand.cli.options import Asked
from farhand.cli.remote import NotReached, remote
from farhand.cli.tables import show_json
from farhand.errors import BadSetting, Rejected, StoreLocked
from farhand.server.settings import load_settings
from farhand.server.upkeep import Purged, PurgeRequest, purge_store
from farhand.store.address import DEFAULT, open_store

LONGEST_SEC = 100 * 365.25 * 86_400
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def remove_old(to: Asked, *, older_than: str | None, dry_run: bool, store: str | None) -> None:
    settings = load_settings({} if store is None else {"store": store})
    seconds = settings.settings.patience.keep_settled if older_than is None else seconds_of(older_than)
    if seconds > LONGEST_SEC:
        raise BadSetting(
            "--older-than: nothing is older than 100 years.", hint="Write 90s, 30m, 12h, 7d or 4w."
        )
    asked = PurgeRequest(older_than_sec=seconds, dry_run=dry_run)
    address = settings.store or DEFAULT
    if to.url is not None or (store is None and address.startswith("memory:")):
        purged = _ask_server(asked, to)
    else:
        _check_lasting(address)
        try:
            purged = asyncio.run(_purge(address, asked))
        except StoreLocked as locked:
            purged = _ask_holder(asked, locked, to, is_named=store is not None)
    _show(purged, as_json=to.as_json)


def seconds_of(age: str) -> float:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhdw]?)", age.strip().lower())
    if found is None:
        raise BadSetting(f"--older-than: '{age}' is no age.", hint="Write 90s, 30m, 12h, 7d or 4w.")
    return float(found[1]) * _UNITS[found[2]]


def _check_lasting(address: str) -> None:
    if address == "memory:":
        raise BadSetting(
            "A store in memory belongs to its server alone.",
            hint="Name that server: --url http://127.0.0.1:8787.",
        )


async def _purge(address: str, asked: PurgeRequest) -> Purged:
    opened = await open_store(address, as_is=True)
    try:
        return await purge_store(opened, older_than_sec=asked.older_than_sec, dry_run=asked.dry_run)
    finally:
        await opened.close()


def _ask_holder(asked: PurgeRequest, locked: StoreLocked, to: Asked, *, is_named: bool) -> Purged:
    """The settings that name the store name its server, too; of any other store they say nothing."""
    in_use = BadSetting(
        locked.message,
        hint="Ask the server that has it: farhand purge --url http://127.0.0.1:8787 --token ...",
    )
    if is_named:
        raise in_use
    try:
        return _ask_server(asked, to)
    except NotReached:
        raise in_use from None


def _ask_server(asked: PurgeRequest, to: Asked) -> Purged:
    server = remote(to.url, to.token)
    try:
        answer = server.post("/api/purge", msgspec.to_builtins(asked), within=None)
    except Rejected as refused:
        if refused.status != HTTPStatus.NOT_FOUND:
            raise
        raise _hooked(server.url) from None
    return msgspec.convert(answer, Purged)


def _hooked(url: str) -> BadSetting:
    """A server with an `authenticate` hook has no such route: a purge reaches over all owners."""
    return BadSetting(
        f"The server at {url} has an authenticate hook and takes no purge from outside.",
        hint="Purge its store instead: farhand purge --store ADDRESS, a SQLite file while the server is "
        "stopped, PostgreSQL at any time. What is older than patience.keep_settled it removes by itself.",
    )


def _show(purged: Purged, *, as_json: bool) -> None:
    if as_json:
        show_json(msgspec.to_builtins(purged))
        return
    day = datetime.fromtimestamp(purged.before, UTC).strftime("%Y-%m-%d %H:%M UTC")
    title = f"{'would remove' if purged.dry_run else 'removed'} what ended before {day}"
    say(
        [
            ("calls", str(purged.calls)),
            ("events", f"of {purged.journals} runs"),
            ("news", str(purged.news)),
            ("files", str(purged.files)),
        ],
        title=title,
    )
