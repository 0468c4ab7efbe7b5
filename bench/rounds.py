"""Measures contenders in alternating rounds, so that a busy moment of the machine affects all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from bench.server_process import Server
from bench.table import BUSY, Effort, medians

Measure: TypeAlias = Callable[[int], dict[str, Any]]


def alternate(contenders: Mapping[str, Measure], effort: Effort) -> dict[str, dict[str, float]]:
    """The medians of each contender; `Measure` gets the number of the round."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    for number in range(effort.rounds):
        for name, measure in contenders.items():
            results[name].append(measure(number))
    return {name: medians(rounds) for name, rounds in results.items()}


def trips(server: Server, effort: Effort, *, users: int, dialect: str = "held") -> Measure:
    return lambda _: server.load("trips", users=users, seconds=effort.seconds, dialect=dialect)


def busy(result: dict[str, float]) -> str:
    """Whether the load client had time to spare; if not, it measured itself."""
    share = result["client"] / result["seconds"]
    return "" if share < BUSY else f" (the load client was busy for {share:.0%} of the time)"
