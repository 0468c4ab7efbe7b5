"""Background work that fails is started again, and a failure that lasts is logged once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from farhand import supervisor
from farhand.errors import StoreDown
from farhand.supervisor import supervise

log = logging.getLogger("farhand.tests")


def _failing(*errors: Exception) -> Callable[[], Awaitable[None]]:
    """Work that raises these errors, one each time it is started, and then ends."""
    left = list(errors)

    async def work() -> None:
        if left:
            raise left.pop(0)

    return work


async def test_a_store_that_stays_down_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    down = StoreDown("The store did not complete the request.")
    await supervise(_failing(down, down, down), log, pause_sec=0.0)
    assert caplog.text.count("background task failed") == 1
    monkeypatch.setattr(supervisor, "SAME_FAILURE_SEC", -1.0)
    await supervise(_failing(down), log, pause_sec=0.0)
    assert caplog.text.count("background task failed") == 2, "another time, another failure"


async def test_every_crash_is_logged_and_the_work_starts_again(caplog: pytest.LogCaptureFixture) -> None:
    await supervise(_failing(KeyError("a"), ValueError("b")), log, pause_sec=0.0)
    assert caplog.text.count("background task crashed; restarting it") == 2


async def test_cancelled_work_is_not_started_again() -> None:
    started: list[int] = []

    async def work() -> None:
        started.append(1)
        await asyncio.Event().wait()

    supervised = asyncio.create_task(supervise(work, log, pause_sec=0.0))
    await asyncio.sleep(0)
    supervised.cancel()
    with pytest.raises(asyncio.CancelledError):
        await supervised
    assert started == [1]
