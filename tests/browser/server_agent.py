"""The agent that the TypeScript tests talk to, served by `farhand run`.

A user message is a play and its subject: `weather oslo-1`. Subjects are unique to a test, so that executions
can be counted for each of them. What ran is written to a file in the room that TEST_ROOM names; gates
are files there, too: a play waits at a gate until the test has made the file.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Literal

from farhand import Agent, ScriptedModel, ask, tool
from farhand.core.thread import UserMessage
from farhand.models.scripted import Ask, Fail, Moment, Say, Step, Think, ToolResult

ROOM = Path(os.environ["TEST_ROOM"])
GATE_OPENS_WITHIN_SEC = 40.0


# ---------------------------------------------------------------------------------------------- on the server


@tool
def weather(city: str) -> dict[str, object]:
    """Tell the weather.

    Args:
        city: Where.
    """
    note("weather", city)
    return {"city": city, "sky": "sunny"}


@tool(needs_approval=True)
def delete_file(path: str) -> dict[str, object]:
    """Delete a file for good.

    Args:
        path: Which one.
    """
    note("delete_file", path)
    return {"deleted": path}


@tool(needs_approval=True)
async def shred(path: str) -> dict[str, object]:
    """Delete a file piece by piece: wait at the gate `<path>.tool`.

    Args:
        path: Which one.
    """
    note("shred", path)
    await gate(f"{path}.tool")
    return {"shredded": path}


@tool
def broken(subject: str) -> dict[str, object]:
    """Raise, always.

    Args:
        subject: Whatever.
    """
    note("broken", subject)
    raise RuntimeError(f"the machine for {subject} is out of order")


@tool
async def slow(subject: str) -> dict[str, object]:
    """Wait at the gate `<subject>.tool`.

    Args:
        subject: Whose gate.
    """
    note("slow", subject)
    await gate(f"{subject}.tool")
    return {"waited": subject}


@tool
async def tidy(subject: str) -> dict[str, object]:
    """Tidy up, after a question.

    Args:
        subject: What to tidy.
    """
    answer = await ask("confirm", {"message": f"Tidy {subject}?"})
    note("tidy", subject)
    return {"answer": answer}


@tool
async def compare(subject: str) -> dict[str, object]:
    """Ask the page to open two pages, one after the other, and compare them.

    Args:
        subject: What they are about.
    """
    note("compare", subject)
    pages = [await ask("open_url", {"url": f"{subject}/{number}"}) for number in (1, 2)]
    return {"compared": [page["viewKey"] for page in pages if isinstance(page, dict)]}


# --------------------------------------------------------------------------------------------- in the browser


@tool(executor="frontend")
def confirm(message: str) -> str:
    """Ask the person for a word.

    Args:
        message: What to ask.

    Returns:
        The word.
    """
    raise NotImplementedError


@tool(executor="frontend")
def open_url(url: str) -> dict[str, object]:
    """Open a page beside the chat.

    Args:
        url: Its address.

    Returns:
        url and viewKey of the page.
    """
    raise NotImplementedError


@tool(executor="frontend", needs_approval=True)
def take_photo(camera: Literal["front", "back"], subject: str) -> dict[str, object]:
    """Take a photo once the person has said yes.

    Args:
        camera: Which one.
        subject: What is in the picture.

    Returns:
        name of the photo.
    """
    raise NotImplementedError


# -------------------------------------------------------------------------------------------------- the plays

Play = Callable[[Moment, str], Step | AsyncGenerator[Step, None]]


def hello(moment: Moment, subject: str) -> Step:
    said = sum(isinstance(message, UserMessage) for message in moment.messages)
    return f"Hello {subject}, this is your message number {said}."


def think(moment: Moment, subject: str) -> Step:
    return [Think("Let me see."), f"I thought about {subject}."]


def ask_weather(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("weather", {"city": subject}))


def ask_open(moment: Moment, subject: str) -> Step:
    return once(moment, "I will open it.", Ask("open_url", {"url": subject}))


def ask_compare(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("compare", {"subject": subject}))


def ask_two(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("open_url", {"url": f"{subject}/1"}), Ask("open_url", {"url": f"{subject}/2"}))


def ask_both(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("weather", {"city": subject}), Ask("open_url", {"url": subject}))


def ask_delete(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("delete_file", {"path": subject}))


def ask_pair(moment: Moment, subject: str) -> Step:
    return once(
        moment, Ask("delete_file", {"path": f"{subject}/1"}), Ask("delete_file", {"path": f"{subject}/2"})
    )


def ask_sequence(moment: Moment, subject: str) -> Step:
    if moment.steps < 2:
        return [Ask("delete_file", {"path": f"{subject}/{moment.steps + 1}"})]
    return told(moment.results)


def ask_photo(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("take_photo", {"camera": "front", "subject": subject}))


def ask_photo_and_delete(moment: Moment, subject: str) -> Step:
    return once(
        moment,
        Ask("take_photo", {"camera": "back", "subject": subject}),
        Ask("delete_file", {"path": subject}),
    )


def ask_delete_and_open(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("delete_file", {"path": subject}), Ask("open_url", {"url": subject}))


def ask_shred(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("shred", {"path": subject}))


def ask_broken(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("broken", {"subject": subject}))


def ask_unknown(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("make_coffee", {"for": subject}))


def ask_wrongly(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("weather", {"town": subject}))


def ask_chart(moment: Moment, subject: str) -> Step:
    """A tool that the client brings."""
    return once(moment, Ask("show_chart", {"of": subject}))


def ask_tidy(moment: Moment, subject: str) -> Step:
    return once(moment, Ask("tidy", {"subject": subject}))


def fail(moment: Moment, subject: str) -> Step:
    return [Say("I was about "), Fail(f"The provider of {subject} is down.")]


async def story(moment: Moment, subject: str) -> AsyncGenerator[Step, None]:
    """Text with a gate in it."""
    yield "Once upon a time "
    await gate(f"{subject}.text")
    yield f"there was {subject}."


async def journey(moment: Moment, subject: str) -> AsyncGenerator[Step, None]:
    """Every stage at which a connection can be cut, with a gate in each."""
    if moment.steps == 0:
        yield "First "
        await gate(f"{subject}.text")
        yield "the server. "
        yield Ask("slow", {"subject": subject})
    elif moment.steps == 1:
        yield Ask("open_url", {"url": subject})
    else:
        yield "And "
        await gate(f"{subject}.end")
        yield told(moment.results)


PLAYS: dict[str, Play] = {
    "hello": hello,
    "think": think,
    "weather": ask_weather,
    "open": ask_open,
    "compare": ask_compare,
    "two": ask_two,
    "both": ask_both,
    "delete": ask_delete,
    "pair": ask_pair,
    "sequence": ask_sequence,
    "photo": ask_photo,
    "photo-and-delete": ask_photo_and_delete,
    "delete-and-open": ask_delete_and_open,
    "shred": ask_shred,
    "broken": ask_broken,
    "unknown": ask_unknown,
    "wrongly": ask_wrongly,
    "chart": ask_chart,
    "tidy": ask_tidy,
    "fail": fail,
    "story": story,
    "journey": journey,
}


def play(moment: Moment) -> Step | AsyncGenerator[Step, None]:
    name, _, subject = moment.text.partition(" ")
    return PLAYS[name](moment, subject)


def once(moment: Moment, *step: str | Say | Ask) -> Step:
    """The step, and when its calls are back, what came of them."""
    return list(step) if moment.steps == 0 else told(moment.last)


def told(results: tuple[ToolResult, ...]) -> str:
    return " ".join(tale(result) for result in results)


def tale(result: ToolResult) -> str:
    if result.kind == "success":
        return f"{result.tool} gave {json.dumps(result.output, sort_keys=True)}."
    return f"{result.tool} gave nothing: {result.kind}, {result.error}."


def note(tool_name: str, subject: str) -> None:
    """One line for each execution, written whole even when two run at once."""
    line = json.dumps({"tool": tool_name, "subject": subject}) + "\n"
    descriptor = os.open(ROOM / "executions.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


async def gate(name: str) -> None:
    """Wait until the test has opened it."""
    path = ROOM / "gates" / name
    async with asyncio.timeout(GATE_OPENS_WITHIN_SEC):
        # the test is another process: a file is all that it can set
        while not path.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


agent = Agent(
    model=ScriptedModel(play),
    tools=[weather, delete_file, shred, broken, slow, tidy, compare],
    frontend_tools=[open_url, take_photo, confirm],
)
