"""Tools and agents for the tests of the awaiting face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from farhand.agent.agent import Agent
from farhand.models.scripted import ScriptedModel
from farhand.models.scripted.model import Script, Step
from farhand.tools.decorate import tool

weather_reports: list[str] = []
"""Where `get_weather` was run."""
deleted: list[str] = []


@tool(executor="frontend")
def user_confirm(message: str) -> str:
    """Ask the user for a yes or no.

    Args:
        message: What to ask.

    Returns:
        "yes" or "no"
    """
    raise AssertionError(f"never executed here: {message}")


@tool(executor="frontend")
def pick_color(label: str) -> dict[str, object]:
    """Let the user pick a color.

    Args:
        label: What it is for.

    Returns:
        hex of the color.
    """
    raise AssertionError(f"never executed here: {label}")


@tool(executor="frontend")
def draw(drawing: dict[str, object]) -> str:
    """Show a drawing.

    Args:
        drawing: Anything.

    Returns:
        What the user says to it.
    """
    raise AssertionError(f"never executed here: {drawing}")


@tool(executor="frontend", timeout_sec=1)
def quick_pick(label: str) -> str:
    """Let the user pick something, at once.

    Args:
        label: What it is for.

    Returns:
        What was picked.
    """
    raise AssertionError(f"never executed here: {label}")


@tool(executor="frontend", needs_approval=True)
def take_photo(camera: str) -> str:
    """Take a photo.

    Args:
        camera: Which camera.

    Returns:
        Where the photo is.
    """
    raise AssertionError(f"never executed here: {camera}")


@tool
def get_weather(city: str) -> dict[str, object]:
    """The weather in a city.

    Args:
        city: Its name.
    """
    weather_reports.append(city)
    return {"city": city, "sky": "clear"}


@tool(needs_approval=True)
def delete_file(path: str) -> str:
    """Delete a file.

    Args:
        path: Which one.
    """
    deleted.append(path)
    return f"{path} is gone"


def agent_with(
    script: ScriptedModel | Script | Sequence[Step | Script],
    *,
    formatter: Literal["xml", "raw"] = "xml",
    max_steps: int = 50,
) -> Agent:
    """All tools of this module, and a model that follows the script."""
    return Agent(
        script if isinstance(script, ScriptedModel) else ScriptedModel(script),
        tools=[get_weather, delete_file],
        frontend_tools=[user_confirm, pick_color, draw, quick_pick, take_photo],
        formatter=formatter,
        max_steps=max_steps,
    )
