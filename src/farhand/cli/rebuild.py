"""`farhand rebuild`: rebuilds the look-up tables of a store from its logs.

A SQLite store belongs to one process, so no server may have it open; a shared database may be in use.
"""

from __future__ import annotations

import asyncio
import sys

import typer

from farhand.cli.console import print_error, print_facts
from farhand.cli.remote.render import print_json
from farhand.errors import BadSetting, StoreLocked
from farhand.eventlog.rebuild import Rebuilt, rebuild
from farhand.server.settings import load_settings
from farhand.store.open import DEFAULT, open_store


def rebuild_store(store: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Exits with code 1 if a thread could not be rebuilt."""
    settings = load_settings({} if store is None else {"store": store})
    address = settings.store or DEFAULT
    if address == "memory:":
        raise BadSetting(
            "A store in memory cannot be opened from outside its server.",
            hint="It is empty when the server starts, so there is nothing to rebuild.",
        )
    keep_sec = settings.settings.timeouts.keep_settled
    try:
        rebuilt = asyncio.run(_rebuild(address, keep_sec=keep_sec, dry_run=dry_run))
    except StoreLocked as locked:
        raise BadSetting(locked.message, hint="Stop the server that has it open.") from None
    _show(rebuilt, dry_run=dry_run, as_json=as_json)
    if rebuilt.left_out:
        raise typer.Exit(1)


async def _rebuild(address: str, *, keep_sec: float, dry_run: bool) -> Rebuilt:
    opened = await open_store(address, as_is=True)
    try:
        return await rebuild(opened, before=opened.now() - keep_sec, dry_run=dry_run, progress=_show_progress)
    finally:
        await opened.close()


def _show_progress(rebuilt: Rebuilt) -> None:
    """Only on a terminal."""
    if sys.stderr.isatty():
        typer.echo(f"{rebuilt.threads} threads\r", err=True, nl=False)


def _show(rebuilt: Rebuilt, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        skipped = [
            {
                "tenant": each.owner.tenant,
                "subject": each.owner.subject,
                "threadId": each.thread_id,
                "reason": each.reason,
            }
            for each in rebuilt.left_out
        ]
        counts = {"threads": rebuilt.threads, "rows": rebuilt.rows, "dryRun": dry_run}
        print_json({**counts, "skipped": skipped})
        return
    for each in rebuilt.left_out:
        print_error(f"thread {each.thread_id} of {each.owner.tenant}/{each.owner.subject}: {each.reason}")
    print_facts(
        [("threads", f" {rebuilt.threads}"), ("rows", f" {rebuilt.rows} differed")],
        title="look-up tables compared with the logs" if dry_run else "look-up tables rebuilt from the logs",
    )
