"""What docs/explanation/scale.md tells of growth is what the simulation makes of the costs that were kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as program
from bench import costs as measuring
from bench.costs import PAGE, kept
from bench.kept import BEGIN, END
from bench.simulate_scale import WAITING, play, told, workers_for
from bench.table import Effort
from tests.requirement import requirement

COSTS, ABOUT = kept()


@requirement("scale:played")
def test_the_tables_of_the_page_are_those_of_the_kept_costs_and_name_their_commit_and_load() -> None:
    written = PAGE.read_text().partition(f"{BEGIN}\n")[2].partition(f"\n{END}")[0]
    assert written == told(COSTS, ABOUT)
    assert all(ABOUT[name] in written for name in ("commit", "load before", "database"))
    assert max(WAITING) == 1_000_000


@requirement("scale:played")
def test_costs_are_kept_from_a_commit_alone_and_written_into_the_page(
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


@requirement("scale:played")
def test_twice_the_work_for_a_trip_needs_twice_the_workers_and_wakes_later() -> None:
    dear = replace(COSTS, trip_cpu=2 * COSTS.trip_cpu)
    assert 1.9 < workers_for(dear, rate=100_000) / workers_for(COSTS, rate=100_000) < 2.1
    assert play(dear, 10, workers=1)[49] > play(COSTS, 10, workers=1)[49]


@requirement("scale:played")
def test_whoever_comes_while_a_transaction_runs_shares_the_next_one() -> None:
    costs = replace(COSTS, trip_cpu=0.0, batch=1.0, alone=0.0, commit=0.0)
    # a hundred a second, and only one transaction a second: each waits for two of them at most
    assert play(costs, 100, workers=1)[98] <= 2.0 + 1e-9


@requirement("scale:played")
def test_more_workers_do_not_help_where_their_transactions_end_one_behind_the_other() -> None:
    costs = replace(COSTS, trip_cpu=0.004, batch=0.010, alone=0.010, commit=0.0)
    few, many = (play(costs, 500, workers)[49] for workers in (4, 16))
    assert many > 2 * few, "sixteen queue for the lock, with fewer commits in each transaction"
    free = replace(costs, alone=0.0)
    few, many = (play(free, 500, workers)[49] for workers in (4, 16))
    assert many < few, "without the lock they help"
