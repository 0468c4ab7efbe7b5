"""Messages, calls and their results on AG-UI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask, Fail, Moment, Say, Step, Think
from farhand.models.scripted.model import Script
from tests.faces.agui.page import Page
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene, once, told
from tests.requirement import requirement

OPEN = Ask("open_url", {"url": "a.example"})
OPEN_TOO = Ask("open_url", {"url": "b.example"})
WEATHER = Ask("weather", {"city": "Oslo"})


@requirement("agui:runs")
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
    started = {"type": "RUN_STARTED", "threadId": "t1", "runId": page.run_id, "protocolVersion": "1.0"}
    assert run.events[0] == started
    assert run.text == "Hello."
    assert run.outcome == {"type": "success"}


@requirement("agui:runs")
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
    # its own result is not sent back: that would be a second message
    assert not run.results
    assert run.text.startswith("open_url: success")
    assert [each.output for each in scene.seen] == [{"url": "a.example", "viewKey": "v"}]


async def test_results_may_come_one_by_one_and_the_open_ones_are_told_again(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN, OPEN_TOO))
    page = Page((await serve(scene.agent, store=store)).http)
    first, second = (await page.send("go")).calls
    page.finds(first, "{}")
    run = await page.run()
    assert run.types == ["RUN_STARTED", "RUN_FINISHED"]
    assert run.outcome == {"type": "success", "pendingToolCallIds": [second]}
    page.finds(second, "{}")
    run = await page.run()
    assert not run.results
    assert run.text.count("open_url: success") == 2


async def test_a_server_tool_shows_its_call_and_its_result(serve: Serve, store: str) -> None:
    page = Page((await serve(Scene(once(WEATHER)).agent, store=store)).http)
    run = await page.send("go")
    [call_id] = run.calls
    assert run.calls[call_id] == ("weather", {"city": "Oslo"})
    assert run.results == {call_id: '{"city":"Oslo","sky":"sunny"}'}
    assert run.all("TOOL_CALL_RESULT")[0]["messageId"] == f"{call_id}:result"


@requirement("agui:runs")
async def test_server_and_frontend_tools_in_one_step_each_have_one_result(serve: Serve, store: str) -> None:
    scene = Scene(once(WEATHER, OPEN))
    page = Page((await serve(scene.agent, store=store)).http)
    run = await page.send("go")
    assert [name for name, _ in run.calls.values()] == ["weather", "open_url"]
    [pending] = run.outcome["pendingToolCallIds"]
    assert pending not in run.results
    page.finds(pending, "{}")
    run = await page.run()
    assert not run.results
    assert run.text == "weather: success {'city': 'Oslo', 'sky': 'sunny'}. open_url: success ."
    assert scene.ran == [("weather", "Oslo")]


async def test_a_call_that_is_rejected_has_its_error_as_result(serve: Serve) -> None:
    page = Page((await serve(Scene(once(Ask("make_coffee", {"for": "me"}))).agent)).http)
    run = await page.send("go")
    [call_id] = run.calls
    assert "make_coffee" in run.results[call_id]
    assert run.outcome == {"type": "success"}


async def test_several_texts_of_a_step_are_messages_and_the_last_one_has_the_calls(serve: Serve) -> None:
    def script(moment: Moment) -> Step:
        return ["One.", Think("And"), "Two.", OPEN] if moment.steps == 0 else told(moment.last)

    page = Page((await serve(Scene(script).agent)).http)
    run = await page.send("go")
    first, second = [each["messageId"] for each in run.all("TEXT_MESSAGE_START")]
    assert second == f"{first}:2"
    assert run.all("TOOL_CALL_START")[0]["parentMessageId"] == second
    page.finds(next(iter(run.calls)), "{}")
    # a result behind an earlier message would not be at the end of the client's history
    assert page.messages[-1]["role"] == "tool"
    assert (await page.run()).text == "open_url: success ."


async def test_a_failure_of_the_model_is_an_error_behind_what_it_wrote(serve: Serve) -> None:
    page = Page((await serve(Scene([[Say("I was about "), Fail("down")]]).agent)).http)
    run = await page.send("go")
    assert run.types[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert run.text == "I was about "
    assert run.code == "model_fault"


async def test_an_error_of_a_page_is_a_failure_and_a_text_stays_a_text(serve: Serve) -> None:
    scene = Scene(once(OPEN, Ask("ask_text", {"question": "?"}), OPEN_TOO))
    page = Page((await serve(scene.agent)).http)
    one, two, three = (await page.send("go")).calls
    page.finds(one, "", error="no window")
    page.finds(two, '{"a": 1}')
    page.finds(three, "Error: it broke")
    await page.run()
    assert [each.kind for each in scene.seen] == ["failure", "success", "success"]
    assert (scene.seen[0].error, scene.seen[1].output) == ("no window", '{"a": 1}')
    assert scene.seen[2].output == "Error: it broke"


async def test_an_error_that_is_too_long_is_cut_and_taken(serve: Serve) -> None:
    """A page sends whatever was thrown in it, and has no way to send less."""
    scene = Scene(once(OPEN))
    page = Page((await serve(scene.agent)).http)
    [call_id] = (await page.send("go")).calls
    page.finds(call_id, "", error="ö" * 5_000)
    run = await page.run()
    assert (run.status, run.outcome) == (200, {"type": "success"})
    error = scene.seen[0].error or ""
    assert error.startswith("öö")
    assert error.endswith("[cut here: 10000 bytes in total]")
    assert len(error.encode()) <= 4 * 1024
    # sent again, it is the same result: nothing is corrected
    again = await page.post("/ag-ui", page.input(messages=page.messages[:-1]))
    assert "MESSAGES_SNAPSHOT" not in again.types


@requirement("agui:busy")
async def test_the_same_last_message_again_is_another_answer_once_the_first_was_read(serve: Serve) -> None:
    scene = Scene([_slowly_of("again"), "Second."])
    page = Page((await serve(scene.agent)).http)
    page.says("go")
    async with page.live() as live:
        await live.until("TEXT_MESSAGE_CONTENT")
        _GATES["again"].set()
        assert (await live.rest()).text == "One, two."
    assert (await page.run()).text == "Second."
    record = (await page.http.get("/api/chat/t1")).json()["messages"]
    assert [part["text"] for part in record[1]["parts"] if part["type"] == "text"] == ["Second."]


@requirement("agui:busy")
async def test_an_answer_that_nobody_read_is_given_instead_of_another_one(serve: Serve, store: str) -> None:
    scene = Scene([_slowly_of("gate"), "Second."])
    server = await serve(scene.agent, store=store)
    page = Page(server.http)
    page.says("go")
    async with page.live() as live:
        await live.until("TEXT_MESSAGE_CONTENT")
    await _until(lambda: _is(not server.service.log.broker.read_here()))
    _GATES["gate"].set()
    await _until(lambda: _is_idle(page))
    run = await page.run()
    assert run.text == "One, two."
    assert len(scene.model.prompts) == 1
    # it has been read now: the note of that follows the response
    await _until(lambda: _is_delivered(server))
    page.messages = page.messages[:1]
    assert (await page.run()).text == "Second."


async def test_other_words_under_a_known_id_are_refused(serve: Serve) -> None:
    page = Page((await serve(Scene(["Hello."]).agent)).http)
    await page.send("go")
    page.messages = [{"id": "m1", "role": "user", "content": "something else"}]
    run = await page.run()
    assert (run.status, run.code) == (200, "invalid")


@requirement("agui:history")
async def test_an_older_message_at_the_end_cuts_nothing_and_gets_the_record(serve: Serve) -> None:
    scene = Scene(["One.", "Two.", "Three."])
    page = Page((await serve(scene.agent)).http)
    await page.send("a")
    await page.send("b")
    page.messages = page.messages[:1]
    run = await page.run()
    assert "MESSAGES_SNAPSHOT" in run.types
    assert [each.get("content") for each in page.messages] == ["a", "One.", "b", "Two."]
    assert len(scene.model.prompts) == 2


async def test_two_messages_at_once_are_answered_together(serve: Serve) -> None:
    scene = Scene(lambda moment: moment.text)
    page = Page((await serve(scene.agent)).http)
    page.says("One. ")
    page.says("Two.")
    assert (await page.run()).text == "One. Two."


@requirement("agui:busy")
async def test_two_messages_that_were_answered_together_are_known_when_they_come_again(serve: Serve) -> None:
    scene = Scene(["First.", "Second."])
    page = Page((await serve(scene.agent)).http)
    page.says("One. ")
    page.says("Two.")
    assert (await page.run()).text == "First."
    page.messages = page.messages[:2]
    assert (await page.run()).text == "Second."
    page.messages = [page.messages[0], {"id": "m2", "role": "user", "content": "Three."}]
    assert (await page.run()).code == "invalid"
    assert len(scene.model.prompts) == 2


@pytest.mark.slow
@requirement("agui:busy")
async def test_a_message_while_the_run_is_read_is_busy_and_once_nobody_reads_it_takes_over(
    serve: Serve,
) -> None:
    scene = Scene([_slowly_of("busy"), "Next."])
    page = Page((await serve(scene.agent)).http)
    other = Page(page.http)
    page.says("go")
    async with page.live() as live:
        await live.until("TEXT_MESSAGE_CONTENT")
        other.says("now", "m9")
        assert (await other.run()).code == "busy"
    # the response was dropped a moment ago: that is all an aborted HttpAgent does
    assert (await other.run()).text == "Next."
    record = (await page.http.get("/api/chat/t1")).json()["messages"]
    assert [part["text"] for part in record[1]["parts"] if part["type"] == "text"] == ["One, "]


@requirement("agui:runs")
async def test_a_client_without_a_version_gets_no_field_that_it_refuses(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    page = Page((await serve(scene.agent)).http, version=None)
    run = await page.send("go")
    assert "protocolVersion" not in run.events[0]
    assert run.last == {
        "type": "RUN_FINISHED",
        "threadId": "t1",
        "runId": page.run_id,
        "outcome": {"type": "success"},
    }
    assert (await page.stop())["stopped"] is True
    run = await page.connect()
    assert "outcome" not in run.last


async def test_a_result_and_a_message_in_one_post_end_the_run_and_begin_the_next(
    serve: Serve, store: str
) -> None:
    """As CopilotKit sends them for `followUp: false`, or after a handler that threw."""
    scene = Scene([[OPEN], "Next."])
    page = Page((await serve(scene.agent, store=store)).http)
    [call_id] = (await page.send("go")).calls
    page.finds(call_id, '{"viewKey": "v"}')
    run = await page.send("and now this")
    assert run.text == "Next."
    assert len(scene.model.prompts) == 2
    record = (await page.http.get("/api/chat/t1")).json()["messages"]
    [part] = [part for part in record[1]["parts"] if part["type"].startswith("tool-")]
    assert (part["state"], part["output"]) == ("output-available", {"viewKey": "v"})


async def test_a_message_while_frontend_calls_are_open_moves_on(serve: Serve, store: str) -> None:
    page = Page((await serve(Scene([[OPEN], "Next."]).agent, store=store)).http)
    await page.send("go")
    assert (await page.send("never mind")).text == "Next."
    record = (await page.http.get("/api/chat/t1")).json()["messages"]
    [part] = [part for part in record[1]["parts"] if part["type"].startswith("tool-")]
    assert part["errorText"] == "Cancelled: the user moved on."


async def test_the_context_of_a_page_is_for_the_model_and_not_in_the_record(serve: Serve) -> None:
    scene = Scene(["Hello."])
    page = Page((await serve(scene.agent)).http)
    await page.send("go", context=[{"description": "the open tab", "value": "prices"}])
    assert "prices" in str(scene.model.prompts[-1].messages)
    assert "prices" not in json.dumps((await page.http.get("/api/chat/t1")).json())
    await page.connect()
    assert page.messages[0] == {"id": "m1", "role": "user", "content": "go"}


async def test_too_much_context_is_refused(serve: Serve) -> None:
    page = Page((await serve(Scene(["Hello."]).agent)).http)
    run = await page.send("go", context=[{"description": "big", "value": "x" * 70_000}])
    assert (run.status, run.body["error"]) == (413, "too_large")


@pytest.mark.parametrize("version", ["1.0", None])
async def test_a_stop_ends_the_stream_as_cancelled(serve: Serve, version: str | None) -> None:
    scene = Scene([_slowly_of("stop")])
    page = Page((await serve(scene.agent)).http, version=version)
    page.says("go")
    async with page.live() as live:
        await live.until("TEXT_MESSAGE_CONTENT")
        assert (await page.stop(page.run_id))["stopped"] is True
        run = await live.rest()
    run.check()
    assert run.outcome == ({"type": "cancelled"} if version else None)


_GATES: dict[str, asyncio.Event] = {}


def _slowly_of(name: str) -> Script:
    _GATES[name] = asyncio.Event()

    async def slowly(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "One, "
        await _GATES[name].wait()
        yield "two."

    return slowly


async def _until(fact: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        # the reader's leaving and the end of the run have no event that a test could wait for
        while not await fact():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _is(fact: object) -> bool:
    return bool(fact)


async def _is_delivered(server: Served) -> bool:
    run = await server.service.log.last_run(LOCAL, "t1")
    return run is not None and run.is_delivered


async def _is_idle(page: Page) -> bool:
    return bool((await page.http.get(f"/api/chat/{page.thread_id}")).json()["state"] != "running")


@requirement("agui:busy")
async def test_a_message_posted_twice_at_once_is_one_message_whatever_the_page_shows_meanwhile(
    serve: Serve, store: str
) -> None:
    scene = Scene(["Once."])
    server = await serve(scene.agent, store=store)
    posts = []
    for shown in ("prices", "orders", ""):
        page = Page(server.http)
        page.says("hello")
        context = [{"description": "the open tab", "value": shown}] if shown else []
        posts.append(page.run(context=context))
    runs = await asyncio.gather(*posts)
    assert [run.text for run in runs] == ["Once."] * 3
    assert len(scene.model.prompts) == 1
