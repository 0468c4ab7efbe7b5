"""The story that the pictures tell: a street lamp is reported. The agent, and how far its story is played.

Served by `farhand run tests.browser.lamp:agent`. It is the story of the screenshots in the documentation.
"""

from __future__ import annotations

import asyncio
import os
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from farhand import Agent, ScriptedModel, tool
from farhand.demo.browser import (
    PickedFile,
    ask_text,
    copy_to_clipboard,
    get_location,
    open_url,
    select_option,
)
from farhand.models.scripted import Ask, Moment, Step
from farhand.testing import FarClient
from tests.process import FarhandProcess

REPORT = "The street lamp outside number 14 is dead. Can you report it for me?"
SCANS = "Rename the scans"
NOTES = "Copy the meeting notes"
THREAD = "lamp"
# pictures are of people, who take their time; tests are not
PACE_SEC = 1.5 if os.environ.get("SCREENSHOTS") else 0.0
FORM = "https://northgate.example/report"


@tool(title="Find the lamp owner")
def find_lamp_owner(street: str) -> str:
    """Find who looks after the lamps of a street.

    Args:
        street: The street.
    """
    return "Northgate Council, lighting team"


@tool(executor="frontend", card="photo")
def photo() -> PickedFile:
    """Take a photo.

    Returns:
        name, type, size and ref of the photo.
    """
    raise NotImplementedError


@tool(needs_approval=True, title="Send this report")
def send_report(to: str, place: str, photo: str) -> str:
    """Send the report.

    Args:
        to: Who gets it.
        place: Where the lamp is.
        photo: The name of the photo.
    """
    return f"Sent to {to}"


def play(moment: Moment) -> Step:
    if moment.text == SCANS:
        return told(moment, Ask("ask_text", {"question": "What should the folder be called?"}))
    if moment.text == NOTES:
        notes = "Meeting, 14 May\nAda brings the plans\nJoan asks the council"
        return told(moment, Ask("copy_to_clipboard", {"text": notes}))
    return report(moment)


def told(moment: Moment, call: Ask) -> Step:
    return call if moment.steps == 0 else "Done."


def report(moment: Moment) -> Step:
    if moment.steps == 0:
        sure = "Sure. I look up who looks after the lamps here, and open their form beside this chat."
        calls = [Ask("find_lamp_owner", {"street": "Mill Lane"}), Ask("get_location"), Ask("photo")]
        return [sure, *calls, Ask("open_url", {"url": FORM})]
    if moment.steps == 1:
        place = {"to": "lighting@northgate.example", "place": "14 Mill Lane, 54.9783, -1.6178"}
        options = ["Low: any time this month", "Normal: within a week", "High: someone could fall"]
        urgency = {"question": "How urgent is it?", "options": options}
        rest = [Ask("select_option", urgency), Ask("send_report", {**place, "photo": "lamp.png"})]
        return ["Two things are left before I can send it.", *rest]
    return "It is on its way. Most lamps are back on within five working days."


agent = Agent(
    model=ScriptedModel(play, delay=0.02),
    tools=[find_lamp_owner, send_report],
    frontend_tools=[ask_text, copy_to_clipboard, get_location, open_url, select_option, photo],
)


@asynccontextmanager
async def played(server: FarhandProcess) -> AsyncIterator[None]:
    """Two other chats, and this one up to the two questions that are left; its stream stays open."""
    async with FarClient(server.url, token=server.token, thread=THREAD) as far:
        far.on("copy_to_clipboard", lambda _input: True)
        await far.chat(NOTES, thread="notes")
        await far.text()
        await far.chat(SCANS, thread="scans", wait="turn")
        await far.called("ask_text")
        await far.chat(REPORT, thread=THREAD)
        place = {"lat": 54.9783, "lon": -1.6178, "accuracy": 20}
        await answered(far, "open_url", {"url": FORM, "viewKey": "panel-1"})
        await answered(far, "get_location", place)
        await answered(far, "photo", await uploaded(server))
        await far.asked("send_report")
        yield


async def answered(far: FarClient, tool_name: str, output: object) -> None:
    """As a person does it: a look, a press, and what the browser then does."""
    call = await far.called(tool_name)
    await asyncio.sleep(PACE_SEC)
    await far.take(call.call_id)
    await asyncio.sleep(PACE_SEC / 3)
    await far.ack(call.call_id, output)


async def uploaded(server: FarhandProcess) -> object:
    headers = {"x-farhand": "1", "x-file-name": "lamp.png", "content-type": "image/png"}
    async with server.client() as client:
        answer = await client.post("/api/files", content=lamp_picture(), headers=headers)
        assert answer.status_code == 201, answer.text
        return answer.json()


def lamp_picture(width: int = 320, height: int = 240) -> bytes:
    """A pole against a night sky, as a PNG."""
    sky, pole = bytes((40, 48, 84)), bytes((235, 235, 225))
    line = b"\0" + b"".join(pole if 155 <= x < 163 else sky for x in range(width))
    rows = b"".join(line if 30 < y < 210 else b"\0" + sky * width for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pieces = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_piece(*each) for each in pieces)


def _piece(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
