"""The clock that a test controls."""

from __future__ import annotations

import re

import pytest

from farhand.testing import FakeClock


def test_time_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(100.0)
    assert (clock.now(), clock.now()) == (100.0, 100.0)
    assert clock.advance(2.5) == 102.5
    assert clock.now() == 102.5


def test_time_never_runs_backwards() -> None:
    with pytest.raises(ValueError, match="cannot go back by 1 seconds"):
        FakeClock().advance(-1)


def test_ids_look_like_ours_and_are_never_given_twice() -> None:
    clock = FakeClock()
    ids = [clock.fresh("call") for _ in range(1000)]
    assert all(re.fullmatch("call_[0-9a-f]{32}", call_id) for call_id in ids)
    assert len(set(ids)) == 1000


def test_the_same_seed_gives_the_same_ids_and_another_seed_others() -> None:
    assert FakeClock().fresh("run") == FakeClock().fresh("run")
    assert FakeClock(seed="a").fresh("run") != FakeClock(seed="b").fresh("run")
