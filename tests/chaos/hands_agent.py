"""An app whose tools know for whom they work and ask: for servers that are killed in the middle.

The store is the one that TEST_STORE names. A person signs in with the header x-name; a manager enters the
space of a customer with x-on-behalf-of. Executions are noted in the room that TEST_ROOM names.
"""

from __future__ import annotations

import os

from starlette.requests import HTTPConnection

from farhand import Agent, Context, Principal, ScriptedModel, ask, create_app, current, tool
from farhand.core.principal import SCOPES
from farhand.core.settings import Settings, Timeouts
from farhand.models.scripted import Ask, Moment, Step
from tests.chaos.recording_agent import note


def _noted(name: str, context: Context) -> str:
    yes = context.approval
    by = "nobody" if yes is None else yes.claims["name"]
    who = f"{context.owner.subject} {context.claims['name']} {by}"
    note("executions", {"tool": name, "subject": who})
    return who


@tool(executor="frontend", card="confirm")
def user_confirm(message: str) -> str:
    """Ask the user.

    Args:
        message: What.

    Returns:
        yes or no.
    """
    raise AssertionError("a frontend tool never runs here")


@tool(needs_approval=True)
def whose() -> str:
    """Say whose it is, in a thread."""
    return _noted("whose", current())


@tool(needs_approval=True)
async def whose_async(context: Context) -> str:
    """Say whose it is, on the event loop.

    Args:
        context: For whom.
    """
    return _noted("whose_async", context)


@tool(idempotent=True)
async def ask_again() -> str:
    """Ask two questions; may be repeated."""
    return await _ask_twice("ask_again")


@tool
async def ask_once() -> str:
    """Ask two questions; may not be repeated."""
    return await _ask_twice("ask_once")


@tool(idempotent=True)
def ask_in_thread() -> str:
    """Ask two questions from a plain function; may be repeated."""
    return current().wait_for(_ask_twice("ask_in_thread"))


async def _ask_twice(name: str) -> str:
    _noted(name, current())
    first = await ask("user_confirm", {"message": "first?"})
    return f"{first} and {await ask('user_confirm', {'message': 'second?'})}"


def _script(moment: Moment) -> Step:
    if moment.text == "chart":
        return _chart(moment)
    if moment.results:
        return " | ".join(each.seen for each in moment.results)
    if moment.text == "whose":
        return [Ask("whose"), Ask("whose_async")]
    return Ask(moment.text) if moment.text.startswith("ask_") else f"You said: {moment.text}"


def _chart(moment: Moment) -> Step:
    """Two tools that the client brings; the second one is asked for with more than can be checked."""
    if not moment.results:
        return Ask("show_chart")
    if len(moment.results) == 1:
        return Ask("add_up", {"numbers": [1.5] * 2_000})
    offered = " ".join(f"offered:{name}" for name in moment.tools)
    return f"{offered} {moment.results[-1].seen}"


def authenticate(request: HTTPConnection) -> Principal | None:
    name = request.headers.get("x-name")
    if name is None:
        return None
    return Principal("acme", request.headers.get("x-on-behalf-of", name), SCOPES, {"name": name})


agent = Agent(
    ScriptedModel(_script),
    tools=[whose, whose_async, ask_again, ask_once, ask_in_thread],
    frontend_tools=[user_confirm],
)
app = create_app(
    agent,
    store=os.environ["TEST_STORE"],
    authenticate=authenticate,
    settings=Settings(timeouts=Timeouts(lease=1.0)),
)
