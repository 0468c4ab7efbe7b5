"""Results by POST: accepted once, with a correct receipt for every later one, and what the model sees."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.outcome import Failure, Success
from farhand.core.principal import LOCAL
from farhand.core.settings import Settings, Timeouts
from farhand.models.scripted import Ask
from farhand.store.open import open_store
from farhand.testing import FakeClock
from tests.faces.ack.desk import IGNORED, OK, OPEN, PHOTO, UNKNOWN, Hand, held, opened
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]
CALL = ["start-step", "tool-input-start", "tool-input-delta", "tool-input-available", "finish-step"]
QUICK = Settings(timeouts=Timeouts(hold_for=0.2))


# --------------------------------------------------------------------------------------------- the held wait


@requirement("ack:hold")
async def test_a_held_response_continues_when_the_ack_is_accepted(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent, store=store)
    hand = Hand(served.http)
    async with held(served.http).saying("open") as live:
        call = await opened(live)
        assert await hand.ack(call, output={"url": "u", "viewKey": "v"}) == OK
        turn = await live.rest()
    assert turn.kinds == ["start", *CALL, "tool-output-available", *TEXT, "finish"]
    assert turn.one("tool-output-available")["output"] == {"url": "u", "viewKey": "v"}
    assert [each.outcome for each in scene.seen] == [Success({"url": "u", "viewKey": "v"})]


@requirement("ack:hold")
async def test_two_calls_of_a_step_are_held_until_both_are_answered(serve: Serve) -> None:
    scene = Scene(once(OPEN, Ask("ask_text", {"question": "?"})))
    served = await serve(scene.agent)
    hand = Hand(served.http)
    async with held(served.http).saying("both") as live:
        one, two = await opened(live), await opened(live)
        assert await hand.ack(two, output="text") == OK
        assert (await live.until("tool-output-available"))["toolCallId"] == two
        assert len(scene.model.prompts) == 1
        assert await hand.ack(one, output={}) == OK
        turn = await live.rest()
    assert turn.finish == "stop"
    assert [each.output for each in scene.seen] == [{}, "text"]


@requirement("ack:hold")
async def test_when_nobody_answers_in_time_the_run_parks_and_a_later_ack_resumes_it(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent, store=store, settings=QUICK)
    page = held(served.http)
    turn = await page.say("open")
    assert (turn.kinds, turn.finish) == (["start", *CALL, "finish"], "tool-calls")
    assert await Hand(served.http).ack(turn.calls[0], output={"n": 1}) == OK
    assert (await page.resume()).text == "open_url: success {'n': 1}."


@requirement("ack:hold")
async def test_a_held_run_that_nobody_reads_parks_and_can_be_answered(serve: Serve) -> None:
    settings = Settings(timeouts=Timeouts(unread_for=0.1))
    scene = Scene(once(OPEN))
    served = await serve(scene.agent, settings=settings)
    page = held(served.http)
    async with page.saying("open") as live:
        call = await opened(live)
    async with asyncio.timeout(20):
        # to look at it through the stream would be to read it
        while not (await served.service.last_run(LOCAL, page.id)).parked:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert await Hand(served.http).ack(call, output={}) == OK
    assert (await page.resume()).finish == "stop"


@requirement("ack:across")
async def test_a_call_of_a_turn_is_answered_through_ack_and_the_page_resumes(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent, store=store)
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    assert await Hand(served.http).ack(call, output={"n": 1}) == OK
    assert (await page.resume()).text == "open_url: success {'n': 1}."


@requirement("ack:across")
async def test_a_call_of_a_held_response_is_answered_through_the_chat(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent, store=store)
    page = held(served.http)
    async with page.saying("open") as live:
        call = await opened(live)
        await live.until("finish-step")
        tab = Page(served.http, page.id)
        tab.messages = [{**page.messages[-1], "parts": [dict(part) for part in page.messages[-1]["parts"]]}]
        tab.output(call, {"n": 1})
        other = await tab.send()
        turn = await live.rest()
    assert turn.text == other.text == "open_url: success {'n': 1}."
    assert await Hand(served.http).ack(call, output={"n": 1}) == IGNORED


@requirement("ack:across")
async def test_a_post_after_the_ack_shows_the_stored_output(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent)
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    assert await Hand(served.http).ack(call, output={"n": 1}) == OK
    page.output(call, {"n": 2})
    turn = await page.send()
    assert turn.one("tool-output-available")["output"] == {"n": 1}
    assert turn.finish == "stop"


@requirement("ack:hold")
async def test_a_joint_answer_on_a_held_run_is_not_handed_out_to_be_run_again(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    served = await serve(scene.agent)
    page = held(served.http)
    async with page.saying("photo") as live:
        request = await live.until("tool-approval-request")
        await live.until("finish-step")
        tab = held(served.http)
        tab.id = page.id
        tab.messages = [{**page.messages[-1], "parts": [dict(part) for part in page.messages[-1]["parts"]]}]
        tab.approve(request["toolCallId"])
        tab.output(request["toolCallId"], {"name": "p"})
        turn = await tab.send()
        await live.rest()
    assert turn.kinds == ["start", "tool-output-available", *TEXT, "finish"]


@requirement("ack:hold")
async def test_a_held_post_that_leaves_questions_open_on_a_parked_run_ends(serve: Serve) -> None:
    scene = Scene(once(OPEN, Ask("ask_text", {"question": "?"})))
    served = await serve(scene.agent)
    page = Page(served.http)
    one, two = (await page.say("both")).calls
    page.wait = "hold"
    page.output(one, {})
    partly = await page.send()
    assert (partly.kinds, partly.finish) == (["start", "tool-output-available", "finish"], "tool-calls")
    page.output(two, "text")
    assert (await page.send()).finish == "stop"


# --------------------------------------------------------------------------------------------------- receipts


@requirement("ack:receipts")
async def test_the_older_path_takes_the_same_ack(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent)
    [call] = (await Page(served.http).say("open")).calls
    hand = Hand(served.http)
    body = {"toolCallId": call, "status": "success", "output": 1}
    assert await hand.post("/ai/tools/ack", body) == OK
    assert await hand.post("/ai/tools/ack", body) == IGNORED
    assert await hand.post("/api/tools/ack", body) == IGNORED


@requirement("ack:receipts")
async def test_the_same_ack_again_is_ignored_and_another_one_is_told_the_winner(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent, store=store)
    hand = Hand(served.http)
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    assert await hand.ack(call, output={"a": 1, "b": 2}) == OK
    assert await hand.ack(call, output={"b": 2, "a": 1}) == IGNORED
    losers = [
        await hand.ack(call, output={"a": 1.0, "b": 2}),
        await hand.ack(call, output=None),
        await hand.ack(call, "failed", errorText="no"),
    ]
    assert {status for status, _ in losers} == {409}
    assert all(body == losers[0][1] for _, body in losers)
    winner = losers[0][1]
    assert {**winner, "digest": len(winner["digest"])} == {
        "ok": False,
        "reason": "conflict",
        "status": "success",
        "digest": 64,
    }
    await page.resume()
    assert scene.seen[0].output == {"a": 1, "b": 2}


@requirement("ack:receipts")
async def test_a_repeated_bad_output_is_ignored_too(serve: Serve) -> None:
    scene = Scene(once(Ask("ask_text", {"question": "?"})))
    served = await serve(scene.agent)
    hand = Hand(served.http)
    [call] = (await Page(served.http).say("ask")).calls
    assert await hand.ack(call, output=42) == OK
    assert await hand.ack(call, output=42) == IGNORED
    status, body = await hand.ack(call, output="42")
    assert (status, body["reason"], body["status"]) == (409, "conflict", "failed")


@requirement("ack:unknown")
@pytest.mark.parametrize("call_id", ["", "x", "call_" + "0" * 32, "apr_" + "0" * 32, "call_" * 1000, "é"])
async def test_an_id_that_was_never_issued_is_unknown_and_leaves_no_trace(serve: Serve, call_id: str) -> None:
    hand = Hand((await serve(Scene(["x"]).agent)).http)
    assert [await hand.ack(call_id, output=1) for _ in range(2)] == [UNKNOWN, UNKNOWN]
    assert await hand.take(call_id) == UNKNOWN
    assert await hand.approve(call_id) == UNKNOWN


@requirement("ack:unknown")
async def test_an_approval_id_is_no_call_id_nor_the_other_way_round(serve: Serve) -> None:
    served = await serve(Scene(once(PHOTO)).agent)
    hand = Hand(served.http)
    request = (await Page(served.http).say("photo")).one("tool-approval-request")
    assert await hand.ack(request["approvalId"], output=1) == UNKNOWN
    assert await hand.take(request["approvalId"]) == UNKNOWN
    assert await hand.approve(request["toolCallId"]) == UNKNOWN
    assert await hand.approve(request["approvalId"]) == OK


@requirement("ack:unknown")
async def test_a_server_tool_cannot_be_answered_or_taken(serve: Serve) -> None:
    scene = Scene(once(Ask("slow", {"subject": "tea"})))
    served = await serve(scene.agent)
    hand = Hand(served.http)
    async with Page(served.http).saying("tea") as live:
        call = await opened(live)
        assert await hand.ack(call, output="coffee") == UNKNOWN
        assert await hand.take(call) == UNKNOWN
        scene.gate("tea").set()
        assert (await live.rest()).one("tool-output-available")["output"] == {"waited": "tea"}


@requirement("calls:not-before-approval")
async def test_a_result_before_the_approval_is_refused_and_the_call_stays_open(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    served = await serve(scene.agent)
    hand = Hand(served.http)
    page = Page(served.http)
    request = (await page.say("photo")).one("tool-approval-request")
    refused = (409, {"ok": False, "reason": "not_approved"})
    assert await hand.ack(request["toolCallId"], output=1) == refused
    assert await hand.take(request["toolCallId"]) == refused
    assert await hand.approve(request["approvalId"]) == OK
    assert await hand.ack(request["toolCallId"], output={"name": "p"}) == OK
    assert (await page.resume()).finish == "stop"


# ---------------------------------------------------------------------------------------- what the model sees


@requirement("ack:model-sees")
async def test_a_failure_reaches_the_model_with_its_text(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent)
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    assert await Hand(served.http).ack(call, "failed", errorText="no panel", output={"ignored": True}) == OK
    turn = await page.resume()
    assert turn.one("tool-output-error")["errorText"] == "no panel"
    assert scene.seen[0].seen == '{"status":"failed","errorText":"no panel"}'


@requirement("ack:model-sees")
@pytest.mark.parametrize(("text", "told"), [(None, "timeout"), ("gave up", "gave up")])
async def test_a_timeout_that_a_client_reports_is_a_failure(
    serve: Serve, text: str | None, told: str
) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent)
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    assert await Hand(served.http).ack(call, "timeout", errorText=text) == OK
    await page.resume()
    assert scene.seen[0].outcome == Failure(told)
    status, body = await Hand(served.http).ack(call, output=1)
    assert (status, body["reason"], body["status"]) == (409, "conflict", "failed")


@requirement("ack:model-sees")
@pytest.mark.parametrize("output", [None, 0, "text", [1, 2], {"ä": "ö"}, True, 1.5, ""], ids=repr)
async def test_a_success_hands_the_model_the_output_alone(serve: Serve, output: object) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent)
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    at = "2026-11-15T12:34:56.789Z"
    assert await Hand(served.http).ack(call, output=output, requestedAt=at, errorText=None) == OK
    assert (await page.resume()).one("tool-output-available")["output"] == output
    assert scene.seen[0].outcome == Success(output)


@pytest.mark.slow
@requirement("ack:timeout")
async def test_no_ack_in_time_is_a_timeout_for_the_model_and_410_for_whoever_is_late(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(Ask("pick_quickly", {"label": "?"})))
    served = await serve(scene.agent, store=store)
    hand = Hand(served.http)
    async with held(served.http).saying("pick") as live:
        call = await opened(live)
        turn = await live.rest()
    assert turn.one("tool-output-error")["errorText"] == "Nobody answered within 1 s."
    assert scene.seen[0].seen == '{"status":"timeout"}'
    expired = (410, {"ok": False, "reason": "expired", "status": "timeout"})
    assert [await hand.ack(call, output=1), await hand.ack(call, "timeout")] == [expired, expired]
    assert await hand.take(call) == expired


@requirement("ack:timeout")
async def test_the_deadline_is_judged_by_the_stores_clock_at_the_ack_itself(serve: Serve) -> None:
    clock = FakeClock()
    scene = Scene(once(OPEN))
    served = await serve(scene.agent, store=await open_store("memory:", clock))
    hand = Hand(served.http)
    async with held(served.http).saying("open") as live:
        call = await opened(live)
        # a minute is what a held call gets if its tool says nothing
        clock.advance(60)
        assert await hand.ack(call, output=1) == (
            410,
            {"ok": False, "reason": "expired", "status": "timeout"},
        )
        turn = await live.rest()
    assert turn.one("tool-output-error")["errorText"] == "Nobody answered within 60 s."


@requirement("ack:timeout")
async def test_a_parked_call_stays_answerable_for_days(serve: Serve) -> None:
    clock = FakeClock()
    scene = Scene(once(OPEN))
    served = await serve(scene.agent, store=await open_store("memory:", clock))
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    clock.advance(3 * 24 * 3600 - 1)
    assert await Hand(served.http).ack(call, output={"n": 1}) == OK
    assert (await page.resume()).finish == "stop"


@requirement("ack:timeout")
async def test_a_timeout_that_a_client_reports_revives_nothing(serve: Serve) -> None:
    clock = FakeClock()
    served = await serve(Scene(once(OPEN)).agent, store=await open_store("memory:", clock))
    [call] = (await Page(served.http).say("open")).calls
    clock.advance(3 * 24 * 3600)
    assert await Hand(served.http).ack(call, "timeout") == (
        410,
        {"ok": False, "reason": "expired", "status": "timeout"},
    )


@requirement("ack:receipts")
async def test_acks_of_one_call_at_once_have_one_winner(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN))
    served = await serve(scene.agent, store=store)
    hand = Hand(served.http)
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(hand.ack(call, output=number)) for number in range(10)]
    answers = [task.result() for task in tasks]
    assert [status for status, _ in sorted(answers, key=str)].count(200) == 1
    assert len({body["digest"] for status, body in answers if status == 409}) == 1
    winner = next(number for number, (status, _) in enumerate(answers) if status == 200)
    assert (await page.resume()).one("tool-output-available")["output"] == winner


# ------------------------------------------------------------------------------ answers that can be changed


@requirement("ack:changeable")
async def test_an_answer_that_does_not_fit_is_told_so_and_can_be_changed(serve: Serve) -> None:
    served = await serve(Scene(once(Ask("ask_text", {"question": "Name?"}))).agent)
    hand = Hand(served.http)
    [call] = (await Page(served.http).say("ask")).calls
    status, told = await hand.ack(call, output=5, onlyIfFits=True)
    assert (status, told["ok"], told["reason"]) == (400, False, "invalid")
    assert told["detail"].startswith("The answer does not fit 'ask_text'")
    assert await hand.ack(call, output="Ada", onlyIfFits=True) == OK
    # the receipts are the same as for any other result
    assert await hand.ack(call, output="Ada", onlyIfFits=True) == IGNORED
    assert (await hand.ack(call, output=5, onlyIfFits=True))[0] == 409
    assert await hand.ack("call_" + "0" * 32, output=5, onlyIfFits=True) == UNKNOWN


@requirement("ack:changeable")
async def test_a_failure_always_fits(serve: Serve) -> None:
    served = await serve(Scene(once(Ask("ask_text", {"question": "Name?"}))).agent)
    [call] = (await Page(served.http).say("ask")).calls
    assert await Hand(served.http).ack(call, "failed", errorText="skipped by the user", onlyIfFits=True) == OK
