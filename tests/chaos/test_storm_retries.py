"""Which storms may be run a second time: only those that had too little processor time."""

from __future__ import annotations

import pytest

from tests.chaos.storm.conftest import is_starved
from tests.chaos.storm.fault_run import TooShort
from tests.chaos.storm.sender import OVERTAKEN, Progress


@pytest.mark.parametrize(
    "error",
    [TimeoutError(), TooShort(), ExceptionGroup("a run", [TimeoutError(), ExceptionGroup("", [TooShort()])])],
    ids=["late", "short", "several"],
)
def test_a_storm_that_was_late_or_short_was_starved(error: Exception) -> None:
    assert is_starved(error)


@pytest.mark.parametrize(
    "error",
    [AssertionError("a violation"), ExceptionGroup("a run", [TimeoutError(), AssertionError("a 500")])],
    ids=["violation", "one-of-several"],
)
def test_a_storm_that_found_something_was_not_starved(error: Exception) -> None:
    assert not is_starved(error)


async def late(progress: Progress, *, overtaken_by: int) -> None:
    async with progress.ends_within(0, "chat-1"):
        progress.add(finished=overtaken_by)
        await progress.until(lambda: False)


async def test_a_chat_that_is_late_with_all_others_is_starved() -> None:
    with pytest.raises(TimeoutError):
        await late(Progress(), overtaken_by=OVERTAKEN - 1)


async def test_a_chat_that_all_others_overtook_is_lost() -> None:
    with pytest.raises(AssertionError, match="chat-1 did not end"):
        await late(Progress(), overtaken_by=OVERTAKEN)
