"""Each rule that `FakeBackboard` keeps, broken by a request of Backboard's own library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

from farhand.models.backboard.client import BackboardAPIError, BackboardClient
from farhand.models.scripted import Ask, Step
from tests.fakes.backboard import FakeBackboard

# Any: the library has no types
Library: TypeAlias = Any

NOBODY = "00000000-0000-0000-0000-000000000000"
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
OUTPUT = {"tool_call_id": "c1", "output": "3"}


@pytest.mark.parametrize(
    ("outputs", "status"),
    [
        ([OUTPUT], 400),
        ([OUTPUT, {**OUTPUT, "tool_call_id": "c9"}], 400),
        ([OUTPUT, OUTPUT], 400),
        ([OUTPUT, {**OUTPUT, "tool_call_id": "c2", "output": {"sum": 3}}], 422),
    ],
    ids=["one is missing", "an unknown id", "one twice", "an output that is no text"],
)
async def test_a_round_takes_exactly_its_outputs_as_text(outputs: list[object], status: int) -> None:
    async with round_of_two() as (library, fake, thread, run):
        assert await refused(library.submit_tool_outputs(thread, run, outputs, stream=True)) == status
        both = [OUTPUT, {**OUTPUT, "tool_call_id": "c2"}]
        events = await heard(library.submit_tool_outputs(thread, run, both, stream=True))
        assert events[-1]["type"] == "run_ended"
        assert [request.status for request in fake.refused] == [status]


async def test_a_round_is_answered_once() -> None:
    async with round_of_two() as (library, _, thread, run):
        both = [OUTPUT, {**OUTPUT, "tool_call_id": "c2"}]
        await heard(library.submit_tool_outputs(thread, run, both, stream=True))
        assert await refused(library.submit_tool_outputs(thread, run, both, stream=True)) == 400


async def test_an_unknown_run_is_not_found() -> None:
    async with round_of_two() as (library, _, thread, _):
        assert await refused(library.submit_tool_outputs(thread, NOBODY, [OUTPUT], stream=True)) == 404


async def test_a_message_has_to_wait_for_the_round() -> None:
    async with round_of_two() as (library, _, thread, run):
        assert await refused(library.send_message("and?", thread_id=thread, stream=True)) == 400
        assert (await library.cancel_run(thread, run))["cancelled"] is True
        assert (await library.cancel_run(thread, run))["cancelled"] is False
        events = await heard(library.send_message("and?", thread_id=thread, stream=True))
        assert events[-1]["type"] == "run_ended"


async def test_a_message_needs_words_and_a_thread() -> None:
    async with round_of_two() as (library, _, thread, _):
        assert await refused(library.send_message("", thread_id=thread, stream=True)) == 400
        assert await refused(library.send_message("hello", thread_id=NOBODY, stream=True)) == 404


async def test_an_unknown_assistant_is_not_found() -> None:
    async with round_of_two() as (library, _, _, _):
        with pytest.raises(BackboardAPIError, match="Assistant not found"):
            await library.create_thread(NOBODY)


async def test_a_bad_tool_is_refused() -> None:
    async with round_of_two() as (library, _, _, _):
        bad = {"type": "function", "function": {"name": "add.numbers", "parameters": {"type": "object"}}}
        with pytest.raises(BackboardAPIError, match=r"tools\.0\.function\.name"):
            await library.create_assistant(name="a", tools=[bad])
        bad = {"type": "function", "function": {"name": "add", "parameters": {}}}
        with pytest.raises(BackboardAPIError, match=r"tools\.0\.function\.parameters\.type"):
            await library.create_assistant(name="a", tools=[bad])
        bad = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "anyOf": []}}}
        with pytest.raises(BackboardAPIError, match="no combination at the top level"):
            await library.create_assistant(name="a", tools=[bad])


async def test_a_wrong_key_is_refused() -> None:
    async with FakeBackboard([], key="right") as fake, BackboardClient("wrong", base_url=fake.url) as library:
        with pytest.raises(BackboardAPIError, match="Incorrect API key"):
            await library.list_assistants()


@asynccontextmanager
async def round_of_two() -> AsyncIterator[tuple[Library, FakeBackboard, str, str]]:
    """A thread whose run waits for the outputs of c1 and c2."""
    script: list[Step] = [[Ask("add", {}, id="c1"), Ask("add", {}, id="c2")], "Done.", "Done."]
    async with FakeBackboard(script) as fake, BackboardClient("key", base_url=fake.url) as library:
        assistant = await library.create_assistant(name="a", tools=[TOOL])
        thread = str((await library.create_thread(assistant.assistant_id)).thread_id)
        events = await heard(library.send_message("hello", thread_id=thread, stream=True))
        assert events[-1]["type"] == "tool_submit_required"
        yield library, fake, thread, events[-1]["run_id"]


async def heard(asked: Library) -> list[dict[str, Any]]:
    return [event async for event in await asked]


async def refused(asked: Library) -> int:
    with pytest.raises(BackboardAPIError) as error:
        await heard(asked)
    status: int = error.value.status_code
    return status
