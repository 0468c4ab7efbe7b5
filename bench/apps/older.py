"""The app `whole` for a revision without live chats, with a model that has them. `bench/comparison.py` copies
it into the tree of that revision and runs it there, so it imports only what both have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncGenerator

from bench.apps import whole
from bench.words import CHAT, words
from farhand import Agent
from farhand.core.thread import UserMessage, text_of
from farhand.models.base import Model, ModelEvent, Prompt, Stop, TextDelta
from farhand.models.openai import OpenAIChat


class ChattyModel(whole.BenchModel):
    def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        last = prompt.messages[-1]
        asked = text_of(last) if isinstance(last, UserMessage) else ""
        # returned as it is: a generator around it would add to the cost of every other figure
        return _chat(asked) if asked.startswith(f"{CHAT} ") else super().stream(prompt)


async def _chat(asked: str) -> AsyncGenerator[ModelEvent, None]:
    async for word in words(asked):
        yield TextDelta(word)
    yield Stop("end")


def main() -> None:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--provider")
    chosen, others = options.parse_known_args()
    model: Model = ChattyModel()
    if chosen.provider is not None:
        model = OpenAIChat("m", base_url=f"{chosen.provider}/v1", api_key="none")
    whole.agent = Agent(model=model, frontend_tools=[whole.open_url])
    sys.argv[1:] = others
    whole.main()


if __name__ == "__main__":
    main()
