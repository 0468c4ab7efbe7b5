"""Runs that end from outside: aborted by the user, or cut by a server that stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.awaiting.agents import agent_with, weather_reports
from tests.faces.awaiting.client import Page, result
from tests.faces.conftest import Serve
from tests.requirement import requirement

TALK: Step = [Ask("user_confirm", {"message": "Sure?"}), Ask("get_weather", {"city": "Oslo"})]


@requirement("awaiting:abort")
async def test_abort_of_a_paused_run_settles_its_calls_and_keeps_server_results(
    serve: Serve, store: str
) -> None:
    def script(moment: Moment) -> Step:
        if moment.text == "go on":
            return f"{len(moment.messages)} messages."
        return TALK

    server = await serve(agent_with(script), store=store)
    page = Page(server.http)
    turn = await page.run("hi")
    assert await page.abort() == {"ok": True}
    assert await page.abort() == {"ok": True, "ignored": True}
    call = await server.service.log.get_call(LOCAL, turn.pause[0]["tool_use_id"])
    assert call is not None
    assert "aborted by the user" in str(call.outcome)
    calls = await server.service.calls(await server.service.last_run(LOCAL, turn.agent_uuid))
    assert [type(each.outcome).__name__ for each in calls] == ["Cancelled", "Success"]
    late = await page.answer(result(turn.pause[0], "yes"))
    assert (late.status, late.body["error"]["code"]) == (410, "cancelled")
    assert (await page.run("go on")).text == "4 messages."


@requirement("awaiting:abort")
async def test_abort_of_a_working_run_ends_its_stream(serve: Serve, store: str) -> None:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "One two "
        await asyncio.Event().wait()

    server = await serve(agent_with(script), store=store)
    page = Page(server.http)
    async with page.live("count") as live:
        await live.until("One ")
        assert await page.abort() == {"ok": True}
        turn = await live.rest()
    assert turn.datas[-1] == "[DONE]"
    assert turn.text == "One two "
    assert turn.errors == []


@requirement("kill:parked")
async def test_results_after_a_restart_resume_the_run_and_no_finished_tool_runs_again(
    serve: Serve, file_store: str
) -> None:
    weather_reports.clear()
    first = await serve(agent_with([TALK]), store=file_store)
    page = Page(first.http)
    paused = await page.run("hi")
    await first.stop()
    page.http = (await serve(agent_with(["Welcome back."]), store=file_store)).http
    replay = await page.stream()
    assert replay.pause == paused.pause
    resumed = await page.answer(result(paused.pause[0], "yes"))
    assert resumed.text == "Welcome back."
    assert resumed.frames[0].id == paused.last_id
    assert weather_reports == ["Oslo"]
