"""Totals of tenants and of their subjects."""

from __future__ import annotations

from farhand.store.guards import Totals
from farhand.testing.store_laws.fixture import ANN, BOB


def test_what_is_added_counts_for_the_subject_and_for_its_tenant() -> None:
    totals = Totals()
    totals.add(ANN, size=5)
    totals.add(BOB, size=3)
    totals.add(ANN, threads=1)
    assert [totals.get("bytes", "acme", name) for name in (None, "ann", "bob", "eve")] == [8, 5, 3, 0]
    assert totals.get("threads", "acme") == 1


def test_whoever_has_nothing_left_takes_no_room() -> None:
    totals = Totals()
    totals.add(ANN, size=0)
    assert len(totals) == 0
    totals.add(ANN, size=5)
    totals.add(ANN, size=-5)
    assert len(totals) == 0


def test_what_is_subtracted_is_as_if_it_had_never_been_added() -> None:
    totals = Totals()
    totals.add(BOB, size=3)
    totals.add_counts(ANN, (1, 1, 2, 5))
    totals.subtract_counts(ANN, (1, 1, 2, 5))
    assert [totals.get("bytes", "acme", name) for name in (None, "ann", "bob")] == [3, 0, 3]
    assert totals.get("open_calls", "acme") == 0
