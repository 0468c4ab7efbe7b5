"""The tables of docs/explanation/scale.md are what the simulation computes from the stored costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as program
from bench import costs as measuring
from bench.costs import PAGE, load_costs
from bench.results import BEGIN, END
from bench.simulate_scale import WAITING, page_text, simulate, workers_for
from bench.table import Effort

COSTS, ABOUT = load_costs()


def test_the_tables_of_the_page_match_the_stored_costs_and_name_their_commit_and_load() -> None:
    written = PAGE.read_text().partition(f"{BEGIN}\n")[2].partition(f"\n{END}")[0]
    assert written == page_text(COSTS, ABOUT)
    assert all(ABOUT[name] in written for name in ("commit", "load before", "database"))
    assert max(WAITING) == 1_000_000


def test_costs_are_stored_only_from_a_commit_and_written_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "scale.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    monkeypatch.setattr(measuring, "PAGE", page)
    monkeypatch.setattr(measuring, "FILE", tmp_path / "costs.json")
    monkeypatch.setattr(measuring, "measure_costs", lambda: COSTS)
    monkeypatch.setattr(program, "describe_machine", lambda: {**ABOUT, "commit": "abc1234-dirty"})
    with pytest.raises(SystemExit, match="not a commit"):
        program.simulate_and_save(Effort())
    assert "old" in page.read_text()
    monkeypatch.setattr(program, "describe_machine", lambda: {**ABOUT, "commit": "abc1234"})
    program.simulate_and_save(Effort())
    assert page.read_text() == f"before\n{BEGIN}\n{page_text(*load_costs())}\n{END}\nafter\n"
    assert load_costs()[1]["database"] == measuring.DATABASE


def test_a_trip_with_twice_the_work_needs_twice_the_workers_and_wakes_later() -> None:
    dear = replace(COSTS, trip_cpu=2 * COSTS.trip_cpu)
    assert 1.9 < workers_for(dear, rate=100_000) / workers_for(COSTS, rate=100_000) < 2.1
    assert simulate(dear, 10, workers=1)[49] > simulate(COSTS, 10, workers=1)[49]


def test_appends_that_arrive_during_a_transaction_share_the_next_one() -> None:
    costs = replace(COSTS, trip_cpu=0.0, batch=1.0, alone=0.0, commit=0.0)
    # a hundred appends and one transaction a second: each append waits for two transactions at most
    assert simulate(costs, 100, workers=1)[98] <= 2.0 + 1e-9


def test_more_workers_do_not_help_while_their_commits_are_serialised() -> None:
    costs = replace(COSTS, trip_cpu=0.004, batch=0.010, alone=0.010, commit=0.0)
    few, many = (simulate(costs, 500, workers)[49] for workers in (4, 16))
    assert many > 2 * few, "sixteen queue for the lock, with fewer commits in each transaction"
    free = replace(costs, alone=0.0)
    few, many = (simulate(free, 500, workers)[49] for workers in (4, 16))
    assert many < few, "without the lock they help"
