"""The tables of docs/explanation/scale.md are what the simulation computes from the stored costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as program
from bench import costs as measuring
from bench.costs import PAGE, kept
from bench.results import BEGIN, END
from bench.simulate_scale import WAITING, play, told, workers_for
from bench.table import Effort

COSTS, ABOUT = kept()


def test_the_tables_of_the_page_match_the_stored_costs_and_name_their_commit_and_load() -> None:
    written = PAGE.read_text().partition(f"{BEGIN}\n")[2].partition(f"\n{END}")[0]
    assert written == told(COSTS, ABOUT)
    assert all(ABOUT[name] in written for name in ("commit", "load before", "database"))
    assert max(WAITING) == 1_000_000


def test_costs_are_stored_only_from_a_commit_and_written_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "scale.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    monkeypatch.setattr(measuring, "PAGE", page)
    monkeypatch.setattr(measuring, "KEPT", tmp_path / "costs.json")
    monkeypatch.setattr(measuring, "measured", lambda: COSTS)
    monkeypatch.setattr(program, "described", lambda: {**ABOUT, "commit": "abc1234-dirty"})
    with pytest.raises(SystemExit, match="not a commit as it stands"):
        program.grow_and_keep(Effort())
    assert "old" in page.read_text()
    monkeypatch.setattr(program, "described", lambda: {**ABOUT, "commit": "abc1234"})
    program.grow_and_keep(Effort())
    assert page.read_text() == f"before\n{BEGIN}\n{told(*kept())}\n{END}\nafter\n"
    assert kept()[1]["database"] == measuring.DATABASE


def test_a_trip_with_twice_the_work_needs_twice_the_workers_and_wakes_later() -> None:
    dear = replace(COSTS, trip_cpu=2 * COSTS.trip_cpu)
    assert 1.9 < workers_for(dear, rate=100_000) / workers_for(COSTS, rate=100_000) < 2.1
    assert play(dear, 10, workers=1)[49] > play(COSTS, 10, workers=1)[49]


def test_appends_that_arrive_during_a_transaction_share_the_next_one() -> None:
    costs = replace(COSTS, trip_cpu=0.0, batch=1.0, alone=0.0, commit=0.0)
    # a hundred appends and one transaction a second: each append waits for two transactions at most
    assert play(costs, 100, workers=1)[98] <= 2.0 + 1e-9


def test_more_workers_do_not_help_while_their_commits_are_serialised() -> None:
    costs = replace(COSTS, trip_cpu=0.004, batch=0.010, alone=0.010, commit=0.0)
    few, many = (play(costs, 500, workers)[49] for workers in (4, 16))
    assert many > 2 * few, "sixteen queue for the lock, with fewer commits in each transaction"
    free = replace(costs, alone=0.0)
    few, many = (play(free, 500, workers)[49] for workers in (4, 16))
    assert many < few, "without the lock they help"
