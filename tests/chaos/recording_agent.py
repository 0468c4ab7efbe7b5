"""An agent that writes down what it does: every request to its model, every execution of its tools.

The room is a folder that TEST_ROOM names. What is written there outlives the process: a line is one
write, so a kill leaves it whole or not at all. It says when, by a clock that all share.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import msgspec

from farhand import Agent, ScriptedModel, tool
from farhand.core.thread import ResultsMessage
from farhand.models.base import ModelEvent, Prompt
from farhand.models.scripted import Ask, Moment, Step

WORDS = 60
VERSE = ("Grüße", "世界", "🌍🌊", "naïve façade", "Ελλάδα", "plain", "👩‍🚀", "שלום")


class RecordingModel(ScriptedModel):
    """Notes the results it is asked with, as it is given them."""

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        results = [
            msgspec.to_builtins(result)
            for message in prompt.messages
            if isinstance(message, ResultsMessage)
            for result in message.results
        ]
        note("requests", {"thread": prompt.thread_id, "results": results})
        async with aclosing(super().stream(prompt)) as events:
            async for event in events:
                yield event


@tool
def weather(city: str) -> dict[str, str]:
    """Tell the weather.

    Args:
        city: Where.
    """
    note("executions", {"tool": "weather", "subject": city})
    return {"city": city, "sky": "sunny"}


@tool(needs_approval=True)
def delete_file(path: str) -> dict[str, str]:
    """Delete a file for good.

    Args:
        path: Which one.
    """
    note("executions", {"tool": "delete_file", "subject": path})
    return {"deleted": path}


@tool
async def charge(account: str) -> dict[str, str]:
    """Take money; waits for the gate `<account>`.

    Args:
        account: Whose.
    """
    note("executions", {"tool": "charge", "subject": account})
    await gate(account)
    return {"charged": account}


@tool(idempotent=True)
async def look_up(name: str) -> dict[str, str]:
    """Look something up; waits for the gate `<name>`.

    Args:
        name: What.
    """
    note("executions", {"tool": "look_up", "subject": name})
    await gate(name)
    return {"found": name}


@tool(executor="frontend")
def open_page(address: str) -> dict[str, object]:
    """Open a page beside the chat.

    Args:
        address: Its address.

    Returns:
        The key of the view that was opened.
    """
    raise NotImplementedError(address)


async def script(moment: Moment) -> AsyncGenerator[Step, None]:
    """A message names its play and its subject: `open oslo`."""
    play, _, subject = moment.text.partition(" ")
    if play == "tell":
        yield "Once upon "
        await gate(subject)
        yield "a time."
    elif play == "freeze":
        async with aclosing(frozen(subject)) as steps:
            async for step in steps:
                yield step
    elif play == "recite":
        async with aclosing(recital(moment, subject)) as steps:
            async for step in steps:
                yield step
    elif moment.steps:
        await _at_gate(play, subject)
        yield f"It is done: {json.dumps([result.output or result.error for result in moment.results])}"
    elif play == "open":
        yield [Ask("weather", {"city": subject}), Ask("open_page", {"address": subject})]
    else:
        named = {"delete": "path", "erase": "path", "charge": "account", "look": "name"}
        tools = {"delete": "delete_file", "erase": "delete_file", "charge": "charge", "look": "look_up"}
        yield [Ask("weather", {"city": subject}), Ask(tools[play], {named[play]: subject})]


async def _at_gate(play: str, subject: str) -> None:
    """`erase` answers when its gate is open."""
    if play == "erase":
        await gate(subject)


async def frozen(subject: str) -> AsyncGenerator[Step, None]:
    """The first time, its whole process stands still in mid-word, from the gate `told` to `<subject>`."""
    if not _is_first("frozen"):
        yield "This is the answer."
        return
    yield "This is "
    await gate("told")
    stand_still(subject)
    yield "what nobody may hear."


async def recital(moment: Moment, subject: str) -> AsyncGenerator[Step, None]:
    """Words of many bytes a letter, one after the other, before and behind calls."""
    for number in range(WORDS):
        yield f"{number} {VERSE[number % len(VERSE)]} "
        # slower than a reader comes back, so that it is cut while there is more to say
        await asyncio.sleep(0.01)
    if not moment.steps:
        yield [Ask("weather", {"city": subject}), Ask("open_page", {"address": subject})]


def note(book: str, line: dict[str, object]) -> None:
    written = json.dumps({**line, "at": time.monotonic()})
    descriptor = os.open(_room() / f"{book}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, written.encode() + b"\n")
    finally:
        os.close(descriptor)


async def gate(name: str) -> None:
    """Waits until the test has made the file of this name."""
    # the test is another process: a file is all that it can set
    while not (_room() / name).exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def stand_still(name: str) -> None:
    """The same for the process as a whole: nothing else happens in it meanwhile."""
    while not (_room() / name).exists():
        time.sleep(0.01)


def _is_first(name: str) -> bool:
    """True once, in all processes together."""
    try:
        (_room() / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _room() -> Path:
    return Path(os.environ["TEST_ROOM"])


agent = Agent(
    RecordingModel(script), tools=[weather, delete_file, charge, look_up], frontend_tools=[open_page]
)
