"""The agent of `examples/copilotkit`, with gates and notes. Served by `farhand run`.

`after NAME: words` says something, waits at the gate of that name, then does what the words ask for.
`tell NAME` stops there in the middle of a text. What the server tool did is noted in the room that TEST_ROOM
names.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec

from examples.copilotkit import assistant
from farhand import Agent, ScriptedModel, current, tool
from farhand.models import Moment, Step

ROOM = Path(os.environ["TEST_ROOM"])
GATE_OPENS_WITHIN_SEC = 40.0


@tool(needs_approval=True)
def send_invitation(to: str, when: str) -> str:
    """Invite somebody by e-mail.

    Args:
        to: Who is invited.
        when: Day and time.
    """
    with (ROOM / "notes.jsonl").open("a") as notes:
        notes.write(json.dumps({"thread": current().thread_id, "to": to}) + "\n")
    return f"{to} is invited for {when}."


def speak(moment: Moment) -> Step | AsyncGenerator[Step, None]:
    word, _, rest = moment.text.partition(" ")
    if word == "tell":
        return tell(rest)
    if word == "after" and not moment.last:
        name, _, words = rest.partition(": ")
        return later(name, msgspec.structs.replace(moment, text=words))
    return assistant.speak(moment)


async def tell(name: str) -> AsyncGenerator[Step, None]:
    yield f"The tale of {name} begins. "
    await gate(name)
    yield f"The tale of {name} ends."


async def later(name: str, moment: Moment) -> AsyncGenerator[Step, None]:
    yield "One moment. "
    await gate(name)
    yield assistant.speak(moment)


async def gate(name: str) -> None:
    path = ROOM / "gates" / name
    async with asyncio.timeout(GATE_OPENS_WITHIN_SEC):
        # the test is another process: a file is all that it can set
        while not path.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


agent = Agent(ScriptedModel(speak), tools=[send_invitation, assistant.book_room])
