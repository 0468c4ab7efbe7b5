"""The demo's agent, executed: its model, its loop, its tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from farhand.core.outcome import Success
from farhand.demo import scratch_folder as scratch_module
from farhand.demo.agent import agent, demo_agent
from farhand.demo.scratch_folder import FOLDER_VARIABLE, scratch
from farhand.errors import BadSetting, ResultRefused
from farhand.models.scripted import ScriptedModel


async def test_a_server_tool_answers_in_one_go() -> None:
    async with demo_agent() as demo:
        result = await demo.run("What is the weather in Oslo?")
    assert result.stop_reason == "end"
    assert "It is Sunny in Oslo" in result.text


async def test_a_browser_tool_pauses_the_run_and_its_answer_reaches_the_model() -> None:
    async with demo_agent() as demo:
        paused = await demo.run("Open https://example.com", thread="t1")
        opened = Success({"url": "https://example.com", "viewKey": "v7"})
        result = await demo.answer("t1", [(call.call_id, opened) for call in paused.pending])
    assert [(call.tool, call.input) for call in paused.pending] == [
        ("open_url", {"url": "https://example.com"})
    ]
    assert (result.stop_reason, "(view v7)" in result.text) == ("end", True)


async def test_two_calls_of_one_turn_are_answered_together() -> None:
    async with demo_agent() as demo:
        paused = await demo.run("Two things at once", thread="t1")
        name, color = (call.call_id for call in paused.pending)
        result = await demo.answer("t1", [(name, Success("Ada")), (color, Success({"hex": "#112233"}))])
    assert result.text == "Thank you, Ada. #112233 suits you."


async def test_no_file_is_deleted_without_an_approval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch_module, "_created", [])
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    async with demo_agent() as demo:
        paused = await demo.run("Delete old-draft.txt", thread="t1")
        (asking,) = paused.pending
        with pytest.raises(ResultRefused, match="needs approval first"):
            await demo.answer("t1", [(asking.call_id, Success({"deleted": "old-draft.txt"}))])
    assert asking.approval_id is not None
    assert "old-draft.txt" in scratch().files()


async def test_another_model_can_be_put_in() -> None:
    async with demo_agent(ScriptedModel(["I am another."])) as demo:
        assert (await demo.run("hello")).text == "I am another."


def test_a_model_nobody_knows_is_refused_when_it_is_named() -> None:
    with pytest.raises(BadSetting):
        demo_agent("nobody:nothing")


def test_the_module_has_an_agent_to_serve() -> None:
    assert agent.spec.model.name == "scripted"
    assert len(agent.spec.toolbox) == 15
