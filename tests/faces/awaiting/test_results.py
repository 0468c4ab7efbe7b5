"""POST /agent/tool_results: all answers of a pause, taken together, once."""

from __future__ import annotations

import asyncio

import pytest

from farhand.calls.wait import wait_until_settled
from farhand.core.outcome import Failure, Success
from farhand.core.principal import LOCAL
from farhand.core.thread import ResultsMessage
from farhand.models.scripted import Ask, ScriptedModel, Step
from tests.faces.awaiting.agents import agent_with
from tests.faces.awaiting.client import Page, Turn, result
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.requirement import requirement

CONFIRM = Ask("user_confirm", {"message": "Sure?"})
COLOR = Ask("pick_color", {"label": "wall"})
QUICK = Ask("quick_pick", {"label": "now"})
NEVER = "call_" + "0" * 32


async def paused(serve: Serve, store: str, *steps: Step) -> tuple[Served, Page, Turn, ScriptedModel]:
    model = ScriptedModel(list(steps))
    server = await serve(agent_with(model), store=store)
    page = Page(server.http)
    return server, page, await page.run("hi"), model


@requirement("awaiting:resume-results")
async def test_results_resume_the_run_and_its_stream_continues(serve: Serve, store: str) -> None:
    _, page, turn, model = await paused(serve, store, [CONFIRM], "Thanks.")
    resumed = await page.answer(result(turn.pause[0], "yes", is_error=False))
    assert resumed.status == 200
    assert resumed.text == "Thanks."
    assert resumed.frames[0].id == turn.last_id
    assert resumed.datas[-1] == "[DONE]"
    assert outcomes(model) == [Success("yes")]


@requirement("awaiting:resume-results")
async def test_an_error_is_a_failure_for_the_model(serve: Serve, store: str) -> None:
    _, page, turn, model = await paused(serve, store, [CONFIRM], "Too bad.")
    assert (await page.answer(result(turn.pause[0], "skipped", is_error=True))).text == "Too bad."
    assert outcomes(model) == [Failure("skipped")]


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ('{"hex": "#abc"}', Success({"hex": "#abc"})),
        ('{"hex": "#abc", "extra": [1, null]}', Success({"hex": "#abc", "extra": [1, None]})),
    ],
)
async def test_content_is_read_as_json_for_a_tool_that_returns_no_text(
    serve: Serve, content: str, seen: Success
) -> None:
    _, page, turn, model = await paused(serve, "memory:", [COLOR], "Nice.")
    await page.answer(result(turn.pause[0], content))
    assert outcomes(model) == [seen]


@pytest.mark.parametrize("content", ["{not json", "[" * 2000, '{"a":1,"a":2}', "NaN", ""])
async def test_what_is_not_json_stays_a_string(serve: Serve, content: str) -> None:
    _, page, turn, model = await paused(serve, "memory:", [COLOR], "Hm.")
    assert (await page.answer(result(turn.pause[0], content))).text == "Hm."
    assert outcomes(model) == [Success(content)]


@pytest.mark.parametrize("content", ['{"a": 1}', "123", "true", '"quoted"'])
async def test_content_of_a_tool_that_returns_text_is_never_read_as_json(serve: Serve, content: str) -> None:
    _, page, turn, model = await paused(serve, "memory:", [CONFIRM], "Ok.")
    await page.answer(result(turn.pause[0], content))
    assert outcomes(model) == [Success(content)]


@requirement("awaiting:mismatch")
async def test_missing_unexpected_and_doubled_ids_are_named_and_nothing_is_applied(
    serve: Serve, store: str
) -> None:
    _, page, turn, model = await paused(serve, store, [CONFIRM, COLOR], "Done.")
    first, second = turn.pause
    one, two = result(first, "yes"), result(second, '{"hex": "#abc"}')
    posts: dict[str, tuple[list[dict[str, object]], list[str]]] = {
        "missing": ([one], [second["tool_use_id"]]),
        "unexpected": ([one, two, {"tool_use_id": NEVER, "content": ""}], [NEVER]),
        "doubled": ([one, two, one], [first["tool_use_id"]]),
    }
    for what, (post, ids) in posts.items():
        refused = await page.answer(*post)
        assert refused.status == 409
        error = refused.body["error"]
        assert error["code"] == "mismatch"
        assert error["message"].startswith("Tool result mismatch: expected ")
        assert error["detail"][what] == ids
        assert error["detail"]["expected"] == sorted(entry["tool_use_id"] for entry in turn.pause)
    assert (await page.answer()).body["error"]["detail"]["missing"] == sorted(
        entry["tool_use_id"] for entry in turn.pause
    )
    assert len(model.prompts) == 1
    assert (await page.answer(two, one)).text == "Done."


@requirement("awaiting:mismatch")
async def test_python_users_get_a_value_error_that_names_expected_and_got() -> None:
    agent = agent_with([[CONFIRM], "Thanks."])
    async with agent:
        waiting = await agent.run("hi", thread="t1")
        with pytest.raises(
            ValueError, match=r"Tool result mismatch: expected \['call_.*'\], got \['call_0+'\]"
        ):
            await agent.answer("t1", [(NEVER, Success("yes"))])
        assert (await agent.answer("t1", [(waiting.pending[0].call_id, Success("yes"))])).text == "Thanks."


@requirement("awaiting:repeated")
async def test_of_many_equal_posts_at_once_exactly_one_resumes(serve: Serve, store: str) -> None:
    _, page, turn, model = await paused(serve, store, [CONFIRM, COLOR], [CONFIRM])
    post = [result(turn.pause[0], "yes"), result(turn.pause[1], '{"hex": "#abc"}')]
    turns = await asyncio.gather(*(page.answer(*post) for _ in range(8)))
    assert sorted(each.status for each in turns) == [200] + [409] * 7
    assert {each.body["error"]["code"] for each in turns if each.status == 409} == {"repeated"}
    assert len(model.prompts) == 2
    [winner] = [each for each in turns if each.status == 200]
    assert len(winner.pause) == 1


@requirement("awaiting:repeated")
async def test_a_post_that_comes_again_later_is_repeated_also_at_the_next_pause(
    serve: Serve, store: str
) -> None:
    _, page, turn, model = await paused(serve, store, [CONFIRM], [CONFIRM], "Done.")
    post = result(turn.pause[0], "yes")
    second = await page.answer(post)
    for _ in range(2):
        again = await page.answer(post)
        assert again.status == 409
        assert again.body["error"]["code"] == "repeated"
        assert again.body["error"]["detail"] == [{"tool_use_id": post["tool_use_id"], "code": "repeated"}]
    assert len(model.prompts) == 2
    assert (await page.answer(result(second.pause[0], "yes"))).text == "Done."
    assert (await page.answer(post)).body["error"]["code"] == "repeated"


@requirement("awaiting:repeated")
async def test_another_result_for_an_answered_call_is_told_the_winner(serve: Serve, store: str) -> None:
    server, page, turn, model = await paused(serve, store, [CONFIRM], "Thanks.")
    ack = {"toolCallId": turn.pause[0]["tool_use_id"], "status": "success", "output": "no"}
    assert (await server.http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
    refused = await page.answer(result(turn.pause[0], "yes"))
    assert refused.status == 409
    assert refused.body["error"]["code"] == "conflict"
    [told] = refused.body["error"]["detail"]
    assert told["outcome"] == "success"
    assert len(told["digest"]) == 64
    assert (await page.stream()).text == "Thanks."
    assert outcomes(model) == [Success("no")]


@pytest.mark.slow
@requirement("awaiting:repeated")
async def test_a_result_after_the_deadline_of_the_only_call_is_gone(serve: Serve, store: str) -> None:
    server, page, turn, _ = await paused(serve, store, [QUICK], "Too slow.")
    await has_timed_out(server, turn.pause[0]["tool_use_id"])
    late = await page.answer(result(turn.pause[0], "late"))
    assert late.status == 410
    assert late.body["error"]["code"] == "expired"
    assert late.body["error"]["detail"][0]["outcome"] == "timed_out"
    assert (await page.stream()).text == "Too slow."


@pytest.mark.slow
@requirement("awaiting:resume-results")
async def test_entries_for_calls_that_expired_meanwhile_are_ignored_and_named(
    serve: Serve, store: str
) -> None:
    server, page, turn, model = await paused(serve, store, [QUICK, CONFIRM], "Done.")
    quick, confirm = turn.pause
    await has_timed_out(server, quick["tool_use_id"])
    resumed = await page.answer(result(quick, "late"), result(confirm, "yes"))
    assert resumed.text == "Done."
    assert resumed.datas[0].startswith("<meta_init ")
    assert resumed.datas[1].startswith("<ignored_tool_results ")
    assert resumed.control("ignored_tool_results") == [[quick["tool_use_id"]]]
    assert sum("content-block-tool_result" in data for data in resumed.datas) == 2
    assert [type(each).__name__ for each in outcomes(model)] == ["TimedOut", "Success"]


@requirement("awaiting:resume-results")
async def test_a_call_settled_meanwhile_may_also_be_left_out(serve: Serve, store: str) -> None:
    server, page, turn, _ = await paused(serve, store, [COLOR, CONFIRM], "Done.")
    color, confirm = turn.pause
    ack = {"toolCallId": color["tool_use_id"], "status": "success", "output": {"hex": "#abc"}}
    assert (await server.http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
    resumed = await page.answer(result(confirm, "yes"))
    assert resumed.text == "Done."
    assert resumed.control("ignored_tool_results") == []


@requirement("awaiting:resume-results")
async def test_what_another_face_settled_is_ignored_and_the_rest_counts(serve: Serve, store: str) -> None:
    server, page, turn, model = await paused(serve, store, [COLOR, CONFIRM], "Done.")
    color, confirm = turn.pause
    ack = {"toolCallId": color["tool_use_id"], "status": "success", "output": {"hex": "#111"}}
    await server.http.post("/api/tools/ack", json=ack)
    resumed = await page.answer(result(color, '{"hex": "#222"}'), result(confirm, "yes"))
    assert resumed.control("ignored_tool_results") == [[color["tool_use_id"]]]
    assert outcomes(model) == [Success({"hex": "#111"}), Success("yes")]


@requirement("awaiting:early-errors")
async def test_results_that_no_call_of_the_thread_waits_for_are_unknown(serve: Serve, store: str) -> None:
    server, page, turn, _ = await paused(serve, store, [CONFIRM], "Hello.", "Thanks.")
    other = Page(server.http)
    await other.run("somebody else's thread")
    refused = await other.answer(result(turn.pause[0], "yes"))
    assert refused.status == 404
    assert (await other.answer({"tool_use_id": NEVER, "content": "x"})).status == 404
    assert (await other.answer()).status == 404
    assert (await page.answer(result(turn.pause[0], "yes"))).text == "Thanks."
    # nor is it known there once it is settled
    assert (await other.answer(result(turn.pause[0], "yes"))).status == 404


@requirement("awaiting:early-errors")
async def test_a_call_that_ran_on_the_server_takes_no_result_from_elsewhere(serve: Serve, store: str) -> None:
    server, page, turn, _ = await paused(
        serve, store, [CONFIRM, Ask("get_weather", {"city": "Oslo"})], "Thanks."
    )
    run = await server.service.last_run(LOCAL, turn.agent_uuid)
    [weather] = [call for call in await server.service.calls(run) if call.tool == "get_weather"]
    forged: dict[str, object] = {"tool_use_id": weather.call_id, "content": '{"sky": "green"}'}
    assert (await page.answer(result(turn.pause[0], "yes"), forged)).status == 409
    assert (await page.answer(result(turn.pause[0], "yes"))).text == "Thanks."
    assert (await page.answer(forged)).status == 404


@requirement("awaiting:early-errors")
async def test_a_result_without_content_is_refused_and_nothing_is_applied(serve: Serve) -> None:
    _, page, turn, _ = await paused(serve, "memory:", [CONFIRM, COLOR], "Done.")
    first, second = turn.pause
    bare = {"tool_use_id": first["tool_use_id"]}
    for bad in (
        bare,
        {**bare, "content": None},
        {**bare, "content": 5},
        {**bare, "content": "x", "is_error": 1},
    ):
        refused = await page.answer(bad, result(second, "{}"))
        assert refused.status == 400
        assert refused.body["error"]["code"] == "invalid"
    assert (await page.answer(result(first, "yes"), result(second, "{}"))).text == "Done."


def outcomes(model: ScriptedModel) -> list[object]:
    """What the model was told of the calls of its last step."""
    results = model.prompts[-1].messages[-1]
    assert isinstance(results, ResultsMessage)
    return [each.outcome for each in results.results]


async def has_timed_out(server: Served, call_id: str) -> None:
    opened = await server.service.log.get_call(LOCAL, call_id)
    assert opened is not None
    call = await wait_until_settled(server.service.log, opened)
    assert call is not None
    assert call.outcome is not None
