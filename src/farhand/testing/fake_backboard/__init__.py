"""A loopback server that speaks Backboard's API of assistants, threads and runs and keeps its rules."""

from farhand.testing.fake_backboard.server import FakeBackboard

__all__ = ["FakeBackboard"]
