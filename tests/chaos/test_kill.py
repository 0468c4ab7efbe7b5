"""SIGKILL at every stage of a call: what was accepted stays, what waits can be answered, what ran does not
run again. Real processes, a real file."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tests.chaos.recorded_server import Room, room
from tests.faces.ui_stream.page import Page, Turn
from tests.requirement import requirement

# up to four servers are started one after the other: a busy machine takes its time
pytestmark = pytest.mark.timeout(180)
RESULT = {"viewKey": "v1"}
DONE = 'It is done: [{"city": "oslo", "sky": "sunny"}, '


async def parked(there: Room, text: str = "open oslo") -> tuple[Page, Turn]:
    page = Page(there.http, "chat")
    return page, await page.say(text)


async def killed(there: Room, page: Page, text: str, until: str, running: str | None = None) -> None:
    """A response that the kill cuts when it has come to this chunk, and this tool is running."""
    async with page.saying(text) as live:
        await live.until(until)
        if running is not None:
            await there.until_executed(running)
        await there.server.kill()
        with pytest.raises(httpx2.TransportError):
            await live.rest()


async def held_and_killed(there: Room, text: str, until: str) -> Page:
    page = Page(there.http, "chat", wait="hold")
    await killed(there, page, text, until)
    return page


def given(there: Room) -> list[object]:
    """What the model was given for the calls of its last request."""
    return [each["outcome"] for each in there.requests[-1]]


SUNNY = {"kind": "success", "output": {"city": "oslo", "sky": "sunny"}}


@requirement("kill:parked")
@pytest.mark.parametrize("kills", [1, 3])
async def test_a_parked_call_is_answered_after_the_kill_and_the_run_continues(
    tmp_path: Path, kills: int
) -> None:
    async with room(tmp_path) as there:
        page, turn = await parked(there)
        call = turn.of("tool-input-available")[-1]["toolCallId"]
        for _ in range(kills):
            await there.server.restart()
        assert await there.ack(call, output=RESULT) == {"ok": True}
        assert (await page.resume()).text == DONE + '{"viewKey": "v1"}]'
        assert given(there) == [SUNNY, {"kind": "success", "output": RESULT}]
        assert there.executions == [("weather", "oslo")]
        assert len(there.requests) == 2


@requirement("kill:parked")
async def test_a_parked_call_is_answered_by_the_next_post_after_the_kill(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        page, turn = await parked(there)
        await there.server.restart()
        page.output(turn.of("tool-input-available")[-1]["toolCallId"], RESULT)
        assert (await page.send()).finish == "stop"
        assert there.executions == [("weather", "oslo")]


async def test_a_held_call_is_answered_after_the_kill_and_the_run_continues(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        page = await held_and_killed(there, "open oslo", "tool-output-available")
        await there.server.start()
        async with page.resuming() as live:
            call = (await live.until("tool-input-available"))["toolCallId"]
            assert await there.ack(call, output=RESULT) == {"ok": True}
            assert await there.ack(call, output=RESULT) == {"ok": True, "ignored": True}
            turn = await live.rest()
        assert turn.text == DONE + '{"viewKey": "v1"}]'
        assert there.executions == [("weather", "oslo")]
        assert len(there.requests) == 2


async def test_a_held_question_is_answered_after_the_kill_and_the_tool_runs_once(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        page = await held_and_killed(there, "delete oslo", "tool-output-available")
        approval = next(part["approval"]["id"] for part in page.messages[-1]["parts"] if "approval" in part)
        await there.server.start()
        yes = {"approvalId": approval, "approved": True}
        assert (await there.http.post("/api/tools/approve", json=yes)).json() == {"ok": True}
        assert (await page.resume()).text == DONE + '{"deleted": "oslo"}]'
        await there.server.restart()
        assert (await there.http.post("/api/tools/approve", json=yes)).json() == {"ok": True, "ignored": True}
        assert there.executions == [("weather", "oslo"), ("delete_file", "oslo")]


@requirement("store:kill")
async def test_a_result_that_was_accepted_survives_the_kill_right_after(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        page, turn = await parked(there)
        call = turn.of("tool-input-available")[-1]["toolCallId"]
        assert await there.ack(call, output=RESULT) == {"ok": True}
        await there.server.restart()
        assert (await page.resume()).text == DONE + '{"viewKey": "v1"}]'
        assert await there.ack(call, output=RESULT) == {"ok": True, "ignored": True}
        assert (await there.ack(call, output="another"))["reason"] == "conflict"
        assert there.executions == [("weather", "oslo")]


@requirement("runs:recovery")
async def test_a_tool_that_was_in_flight_is_not_run_again_and_the_model_is_told(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        page = Page(there.http, "chat")
        await killed(there, page, "charge oslo", "tool-output-available", "charge")
        there.open_gate("oslo")
        await there.server.start()
        turn = await page.resume()
        assert "Whether it took effect is unknown" in turn.text
        assert given(there)[0] == SUNNY
        assert sorted(there.executions) == [("charge", "oslo"), ("weather", "oslo")]


@requirement("runs:recovery")
async def test_an_idempotent_tool_that_was_in_flight_is_run_again(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        page = Page(there.http, "chat")
        await killed(there, page, "look oslo", "tool-output-available", "look_up")
        there.open_gate("oslo")
        await there.server.start()
        assert (await page.resume()).text == DONE + '{"found": "oslo"}]'
        assert sorted(there.executions) == [("look_up", "oslo"), ("look_up", "oslo"), ("weather", "oslo")]


async def test_an_answer_that_was_cut_in_mid_word_is_asked_for_again(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        page = await held_and_killed(there, "tell end", "text-delta")
        there.open_gate("end")
        await there.server.start()
        turn = await page.resume()
        assert (turn.text, turn.finish) == ("Once upon a time.", "stop")
        assert len(there.requests) == 2
