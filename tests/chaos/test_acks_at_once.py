"""Many acks of one call at the same moment, over HTTP, with default limits and a file: one of them wins."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import httpx2

from tests.chaos.recorded_server import Json, Room, room
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

SAME, DIFFERENT = 200, 100


async def answers(there: Room, bodies: list[Json]) -> list[tuple[int, Json]]:
    """All sent before the first is answered: every one has a connection that is open already."""
    gate = asyncio.Event()

    async def send(body: Json) -> tuple[int, Json]:
        await gate.wait()
        response: httpx2.Response = await there.http.post("/api/tools/ack", json=body)
        return response.status_code, response.json()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(send(body)) for body in bodies]
        gate.set()
    return [task.result() for task in tasks]


def given(there: Room, call: str) -> list[Json]:
    """What the model was given for this call, in all its requests."""
    return [each["outcome"] for results in there.requests for each in results if each["call_id"] == call]


@requirement("ack:receipts")
async def test_of_two_hundred_identical_acks_one_is_accepted_and_the_rest_are_ignored(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        page = Page(there.http, "chat", wait="hold")
        async with page.saying("open oslo") as live:
            await live.until("tool-output-available")
            call = live.turn.of("tool-input-available")[-1]["toolCallId"]
            body = {"toolCallId": call, "status": "success", "output": {"viewKey": "v1"}}
            told = Counter((status, str(answer)) for status, answer in await answers(there, [body] * SAME))
            turn = await live.rest()
        assert told == {(200, str({"ok": True})): 1, (200, str({"ok": True, "ignored": True})): SAME - 1}
        assert turn.finish == "stop"
        assert given(there, call) == [{"kind": "success", "output": {"viewKey": "v1"}}]
        assert len(there.requests) == 2


@requirement("ack:receipts")
async def test_of_a_hundred_different_acks_one_wins_and_all_others_are_told_the_same_winner(
    tmp_path: Path,
) -> None:
    async with room(tmp_path) as there:
        page = Page(there.http, "chat")
        call = (await page.say("open oslo")).of("tool-input-available")[-1]["toolCallId"]
        bodies = [
            {"toolCallId": call, "status": "success", "output": {"viewKey": f"v{number}"}}
            for number in range(DIFFERENT)
        ]
        told = await answers(there, bodies)
        [winner] = [body for body, (status, _) in zip(bodies, told, strict=True) if status == 200]
        losers = [answer for status, answer in told if status == 409]
        assert len(losers) == DIFFERENT - 1
        assert {loser["reason"] for loser in losers} == {"conflict"}
        assert len({loser["digest"] for loser in losers}) == 1
        assert (await page.resume()).finish == "stop"
        assert given(there, call) == [{"kind": "success", "output": winner["output"]}]
        again = await there.ack(call, output={"viewKey": "late"})
        assert again["digest"] == losers[0]["digest"]
