"""Random histories of calls keep every promise when they are decided and folded."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.laws.decide_machine import DecideMachine

STEPS = settings(
    derandomize=True,
    database=None,
    deadline=None,
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_whatever_happens_to_calls_every_promise_is_kept() -> None:
    run_state_machine_as_test(DecideMachine, settings=settings(STEPS, max_examples=200))
