"""A peer that sends what is no request, again and again, must not fill the log."""

from __future__ import annotations

import logging

import pytest

from farhand.cli.log_filter import REPEAT_AFTER_SEC, OncePerMinute


def line(text: str, at: float, level: int = logging.WARNING) -> logging.LogRecord:
    record = logging.LogRecord("uvicorn.error", level, __file__, 1, text, (), None)
    record.created = at
    return record


def test_the_same_warning_is_written_once_a_minute() -> None:
    once = OncePerMinute()
    assert once.filter(line("Invalid HTTP request received.", 0))
    assert not once.filter(line("Invalid HTTP request received.", 1))
    assert once.filter(line("Exceeded concurrency limit.", 2))
    assert not once.filter(line("Invalid HTTP request received.", REPEAT_AFTER_SEC - 1))
    assert once.filter(line("Invalid HTTP request received.", REPEAT_AFTER_SEC))


@pytest.mark.parametrize("level", [logging.INFO, logging.ERROR])
def test_every_other_line_is_written_each_time(level: int) -> None:
    once = OncePerMinute()
    assert all(once.filter(line("Exception in ASGI application", 0, level)) for _ in range(3))
