"""Failed sign-ins: how many are allowed from an address, and how long they count."""

from __future__ import annotations

import pytest

from farhand.errors import TooMany
from farhand.server.auth import login_limiter
from farhand.server.auth.login_limiter import LoginLimiter
from tests.requirement import requirement

pytestmark = requirement("auth:failed-sign-ins")


def test_ten_failures_are_allowed_and_the_next_error_says_how_long_to_wait() -> None:
    limiter = LoginLimiter()
    for moment in range(10):
        limiter.add("a", float(moment))
    limiter.check("b", 10.0)
    with pytest.raises(TooMany) as refused:
        limiter.add("a", 10.0)
    assert refused.value.retry_after == 50
    with pytest.raises(TooMany):
        limiter.check("a", 59.9)


def test_the_count_starts_again_after_a_minute() -> None:
    limiter = LoginLimiter()
    for _ in range(10):
        limiter.add("a", 0.0)
    limiter.check("a", 60.0)
    limiter.add("a", 60.0)
    limiter.check("a", 60.0)


def test_the_number_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_limiter, "MAX_ADDRESSES", 3)
    limiter = LoginLimiter()
    for number in range(10):
        limiter.add(f"at-once-{number}", 0.0)
    assert list(limiter._counted) == ["at-once-7", "at-once-8", "at-once-9"]
    limiter.add("later", 61.0)
    assert list(limiter._counted) == ["later"]
