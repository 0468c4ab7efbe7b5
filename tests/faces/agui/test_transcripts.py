"""The main scenes of the wire, as they are written down in schema/transcripts/agui.

`FARHAND_RECORD=1 pytest tests/faces/agui/test_transcripts.py` writes them again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from farhand import Agent, ask, tool
from farhand.faces.agui.decode import decode_run
from farhand.faces.agui.shapes import AguiEvent
from farhand.models.scripted import Ask, Fail, Say, Think
from tests.faces.agui.page import Json, Page, Run, yes
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, ask_text, once

FOLDER = Path(__file__).parents[3] / "schema" / "transcripts" / "agui"
RECORDS = "FARHAND_RECORD" in os.environ
"""Read here: tests run without the variables of whoever runs them."""
Line = dict[str, Json]

OPEN = Ask("open_url", {"url": "a.example"})
OPEN_TOO = Ask("open_url", {"url": "b.example"})
WEATHER = Ask("weather", {"city": "Oslo"})
DELETE = Ask("delete_file", {"path": "a.txt"})
PHOTO = Ask("take_photo", {"camera": "front"})

_IDS = re.compile(r"(?P<kind>call|run|apr)_[0-9a-f]{32}")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


class Recorder(Page):
    """Writes down what goes over the wire, one line each, with ids and times that are the same every time."""

    def __init__(self, *arguments: Json, **more: Json) -> None:
        super().__init__(*arguments, **more)
        self.lines: list[Line] = []
        self._names: dict[str, str] = {}

    async def post(self, path: str, body: Json) -> Run:
        self._write(send={"path": path, "body": body})
        run = await super().post(path, body)
        self._write(status=run.status)
        if run.body is not None:
            self._write(body=run.body)
        for event in run.events:
            self._write(event=event)
        return run

    def _write(self, **line: Json) -> None:
        text = _TIMES.sub("2999-01-01T00:00:00.000Z", _IDS.sub(self._name, json.dumps(line)))
        self.lines.append(json.loads(text))

    def _name(self, found: re.Match[str]) -> str:
        plain = f"{found['kind']}_{len(self._names) + 1:032x}"
        return self._names.setdefault(found[0], plain)


async def _text(page: Recorder) -> None:
    await page.send("hi")
    await page.connect()


async def _frontend(page: Recorder) -> None:
    for call_id in (await page.send("go")).calls:
        page.finds(call_id, '{"viewKey": "v"}')
        await page.run()


async def _server(page: Recorder) -> None:
    await page.send("go")


async def _approval(page: Recorder) -> None:
    await page.resume(yes((await page.send("go")).interrupts[0]))


async def _approvals_first(page: Recorder) -> None:
    asked = (await page.send("go")).interrupts
    run = await page.resume(*map(yes, asked))
    await page.connect()
    for call_id in run.calls:
        page.finds(call_id, "{}")
    await page.run()


async def _use_interrupt(page: Recorder) -> None:
    [asked] = (await page.send("go")).interrupts
    page.finds(asked["toolCallId"], '{"approved": true}')
    await page.resume(yes(asked))


async def _refusals(page: Recorder) -> None:
    await page.run()
    await page.send("go")
    await page.send("never mind")
    page.tools = [{"name": "no spaces, please"}]
    await page.run()


async def _lost(page: Recorder) -> None:
    [call_id] = (await page.send("go")).calls
    sent = {"toolCallId": call_id, "status": "success", "output": {"by": "the inbox"}}
    await page.http.post("/api/tools/ack", json=sent)
    page.finds(call_id, '{"by": "the page"}')
    await page.run()


async def _message_beside(page: Recorder) -> None:
    [asked] = (await page.send("go")).interrupts
    page.says("and then?")
    await page.resume(yes(asked))
    await page.connect()


async def _question(page: Recorder) -> None:
    [asked] = (await page.send("go")).interrupts
    await page.resume({"interruptId": asked["id"], "status": "resolved", "payload": "yes"})


@tool
async def clean_up() -> str:
    """Delete old files once the user has confirmed."""
    return f"told {await ask('ask_text', {'question': 'Delete 14 files?'})}"


class Asking(Scene):
    """An agent whose tool asks in the middle of its work."""

    def __init__(self) -> None:
        super().__init__(once(Ask("clean_up", {})))
        self.agent = Agent(self.model, tools=[clean_up], frontend_tools=[ask_text])


@dataclass(frozen=True)
class Recorded:
    scene: Callable[[], Scene]
    play: Callable[[Recorder], Awaitable[None]]
    version: str | None = "1.0"


SCENES = {
    "text": Recorded(lambda: Scene([[Think("Hm."), "Hello."]]), _text),
    "frontend-tool": Recorded(lambda: Scene(once("I open it.", OPEN)), _frontend),
    "two-frontend-calls": Recorded(lambda: Scene(once(OPEN, OPEN_TOO)), _frontend),
    "server-tool": Recorded(lambda: Scene(once(WEATHER)), _server),
    "mixed-step": Recorded(lambda: Scene(once(WEATHER, OPEN)), _frontend),
    "unknown-tool": Recorded(lambda: Scene(once(Ask("make_coffee", {}))), _server),
    "interrupt": Recorded(lambda: Scene(once(DELETE)), _approval),
    "interrupt-0-0-59": Recorded(lambda: Scene(once(DELETE)), _approval, None),
    "approvals-first": Recorded(lambda: Scene(once("All.", DELETE, PHOTO, OPEN)), _approvals_first),
    "use-interrupt": Recorded(lambda: Scene(once(DELETE)), _use_interrupt),
    "resume-and-message": Recorded(lambda: Scene([[DELETE], "Deleted.", "Next."]), _message_beside),
    "question": Recorded(Asking, _question),
    "lost-result": Recorded(lambda: Scene(once(OPEN)), _lost),
    "refusals": Recorded(lambda: Scene(once(DELETE)), _refusals),
    "error": Recorded(lambda: Scene([[Say("I was about "), Fail("down")]]), _server),
}


@pytest.mark.parametrize("name", SCENES)
async def test_the_wire_is_as_it_was_written_down(serve: Serve, name: str) -> None:
    recorded = SCENES[name]
    server = await serve(recorded.scene().agent)
    page = Recorder(server.http, version=recorded.version)
    await recorded.play(page)
    path = FOLDER / f"{name}.jsonl"
    if RECORDS:
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in page.lines))
    assert _essence(page.lines) == _essence(_read(path))


def test_every_transcript_has_its_scene() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(SCENES)


@pytest.mark.parametrize("name", SCENES)
def test_what_was_written_down_keeps_the_shapes_of_the_wire(name: str) -> None:
    for line in _read(FOLDER / f"{name}.jsonl"):
        if "event" in line:
            event: object = msgspec.convert(line["event"], AguiEvent)
            # nothing is written down that the shapes do not have
            assert msgspec.to_builtins(event) == line["event"]
        elif "send" in line:
            assert decode_run(line["send"]["body"]).post.thread_id == "t1"


def _essence(lines: list[Line]) -> list[Line]:
    """What must be the same every time: how words are cut into pieces need not be."""
    told: list[Line] = []
    for line in lines:
        event = line.get("event", {})
        last = told[-1].get("event", {}) if told else {}
        if "delta" in event and event["type"] == last.get("type") != "TOOL_CALL_ARGS":
            told[-1] = {"event": {**last, "delta": last["delta"] + event["delta"]}}
        else:
            told.append(line)
    return told


def _read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()]
