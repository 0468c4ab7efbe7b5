"""The agent of the fault runs: every chat has a number, every call a name, and everything is written down.

Each chat opens ten calls in three steps: three server tools (one that may run again, two that may not), five
pages, a question for an approval, and the tool of a registered client.
"""

from __future__ import annotations

import asyncio
import os
import time
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from farhand import Agent, ScriptedModel, tool
from farhand.core.thread import ResultsMessage
from farhand.models.base import ModelEvent, Prompt
from farhand.models.scripted import Ask, Moment, Step
from tests.chaos.recording_agent import note

NOTES = "storm"
CALLS_PER_CHAT = 10
STEPS = 4
# long enough for a fault to fall in between, short enough for thousands of them
MOMENT_SEC = 0.005


class RecordingModel(ScriptedModel):
    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        results = [
            (result.call_id, msgspec.to_builtins(result.outcome))
            for message in prompt.messages
            if isinstance(message, ResultsMessage)
            for result in message.results
        ]
        note(NOTES, {"request": prompt.thread_id, "results": results, "asked_at": time.time()})
        async with aclosing(super().stream(prompt)) as events:
            async for event in events:
                yield event


@tool
def weather(city: str) -> dict[str, str]:
    """Tell the weather.

    Args:
        city: Where.
    """
    _began("weather", city)
    return {"city": city, "sky": "sunny"}


@tool
async def charge(account: str) -> dict[str, str]:
    """Take money.

    Args:
        account: Whose.
    """
    _began("charge", account)
    await asyncio.sleep(MOMENT_SEC)
    return {"charged": account}


@tool(idempotent=True)
async def look_up(name: str) -> dict[str, str]:
    """Look something up.

    Args:
        name: What.
    """
    _began("look_up", name, idempotent=True)
    await asyncio.sleep(MOMENT_SEC)
    return {"found": name}


@tool(needs_approval=True)
def delete_file(path: str) -> dict[str, str]:
    """Delete a file for good.

    Args:
        path: Which one.
    """
    _began("delete_file", path)
    return {"deleted": path}


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
    chat = moment.text
    for word in _words(chat, moment.steps):
        yield word
        await asyncio.sleep(MOMENT_SEC)
    if moment.steps == 0:
        yield [Ask("weather", {"city": chat}), Ask("look_up", {"name": chat}), *_pages(chat, "ab")]
    elif moment.steps == 1:
        yield [Ask("charge", {"account": chat}), Ask("delete_file", {"path": chat}), *_pages(chat, "c")]
    elif moment.steps == 2:
        yield [*_pages(chat, "de"), Ask(_hand_of(chat), {"subject": chat})]
    else:
        yield _done(len(moment.results))


def answer_of(chat: str) -> list[str]:
    """All that is said in a chat, by the step."""
    said = ["".join(_words(chat, step)) for step in range(STEPS)]
    return [*said[:-1], said[-1] + _done(CALLS_PER_CHAT)]


def _words(chat: str, step: int) -> tuple[str, ...]:
    return f"Step {step} ", f"of {chat} ", "goes like this. "


def _done(results: int) -> str:
    return f"It is done with {results} results."


def _pages(chat: str, letters: str) -> list[Ask]:
    return [Ask("open_page", {"address": f"{chat}/{letter}"}) for letter in letters]


def _hand_of(chat: str) -> str:
    """Every chat has a registered client of its own choice."""
    return f"client_hand{zlib.crc32(chat.encode()) % int(os.environ['TEST_HANDS'])}_work"


def _began(name: str, subject: str, *, idempotent: bool = False) -> None:
    note(NOTES, {"began": name, "subject": subject, "idempotent": idempotent, "began_at": time.time()})


agent = Agent(
    RecordingModel(script), tools=[weather, charge, look_up, delete_file], frontend_tools=[open_page]
)
