"""An app without a model: requests that start a run get the error `no_agent`, and everything else works."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from farhand import Success, Toolbox, create_app
from tests.faces.agui.page import Json
from tests.faces.served import listening
from tests.requirement import requirement

MESSAGE = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hello"}]}
AGUI = {
    "threadId": "t1",
    "runId": "r1",
    "messages": [{"id": "m1", "role": "user", "content": "hello"}],
    "tools": [],
    "context": [],
    "state": {},
    "forwardedProps": {},
}
BEGIN_RUNS: dict[str, Json] = {
    "/api/chat": {"id": "t1", "messages": [MESSAGE]},
    "/agent/run": {"user_prompt": "hello"},
    "/ag-ui": AGUI,
    "/copilotkit/agent/default/run": AGUI,
}


def _toolbox() -> Toolbox:
    toolbox = Toolbox()

    @toolbox.tool(executor="frontend")
    def ask_text(question: str) -> str:
        """Ask the person.

        Args:
            question: What.

        Returns:
            The answer.
        """
        raise AssertionError("never executed here")

    return toolbox


@requirement("hands:no-agent")
@pytest.mark.parametrize("path", BEGIN_RUNS)
async def test_what_begins_a_run_is_answered_no_agent(path: str) -> None:
    app = create_app(_toolbox(), store="memory:")
    headers = {"authorization": f"Bearer {app.auth.token}"}
    async with listening(app) as url, httpx2.AsyncClient(base_url=url, headers=headers) as http:
        response = await http.post(path, json=BEGIN_RUNS[path])
        assert response.status_code == 404
        assert "no_agent" in response.text
        assert (await http.get("/api/chat")).json()["threads"] == []


@requirement("hands:no-agent")
async def test_calls_inbox_and_results_work_without_an_agent() -> None:
    app = create_app(_toolbox(), store="memory:")
    headers = {"authorization": f"Bearer {app.auth.token}"}
    async with (
        listening(app) as url,
        httpx2.AsyncClient(base_url=url, headers=headers) as http,
        asyncio.TaskGroup() as group,
    ):
        outcome = group.create_task(app.call("ask_text", {"question": "Size?"}, thread="t1", key="k"))
        async with asyncio.timeout(20):
            while not (calls := (await http.get("/api/inbox")).json()["calls"]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        sent = {"toolCallId": calls[0]["callId"], "status": "success", "output": "L"}
        assert (await http.post("/api/tools/ack", json=sent)).json() == {"ok": True}
        assert await outcome == Success("L")
