"""Rates: a burst is accepted, then only as many as time allows; principals do not affect each other."""

from __future__ import annotations

import pytest

from farhand.core.principal import Owner
from farhand.errors import TooMany
from farhand.server import rate_limiter
from farhand.server.rate_limiter import RateLimiter
from tests.requirement import requirement

ADA, BOB = Owner("house", "ada"), Owner("house", "bob")


def taken(rate: RateLimiter, owner: Owner, now: float, asked: int) -> int:
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
def test_a_burst_is_allowed_and_then_the_rate() -> None:
    rate = RateLimiter("results", per_sec=500, burst=1000)
    assert taken(rate, ADA, 0.0, 1500) == 1000
    assert taken(rate, ADA, 0.5, 1500) == 250
    assert taken(rate, ADA, 3600.0, 1500) == 1000


@requirement("limits:rates")
def test_one_owner_does_not_use_up_the_rate_of_another() -> None:
    rate = RateLimiter("results", per_sec=1, burst=3)
    assert taken(rate, ADA, 0.0, 100) == 3
    assert taken(rate, BOB, 0.0, 100) == 3


@requirement("limits:rates")
def test_a_refusal_says_when_to_retry_and_then_it_works() -> None:
    rate = RateLimiter("registrations", per_sec=0.5, burst=1)
    rate.count(ADA, 0.0)
    with pytest.raises(TooMany) as refused:
        rate.count(ADA, 0.0)
    assert refused.value.retry_after == 2
    rate.count(ADA, 2.0)


@requirement("limits:rates")
def test_the_number_of_buckets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limiter, "MAX_OWNERS", 100)
    rate = RateLimiter("results", per_sec=1, burst=1)
    for number in range(1000):
        rate.count(Owner("house", str(number)), 0.0)
    assert len(rate._left) == 100
