"""LangGraph with far hands."""

from __future__ import annotations

from tests.frameworks.langgraph.loop import GraphLoop
from tests.frameworks.laws import HoldLaws, ParkLaws, RepeatedIdLaws


class TestHold(HoldLaws):
    loop_class = GraphLoop


class TestPark(ParkLaws):
    loop_class = GraphLoop


class TestRepeatedIds(RepeatedIdLaws):
    loop_class = GraphLoop
