"""Approvals in separate requests: allowed, denied, edited, once or always, on held and parked runs."""

from __future__ import annotations

import pytest

from farhand.core.outcome import Denied
from farhand.models.scripted import Ask
from farhand.store.open import open_store
from farhand.testing import FakeClock
from tests.faces.ack.desk import DELETE, IGNORED, OK, PHOTO, UNKNOWN, Hand, asked, held, opened
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]


@requirement("ack:approve")
async def test_an_approval_on_a_held_response_runs_the_server_tool_in_it(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent, store=store)
    async with held(served.http).saying("delete") as live:
        _, approval = await asked(live)
        assert scene.ran == []
        assert await Hand(served.http).approve(approval) == OK
        turn = await live.rest()
    assert turn.kinds[-8:] == ["finish-step", "tool-output-available", *TEXT, "finish"]
    assert scene.ran == [("delete_file", "a")]


@requirement("ack:approve")
async def test_an_approval_on_a_held_response_hands_the_frontend_tool_out_in_it(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(PHOTO))
    served = await serve(scene.agent, store=store)
    hand = Hand(served.http)
    async with held(served.http).saying("photo") as live:
        call, approval = await asked(live)
        assert await hand.approve(approval) == OK
        assert await opened(live) == call
        assert await hand.ack(call, output={"name": "p"}) == OK
        turn = await live.rest()
    assert turn.kinds[-8:] == ["tool-input-available", "tool-output-available", *TEXT, "finish"]


@requirement("ack:approve")
async def test_a_denial_carries_its_reason_to_the_model(serve: Serve) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent)
    async with held(served.http).saying("delete") as live:
        _, approval = await asked(live)
        assert await Hand(served.http).approve(approval, approved=False, reason="mine") == OK
        turn = await live.rest()
    assert "tool-output-denied" in turn.kinds
    assert (scene.seen[0].outcome, scene.ran) == (Denied("mine"), [])


@requirement("ack:approve")
async def test_an_approval_on_a_parked_run_resumes_it_and_the_page_follows(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent, store=store)
    page = Page(served.http)
    approval = (await page.say("delete")).one("tool-approval-request")["approvalId"]
    assert await Hand(served.http).approve(approval) == OK
    assert (await page.resume()).text == "delete_file: success {'deleted': 'a'}."
    assert scene.ran == [("delete_file", "a")]


@requirement("ack:approve")
async def test_the_same_answer_again_is_ignored_and_another_one_is_a_conflict(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent, store=store)
    hand = Hand(served.http)
    page = Page(served.http)
    approval = (await page.say("delete")).one("tool-approval-request")["approvalId"]
    assert await hand.approve(approval, approved=False, reason="no") == OK
    assert await hand.approve(approval, approved=False, reason="no") == IGNORED
    status, body = await hand.approve(approval)
    assert (status, body["ok"], body["reason"], body["status"]) == (409, False, "conflict", "denied")
    await page.resume()
    assert scene.ran == []


@requirement("ack:approve")
async def test_a_denial_after_an_approval_is_a_conflict_and_the_tool_runs_once(serve: Serve) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent)
    hand = Hand(served.http)
    page = Page(served.http)
    approval = (await page.say("delete")).one("tool-approval-request")["approvalId"]
    assert await hand.approve(approval) == OK
    status, body = await hand.approve(approval, approved=False)
    assert (status, body["reason"], body["status"]) == (409, "conflict", "approved")
    await page.resume()
    assert scene.ran == [("delete_file", "a")]


@requirement("ack:approve")
async def test_an_edited_input_is_what_runs_and_what_the_model_hears_of(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent, store=store)
    hand = Hand(served.http)
    page = Page(served.http)
    approval = (await page.say("delete")).one("tool-approval-request")["approvalId"]
    assert await hand.approve(approval, input={"path": "b"}) == OK
    assert await hand.approve(approval, input={"path": "b"}) == IGNORED
    assert (await hand.approve(approval))[0] == 409
    assert (await page.resume()).finish == "stop"
    assert scene.ran == [("delete_file", "b")]
    assert scene.seen[0].input == {"path": "b"}


@requirement("ack:approve")
@pytest.mark.parametrize("wrong", [{"path": 1}, {}, {"path": "b", "more": 1}], ids=str)
async def test_an_edit_that_breaks_the_schema_is_refused_and_the_question_stays_open(
    serve: Serve, wrong: dict[str, object]
) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent)
    hand = Hand(served.http)
    page = Page(served.http)
    approval = (await page.say("delete")).one("tool-approval-request")["approvalId"]
    status, body = await hand.approve(approval, input=wrong)
    assert (status, body["ok"], body["reason"]) == (400, False, "invalid")
    assert "delete_file" in body["detail"]
    assert await hand.approve(approval) == OK
    await page.resume()
    assert scene.ran == [("delete_file", "a")]


@requirement("ack:approve")
async def test_an_approval_for_the_thread_holds_for_later_calls_there(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent, store=store)
    page = held(served.http)
    async with page.saying("delete") as live:
        _, approval = await asked(live)
        assert await Hand(served.http).approve(approval, scope="thread") == OK
        await live.rest()
    again = await page.say("delete again")
    assert "tool-approval-request" not in again.kinds
    assert scene.ran == [("delete_file", "a")] * 2


@requirement("ack:approve")
async def test_a_denial_for_the_thread_denies_this_call_alone(serve: Serve) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent)
    page = held(served.http)
    async with page.saying("delete") as live:
        _, approval = await asked(live)
        assert await Hand(served.http).approve(approval, approved=False, scope="thread") == OK
        await live.rest()
    async with page.saying("delete again") as live:
        _, approval = await asked(live)
        assert await Hand(served.http).approve(approval) == OK
        await live.rest()
    assert scene.ran == [("delete_file", "a")]


@requirement("ack:approve")
async def test_an_approval_that_came_too_late_is_gone(serve: Serve) -> None:
    clock = FakeClock()
    scene = Scene(once(DELETE))
    served = await serve(scene.agent, store=await open_store("memory:", clock))
    page = Page(served.http)
    approval = (await page.say("delete")).one("tool-approval-request")["approvalId"]
    clock.advance(3 * 24 * 3600)
    gone = (410, {"ok": False, "reason": "expired", "status": "timeout"})
    assert await Hand(served.http).approve(approval) == gone
    await page.resume()
    assert (scene.ran, scene.seen[0].seen) == ([], '{"status":"timeout"}')


@requirement("ack:approve")
async def test_two_questions_of_a_held_step_are_answered_in_any_order(serve: Serve) -> None:
    scene = Scene(once(DELETE, Ask("delete_file", {"path": "b"})))
    served = await serve(scene.agent)
    hand = Hand(served.http)
    async with held(served.http).saying("delete") as live:
        (_, one), (_, two) = await asked(live), await asked(live)
        assert await hand.approve(two) == OK
        assert await hand.approve(one, approved=False) == OK
        turn = await live.rest()
    assert turn.finish == "stop"
    assert [each.kind for each in scene.seen] == ["denied", "success"]


@requirement("ack:refusals")
@pytest.mark.parametrize(
    "wrong",
    [
        {"approved": "true"},
        {"approved": 1},
        {"approved": None},
        {"scope": "always"},
        {"input": []},
        {"reason": 1},
    ],
    ids=str,
)
async def test_only_what_the_contract_names_is_an_answer(serve: Serve, wrong: dict[str, object]) -> None:
    scene = Scene(once(DELETE))
    served = await serve(scene.agent)
    hand = Hand(served.http)
    approval = (await Page(served.http).say("delete")).one("tool-approval-request")["approvalId"]
    status, body = await hand.post("/api/tools/approve", {"approvalId": approval, "approved": True, **wrong})
    assert (status, body["ok"], body["reason"]) == (400, False, "invalid")
    assert scene.ran == []
    assert await hand.approve(approval, reason=None, extra="ignored") == OK


@requirement("ack:unknown")
async def test_an_approval_of_nothing_is_unknown(serve: Serve) -> None:
    hand = Hand((await serve(Scene(["x"]).agent)).http)
    assert await hand.approve("apr_" + "0" * 32) == UNKNOWN
