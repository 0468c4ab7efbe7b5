"""A loopback server that speaks Anthropic's Messages API and keeps its rules."""

from tests.fakes.anthropic.server import FakeAnthropic

__all__ = ["FakeAnthropic"]
