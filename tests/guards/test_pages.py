"""What a round trip writes to a SQLite file, counted: each table and index of a commit is a page."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.guards.counted_round_trip import Trip, make_app

FRAME_BYTES = 4096 + 24
"""Of the log: a page and its head."""


async def test_a_held_round_trip_writes_less_than_33_pages_to_the_log(tmp_path: Path) -> None:
    app = make_app(f"sqlite:///{tmp_path / 'farhand.db'}")
    log = tmp_path / "farhand.db-wal"
    pages: list[int] = []
    async with asyncio.timeout(60), app.lifespan():
        # what a new file or a new tenant needs once is not the price of a trip
        await Trip(app, "t").run()
        for number in range(10):
            before = log.stat().st_size
            assert b"hello" in await Trip(app, f"t{number}").run()
            pages.append((log.stat().st_size - before) // FRAME_BYTES)
    # of some: a page that was full, or a lease that was renewed, is not the price of each
    assert 0 < min(pages) < 33, pages
