"""A loopback server that speaks Backboard's API of assistants, threads and runs and keeps its rules."""

from tests.fakes.backboard.server import FakeBackboard

__all__ = ["FakeBackboard"]
