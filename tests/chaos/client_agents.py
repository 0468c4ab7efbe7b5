"""The agent for tests of registered clients: its model calls the tool that the message names."""

from __future__ import annotations

from farhand import Agent, ScriptedModel
from farhand.models.scripted import Ask, Moment, Step


def script(moment: Moment) -> Step:
    """`one.work two.hang` asks for both in one step, and then says what came back."""
    if moment.results:
        return " | ".join(result.seen for result in moment.results)
    asked = [word.partition(".") for word in moment.text.split()]
    return [Ask(f"client_{client}_{tool}", {"number": 7}) for client, _, tool in asked]


agent = Agent(ScriptedModel(script))
