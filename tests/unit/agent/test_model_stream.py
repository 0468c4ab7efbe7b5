"""How a model's events are collected into a step; the tests of the loop check what readers get."""

from __future__ import annotations

from typing import get_args

from farhand.agent.model_stream import StepCollector
from farhand.models.base import ModelEvent


def test_there_is_a_hearing_for_every_event_of_a_model() -> None:
    assert set(StepCollector._HANDLERS) == set(get_args(ModelEvent))
