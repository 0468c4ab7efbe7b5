"""Serving an app inside a test leaves the process unchanged."""

from __future__ import annotations

import logging

from starlette.responses import PlainTextResponse

from farhand.testing.running_app import serve_on_loopback


async def test_the_logging_of_the_process_is_left_alone() -> None:
    def state() -> list[tuple[int, bool, int]]:
        found = [logging.getLogger(name) for name in ("uvicorn", "uvicorn.error")]
        return [(each.level, each.propagate, len(each.handlers)) for each in found]

    before = state()
    async with serve_on_loopback(PlainTextResponse("x")):
        assert state() == before
    assert state() == before
