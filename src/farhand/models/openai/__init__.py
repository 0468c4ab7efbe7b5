"""OpenAI's Responses API, and Chat Completions for it and every compatible server: `farhand[openai]`."""

from farhand.models.openai.chat import OpenAIChat
from farhand.models.openai.responses import OpenAI

__all__ = ["OpenAI", "OpenAIChat"]
