"""A late promise is measured again only if other programs used the processor, and they are named."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.chaos import machine, time_limit_check
from tests.chaos.time_limit_check import MISSED, TRIES, kept

WORK = "import time\nwhile time.process_time() < 1.0: pass"


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said here is nobody's figure, and not to be told at the end of all tests."""
    figures: list[str] = []
    monkeypatch.setattr(time_limit_check, "say", figures.append)
    return figures


@dataclass
class Had:
    had: float

    def share(self) -> float:
        return self.had


class Measured:
    def __init__(self, *seconds: float) -> None:
        self._seconds = seconds
        self.times = 0

    async def __call__(self, number: int) -> float:
        self.times += 1
        return self._seconds[number]


async def test_a_promise_that_is_kept_is_measured_once(said: list[str]) -> None:
    measured = Measured(1.0)
    await kept("it", 2.0, measured, lambda: Had(0.9))
    assert (measured.times, len(said), said[0].startswith(MISSED)) == (1, 1, False)


async def test_a_promise_that_is_broken_with_the_machine_to_itself_has_no_second_try() -> None:
    measured = Measured(3.0, 1.0)
    with pytest.raises(AssertionError, match="nobody else was to blame"):
        await kept("it", 2.0, measured, lambda: Had(0.1))
    assert measured.times == 1


async def test_one_that_was_late_on_a_busy_machine_is_measured_again_and_the_miss_is_told(
    said: list[str],
) -> None:
    await kept("it", 2.0, Measured(3.0, 1.0), lambda: Had(0.5))
    assert [figure.startswith(MISSED) for figure in said] == [True, False]


async def test_one_that_is_late_every_time_is_broken() -> None:
    measured = Measured(*[3.0] * TRIES)
    with pytest.raises(AssertionError, match=f"late {TRIES} times"):
        await kept("it", 2.0, measured, lambda: Had(0.9))


async def test_what_this_test_s_own_programs_do_is_not_taken_for_that_of_others() -> None:
    before = machine._own()
    busy = await asyncio.create_subprocess_exec(sys.executable, "-c", WORK, stdin=subprocess.DEVNULL)
    assert await busy.wait() == 0
    assert machine._own() - before >= 0.9 * os.sysconf("SC_CLK_TCK"), "a child that has ended, too"
    assert machine._busy() >= machine._own()


async def test_what_somebody_else_does_is_seen() -> None:
    others = machine.Others()
    others._all -= 10**6
    assert others.share() > 1.0
