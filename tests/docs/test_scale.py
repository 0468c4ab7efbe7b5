"""What docs/explanation/scale.md tells of growth is what the simulation makes of the costs that were kept."""

from __future__ import annotations

from dataclasses import replace

from bench.costs import kept
from bench.simulate_scale import WAITING, play, tables, workers_for
from tests.process import ROOT
from tests.requirement import requirement


@requirement("scale:played")
def test_the_tables_of_the_page_are_those_of_the_kept_costs() -> None:
    page = (ROOT / "docs" / "explanation" / "scale.md").read_text()
    costs_table, plays_table = tables(kept()).split("\n\n")
    assert costs_table in page
    assert plays_table in page
    assert max(WAITING) == 1_000_000


@requirement("scale:played")
def test_twice_the_work_for_a_trip_needs_twice_the_workers_and_wakes_later() -> None:
    costs = kept()
    dear = replace(costs, trip_cpu=2 * costs.trip_cpu)
    assert 1.9 < workers_for(dear, rate=100_000) / workers_for(costs, rate=100_000) < 2.1
    assert play(dear, 10, workers=1)[49] > play(costs, 10, workers=1)[49]


@requirement("scale:played")
def test_whoever_comes_while_a_transaction_runs_shares_the_next_one() -> None:
    costs = replace(kept(), trip_cpu=0.0, batch=1.0, commit=0.0)
    # a hundred a second, and only one transaction a second: each waits for two of them at most
    assert play(costs, 100, workers=1)[98] <= 2.0
