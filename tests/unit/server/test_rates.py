"""Rates: a burst is taken, then only as many as time allows; nobody uses up another's."""

from __future__ import annotations

import pytest

from farhand.core.principal import Owner
from farhand.errors import TooMany
from farhand.server import rates
from farhand.server.rates import Rates
from tests.requirement import requirement

ADA, BOB = Owner("house", "ada"), Owner("house", "bob")


def taken(rate: Rates, owner: Owner, now: float, asked: int) -> int:
    """How many of so many are taken."""
    count = 0
    for _ in range(asked):
        try:
            rate.count(owner, now)
        except TooMany:
            continue
        count += 1
    return count


@requirement("limits:rates")
def test_a_burst_is_taken_and_then_as_many_as_time_allows() -> None:
    rate = Rates("results", per_sec=500, burst=1000)
    assert taken(rate, ADA, 0.0, 1500) == 1000
    assert taken(rate, ADA, 0.5, 1500) == 250
    assert taken(rate, ADA, 3600.0, 1500) == 1000


@requirement("limits:rates")
def test_one_that_asks_too_often_does_not_use_up_anothers() -> None:
    rate = Rates("results", per_sec=1, burst=3)
    assert taken(rate, ADA, 0.0, 100) == 3
    assert taken(rate, BOB, 0.0, 100) == 3


@requirement("limits:rates")
def test_whoever_is_refused_is_told_when_to_come_back_and_then_is_taken() -> None:
    rate = Rates("registrations", per_sec=0.5, burst=1)
    rate.count(ADA, 0.0)
    with pytest.raises(TooMany) as refused:
        rate.count(ADA, 0.0)
    assert refused.value.retry_after == 2
    rate.count(ADA, 2.0)


@requirement("limits:rates")
def test_however_many_come_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "REMEMBERED", 100)
    rate = Rates("results", per_sec=1, burst=1)
    for number in range(1000):
        rate.count(Owner("house", str(number)), 0.0)
    assert len(rate._left) == 100
