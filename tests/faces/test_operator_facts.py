"""Facts for operators: on every face, people who chat get one sentence instead."""

from __future__ import annotations

import logging

import httpx2
import pytest
from starlette.requests import HTTPConnection

from farhand import Agent, Principal, ScriptedModel, tool
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.conftest import Serve
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

SECRET = "hunter2 at db.internal:5432"


@tool
def leak() -> str:
    """Look something up.

    Returns:
        What was found.
    """
    raise ConnectionError(SECRET)


def everything(request: HTTPConnection) -> Principal:
    return Principal("house", "ada", frozenset({"chat", "answer", "approve", "execute", "inspect", "client"}))


class Script:
    """Asks for the tool once, or raises; remembers what the model was told of the tool."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, moment: Moment) -> Step:
        if moment.text == "raise":
            raise LookupError(SECRET)
        if not moment.results:
            return Ask("leak")
        self.told.append(str(moment.results[-1].error))
        return "I could not look it up."


def agent(script: Script) -> Agent:
    return Agent(ScriptedModel(script), tools=[leak])


async def chatted(http: httpx2.AsyncClient, words: str) -> str:
    """All that each face says of a chat with these words."""
    page = Page(http, "chat1")
    turn = await page.say(words)
    record = await http.get("/api/chat/chat1")
    texts = [record.text, (await http.get("/api/chat")).text]
    for query in ("", "?format=raw"):
        run = await http.post(f"/agent/run{query}", json={"user_prompt": words})
        texts.append(run.text)
    executed = await http.post("/client-tools/execute", json={"toolID": "leak", "input": {}})
    assert executed.json()["status"] == "error"
    texts.append(executed.text)
    async with http.stream("GET", "/api/events?after=0.0") as events:
        async for line in events.aiter_lines():
            texts.append(line)
            if sum('"type":"run-' in each and "started" not in each for each in texts) >= 3:
                break
    return "\n".join([*texts, *(str(chunk) for chunk in turn.chunks)])


@requirement("errors:tool-failed")
async def test_what_a_tool_raises_is_for_the_model_and_the_inspector(serve: Serve, store: str) -> None:
    script = Script()
    http = (await serve(agent(script), store=store, authenticate=everything, inspector=True)).http
    texts = await chatted(http, "look")
    assert "The tool failed." in texts
    assert "hunter2" not in texts
    assert "ConnectionError" not in texts
    assert script.told[0] == f"ConnectionError: {SECRET}"
    runs = (await http.get("/api/inspect/runs")).json()["runs"]
    assert "hunter2" in (await http.get(f"/api/inspect/runs/{runs[-1]['runId']}")).text


@requirement("errors:tool-failed")
async def test_in_development_the_page_is_shown_what_a_tool_raised(serve: Serve) -> None:
    http = (await serve(agent(Script()))).http
    assert f"ConnectionError: {SECRET}" in await chatted(http, "look")


@requirement("errors:model-failed")
async def test_what_a_script_raises_is_one_sentence_for_people_and_the_rest_is_logged(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    http = (await serve(agent(Script()), authenticate=everything, inspector=True)).http
    with caplog.at_level(logging.ERROR, "farhand.runs"):
        texts = await chatted(http, "raise")
    assert "The model failed. Try again later." in texts
    assert "LookupError" not in texts
    assert "log has the details" not in texts
    assert "hunter2" not in texts.replace("ConnectionError", "")
    (record, *_) = [each for each in caplog.records if each.name == "farhand.runs"]
    assert record.levelno == logging.ERROR
    assert (record.thread_id, record.code) == ("chat1", "model_fault")  # type: ignore[attr-defined]
    assert record.run_id.startswith("run_")  # type: ignore[attr-defined]
    assert f"LookupError: {SECRET}" in record.getMessage()
    assert record.hint == "Fix the script, then send the message again."  # type: ignore[attr-defined]


@requirement("errors:model-failed")
async def test_in_development_the_page_refers_to_the_log_if_the_model_failed(serve: Serve) -> None:
    http = (await serve(agent(Script()))).http
    texts = await chatted(http, "raise")
    assert "The model failed. Try again later. The server's log has the details." in texts
    assert "LookupError" not in texts
