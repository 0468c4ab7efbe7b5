"""SIGTERM around the approval of a call without a run: a server that stops gracefully loses no approval."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import httpx2
import pytest

from tests.chaos.direct_calls import AGENT, UNKNOWN, answer, approve, executing, waiting
from tests.chaos.recorded_server import Room, room
from tests.requirement import requirement

# a server is started several times, one after the other: a busy machine takes its time
pytestmark = pytest.mark.timeout(180)
STOPS = 6
PAUSE_SEC = 0.003


async def yes_beside_the_signal(there: Room, tool: str, subject: str, pause: float) -> None:
    """An approval and SIGTERM, so far apart; the server runs again by now, and knows the approval."""
    async with executing(there, tool, subject, requestID=subject):
        call = await waiting(there, tool)
        yes = asyncio.create_task(approve(there, call))
        await asyncio.sleep(pause)
        there.server.signal(signal.SIGTERM)
        assert await there.server.wait() == 0, there.server.err
        await asyncio.wait([yes])
    await there.server.start()
    error = yes.exception()
    assert error is None or isinstance(error, httpx2.HTTPError)
    if error is not None or yes.result()[0] == 503:
        # the same again is safe, whether it was stored or not
        assert (await approve(there, call))[0] == 200
    else:
        assert yes.result() == (200, {"ok": True})


@requirement("direct:yes-after-restart")
async def test_whenever_the_server_is_told_to_stop_after_the_approval_the_tool_runs_once(
    tmp_path: Path,
) -> None:
    async with room(tmp_path, agent=AGENT) as there:
        for number in range(STOPS):
            subject = f"a{number}"
            await yes_beside_the_signal(there, "delete_file", subject, PAUSE_SEC * number)
            told = await answer(there, "delete_file", subject, subject)
            times = there.executions.count(("delete_file", subject))
            if told["status"] == "success":
                assert times == 1
            else:
                assert UNKNOWN in told["error"]
                assert times <= 1
