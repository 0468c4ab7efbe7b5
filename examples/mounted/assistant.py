"""The agent that both hosts mount: it repeats the user's message."""

from __future__ import annotations

from farhand import Agent, ScriptedModel


def agent() -> Agent:
    return Agent(model=ScriptedModel(lambda moment: f"You said: {moment.text}"))
