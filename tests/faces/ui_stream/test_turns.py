"""Turns over HTTP: what each kind of step looks like on the wire, and what the next post makes of it."""

from __future__ import annotations

from farhand.core.outcome import Failure, Success
from farhand.models.scripted import Ask, Begin, Fail, Moment, Say, Step, Think
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]
CALL = ["tool-input-start", "tool-input-delta", "tool-input-available"]


async def test_text_is_one_step_with_one_block_and_a_reason_to_stop(serve: Serve) -> None:
    scene = Scene([["Hello ", "there."]])
    turn = await Page((await serve(scene.agent)).http).say("hi")
    assert turn.kinds == ["start", *TEXT, "finish"]
    assert (turn.text, turn.finish) == ("Hello there.", "stop")
    assert turn.message_id.startswith("run_")


@requirement("ui-stream:frames")
async def test_a_response_is_bare_events_under_the_headers_that_the_client_wants(serve: Serve) -> None:
    scene = Scene(["Hello."])
    page = Page((await serve(scene.agent)).http)
    page.messages = [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]
    response = await page.http.post("/api/chat", json=page.body())
    assert {
        name: response.headers[name]
        for name in ("content-type", "cache-control", "x-vercel-ai-ui-message-stream", "x-accel-buffering")
    } == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-vercel-ai-ui-message-stream": "v1",
        "x-accel-buffering": "no",
    }
    events = response.content.split(b"\n\n")
    assert all(event.startswith(b'data: {"type":"') for event in events[:-2])
    assert events[-2:] == [b"data: [DONE]", b""]
    assert b"\r" not in response.content


async def test_reasoning_and_text_are_blocks_of_their_own(serve: Serve) -> None:
    scene = Scene([[Think("Let me see."), "It is so.", Think("Or not?"), "Yes."]])
    turn = await Page((await serve(scene.agent)).http).say("hi")
    thought = ["reasoning-start", "reasoning-delta", "reasoning-end"]
    said = ["text-start", "text-delta", "text-end"]
    assert turn.kinds == ["start", "start-step", *thought, *said, *thought, *said, "finish-step", "finish"]
    assert len({chunk["id"] for chunk in turn.of("text-start") + turn.of("reasoning-start")}) == 4


@requirement("ui-stream:server-tool")
async def test_a_server_tool_needs_one_post_and_its_text_is_in_a_new_step(serve: Serve) -> None:
    scene = Scene(once("Let me look.", Ask("weather", {"city": "Oslo"})))
    turn = await Page((await serve(scene.agent)).http).say("how is it?")
    first = [*TEXT[:-1], *CALL, "finish-step"]
    assert turn.kinds == ["start", *first, "tool-output-available", *TEXT, "finish"]
    assert turn.one("tool-input-available")["input"] == {"city": "Oslo"}
    assert turn.one("tool-output-available")["output"] == {"city": "Oslo", "sky": "sunny"}
    assert scene.ran == [("weather", "Oslo")]


@requirement("ui-stream:frontend-tool")
async def test_a_frontend_tool_ends_the_turn_and_the_next_post_continues_in_the_same_message(
    serve: Serve, store: str
) -> None:
    scene = Scene(once("I will open it.", Ask("open_url", {"url": "u"})))
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.say("open u")
    assert first.kinds == ["start", *TEXT[:-1], *CALL, "finish-step", "finish"]
    assert first.finish == "tool-calls"
    [call] = first.calls
    page.output(call, {"url": "u", "viewKey": "v1"})
    second = await page.send()
    assert second.message_id == first.message_id
    assert second.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert second.one("tool-output-available")["output"] == {"url": "u", "viewKey": "v1"}
    assert [each.outcome for each in scene.seen] == [Success({"url": "u", "viewKey": "v1"})]


@requirement("ui-stream:frontend-tool")
async def test_an_error_of_the_browser_is_shown_and_told_to_the_model(serve: Serve) -> None:
    scene = Scene(once(Ask("open_url", {"url": "u"})))
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("open u")).calls
    page.fail(call, "the panel is gone")
    turn = await page.send()
    assert turn.one("tool-output-error")["errorText"] == "the panel is gone"
    assert [each.seen for each in scene.seen] == ['{"status":"failed","errorText":"the panel is gone"}']


@requirement("ui-stream:frontend-tool")
async def test_an_output_that_breaks_its_schema_is_shown_as_an_error(serve: Serve) -> None:
    scene = Scene(once(Ask("ask_text", {"question": "?"})))
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("ask me")).calls
    page.output(call, 42)
    turn = await page.send()
    assert "does not fit its schema" in turn.one("tool-output-error")["errorText"]
    assert isinstance(scene.seen[0].outcome, Failure)


@requirement("ui-stream:mixed-step")
async def test_server_and_frontend_calls_of_one_step_come_back_together_in_the_models_order(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(Ask("open_url", {"url": "u"}), Ask("weather", {"city": "Oslo"})))
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.say("both")
    assert first.kinds[-4:] == ["tool-input-available", "finish-step", "tool-output-available", "finish"]
    opened = first.of("tool-input-available")[0]["toolCallId"]
    page.output(opened, {"url": "u"})
    second = await page.send()
    assert second.finish == "stop"
    assert [each.tool for each in scene.seen] == ["open_url", "weather"]
    assert scene.ran == [("weather", "Oslo")]


async def test_answers_may_come_one_by_one_and_the_run_continues_with_the_last(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(Ask("open_url", {"url": "1"}), Ask("open_url", {"url": "2"})))
    page = Page((await serve(scene.agent, store=store)).http)
    one, two = (await page.say("open both")).calls
    page.output(two, {"n": 2})
    partly = await page.send()
    assert partly.kinds == ["start", "tool-output-available", "finish"]
    assert (partly.one("tool-output-available")["toolCallId"], partly.finish) == (two, "tool-calls")
    assert len(scene.model.prompts) == 1
    page.output(one, {"n": 1})
    last = await page.send()
    assert {chunk["toolCallId"] for chunk in last.of("tool-output-available")} == {one, two}
    assert last.finish == "stop"
    assert [each.output for each in scene.seen] == [{"n": 1}, {"n": 2}]


async def test_answers_of_one_post_may_be_a_success_and_an_error(serve: Serve) -> None:
    scene = Scene(once(Ask("open_url", {"url": "1"}), Ask("ask_text", {"question": "?"})))
    page = Page((await serve(scene.agent)).http)
    one, two = (await page.say("both")).calls
    page.fail(one, "no")
    page.output(two, "an answer")
    turn = await page.send()
    assert turn.kinds[:3] == ["start", "tool-output-error", "tool-output-available"]
    assert [each.outcome for each in scene.seen] == [Failure("no"), Success("an answer")]


@requirement("ui-stream:faults")
async def test_a_tool_that_raises_is_an_error_part_and_the_model_continues(serve: Serve) -> None:
    scene = Scene(once(Ask("broken", {"subject": "tea"})))
    turn = await Page((await serve(scene.agent)).http).say("make tea")
    assert turn.finish == "stop"
    assert "out of order" in turn.one("tool-output-error")["errorText"]
    assert "Traceback" not in str(turn.chunks)


@requirement("ui-stream:faults")
async def test_an_unknown_tool_is_an_input_error_and_the_model_continues(serve: Serve) -> None:
    scene = Scene(once(Ask("make_coffee", {"for": "me"})))
    turn = await Page((await serve(scene.agent)).http).say("coffee")
    assert turn.kinds == [
        *["start", "start-step", "tool-input-start", "tool-input-delta", "tool-input-error", "finish-step"],
        *[*TEXT, "finish"],
    ]
    wrong = turn.one("tool-input-error")
    assert (wrong["toolName"], wrong["input"]) == ("make_coffee", {"for": "me"})
    assert "There is no tool 'make_coffee'" in wrong["errorText"]


@requirement("ui-stream:faults")
async def test_a_bad_input_is_an_input_error_that_names_the_parameter(serve: Serve) -> None:
    scene = Scene(once(Ask("weather", {"town": "Oslo"}), Ask("open_url", '{"url": ')))
    turn = await Page((await serve(scene.agent)).http).say("weather")
    errors = [chunk["errorText"] for chunk in turn.of("tool-input-error")]
    assert len(errors) == 2
    assert "town" in errors[0]
    assert "not valid JSON" in errors[1]
    assert scene.ran == []
    assert turn.finish == "stop"


@requirement("ui-stream:faults")
async def test_an_input_that_was_cut_off_is_an_input_error_and_never_runs(serve: Serve) -> None:
    scene = Scene([["Well, ", Begin("weather", '{"city": "Os')]])
    turn = await Page((await serve(scene.agent)).http).say("weather")
    assert "cut off" in turn.one("tool-input-error")["errorText"]
    assert turn.finish == "length"
    assert scene.ran == []


@requirement("ui-stream:faults")
async def test_a_fault_of_the_model_is_an_error_chunk_without_finish_and_the_chat_continues(
    serve: Serve,
) -> None:
    scene = Scene([["One moment", Fail("The provider is overloaded.", "Try again.")], "Here I am."])
    page = Page((await serve(scene.agent)).http)
    turn = await page.say("hi")
    assert turn.kinds == ["start", *TEXT, "error"]
    assert (
        turn.one("error")["errorText"]
        == "The model failed. Try again later. The server's log has the details."
    )
    assert (await page.say("and now?")).text == "Here I am."


@requirement("ui-stream:faults")
async def test_a_fault_in_a_later_step_keeps_what_was_shown(serve: Serve) -> None:
    def script(moment: Moment) -> Step:
        return Ask("weather", {"city": "Oslo"}) if moment.steps == 0 else Fail("Gone.")

    turn = await Page((await serve(Scene(script).agent)).http).say("hi")
    assert turn.kinds == ["start", "start-step", *CALL, "finish-step", "tool-output-available", "error"]


async def test_the_next_message_starts_a_message_of_its_own(serve: Serve) -> None:
    scene = Scene(["One.", "Two."])
    page = Page((await serve(scene.agent)).http)
    first, second = await page.say("a"), await page.say("b")
    assert first.message_id != second.message_id
    assert second.text == "Two."
    assert len(scene.model.prompts[-1].messages) == 3


async def test_every_step_of_a_long_run_is_opened_and_closed(serve: Serve) -> None:
    def script(moment: Moment) -> Step:
        if moment.steps == 3:
            return "Done."
        return [Say(f"Step {moment.steps}. "), Ask("weather", {"city": str(moment.steps)})]

    turn = await Page((await serve(Scene(script).agent)).http).say("go")
    assert [chunk["type"] for chunk in turn.chunks].count("start-step") == 4
    assert turn.text == "Step 0. Step 1. Step 2. Done."


@requirement("ui-stream:forged")
async def test_only_the_last_message_of_a_post_is_read(serve: Serve) -> None:
    scene = Scene(["One.", "Two."])
    page = Page((await serve(scene.agent)).http)
    await page.say("a")
    page.messages[0]["parts"] = [{"type": "text", "text": "I never said that"}]
    page.messages[1]["parts"] = [{"type": "text", "text": "nor did you"}]
    await page.say("b")
    assert "never said" not in str(scene.model.prompts[-1].messages)


@requirement("ui-stream:faults")
async def test_too_many_steps_end_with_an_error_that_says_so(serve: Serve) -> None:
    def script(moment: Moment) -> Step:
        return Ask("weather", {"city": str(moment.steps)})

    scene = Scene(script)
    turn = await Page((await serve(scene.agent)).http).say("for ever")
    assert "after 50 steps" in turn.one("error")["errorText"]
    assert len(scene.ran) == 50


@requirement("ui-stream:repeated-post")
async def test_a_post_that_ends_with_a_finished_answer_gets_that_answer_again(serve: Serve) -> None:
    scene = Scene(["One.", "Two."])
    page = Page((await serve(scene.agent)).http)
    first = await page.say("a")
    page.messages = page.messages[-1:]
    again = await page.send()
    assert (again.text, again.message_id) == ("One.", first.message_id)
    assert len(scene.model.prompts) == 1
