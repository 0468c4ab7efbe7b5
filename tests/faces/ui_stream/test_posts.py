"""What a post starts, repeats, replaces or is refused: one run at a time, one for each user message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from farhand.core.outcome import Cancelled
from farhand.core.thread import ResultsMessage, UserMessage, text_of
from farhand.models.scripted import Ask, Fail, Moment, Step
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page, Turn, until, user_message
from tests.requirement import requirement

OPEN = Ask("open_url", {"url": "u"})


def says(scene: Scene) -> list[str]:
    """What the model was told by the user, in its last request."""
    return [text_of(each) for each in scene.model.prompts[-1].messages if isinstance(each, UserMessage)]


def slow_scene() -> Scene:
    """Says "Well, ", waits at the gate `go`, and says "done."."""

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "Well, "
        await scene.gate("go").wait()
        yield "done."

    scene = Scene(script)
    return scene


# -------------------------------------------------------------------------------------------------- repeated


@requirement("ui-stream:repeated-post")
async def test_the_same_message_again_gets_the_same_answer_and_starts_nothing(
    serve: Serve, store: str
) -> None:
    scene = Scene(["One.", "Two."])
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.say("a")
    page.messages.pop()
    again = await page.send()
    assert (again.message_id, again.kinds, again.text) == (first.message_id, first.kinds, "One.")
    assert len(scene.model.prompts) == 1


@requirement("ui-stream:repeated-post")
async def test_eight_posts_at_once_are_one_run_and_all_hear_the_same_answer(serve: Serve, store: str) -> None:
    scene = slow_scene()
    served = await serve(scene.agent, store=store)
    message = user_message("a")

    async def post() -> Turn:
        page = Page(served.http, "one-chat")
        page.messages = [message]
        return await page.send()

    posts = [post() for _ in range(8)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in posts]
        await until(lambda: len(scene.model.prompts) > 0)
        scene.gate("go").set()
    turns = [task.result() for task in tasks]
    assert {turn.message_id for turn in turns} == {turns[0].message_id}
    assert [turn.text for turn in turns] == ["Well, done."] * 8
    assert len(scene.model.prompts) == 1


@requirement("ui-stream:repeated-post")
async def test_a_repeated_post_while_the_run_is_parked_shows_the_open_call_and_ends(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    page = Page((await serve(scene.agent)).http)
    first = await page.say("open")
    page.messages.pop()
    again = await page.send()
    assert again.message_id == first.message_id
    assert again.one("tool-input-available") == first.one("tool-input-available")
    assert again.finish == "tool-calls"


@requirement("ui-stream:repeated-post")
async def test_answers_posted_twice_settle_once_and_both_hear_the_rest(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN))
    page = Page((await serve(scene.agent, store=store)).http)
    [call] = (await page.say("open")).calls
    page.output(call, {"viewKey": "v"})
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_copy(page).send()) for _ in range(8)]
    turns = [task.result() for task in tasks]
    assert {turn.text for turn in turns} == {"open_url: success {'viewKey': 'v'}."}
    assert all(turn.kinds[:2] == ["start", "tool-output-available"] for turn in turns)
    assert len(scene.model.prompts) == 2


async def test_two_tabs_that_answer_a_call_each_at_once_both_hear_the_rest(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN, Ask("ask_text", {"question": "?"})))
    page = Page((await serve(scene.agent, store=store)).http)
    one, two = (await page.say("both")).calls
    tabs = [_copy(page), _copy(page)]
    tabs[0].output(one, {"n": 1})
    tabs[1].output(two, "text")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(tab.send()) for tab in tabs]
    assert "stop" in [task.result().finish for task in tasks]
    assert (await page.resume()).text == "open_url: success {'n': 1}. ask_text: success text."
    assert len(scene.model.prompts) == 2


async def test_more_calls_than_a_step_may_ask_for_are_input_errors_and_the_others_run(serve: Serve) -> None:
    asks = [Ask("weather", {"city": str(number)}) for number in range(40)]
    scene = Scene(once(*asks))
    turn = await Page((await serve(scene.agent)).http).say("weather everywhere")
    assert (len(turn.of("tool-output-available")), len(turn.of("tool-input-error"))) == (32, 8)
    assert len(scene.ran) == 32
    assert turn.finish == "stop"
    assert len(scene.seen) == 40


@requirement("ack:across")
async def test_another_output_for_a_settled_call_is_answered_with_the_stored_one(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("open")).calls
    page.output(call, {"viewKey": "first"})
    await page.send()
    page.output(call, {"viewKey": "second"})
    turn = await page.send()
    assert turn.one("tool-output-available")["output"] == {"viewKey": "first"}
    assert turn.finish == "stop"
    assert len(scene.model.prompts) == 2


@requirement("ack:across")
async def test_a_client_that_missed_a_step_is_told_of_it_before_it_is_asked_about_it(serve: Serve) -> None:
    def script(moment: Moment) -> Step:
        return [OPEN, Ask("delete_file", {"path": "a"})][moment.steps]

    page = Page((await serve(Scene(script).agent)).http)
    [call] = (await page.say("open")).calls
    ack = {"toolCallId": call, "status": "success", "output": {"n": 1}}
    assert (await page.http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
    assert "tool-approval-request" in (await _copy(page).resume()).kinds
    page.output(call, {"n": 2})
    turn = await page.send()
    asked = ["tool-input-start", "tool-input-delta", "tool-input-available", "tool-approval-request"]
    assert turn.kinds == ["start", "tool-output-available", "start-step", *asked, "finish-step", "finish"]


# ------------------------------------------------------------------------------------- while a run is active


async def test_a_new_message_while_the_model_works_is_refused_and_changes_nothing(serve: Serve) -> None:
    scene = slow_scene()
    page = Page((await serve(scene.agent)).http)
    async with page.saying("a") as live:
        await live.until("text-delta")
        other = Page(page.http, page.id)
        other.messages = [user_message("b")]
        refused = await other.refused()
        assert (refused.status, refused.body["error"]["code"]) == (409, "busy")
        assert "stop" in refused.body["error"]["message"]
        again = await other.refused(trigger="regenerate-message")
        assert (again.status, again.body["error"]["code"]) == (409, "busy")
        scene.gate("go").set()
        assert (await live.rest()).text == "Well, done."
    assert says(scene) == ["a"]


async def test_a_new_message_while_parked_cancels_the_open_call_and_is_answered(
    serve: Serve, store: str
) -> None:
    def script(moment: Moment) -> Step:
        return OPEN if moment.text == "open" else "Never mind."

    scene = Scene(script)
    page = Page((await serve(scene.agent, store=store)).http)
    [call] = (await page.say("open")).calls
    assert (await page.say("forget it")).text == "Never mind."
    results = [each for each in scene.model.prompts[-1].messages if isinstance(each, ResultsMessage)]
    assert results[0].results[0].outcome == Cancelled("the user moved on")
    late = await page.http.post("/api/tools/ack", json={"toolCallId": call, "status": "success"})
    assert (late.status_code, late.json()["reason"]) == (410, "cancelled")


async def test_a_new_message_while_held_ends_the_held_response_properly(serve: Serve, store: str) -> None:
    def script(moment: Moment) -> Step:
        return OPEN if moment.text == "open" else "Never mind."

    scene = Scene(script)
    page = Page((await serve(scene.agent, store=store)).http, wait="hold")
    async with page.saying("open") as live:
        await live.until("finish-step")
        other = Page(page.http, page.id)
        assert (await other.say("forget it")).text == "Never mind."
        held = await live.rest()
    assert held.kinds[-2:] == ["tool-output-error", "finish"]
    assert (held.one("tool-output-error")["errorText"], held.finish) == (
        "Cancelled: the user moved on.",
        "other",
    )


async def test_answers_of_a_tab_that_missed_the_new_message_are_refused(serve: Serve) -> None:
    def script(moment: Moment) -> Step:
        return OPEN if moment.text == "open" else "Never mind."

    scene = Scene(script)
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("open")).calls
    await Page(page.http, page.id).say("forget it")
    page.output(call, {"viewKey": "v"})
    refused = await page.refused()
    assert (refused.status, refused.body["error"]["code"]) == (404, "unknown")
    assert len(scene.model.prompts) == 2


# ------------------------------------------------------------------------------------ regenerate and edit


@requirement("ui-stream:regenerate")
async def test_regenerate_replaces_the_last_answer(serve: Serve, store: str) -> None:
    scene = Scene(["One.", "Two.", "Three."])
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.say("a")
    page.messages.pop()
    second = await page.send(trigger="regenerate-message")
    assert (second.text, second.finish) == ("Two.", "stop")
    assert second.message_id != first.message_id
    await page.say("b")
    assert "One." not in str(scene.model.prompts[-1].messages)
    assert says(scene) == ["a", "b"]


@requirement("ui-stream:regenerate")
async def test_regenerate_of_an_earlier_answer_cuts_the_thread_there(serve: Serve, store: str) -> None:
    scene = Scene(["One.", "Two.", "Another one."])
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.say("a")
    await page.say("b")
    turn = await page.send(trigger="regenerate-message", messageId=first.message_id)
    assert turn.text == "Another one."
    assert says(scene) == ["a"]
    assert [len(prompt.messages) for prompt in scene.model.prompts] == [1, 3, 1]


@requirement("ui-stream:regenerate")
async def test_regenerate_does_not_undo_tools_that_ran(serve: Serve) -> None:
    scene = Scene(once(Ask("weather", {"city": "Oslo"})))
    page = Page((await serve(scene.agent)).http)
    await page.say("a")
    turn = await page.send(trigger="regenerate-message")
    assert turn.finish == "stop"
    assert scene.ran == [("weather", "Oslo")] * 2


@requirement("ui-stream:regenerate")
async def test_regenerate_while_parked_cancels_the_open_call(serve: Serve) -> None:
    scene = Scene([OPEN, "Never mind."])
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("open")).calls
    assert (await page.send(trigger="regenerate-message")).text == "Never mind."
    late = await page.http.post("/api/tools/ack", json={"toolCallId": call, "status": "success"})
    assert late.status_code == 410


@requirement("ui-stream:regenerate")
async def test_regenerate_of_what_is_not_there_is_refused_and_changes_nothing(serve: Serve) -> None:
    scene = Scene(["One.", "Two."])
    page = Page((await serve(scene.agent)).http)
    await page.say("a")
    for message_id in ("nothing", "run_" + "0" * 32):
        refused = await page.refused(trigger="regenerate-message", messageId=message_id)
        assert (refused.status, refused.body["error"]["code"]) == (404, "unknown")
    unknown = Page(page.http, "another-chat")
    assert (await unknown.refused(trigger="regenerate-message")).status == 404
    await page.say("b")
    assert says(scene) == ["a", "b"]


@requirement("ui-stream:regenerate")
async def test_regenerate_after_a_fault_of_the_model_tries_again(serve: Serve, store: str) -> None:
    scene = Scene([["One moment", Fail("Overloaded.")], "Here I am."])
    page = Page((await serve(scene.agent, store=store)).http)
    assert (await page.say("a")).chunks[-1]["type"] == "error"
    turn = await page.send(trigger="regenerate-message")
    assert (turn.text, turn.finish) == ("Here I am.", "stop")
    assert says(scene) == ["a"]


@requirement("ui-stream:regenerate")
async def test_an_edited_message_cuts_the_thread_from_there_on(serve: Serve, store: str) -> None:
    scene = Scene(["One.", "Two.", "Other."])
    page = Page((await serve(scene.agent, store=store)).http)
    await page.say("a")
    await page.say("b")
    edited = page.messages[0]["id"]
    page.messages = [user_message("a, but better", edited)]
    turn = await page.send(messageId=edited)
    assert turn.text == "Other."
    assert says(scene) == ["a, but better"]


@requirement("ui-stream:regenerate")
async def test_an_edit_while_parked_cancels_the_open_call(serve: Serve) -> None:
    scene = Scene([OPEN, "Never mind."])
    page = Page((await serve(scene.agent)).http)
    await page.say("open")
    edited = page.messages[0]["id"]
    page.messages = [user_message("do not open", edited)]
    assert (await page.send(messageId=edited)).text == "Never mind."
    assert says(scene) == ["do not open"]


@requirement("ui-stream:regenerate")
async def test_an_edit_that_is_posted_again_starts_nothing(serve: Serve, store: str) -> None:
    scene = Scene(["One.", "Other.", "Never."])
    page = Page((await serve(scene.agent, store=store)).http)
    await page.say("a")
    edited = page.messages[0]["id"]
    page.messages = [user_message("a, but better", edited)]
    first = await page.send(messageId=edited)
    page.messages = [user_message("a, but better", edited)]
    again = await page.send(messageId=edited)
    assert (again.text, again.message_id) == ("Other.", first.message_id)
    assert len(scene.model.prompts) == 2


@requirement("ui-stream:regenerate")
async def test_a_new_message_that_names_an_older_one_cuts_nothing(serve: Serve, store: str) -> None:
    scene = Scene(["One.", "Two."])
    page = Page((await serve(scene.agent, store=store)).http)
    await page.say("a")
    first = page.messages[0]["id"]
    page.messages.append(user_message("b"))
    assert (await page.send(messageId=first)).text == "Two."
    assert says(scene) == ["a", "b"]


@requirement("ui-stream:regenerate")
async def test_other_words_under_an_id_that_was_used_are_refused(serve: Serve, store: str) -> None:
    scene = Scene(["One.", "Two."])
    page = Page((await serve(scene.agent, store=store)).http)
    await page.say("a")
    page.messages = [user_message("b", page.messages[0]["id"])]
    refused = await page.refused()
    assert (refused.status, refused.body["error"]["code"]) == (400, "invalid")
    assert len(scene.model.prompts) == 1


@requirement("ui-stream:regenerate")
async def test_an_edit_of_an_unknown_message_is_refused(serve: Serve) -> None:
    scene = Scene(["One.", "Two."])
    page = Page((await serve(scene.agent)).http)
    await page.say("a")
    page.messages = [user_message("b", "never-sent")]
    refused = await page.refused(messageId="never-sent")
    assert (refused.status, refused.body["error"]["code"]) == (404, "unknown")
    assert len(scene.model.prompts) == 1


# ------------------------------------------------------------------------------------------------- refused


@requirement("ui-stream:malformed")
@pytest.mark.parametrize(
    "wrong",
    [
        {"id": ""},
        {"id": "no blanks"},
        {"id": "x" * 129},
        {"id": 1},
        {"messages": []},
        {"messages": "hi"},
        {"messages": [{"id": "m", "role": "user", "parts": []}]},
        {"messages": [{"id": "m", "role": "user", "parts": [{"type": "file", "url": "x"}]}]},
        {"messages": [{"id": "", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]},
        {"messages": [{"id": "m", "role": "system", "parts": [{"type": "text", "text": "hi"}]}]},
        {"messages": [{"id": "m", "role": "tool", "parts": []}]},
        {"trigger": "resume-stream"},
        {"wait": "for ever"},
    ],
    ids=str,
)
async def test_a_malformed_post_is_refused_with_a_reason(serve: Serve, wrong: dict[str, object]) -> None:
    scene = Scene(["One."])
    page = Page((await serve(scene.agent)).http)
    page.messages = [user_message("a")]
    refused = await page.refused(**wrong)
    assert (refused.status, refused.body["error"]["code"]) == (400, "invalid")
    assert refused.body["error"]["message"]
    assert scene.model.prompts == []


@requirement("ui-stream:malformed")
async def test_answers_for_a_chat_that_is_not_there_are_refused(serve: Serve) -> None:
    page = Page((await serve(Scene(["One."]).agent)).http)
    page.messages = [
        {
            "id": "x",
            "role": "assistant",
            "parts": [{"type": "tool-x", "toolCallId": "c", "state": "output-available"}],
        }
    ]
    refused = await page.refused()
    assert (refused.status, refused.body["error"]["code"]) == (404, "unknown")


async def test_a_body_that_is_too_large_is_told_how_to_send_less(serve: Serve) -> None:
    page = Page((await serve(Scene(["One."]).agent)).http)
    page.messages = [user_message("a" * (4 * 1024 * 1024))]
    refused = await page.refused()
    assert (refused.status, refused.body["error"]["code"]) == (413, "too_large")
    assert "prepareSendMessagesRequest" in refused.body["error"]["message"]


def _copy(page: Page) -> Page:
    """Another tab with the same last message."""
    tab = Page(page.http, page.id)
    tab.messages = [{**page.messages[-1], "parts": [dict(part) for part in page.messages[-1]["parts"]]}]
    return tab
