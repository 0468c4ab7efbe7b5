"""P10 is judged with as many users as its target names; what few of them see is told beside it."""

from __future__ import annotations

import pytest

from bench.p10 import FEW, USERS, wake_line
from bench.table import NO_TARGET, Line
from tests.requirement import requirement


@requirement("bench:wake")
@pytest.mark.parametrize(("many", "verdict"), [(0.049, "reached"), (0.051, "missed")])
def test_a_wake_is_judged_with_many_users_however_fast_it_is_with_few(many: float, verdict: str) -> None:
    line = wake_line(many, few=0.001)
    assert (USERS, FEW, line.verdict) == (64, 4, verdict)
    assert f"{USERS} users" in line.what
    assert f"with {FEW} users" in line.detail


@requirement("bench:wake")
def test_a_line_without_a_target_is_neither_reached_nor_missed() -> None:
    assert Line("P10", "it", NO_TARGET, "7 ms", None).verdict == "told"
    assert Line("P10", "it", "≤ 50 ms", "–", None).verdict == "not measured"
