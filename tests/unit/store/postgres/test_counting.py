"""Counting what is old may take its time; removing it waits for no count."""

from __future__ import annotations

from typing import NoReturn

import pytest

from farhand.server.upkeep import purge_store
from farhand.store.base import Old
from farhand.store.postgres import line, purge
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import Given
from tests.requirement import requirement

SLOW = "(SELECT count(*) FROM pg_sleep(2)) - 1 +"


@requirement("cli:purge-much")
async def test_a_dry_run_counts_for_longer_than_a_statement_may_take(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(given)
    monkeypatch.setattr(purge, "COUNT_OLD", purge.COUNT_OLD.replace("SELECT", f"SELECT {SLOW}", 1))
    monkeypatch.setattr(line, "_SETTINGS", {**line._SETTINGS, "statement_timeout": "500"})
    monkeypatch.setattr(line, "COMMAND_SEC", 1.0)
    counted = await purge_store(given.store, older_than_sec=0.0, dry_run=True)
    assert (counted.calls, counted.dry_run) == (3, True)


@requirement("cli:purge-much")
async def test_a_purge_tells_what_it_removed_without_counting_first(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(given)

    async def uncounted(*, settled_before: float) -> NoReturn:
        raise AssertionError(f"nobody asked how much is older than {settled_before}")

    monkeypatch.setattr(given.store, "count_old", uncounted)
    monkeypatch.setattr(purge, "CALLS", 2)
    removed = await purge_store(given.store, older_than_sec=0.0, dry_run=False)
    assert (removed.calls, removed.journals, removed.dry_run) == (3, 1, False)
    assert await given.store.purge(settled_before=given.clock.now()) == Old()


async def settled(given: Given) -> None:
    """Three calls of a run that has ended, a while ago."""
    clock = given.clock
    assert isinstance(clock, FakeClock)
    run = await given.run()
    for _ in range(3):
        await given.settle(await given.call(run))
    await given.end(run)
    clock.advance(10)
