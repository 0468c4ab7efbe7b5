"""Mistakes of the program that uses an Agent raise a clear error immediately, and nothing is stored."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from farhand import Agent, Answer, Failure, FarhandError, ScriptedModel, Success
from farhand.errors import BadSetting, BadTool, Misuse, ResultRefused
from farhand.models.scripted import Ask
from farhand.server.app import create_app
from farhand.tools.decorate import tool
from tests.unit.agent.hands import open_url

ran: list[str] = []


@tool(needs_approval=True)
def delete_file(path: str) -> str:
    """Delete a file.

    Args:
        path: Which.

    Returns:
        What is gone.
    """
    ran.append(path)
    return f"gone {path}"


def asks(name: str, **input: object) -> Agent:
    return Agent(
        ScriptedModel([Ask(name, input), "Done.", "Again."]), tools=[delete_file], frontend_tools=[open_url]
    )


@pytest.mark.parametrize("yes", ["false", "true", 1, None])
def test_only_a_boolean_is_an_approval_or_a_denial(yes: Any) -> None:
    with pytest.raises(Misuse, match="True or False"):
        Answer(approved=yes)


# Any: what a program without a type checker may hand in
@pytest.mark.parametrize("brought", ["yes", None, Failure(None), Success(object()), Success(float("nan"))])  # type: ignore[arg-type]
async def test_what_is_no_result_is_refused_and_the_call_stays_open(brought: Any) -> None:
    async with asks("open_url", url="https://example.org") as agent:
        pause = await agent.run("hi", thread="t")
        with pytest.raises(Misuse):
            await agent.answer("t", [(pause.pending[0].call_id, brought)])
        done = await agent.answer("t", [(pause.pending[0].call_id, Success({"url": "u", "viewKey": "v"}))])
    assert done.text == "Done."


# Any: what a program without a type checker may hand in
@pytest.mark.parametrize(
    "results", [("call_1", Success("yes")), {"call_1": "yes"}, None, [Success("yes")], [(1, 2)]]
)
async def test_results_without_their_call_ids_are_refused_with_an_example(results: Any) -> None:
    async with asks("open_url", url="https://example.org") as agent:
        await agent.run("hi", thread="t")
        with pytest.raises(Misuse, match=r"results must be pairs .* \[\(call_id, Success"):
            await agent.answer("t", results)


async def test_a_result_before_its_approval_is_told_that_it_needs_one() -> None:
    async with asks("delete_file", path="a") as agent:
        pause = await agent.run("hi", thread="t")
        with pytest.raises(ResultRefused, match="needs approval first"):
            await agent.answer("t", [(pause.pending[0].call_id, Success("forged"))])
    assert ran == []


@pytest.mark.parametrize("thread", [42, "t 2/é", ""])
async def test_a_thread_that_cannot_be_named_so_is_refused_before_anything_is_stored(thread: Any) -> None:
    async with asks("open_url", url="https://example.org") as agent:
        with pytest.raises(Misuse, match="thread"):
            await agent.run("hi", thread=thread)


@pytest.mark.parametrize("prompt", [None, 5, "\ud800"])
async def test_a_prompt_that_is_no_text_is_refused(prompt: Any) -> None:
    async with asks("open_url", url="https://example.org") as agent:
        with pytest.raises(Misuse, match="prompt"):
            await agent.run(prompt)


def test_an_answer_applies_once_or_to_the_thread() -> None:
    scope: Any = "forever"
    with pytest.raises(Misuse, match="'once' or 'thread'"):
        Answer(approved=True, scope=scope)


async def test_an_owner_that_is_a_string_is_refused() -> None:
    owner: Any = "me"
    agent = Agent(ScriptedModel([]))
    for used in (
        agent.run("hi", owner=owner),
        agent.answer("t", [], owner=owner),
        agent.stop("t", owner=owner),
    ):
        with pytest.raises(Misuse, match="owner must be an Owner"):
            await used


@pytest.mark.parametrize(
    "setting",
    [
        {"max_steps": "3"},
        {"max_steps": True},
        {"max_steps": 0},
        {"store": 5},
        {"store": "notes.db"},
        {"instructions": 5},
        {"limits": {"max_steps": 3}},
    ],
)
def test_a_setting_of_the_wrong_kind_is_refused_at_once(setting: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        Agent(ScriptedModel([]), **setting)


# Any: what a program without a type checker may hand in
@pytest.mark.parametrize("model", [5, None, ScriptedModel])
def test_a_model_that_is_none_is_refused_at_once(model: Any) -> None:
    with pytest.raises(BadSetting, match="model must be"):
        Agent(model)


def test_a_function_as_model_is_told_to_be_a_script() -> None:
    model: Any = lambda moment: "hi"  # noqa: E731 - what a user writes
    with pytest.raises(BadSetting, match=r"model must be .* Write ScriptedModel\(function\)\."):
        Agent(model)


def test_a_misspelled_provider_is_answered_with_the_right_one() -> None:
    with pytest.raises(
        BadSetting, match=r"There is no model 'antropic:claude'; did you mean `anthropic:claude`\?"
    ):
        Agent("antropic:claude")


@pytest.mark.parametrize("tools", [None, 5, "delete_file", ["delete_file"]])
def test_tools_that_are_none_are_refused_at_once(tools: Any) -> None:
    for argument in ("tools", "frontend_tools"):
        with pytest.raises(BadTool, match="is not a tool"):
            Agent(ScriptedModel([]), **{argument: tools})


def test_an_agent_says_so_when_it_is_used_in_another_event_loop() -> None:
    agent = asks("open_url", url="https://example.org")
    asyncio.run(agent.run("hi", thread="t"))
    with pytest.raises(Misuse, match="another event loop"):
        asyncio.run(agent.run("hi", thread="t"))


def test_an_agent_that_was_closed_can_be_used_in_the_next_event_loop() -> None:
    agent = asks("open_url", url="https://example.org")

    async def once() -> str:
        async with agent:
            return (await agent.run("hi")).stop_reason

    assert [asyncio.run(once()), asyncio.run(once())] == ["awaiting_frontend_tools", "end"]


async def test_a_run_can_be_stopped_from_python() -> None:
    async with asks("open_url", url="https://example.org") as agent:
        await agent.run("hi", thread="t")
        assert await agent.stop("t")
        assert not await agent.stop("t")
        assert (await agent.run("and now?", thread="t")).text == "Done."


async def test_a_script_that_raises_says_what_it_raised() -> None:
    def broken(moment: object) -> str:
        raise ZeroDivisionError("by zero")

    async with Agent(ScriptedModel(broken)) as agent:
        told = await agent.run("hi")
    assert told.error is not None
    assert "ZeroDivisionError: by zero" in told.error


async def test_an_app_can_be_started_again() -> None:
    app = create_app(Agent(ScriptedModel(["One."])), store="memory:")
    for _ in range(2):
        async with app.lifespan():
            assert not app.auth.closed
            await app.service.ping()
    with pytest.raises(FarhandError):
        _ = app.service
