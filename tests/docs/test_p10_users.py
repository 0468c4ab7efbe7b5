"""P10 is judged with as many users as its target names; the figures for fewer users are only informative."""

from __future__ import annotations

import pytest

from bench.p10 import FEW, USERS, lines
from bench.table import NO_TARGET, Line, judge

SEEN = {"seconds": 2.0, "client": 0.2, "cpu": 1.5, "database": 0.8, "rate": 100.0, "wake": 0.020}
LOADS = ("two workers", "SQLite", "half as many trips", "few users")


def told(**of_two_workers: float) -> list[Line]:
    return lines({name: SEEN | (of_two_workers if name == "two workers" else {}) for name in LOADS})


@pytest.mark.parametrize(("many", "verdict"), [(0.039, "reached"), (0.041, "missed")])
def test_a_wake_is_judged_with_many_users_however_fast_it_is_with_few(many: float, verdict: str) -> None:
    _, line, half, few = told(wake=many)
    assert (USERS, FEW, line.verdict) == (64, 4, verdict)
    assert f"{USERS} users" in line.what
    assert f"with {FEW} users it is 20.00 ms" in line.detail
    assert (half.verdict, few.verdict) == ("no target", "no target")


def test_the_line_says_how_busy_workers_database_and_load_client_were() -> None:
    _, line, *_ = told()
    assert "both workers used 75% of the one core" in line.detail
    assert "the database 40% of a core" in line.detail
    assert "the load client 10%" in line.detail


def test_a_wake_has_no_verdict_if_the_load_client_was_busy() -> None:
    _, line, half, few = map(judge, told(client=1.9))
    assert line.verdict == "not measured (load client busy)"
    assert (half.verdict, few.verdict) == ("no target", "no target")


def test_a_line_without_a_target_is_neither_reached_nor_missed() -> None:
    assert Line("P10", "it", NO_TARGET, "7 ms", None).verdict == "no target"
    assert Line("P10", "it", "≤ 50 ms", "–", None).verdict == "not measured"
