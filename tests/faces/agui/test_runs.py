"""Messages, calls and their results on AG-UI."""

from __future__ import annotations

import json

from farhand.models.scripted import Ask, Think
from tests.faces.agui.page import Page, yes
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once

OPEN = Ask("open_url", {"url": "a.example"})
DELETE = Ask("delete_file", {"path": "a.txt"})


async def test_a_text_is_streamed_between_the_start_and_the_end_of_a_run(serve: Serve, store: str) -> None:
    server = await serve(Scene([[Think("Hm."), "Hello."]]).agent, store=store)
    page = Page(server.http)
    run = await page.send("hi")
    assert run.types == [
        "RUN_STARTED",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert run.events[0] == {
        "type": "RUN_STARTED",
        "threadId": "t1",
        "runId": page.run_id,
        "protocolVersion": "1.0",
    }
    assert run.text == "Hello."
    assert run.outcome == {"type": "success"}


async def test_a_frontend_call_ends_the_run_and_its_result_begins_the_next(serve: Serve, store: str) -> None:
    scene = Scene(once("I open it.", OPEN))
    page = Page((await serve(scene.agent, store=store)).http)
    run = await page.send("go")
    [(call_id, (name, given))] = run.calls.items()
    assert (name, given) == ("open_url", {"url": "a.example"})
    assert run.outcome == {"type": "success", "pendingToolCallIds": [call_id]}
    assert run.all("TOOL_CALL_START")[0]["parentMessageId"] == run.all("TEXT_MESSAGE_START")[0]["messageId"]
    page.finds(call_id, json.dumps({"url": "a.example", "viewKey": "v"}))
    run = await page.run()
    assert run.types == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert [each.output for each in scene.seen] == [{"url": "a.example", "viewKey": "v"}]


async def test_an_approval_is_an_interrupt_and_the_resume_runs_the_tool(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent, store=store)).http)
    run = await page.send("go")
    [call_id] = run.calls
    [asked] = run.interrupts
    assert (asked["reason"], asked["toolCallId"]) == ("tool_call", call_id)
    assert asked["metadata"] == {"tool": "delete_file", "input": {"path": "a.txt"}}
    assert scene.ran == []
    run = await page.resume(yes(asked))
    assert scene.ran == [("delete_file", "a.txt")]
    assert run.results == {call_id: '{"deleted":"a.txt"}'}
    assert run.text == "delete_file: success {'deleted': 'a.txt'}."
