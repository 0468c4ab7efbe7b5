"""The main scenes of the wire, as they are written down in schema/transcripts/awaiting.

`FARHAND_RECORD=1 pytest tests/faces/awaiting/test_transcripts.py` writes them again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from farhand.agent.agent import Agent
from farhand.core.position import parse_bookmark
from farhand.faces.awaiting.decode import decode_message, decode_results
from farhand.models.scripted import Ask, Fail, Say, Step, Think
from tests.faces.awaiting.agents import agent_with
from tests.faces.awaiting.client import attributes_of, result
from tests.faces.awaiting.recorder import Line, Recorder, as_text, essence
from tests.faces.conftest import Serve

FOLDER = Path(__file__).parents[3] / "schema" / "transcripts" / "awaiting"

CONFIRM = Ask("user_confirm", {"message": 'Delete "all" <drafts> & go on?'})
COLOR = Ask("pick_color", {"label": "wall"})


@dataclass(frozen=True)
class Scene:
    agent: Callable[[], Agent]
    play: Callable[[Recorder], Awaitable[None]]


async def answer(page: Recorder) -> None:
    await page.post("/agent/run", {"user_prompt": "Hello"})


async def pause_and_resume(page: Recorder) -> None:
    paused = await page.post("/agent/run", {"user_prompt": "Clean up"})
    results = [result(paused.pause[0], "yes", is_error=False)]
    await page.post("/agent/tool_results", {"agent_uuid": paused.agent_uuid, "tool_results": results})


async def several_pauses(page: Recorder) -> None:
    turn = await page.post("/agent/run", {"user_prompt": "Ask me twice"})
    for content in ("yes", '{"hex":"#336699"}'):
        body = {"agent_uuid": turn.agent_uuid, "tool_results": [result(turn.pause[0], content)]}
        turn = await page.post("/agent/tool_results", body)
    await page.get(f"/agent/{turn.agent_uuid}/stream")


async def approval(page: Recorder) -> None:
    paused = await page.post("/agent/run", {"user_prompt": "A photo, and clean up"})
    photo, delete = paused.pause
    results = [result(photo, "photo-1", approved=True), result(delete, "keep it", approved=False)]
    await page.post("/agent/tool_results", {"agent_uuid": paused.agent_uuid, "tool_results": results})


async def refusals(page: Recorder) -> None:
    paused = await page.post("/agent/run", {"user_prompt": "Clean up"})
    good = {"agent_uuid": paused.agent_uuid, "tool_results": [result(paused.pause[0], "yes")]}
    unexpected = {"tool_use_id": f"call_{'f' * 32}", "content": "x"}
    await page.post("/agent/tool_results", {**good, "tool_results": [unexpected]})
    await page.post("/agent/tool_results", good)
    await page.post("/agent/tool_results", good)
    await page.post("/agent/tool_results", {**good, "agent_uuid": "nobody"})
    await page.post("/agent/run", {"user_prompt": 7})


async def ignored(page: Recorder) -> None:
    paused = await page.post("/agent/run", {"user_prompt": "Two questions"})
    confirm, color = paused.pause
    await page.post(
        "/api/tools/ack", {"toolCallId": color["tool_use_id"], "status": "failed", "errorText": "no"}
    )
    results = [result(confirm, "yes"), result(color, '{"hex":"#336699"}')]
    await page.post("/agent/tool_results", {"agent_uuid": paused.agent_uuid, "tool_results": results})


async def resume(page: Recorder) -> None:
    paused = await page.post("/agent/run", {"user_prompt": "Clean up"})
    address = f"/agent/{paused.agent_uuid}/stream"
    middle = next(frame for frame in paused.frames if frame.data.endswith("</content-block-text>"))
    await page.get(address, middle.id)
    await page.get(address, "999.0")


async def abort(page: Recorder) -> None:
    paused = await page.post("/agent/run", {"user_prompt": "Clean up"})
    await page.post(f"/agent/{paused.agent_uuid}/abort")
    await page.get(f"/agent/{paused.agent_uuid}/stream", paused.last_id)


ASKING: Step = [
    Think("They want it clean."),
    "One question first. ",
    CONFIRM,
    Ask("get_weather", {"city": "Oslo"}),
]
SCENES = {
    "answer": Scene(
        lambda: agent_with([[Think("A greeting."), "Hello!\nA tag: <meta_init>, a path: C:\\new"]]), answer
    ),
    "raw": Scene(lambda: agent_with([ASKING, "Done."], formatter="raw"), pause_and_resume),
    "pause-and-resume": Scene(lambda: agent_with([ASKING, "Done."]), pause_and_resume),
    "several-pauses": Scene(lambda: agent_with([[CONFIRM], [COLOR], "Thank you."]), several_pauses),
    "approval": Scene(
        lambda: agent_with(
            [
                [Ask("take_photo", {"camera": "front"}), Ask("delete_file", {"path": "old.txt"})],
                "As you wish.",
            ]
        ),
        approval,
    ),
    "refusals": Scene(lambda: agent_with([[CONFIRM], "Done."]), refusals),
    "ignored": Scene(lambda: agent_with([[CONFIRM, COLOR], "Done."]), ignored),
    "error": Scene(
        lambda: agent_with([[Say("I was about"), Fail("The provider is down.", hint="Try again.")]]), answer
    ),
    "resume": Scene(lambda: agent_with([ASKING]), resume),
    "abort": Scene(lambda: agent_with([ASKING]), abort),
}


@pytest.mark.parametrize("name", SCENES)
async def test_the_wire_is_as_it_was_written_down(serve: Serve, name: str) -> None:
    scene = SCENES[name]
    recorder = Recorder((await serve(scene.agent())).http)
    await scene.play(recorder)
    path = FOLDER / f"{name}.jsonl"
    if os.environ.get("FARHAND_RECORD"):
        path.write_text(as_text(recorder.lines))
    assert essence(recorder.lines) == essence(_read(path))


def test_every_transcript_has_its_scene() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(SCENES)


@pytest.mark.parametrize("name", SCENES)
def test_what_was_written_down_keeps_the_rules_of_the_wire(name: str) -> None:
    for exchange in _exchanges(_read(FOLDER / f"{name}.jsonl")):
        sent, status, *answered = exchange
        _check_request(sent["send"], status["status"])
        frames = [line["frame"] for line in answered if "frame" in line]
        if frames:
            assert status == {"status": 200}
            _check_frames(frames)


def _check_request(sent: Line, status: int) -> None:
    body = json.dumps(sent.get("body")).encode()
    if sent["path"] == "/agent/run" and status == 200:
        assert decode_message(body).parts
    if sent["path"] == "/agent/tool_results" and status == 200:
        assert decode_results(body, most=32).results


def _check_frames(frames: list[Line]) -> None:
    datas = [frame["data"] for frame in frames]
    assert datas[0].startswith("<meta_init ")
    assert datas.index("[DONE]") == len(datas) - 1
    places = [parse_bookmark(frame["id"]) for frame in frames]
    known = [place.position for place in places if place is not None]
    assert known == sorted(known)
    assert len(known) == len(frames)
    for data in datas:
        if data.startswith(("<meta_init", "<awaiting_", "<ignored_", "<stream_")):
            assert json.loads(ET.fromstring(data).attrib["data"]) == attributes_of(data)["data"]


def _exchanges(lines: list[Line]) -> list[list[Line]]:
    exchanges: list[list[Line]] = []
    for line in lines:
        if "send" in line:
            exchanges.append([])
        exchanges[-1].append(line)
    return exchanges


def _read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()]
