"""A loopback server that speaks OpenAI's Responses API and Chat Completions and keeps their rules."""

from tests.fakes.openai.server import FakeOpenAI

__all__ = ["FakeOpenAI"]
