"""The time of the database, as a process estimates it between two answers."""

from __future__ import annotations

import pytest

from farhand.store.postgres.connection import WINDOW_SEC, DatabaseClock


class Monotonic:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def here() -> Monotonic:
    return Monotonic()


@pytest.fixture
def estimate(here: Monotonic) -> DatabaseClock:
    """The database was asked when it was 5,000 there, and its answer took a second."""
    clock = DatabaseClock(here)
    asked_at = clock.monotonic()
    here.time += 1
    clock.update(5000.0, asked_at=asked_at)
    return clock


def test_the_estimate_is_late_by_the_fastest_answer_at_most(here: Monotonic, estimate: DatabaseClock) -> None:
    assert estimate.now() == 5000.0
    _answer(here, estimate, 5001.0, took=0.25)
    assert estimate.now() == 5001.0
    _answer(here, estimate, 5002.0, took=3.0)
    assert estimate.now() == 5004.0, "a slow answer is no news"


def test_a_clock_that_was_set_back_counts_from_its_next_answer(
    here: Monotonic, estimate: DatabaseClock
) -> None:
    here.time += WINDOW_SEC + 1
    _answer(here, estimate, 5000.0 + WINDOW_SEC + 1.5, took=0.5)
    _answer(here, estimate, 4000.0, took=0.5)
    assert estimate.now() == 4000.0
    _answer(here, estimate, 4000.75, took=0.5)
    assert estimate.now() == 4000.75


def _answer(here: Monotonic, estimate: DatabaseClock, at: float, *, took: float) -> None:
    asked_at = estimate.monotonic()
    here.time += took
    estimate.update(at, asked_at=asked_at)
