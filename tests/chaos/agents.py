"""Scripted agents for the tests with real processes."""

from __future__ import annotations

import threading

from starlette.requests import HTTPConnection

from farhand import Agent, Principal, ScriptedModel, create_app, tool
from farhand.core.principal import SCOPES
from farhand.models.scripted import Ask, Moment, Step


@tool(executor="frontend")
def open_page(address: str) -> dict[str, str]:
    """Open a page beside the chat.

    Args:
        address: The address of the page.

    Returns:
        The key of the view that was opened.
    """
    raise NotImplementedError(address)


@tool
def never_end() -> str:
    """Hang forever.

    Returns:
        Nothing, ever.
    """
    threading.Event().wait()
    return ""


@tool
async def block() -> str:
    """Keep the whole event loop from going on, as no tool should.

    Returns:
        Nothing, ever.
    """
    threading.Event().wait()
    return ""


def script(moment: Moment) -> Step:
    if moment.results:
        return f"The page says {moment.results[-1].output}."
    if "open" in moment.text:
        return Ask("open_page", {"address": "https://example.org/"})
    if "hang" in moment.text:
        return Ask("never_end")
    if "block" in moment.text:
        return Ask("block")
    return f"You said {moment.text}."


agent = Agent(ScriptedModel(script), tools=[never_end, block], frontend_tools=[open_page])


def check(request: HTTPConnection) -> Principal | None:
    """A sign-in of the program's own: two people, and nobody else."""
    shown = request.headers.get("x-api-key", "")
    return Principal("house", shown, SCOPES) if shown in {"ada", "ben"} else None


app = create_app(agent, store="memory:", authenticate=check, allow_hosts=["agent.example.org"])

not_an_agent = {"model": "scripted"}
