"""An agent whose tool raises, and whose script raises when it is asked to."""

from __future__ import annotations

from farhand import Agent, ScriptedModel, tool
from farhand.models.scripted import Ask, Moment, Step


@tool
def divide() -> float:
    """Divide by zero.

    Returns:
        Nothing, ever.
    """
    return 1 / 0


def script(moment: Moment) -> Step:
    if moment.text == "raise":
        raise LookupError("no such script")
    return "It failed." if moment.results else Ask("divide")


agent = Agent(ScriptedModel(script), tools=[divide])
