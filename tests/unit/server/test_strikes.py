"""Failed sign-ins: how many an address has, and for how long they count."""

from __future__ import annotations

import pytest

from farhand.errors import TooMany
from farhand.server import strikes as strikes_module
from farhand.server.strikes import Strikes
from tests.requirement import requirement

pytestmark = requirement("door:failed-sign-ins")


def test_ten_are_taken_and_the_next_is_told_how_long_to_wait() -> None:
    strikes = Strikes()
    for moment in range(10):
        strikes.add("a", float(moment))
    strikes.check("b", 10.0)
    with pytest.raises(TooMany) as refused:
        strikes.add("a", 10.0)
    assert refused.value.retry_after == 50
    with pytest.raises(TooMany):
        strikes.check("a", 59.9)


def test_a_minute_later_the_count_begins_again() -> None:
    strikes = Strikes()
    for _ in range(10):
        strikes.add("a", 0.0)
    strikes.check("a", 60.0)
    strikes.add("a", 60.0)
    strikes.check("a", 60.0)


def test_the_memory_is_bounded_whoever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strikes_module, "REMEMBERED", 3)
    strikes = Strikes()
    for number in range(10):
        strikes.add(f"at-once-{number}", 0.0)
    assert list(strikes._counted) == ["at-once-7", "at-once-8", "at-once-9"]
    strikes.add("later", 61.0)
    assert list(strikes._counted) == ["later"]
