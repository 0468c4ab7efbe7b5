"""Tools of registered clients in runs of AG-UI: waited for like tools of the server, shown with results."""

from __future__ import annotations

import asyncio

from farhand.core.settings import Settings, Timeouts
from farhand.models.scripted import Ask
from tests.faces.agui.page import Page, no, yes
from tests.faces.client_tools.program import Program, a_tool, ready
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.requirement import requirement

READ = Ask("client_notes_read", {"text": "a"})
OPEN = Ask("open_url", {"url": "a.example"})
DELETE = Ask("delete_file", {"path": "a.txt"})


@requirement("agui:client-tools")
async def test_a_call_of_a_registered_client_is_waited_for_in_the_same_response(
    serve: Serve, store: str
) -> None:
    server = await serve(Scene(once(READ)).agent, store=store)
    page = Page(server.http)
    async with ready(Program(server.http), "read") as here, asyncio.TaskGroup() as group:
        posted = group.create_task(page.send("go"))
        assert (await here.answer(status="success", output="a note"))["input"] == {"text": "a"}
        run = await posted
    assert [name for name, _ in run.calls.values()] == ["client_notes_read"]
    assert list(run.results.values()) == ["a note"]
    assert run.text == "client_notes_read: success a note."
    assert run.outcome == {"type": "success"}


@requirement("agui:client-tools")
async def test_a_frontend_call_of_the_same_step_is_shown_when_the_client_has_answered(serve: Serve) -> None:
    server = await serve(Scene(once(READ, OPEN)).agent)
    page = Page(server.http)
    async with ready(Program(server.http), "read") as here, asyncio.TaskGroup() as group:
        posted = group.create_task(page.send("go"))
        await here.answer(status="success", output="a note")
        run = await posted
    [call_id] = run.outcome["pendingToolCallIds"]
    page.finds(call_id, '{"viewKey": "v"}')
    run = await page.run()
    assert "client_notes_read: success a note." in run.text
    assert "open_url: success" in run.text


@requirement("agui:client-tools")
async def test_an_approval_and_a_call_of_a_registered_client_in_one_step(serve: Serve, store: str) -> None:
    scene = Scene(once(READ, DELETE))
    server = await serve(scene.agent, store=store)
    page = Page(server.http)
    async with ready(Program(server.http), "read") as here, asyncio.TaskGroup() as group:
        posted = group.create_task(page.send("go"))
        await here.answer(status="success", output="a note")
        run = await posted
    run = await page.resume(yes(run.interrupts[0]))
    assert scene.ran == [("delete_file", "a.txt")]
    assert run.text == "client_notes_read: success a note. delete_file: success {'deleted': 'a.txt'}."


@requirement("agui:client-tools")
async def test_a_call_of_a_registered_client_that_was_approved_is_waited_for(
    serve: Serve, store: str
) -> None:
    server = await serve(Scene([[READ], "Read.", "Next."]).agent, store=store)
    page = Page(server.http)
    async with ready(Program(server.http), a_tool("read", needsApproval=True)) as here:
        [asked] = (await page.send("go")).interrupts
        page.says("and then?")
        async with page.live(resume=[yes(asked)]) as live:
            await live.until("RUN_STARTED")
            await here.answer(status="success", output="a note")
            run = await live.rest()
    run.check()
    assert run.results == {asked["toolCallId"]: "a note"}
    assert run.text == "Read.Next."


@requirement("agui:client-tools")
async def test_after_a_denial_the_call_of_a_registered_client_is_still_waited_for(serve: Serve) -> None:
    """The pause came before its answer, since nothing is held for so long."""
    settings = Settings(timeouts=Timeouts(hold_for=0.01))
    server = await serve(Scene([[READ, DELETE], "Read."]).agent, settings=settings)
    page = Page(server.http)
    async with ready(Program(server.http), "read") as here:
        [asked] = (await page.send("go")).interrupts
        async with page.live(resume=[no(asked)]) as live:
            await live.until("TOOL_CALL_RESULT")
            await here.answer(status="success", output="a note")
            run = await live.rest()
    run.check()
    assert "a note" in run.results.values()
    assert run.text == "Read."


async def test_a_result_of_the_page_for_a_call_of_a_registered_client_settles_it_once(serve: Serve) -> None:
    """A person may answer what a program did not: the first result counts, and the program is told."""
    server = await serve(Scene(once(READ)).agent)
    page, other = Page(server.http), Page(server.http)
    async with ready(Program(server.http), "read") as here, asyncio.TaskGroup() as group:
        posted = group.create_task(page.send("go"))
        request = await here.stream.request()
        call = (await server.http.get("/api/inbox")).json()["calls"][0]
        sent = {"id": "own", "role": "tool", "toolCallId": call["callId"], "content": "by hand"}
        other.messages = [sent]
        await other.run()
        late = await here.program.result(request["requestID"], status="success", output="a note")
        assert late.status_code == 409
        assert (await posted).text == "client_notes_read: success by hand."
