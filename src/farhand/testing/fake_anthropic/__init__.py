"""A loopback server that speaks Anthropic's Messages API and keeps its rules."""

from farhand.testing.fake_anthropic.server import FakeAnthropic

__all__ = ["FakeAnthropic"]
