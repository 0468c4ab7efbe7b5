"""The page that acknowledges: one post, one response, and an ack while it is open."""

from __future__ import annotations

import pytest

from farhand.agent.agent import Agent
from farhand.core.outcome import Failure, Success
from farhand.core.principal import LOCAL
from farhand.core.settings import ChatRules, Settings, Wait
from farhand.core.thread import ResultsMessage, ToolResultPart
from farhand.models.scripted import Ask, Moment, ScriptedModel, Step
from farhand.tools.decorate import tool
from tests.faces.client_flows.ack_page import AckPage, Json
from tests.faces.conftest import Serve
from tests.faces.ui_stream.page import Page
from tests.faces.ui_stream.websocket_client import Held, wire
from tests.requirement import requirement

OPEN = Ask("open_url", {"url": "https://example.org", "timeoutSec": 60})
HELD = Settings(chat=ChatRules(wait="hold"))


@tool(executor="frontend")
# the page's own spelling of the parameter
def open_url(url: str, timeoutSec: int = 60) -> dict[str, object]:  # noqa: N803
    """Open a page in the browser panel.

    Args:
        url: Its address.
        timeoutSec: How long to wait for the panel.

    Returns:
        url and viewKey of the panel.
    """
    raise AssertionError(f"never executed here: {url} {timeoutSec}")


def agent_of(*asked: Ask, wait: Wait | None = None) -> tuple[Agent, ScriptedModel]:
    def script(moment: Moment) -> Step:
        if moment.steps == 0:
            return list(asked)
        return " ".join(f"{each.kind} {each.output or each.seen}" for each in moment.last)

    model = ScriptedModel(script)
    return Agent(model, frontend_tools=[open_url], wait=wait), model


def results_seen(model: ScriptedModel) -> tuple[ToolResultPart, ...]:
    """The results that the model was given last."""
    last = model.prompts[-1].messages[-1]
    assert isinstance(last, ResultsMessage)
    return last.results


def open_panel(input: Json) -> Json:
    return {"url": input["url"], "viewKey": "view-1"}


def refuse(input: Json) -> Json:
    raise RuntimeError(f"blocked: {input['url']}")


# ------------------------------------------------------------------------------------------ the default wait


@requirement("ack:hold")
@pytest.mark.parametrize("by", ["setting", "agent"])
async def test_a_page_that_sends_no_wait_is_held_where_the_server_or_the_agent_says_so(
    serve: Serve, store: str, by: str
) -> None:
    agent, model = agent_of(OPEN, wait=None if by == "setting" else "hold")
    served = await serve(agent, store=store, settings=HELD if by == "setting" else Settings())
    page = AckPage(served.http, {"open_url": open_panel})
    await page.ask("open it")
    assert page.acks == [(200, {"ok": True})]
    assert page.kinds.count("start") == page.kinds.count("finish") == 1
    assert page.one("tool-output-available")["output"] == {"url": "https://example.org", "viewKey": "view-1"}
    assert page.text.startswith("success")
    assert page.one("finish")["finishReason"] == "stop"
    [result] = results_seen(model)
    # the output alone: the ids and times of an ack are noise to a model
    assert result.outcome == Success({"url": "https://example.org", "viewKey": "view-1"})


@requirement("ack:hold")
@pytest.mark.parametrize("wait", [None, "turn"])
async def test_the_agents_wait_wins_over_the_setting_and_the_requests_over_both(
    serve: Serve, wait: Wait | None
) -> None:
    agent, _ = agent_of(OPEN, wait="turn" if wait is None else "hold")
    served = await serve(agent, settings=HELD)
    page = AckPage(served.http, {})
    await page.ask("open it", **({} if wait is None else {"wait": wait}))
    assert page.one("finish")["finishReason"] == "tool-calls"
    assert "tool-output-available" not in page.kinds


@requirement("ack:hold")
async def test_the_held_socket_ends_its_exchanges_whatever_the_default_is(serve: Serve) -> None:
    agent, _ = agent_of(OPEN)
    served = await serve(agent, settings=HELD)
    async with wire(served, "/api/chat/live") as socket:
        held = Held(socket, Page(served.http))
        await held.message("open it")
        assert (await held.turn()).finish == "tool-calls"


# --------------------------------------------------------------------------------------------------- the acks


@requirement("ack:model-sees")
@pytest.mark.parametrize("path", ["/api/tools/ack", "/ai/tools/ack"])
async def test_a_handler_that_fails_is_a_failure_with_its_error_text(serve: Serve, path: str) -> None:
    agent, model = agent_of(OPEN)
    served = await serve(agent, settings=HELD)
    page = AckPage(served.http, {"open_url": refuse}, path=path)
    await page.ask("open it")
    assert page.acks == [(200, {"ok": True})]
    assert page.one("tool-output-error")["errorText"] == "blocked: https://example.org"
    [result] = results_seen(model)
    assert result.outcome == Failure("blocked: https://example.org")
    # the manual retry: the model continued with the failure, and what a person does later changes nothing
    call = page.one("tool-input-available")["toolCallId"]
    status, body = await page.ack(call, "success", output={})
    assert (status, body["ok"], body["reason"], body["status"]) == (409, False, "conflict", "failed")


@requirement("ack:receipts")
async def test_a_repeated_ack_is_ignored_and_an_unknown_or_missing_id_is_refused(serve: Serve) -> None:
    agent, _ = agent_of(OPEN)
    served = await serve(agent, settings=HELD)
    page = AckPage(served.http, {"open_url": open_panel})
    await page.ask("open it")
    call = page.one("tool-input-available")["toolCallId"]
    again = page.one("tool-output-available")["output"]
    assert await page.ack(call, "success", output=again) == (200, {"ok": True, "ignored": True})
    assert await page.ack("call_never", "success", output={}) == (404, {"ok": False, "reason": "unknown"})
    response = await served.http.post(page.path, json={"status": "success", "output": {}})
    assert (response.status_code, response.json()["ok"]) == (400, False)
    assert await page.ack(call, "done") == (400, page.acks[-1][1])


@pytest.mark.slow
@requirement("ack:timeout")
async def test_without_an_ack_the_response_continues_after_the_seconds_the_model_chose(serve: Serve) -> None:
    agent, model = agent_of(Ask("open_url", {"url": "u", "timeoutSec": 1}))
    served = await serve(agent, settings=HELD)
    page = AckPage(served.http, {})
    await page.ask("open it")
    assert page.one("tool-output-error")["errorText"] == "Nobody answered within 1 s."
    assert page.text == 'timed_out {"status":"timeout"}'
    call = page.one("tool-input-available")["toolCallId"]
    # 410, not a cached ok: nothing that comes late may settle a later call
    expired = (410, {"ok": False, "reason": "expired", "status": "timeout"})
    assert await page.ack(call, "success", output={}) == expired
    assert len(model.prompts) == 2


@requirement("ack:timeout")
async def test_a_held_call_gets_a_minute_if_the_model_does_not_choose(serve: Serve) -> None:
    agent, _ = agent_of(Ask("open_url", {"url": "u"}))
    served = await serve(agent, settings=HELD)
    spans: list[float] = []

    class Curious(AckPage):
        async def _take(self, chunk: Json) -> None:
            if chunk["type"] == "tool-input-available":
                [call] = await served.service.log.open_calls(LOCAL)
                spans.append((call.deadline or 0.0) - call.opened_at)
            await super()._take(chunk)

    await Curious(served.http, {"open_url": open_panel}).ask("open it")
    assert spans == [60.0]


@requirement("ack:model-sees")
async def test_a_timeout_that_the_page_reports_is_a_failure(serve: Serve) -> None:
    agent, model = agent_of(OPEN)
    served = await serve(agent, settings=HELD)

    class Impatient(AckPage):
        async def _take(self, chunk: Json) -> None:
            self.chunks.append(chunk)
            if chunk["type"] == "tool-input-available":
                await self.ack(chunk["toolCallId"], "timeout")

    page = Impatient(served.http, {})
    await page.ask("open it")
    assert page.acks == [(200, {"ok": True})]
    [result] = results_seen(model)
    assert result.outcome == Failure("timeout")
