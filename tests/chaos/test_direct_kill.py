"""SIGKILL around the approval of a call without a run: the server restarts on its file, and the approval
takes effect once. Real processes, a real file, effects counted in another one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chaos.direct_calls import (
    AGENT,
    UNKNOWN,
    answer,
    approve,
    execute,
    executing,
    waiting,
    yes_that_kills,
)
from tests.chaos.recorded_server import Room, room
from tests.requirement import requirement

# up to four servers are started one after the other: a busy machine takes its time
pytestmark = pytest.mark.timeout(180)


async def asked_and_killed(there: Room, tool: str, subject: str, **more: str) -> dict[str, str]:
    """The call that was in the inbox when the server was killed; it runs again by now."""
    async with executing(there, tool, subject, **more):
        call = await waiting(there, tool)
        await there.server.restart()
    return dict(call)


@requirement("direct:yes-after-restart")
async def test_an_approval_after_the_restart_runs_the_tool_once_and_the_request_id_gets_its_answer(
    tmp_path: Path,
) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        call = await asked_and_killed(there, "delete_file", "a", requestID="job-1")
        assert await approve(there, call) == (200, {"ok": True})
        await there.until_executed("delete_file")
        told = await answer(there, "delete_file", "a", "job-1")
        assert (told["status"], told["output"]) == ("success", {"deleted": "a"})
        await there.server.restart()
        assert await approve(there, call) == (200, {"ok": True, "ignored": True})
        assert await answer(there, "delete_file", "a", "job-1") == told
        assert there.executions == [("delete_file", "a")]


@requirement("direct:yes-after-restart")
async def test_an_approval_that_was_stored_before_the_kill_is_acted_on_by_the_next_process(
    tmp_path: Path,
) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        async with executing(there, "delete_file", "a", requestID="job-1"):
            await yes_that_kills(there, "delete_file", "kill-before-start")
            await there.server.start()
        await there.until_executed("delete_file")
        told = await answer(there, "delete_file", "a", "job-1")
        assert told["output"] == {"deleted": "a"}
        assert there.executions == [("delete_file", "a")]


@requirement("direct:yes-after-restart")
async def test_an_approval_to_a_call_without_request_id_that_was_stored_before_the_kill_is_acted_on_too(
    tmp_path: Path,
) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        async with executing(there, "delete_file", "a"):
            await yes_that_kills(there, "delete_file", "kill-before-start")
            await there.server.start()
        await there.until_executed("delete_file")
        await there.server.restart()
        assert there.executions == [("delete_file", "a")]


@pytest.mark.parametrize("begun", [0, 1], ids=["before its function was called", "while it ran"])
async def test_a_tool_that_was_in_flight_is_not_run_again_and_its_caller_is_told(
    tmp_path: Path, begun: int
) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        async with executing(there, "charge", "oslo", requestID="job-1"):
            if begun:
                await approve(there, await waiting(there, "charge"))
                await there.until_executed("charge")
                there.open_gate("oslo")
                await there.server.restart()
            else:
                await yes_that_kills(there, "charge", "kill-before-tool")
                await there.server.start()
        told = await answer(there, "charge", "oslo", "job-1")
        assert told["status"] == "error"
        assert UNKNOWN in told["error"]
        assert there.executions == [("charge", "oslo")] * begun


async def test_an_idempotent_tool_that_was_in_flight_is_run_again(tmp_path: Path) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        async with executing(there, "look_up", "oslo", requestID="job-1"):
            await approve(there, await waiting(there, "look_up"))
            await there.until_executed("look_up")
            await there.server.restart()
        await there.until_executed("look_up", 2)
        there.open_gate("oslo")
        assert (await answer(there, "look_up", "oslo", "job-1"))["output"] == {"found": "oslo"}
        assert there.executions == [("look_up", "oslo")] * 2


async def test_a_tool_that_needs_no_yes_and_was_in_flight_has_an_unknown_end_too(tmp_path: Path) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        async with executing(there, "count", "oslo", requestID="job-1"):
            await there.until_executed("count")
            await there.server.restart()
        assert UNKNOWN in (await answer(there, "count", "oslo", "job-1"))["error"]
        assert there.executions == [("count", "oslo")]


@pytest.mark.parametrize("tool", ["delete_file", "take_photo"])
async def test_a_call_without_request_id_is_cancelled_at_the_restart_and_an_approval_to_it_is_gone(
    tmp_path: Path, tool: str
) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        call = await asked_and_killed(there, tool, "a")
        status, told = await approve(there, call)
        assert (status, told["ok"], told["reason"]) == (410, False, "cancelled")
        assert (await there.http.get("/api/inbox")).json() == {"calls": []}
        assert there.executions == []


@requirement("direct:yes-after-restart")
async def test_a_frontend_tool_that_is_approved_after_the_restart_is_offered(tmp_path: Path) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        call = await asked_and_killed(there, "take_photo", "front", requestID="job-1")
        assert await approve(there, call) == (200, {"ok": True})
        offered = await waiting(there, "take_photo")
        assert (offered["callId"], offered["phase"]) == (call["callId"], "ready")
        assert await there.ack(call["callId"], output={"name": "p"}) == {"ok": True}
        assert (await answer(there, "take_photo", "front", "job-1"))["output"] == {"name": "p"}


@requirement("direct:yes-after-restart")
async def test_whenever_the_server_is_killed_after_the_approval_the_tool_runs_once_or_its_end_is_unknown(
    tmp_path: Path,
) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        for number in range(6):
            subject = f"a{number}"
            async with executing(there, "delete_file", subject, requestID=subject):
                call = await waiting(there, "delete_file")
                yes = asyncio.create_task(approve(there, call))
                await asyncio.sleep(0.002 * number)
                await there.server.restart()
                await asyncio.wait([yes])
            if yes.exception() is not None:
                # the same again is safe, whether it was stored or not
                assert (await approve(there, call))[0] == 200
            told = await answer(there, "delete_file", subject, subject)
            times = there.executions.count(("delete_file", subject))
            if told["status"] == "success":
                assert times == 1
            else:
                assert UNKNOWN in told["error"]
                assert times <= 1


@requirement("runs:stop")
async def test_a_call_whose_yes_came_after_the_restart_can_be_stopped(tmp_path: Path) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        call = await asked_and_killed(there, "charge", "oslo", requestID="job-1", sessionID="s1")
        assert await approve(there, call) == (200, {"ok": True})
        await there.until_executed("charge")
        assert (await there.http.post("/api/chat/s1/stop")).json() == {"ok": True}
        there.open_gate("oslo")
        assert (await answer(there, "charge", "oslo", "job-1"))["status"] == "error"
        assert (await there.http.post("/api/chat/s1/stop")).json() == {"ok": True, "ignored": True}
        # what was stopped stays so, and nothing is left to run
        await there.server.restart()
        assert "stopped" in (await answer(there, "charge", "oslo", "job-1"))["error"]
        assert there.executions == [("charge", "oslo")]


@requirement("runs:stop")
async def test_a_caller_that_is_killed_cancels_its_call(tmp_path: Path) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        async with executing(there, "charge", "oslo") as called:
            call = await waiting(there, "charge")
            called.cancel()
            await asyncio.wait([called])
        async with asyncio.timeout(30):
            while (await there.http.get("/api/inbox")).json()["calls"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await approve(there, call))[0] == 410
        assert (await execute(there, "count", "x", timeout=50)).status_code == 504
