"""Tools and agents for the tests of the chat stream, which count what ran."""

from __future__ import annotations

import asyncio
import copy
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from farhand.agent.agent import Agent
from farhand.models.scripted import Ask, Moment, ScriptedModel, Step, ToolResult
from farhand.models.scripted.model import Script
from farhand.tools.declared import DeclaredTool
from farhand.tools.decorate import tool

P = ParamSpec("P")
R = TypeVar("R")


class Scene:
    """An agent with tools of every kind. `ran` lists what ran on the server, `gate(…)` holds it up."""

    def __init__(self, script: Script | Sequence[Step | Script]) -> None:
        self.ran: list[tuple[str, str]] = []
        self.model = ScriptedModel(script)
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.agent = Agent(
            self.model,
            tools=_server_tools(self),
            frontend_tools=[open_url, ask_text, take_photo, pick_quickly],
        )

    def gate(self, name: str) -> asyncio.Event:
        """Waited for by a script or a tool, set by the test."""
        return self._gates[name]

    @property
    def seen(self) -> list[ToolResult]:
        """The results the model was given last, as it was given them."""
        results = self.model.prompts[-1].messages[-1]
        return [
            ToolResult(each.call_id, each.tool, each.input, each.outcome)
            for each in getattr(results, "results", ())
        ]


@tool(executor="frontend", card="open_page")
def open_url(url: str) -> dict[str, object]:
    """Open a page beside the chat.

    Args:
        url: Its address.

    Returns:
        url and viewKey of the page.
    """
    raise AssertionError(f"never executed here: {url}")


@tool(executor="frontend")
def ask_text(question: str) -> str:
    """Ask the person for a line of text.

    Args:
        question: What to ask.

    Returns:
        The line.
    """
    raise AssertionError(f"never executed here: {question}")


@tool(executor="frontend", needs_approval=True)
def take_photo(camera: str) -> dict[str, object]:
    """Take a photo once the person has said yes.

    Args:
        camera: Which one.

    Returns:
        name of the photo.
    """
    raise AssertionError(f"never executed here: {camera}")


@tool(executor="frontend", timeout_sec=1)
def pick_quickly(label: str) -> str:
    """Let the person pick something, at once.

    Args:
        label: What it is for.

    Returns:
        What was picked.
    """
    raise AssertionError(f"never executed here: {label}")


def once(*step: str | Ask) -> Script:
    """A script that makes this step first and then says what came of it."""

    def script(moment: Moment) -> Step:
        return list(step) if moment.steps == 0 else told(moment.last)

    return script


def told(results: Sequence[ToolResult]) -> str:
    return " ".join(f"{each.tool}: {each.kind} {each.output or each.error}." for each in results)


@tool
def weather(city: str) -> dict[str, object]:
    """Tell the weather.

    Args:
        city: Where.
    """
    raise AssertionError(f"each scene has its own: {city}")


@tool(needs_approval=True)
def delete_file(path: str) -> dict[str, object]:
    """Delete a file for good.

    Args:
        path: Which one.
    """
    raise AssertionError(f"each scene has its own: {path}")


@tool
def broken(subject: str) -> dict[str, object]:
    """Raise, always.

    Args:
        subject: Whatever.
    """
    raise AssertionError(f"each scene has its own: {subject}")


@tool
async def slow(subject: str) -> dict[str, object]:
    """Wait at a gate.

    Args:
        subject: Whose.
    """
    raise AssertionError(f"each scene has its own: {subject}")


def _server_tools(scene: Scene) -> list[object]:
    """Schemas are derived once: that takes longer than starting a server, and hundreds of tests do it."""

    def tell_weather(city: str) -> dict[str, object]:
        scene.ran.append(("weather", city))
        return {"city": city, "sky": "sunny"}

    def delete(path: str) -> dict[str, object]:
        scene.ran.append(("delete_file", path))
        return {"deleted": path}

    def fail(subject: str) -> dict[str, object]:
        scene.ran.append(("broken", subject))
        raise RuntimeError(f"the machine for {subject} is out of order")

    async def wait(subject: str) -> dict[str, object]:
        scene.ran.append(("slow", subject))
        await scene.gate(subject).wait()
        return {"waited": subject}

    return [
        _with_function(weather, tell_weather),
        _with_function(delete_file, delete),
        _with_function(broken, fail),
        _with_function(slow, wait),
    ]


def _with_function(declared: DeclaredTool[P, R], function: Callable[P, R]) -> DeclaredTool[P, R]:
    own = copy.copy(declared)
    own.function = function
    return own
