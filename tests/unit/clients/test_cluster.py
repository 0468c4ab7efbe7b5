"""What workers learn about each other's clients: background tasks survive errors and log them once."""

from __future__ import annotations

import pytest

from farhand.clients import cluster
from farhand.errors import StoreDown


async def test_a_store_that_is_away_is_told_once_for_as_long_as_it_lasts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left = [StoreDown("The store did not complete the request.")] * 3

    async def watch() -> None:
        if left:
            raise left.pop()

    monkeypatch.setattr(cluster, "POLL_SEC", 0.0)
    await cluster.supervise(watch)
    assert caplog.text.count("background task of registered clients failed") == 1
    # another time is another trouble
    monkeypatch.setattr(cluster, "SAME_FAILURE_SEC", -1.0)
    left.append(StoreDown("The store did not complete the request."))
    await cluster.supervise(watch)
    assert caplog.text.count("background task of registered clients failed") == 2
