"""Approvals over HTTP: of server tools and frontend tools, joint and split, and what has no effect."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.outcome import Denied, Failure, Success
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once, told
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

DELETE = Ask("delete_file", {"path": "a"})
PHOTO = Ask("take_photo", {"camera": "front"})
TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]
UNTOUCHED = ["start", "finish"]


# ----------------------------------------------------------------------------------------------- server tools


@requirement("ui-stream:approval")
async def test_a_server_tool_behind_approval_is_shown_whole_and_asked_about(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.say("delete a")
    shown = ["tool-input-start", "tool-input-delta", "tool-input-available", "tool-approval-request"]
    assert first.kinds == ["start", "start-step", *shown, "finish-step", "finish"]
    assert first.finish == "tool-calls"
    assert first.one("tool-approval-request")["approvalId"].startswith("apr_")
    assert scene.ran == []
    page.approve(first.calls[0])
    second = await page.send()
    assert second.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert second.message_id == first.message_id
    assert scene.ran == [("delete_file", "a")]


@requirement("ui-stream:approval")
async def test_a_denial_is_shown_and_its_reason_reaches_the_model(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent, store=store)).http)
    [call] = (await page.say("delete a")).calls
    page.approve(call, approved=False, reason="I need it")
    turn = await page.send()
    assert turn.kinds == ["start", "tool-output-denied", *TEXT, "finish"]
    assert scene.seen[0].outcome == Denied("I need it")
    assert "I need it" in scene.seen[0].seen
    assert scene.ran == []


@requirement("ui-stream:approval")
async def test_of_two_approvals_in_one_step_the_model_continues_when_both_are_answered(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(DELETE, Ask("delete_file", {"path": "b"})))
    page = Page((await serve(scene.agent, store=store)).http)
    one, two = (await page.say("delete both")).calls
    page.approve(two)
    partly = await page.send()
    assert partly.kinds == ["start", "tool-output-available", "finish"]
    assert partly.one("tool-output-available")["toolCallId"] == two
    assert scene.ran == [("delete_file", "b")]
    assert scene.seen == []
    page.approve(one, approved=False)
    turn = await page.send()
    assert {chunk["type"] for chunk in turn.chunks[1:3]} == {"tool-output-denied", "tool-output-available"}
    assert scene.ran == [("delete_file", "b")]
    assert [each.kind for each in scene.seen] == ["denied", "success"]


@requirement("ui-stream:approval")
async def test_two_approvals_in_one_post_both_run_once(serve: Serve) -> None:
    scene = Scene(once(DELETE, Ask("delete_file", {"path": "b"})))
    page = Page((await serve(scene.agent)).http)
    for call in (await page.say("delete both")).calls:
        page.approve(call)
    turn = await page.send()
    assert len(turn.of("tool-output-available")) == 2
    assert sorted(scene.ran) == [("delete_file", "a"), ("delete_file", "b")]


@requirement("ui-stream:approval")
async def test_two_approvals_in_sequence_take_a_post_each(serve: Serve, store: str) -> None:
    def script(moment: Moment) -> Step:
        if moment.steps == 2:
            return told(moment.results)
        return Ask("delete_file", {"path": str(moment.steps + 1)})

    scene = Scene(script)
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.say("delete both")
    page.approve(first.calls[0])
    second = await page.send()
    assert second.kinds[:3] == ["start", "tool-output-available", "start-step"]
    assert second.kinds[-3:] == ["tool-approval-request", "finish-step", "finish"]
    page.approve(second.calls[0])
    third = await page.send()
    assert third.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert scene.ran == [("delete_file", "1"), ("delete_file", "2")]


@requirement("ui-stream:mixed-step")
async def test_a_server_tool_behind_approval_and_a_frontend_tool_of_one_step(serve: Serve) -> None:
    scene = Scene(once(DELETE, Ask("open_url", {"url": "u"})))
    page = Page((await serve(scene.agent)).http)
    delete, opened = (await page.say("both")).calls
    page.output(opened, {"viewKey": "v"})
    partly = await page.send()
    assert partly.kinds == ["start", "tool-approval-request", "tool-output-available", "finish"]
    assert scene.ran == []
    page.approve(delete)
    turn = await page.send()
    assert turn.finish == "stop"
    assert [each.kind for each in scene.seen] == ["success", "success"]
    assert scene.ran == [("delete_file", "a")]


# --------------------------------------------------------------------------------------------- frontend tools


@requirement("ui-stream:frontend-approval")
async def test_before_the_approval_a_frontend_tool_is_shown_as_input_that_nobody_runs(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    turn = await Page((await serve(scene.agent)).http).say("photo")
    shown = ["tool-input-start", "tool-input-delta", "tool-approval-request"]
    assert turn.kinds == ["start", "start-step", *shown, "finish-step", "finish"]
    written = "".join(chunk["inputTextDelta"] for chunk in turn.of("tool-input-delta"))
    assert written.replace(" ", "") == '{"camera":"front"}'


@requirement("ui-stream:frontend-approval")
async def test_joint_approval_and_output_need_two_posts(serve: Serve, store: str) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent, store=store)).http)
    [call] = (await page.say("photo")).calls
    page.approve(call)
    page.output(call, {"name": "p1"})
    turn = await page.send()
    assert turn.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert [each.outcome for each in scene.seen] == [Success({"name": "p1"})]


@requirement("ui-stream:frontend-approval")
async def test_joint_approval_and_error(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("photo")).calls
    page.approve(call)
    page.fail(call, "no camera")
    turn = await page.send()
    assert turn.kinds == ["start", "tool-output-error", *TEXT, "finish"]
    assert [each.outcome for each in scene.seen] == [Failure("no camera")]


@requirement("ui-stream:frontend-approval")
async def test_a_split_approval_is_left_untouched_once_then_the_call_is_handed_out(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.say("photo")
    [call] = first.calls
    page.approve(call)
    began = asyncio.get_running_loop().time()
    eager = await page.send()
    assert asyncio.get_running_loop().time() - began >= 0.29, "an eager client has a moment to add its output"
    assert (eager.kinds, eager.message_id, eager.finish) == (UNTOUCHED, first.message_id, "tool-calls")
    again = await page.send()
    assert again.kinds == ["start", "tool-input-available", "finish"]
    handed = again.one("tool-input-available")
    assert (handed["toolCallId"], handed["input"]) == (call, {"camera": "front"})
    page.output(call, {"name": "p1"})
    last = await page.send()
    assert last.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert [each.output for each in scene.seen] == [{"name": "p1"}]


@requirement("ui-stream:frontend-approval")
async def test_a_denial_beside_a_split_approval_is_told_when_the_step_is_complete(serve: Serve) -> None:
    """The stock helpers post no more for a step with a denied call in it and no answer left to give."""
    scene = Scene(once(PHOTO, DELETE))
    page = Page((await serve(scene.agent)).http)
    photo, delete = (await page.say("both")).calls
    page.approve(photo)
    page.approve(delete, approved=False, reason="mine")
    assert (await page.send()).kinds == UNTOUCHED
    assert (await page.send()).kinds == ["start", "tool-input-available", "finish"]
    assert page.part(delete)["state"] == "approval-responded"
    page.output(photo, {"name": "p"})
    last = await page.send()
    assert sorted(last.kinds[1:3]) == ["tool-output-available", "tool-output-denied"]
    assert last.finish == "stop"
    assert [each.kind for each in scene.seen] == ["success", "denied"]


@requirement("ui-stream:frontend-approval")
async def test_a_denial_that_the_client_does_not_know_of_is_told_at_once(serve: Serve) -> None:
    scene = Scene(once(PHOTO, DELETE))
    page = Page((await serve(scene.agent)).http)
    first = await page.say("both")
    photo, delete = first.calls
    no = {"approvalId": first.of("tool-approval-request")[1]["approvalId"], "approved": False}
    assert (await page.http.post("/api/tools/approve", json=no)).json() == {"ok": True}
    page.approve(photo)
    await page.send()
    page.approve(delete)
    turn = await page.send()
    assert turn.kinds == ["start", "tool-input-available", "tool-output-denied", "finish"]


@requirement("ui-stream:frontend-approval")
async def test_an_eager_client_brings_its_output_after_the_untouched_answer(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("photo")).calls
    page.approve(call)
    async with page.sending() as live:
        # the page has its photo while the post is open; what this response says must not undo that
        await live.until("start")
        page.output(call, {"name": "p1"})
        assert (await live.rest()).kinds == UNTOUCHED
    turn = await page.send()
    assert turn.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert "tool-input-available" not in turn.kinds


@requirement("ui-stream:frontend-approval")
async def test_the_untouched_answer_is_remembered_over_a_restart(serve: Serve, tmp_path: object) -> None:
    address = f"sqlite:///{tmp_path}/farhand.db"
    scene = Scene(once(PHOTO))
    served = await serve(scene.agent, store=address)
    page = Page(served.http)
    [call] = (await page.say("photo")).calls
    page.approve(call)
    assert (await page.send()).kinds == UNTOUCHED
    await served.stop()
    page.http = (await serve(scene.agent, store=address)).http
    assert (await page.send()).kinds == ["start", "tool-input-available", "finish"]


@requirement("ui-stream:frontend-approval")
async def test_a_denied_frontend_tool_is_never_handed_out(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("photo")).calls
    page.approve(call, approved=False, reason="not now")
    turn = await page.send()
    assert turn.kinds == ["start", "tool-output-denied", *TEXT, "finish"]
    assert scene.seen[0].outcome == Denied("not now")


@requirement("calls:not-before-approval")
async def test_an_output_without_approval_is_refused_and_the_question_is_shown_again(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent)).http)
    first = await page.say("photo")
    [call] = first.calls
    page.output(call, {"name": "p1"})
    turn = await page.send()
    assert turn.kinds == ["start", "tool-approval-request", "finish"]
    assert turn.one("tool-approval-request") == first.one("tool-approval-request")
    assert len(scene.model.prompts) == 1
    page.approve(call)
    page.output(call, {"name": "p1"})
    assert (await page.send()).finish == "stop"


@requirement("ui-stream:frontend-approval")
async def test_after_a_denial_to_a_given_approval_the_stored_approval_is_shown(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("photo")).calls
    page.approve(call)
    await page.send()
    page.approve(call, approved=False)
    turn = await page.send()
    assert turn.kinds == ["start", "tool-input-available", "finish"]


@requirement("ui-stream:frontend-approval")
async def test_an_approval_that_was_given_elsewhere_in_other_words_hands_the_call_out(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent)).http)
    first = await page.say("photo")
    asked = first.one("tool-approval-request")
    given = {
        "approvalId": asked["approvalId"],
        "approved": True,
        "reason": "sure",
        "input": {"camera": "back"},
    }
    assert (await page.http.post("/api/tools/approve", json=given)).json() == {"ok": True}
    page.approve(first.calls[0])
    turn = await page.send()
    assert turn.kinds == ["start", "tool-input-available", "finish"]
    assert turn.one("tool-input-available")["input"] == {"camera": "back"}


@requirement("ui-stream:approval")
async def test_always_in_this_thread_asks_no_second_time_and_only_there(serve: Serve) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent)
    page = Page(served.http)
    first = await page.say("delete a")
    given = {
        "approvalId": first.one("tool-approval-request")["approvalId"],
        "approved": True,
        "scope": "thread",
    }
    assert (await page.http.post("/api/tools/approve", json=given)).json() == {"ok": True}
    assert (await page.resume()).finish == "stop"
    again = await page.say("delete a again")
    assert "tool-approval-request" not in again.kinds
    assert again.finish == "stop"
    assert len(scene.ran) == 2
    assert "tool-approval-request" in (await Page(served.http).say("delete a there")).kinds


@requirement("calls:not-before-approval")
@pytest.mark.parametrize("yes", ["true", 1, None, [], {}], ids=repr)
async def test_only_a_json_boolean_is_an_answer(serve: Serve, yes: object) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("delete a")).calls
    page.part(call).update(state="approval-responded")
    page.part(call)["approval"]["approved"] = yes
    assert (await page.refused()).status == 400
    assert scene.ran == []
