"""What is special about Claude: errors, blank texts, and turns that keep their blocks."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest

from farhand import Answer, Failure, Success
from farhand.core.event import RunFinished
from farhand.models.base import Stop
from farhand.models.scripted import Ask, Moment, Say, Step, Think
from tests.models.stage import PROVIDERS, Stage, stage

# Any: requests are JSON
Json: TypeAlias = dict[str, Any]

ANTHROPIC = PROVIDERS[0]
BLANK = {"type": "text", "text": "\n\n"}


def results(at: Stage) -> list[Json]:
    """The results in the last request."""
    content = at.fake.requests[-1].body["messages"][-1]["content"]
    return [block for block in content if block["type"] == "tool_result"]


async def test_every_result_that_is_no_success_is_marked_as_an_error() -> None:
    def script(moment: Moment) -> Step:
        if moment.results:
            return f"{[result.kind for result in moment.results]}"
        return [
            Ask("add", {"a": 1, "b": 2}),
            Ask("add", {"a": "one"}),
            Ask("no_such_tool", {}),
            Ask("ask_text", {"question": "Who?"}),
            Ask("delete_file", {"path": "a.txt"}),
        ]

    async with stage(ANTHROPIC, script) as at:
        paused = await at.agent.run("All at once", thread="t")
        by_tool = {pending.tool: pending.call_id for pending in paused.pending}
        result = await at.agent.answer(
            "t",
            [(by_tool["ask_text"], Failure("skipped")), (by_tool["delete_file"], Answer(approved=False))],
        )
        assert [block.get("is_error", False) for block in results(at)] == [False, True, True, True, True]
        assert result.text == "['success', 'failure', 'failure', 'failure', 'failure']"


async def test_timeouts_and_cancelled_calls_are_marked_as_errors() -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("Ask") and not moment.results:
            return Ask("ask_quickly", {"question": "Who?"})
        if moment.text.endswith("Once more"):
            return Ask("ask_text", {"question": "Who?"})
        return "Well."

    async with stage(ANTHROPIC, script) as at:
        await at.agent.run("Ask", thread="t")
        await at.until("t", RunFinished)
        assert [block["is_error"] for block in results(at)] == [True]
        await at.agent.run("Once more", thread="t")
        await at.agent.run("Never mind", thread="t")
        assert [block["is_error"] for block in results(at)] == [True]


@pytest.mark.parametrize("blank", ["", " ", "\n\n"])
async def test_a_text_without_a_word_never_spoils_the_thread(blank: str) -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("Again"):
            return "Still here."
        if moment.results:
            return [Think("Done."), Think("", echo={**BLANK, "text": blank}), Say("3")]
        return [
            Think("I add."),
            Think("", echo={**BLANK, "text": blank}),
            Say("Let me see."),
            Think("", echo={**BLANK, "text": blank}),
            Think("", echo={**BLANK, "text": blank}),
            Ask("add", {"a": 1, "b": 2}),
        ]

    async with stage(ANTHROPIC, script) as at:
        assert (await at.agent.run("Add", thread="t")).text == "Let me see.3"
        assert (await at.agent.run("Again", thread="t")).text == "Still here."
        turn = at.fake.requests[-1].body["messages"][1]["content"]
        assert [block["type"] for block in turn] == ["thinking", "text", "tool_use"]


async def test_a_paused_turn_with_a_text_without_a_word_is_continued() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "oslo"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}

    def script(moment: Moment) -> Step:
        if "server_tool_use" in str(moment.messages):
            return [Think("", echo=found), Say("Found it.")]
        return [Say("Searching."), Think("", echo=BLANK), Think("", echo=search), Stop("pause")]

    async with stage(ANTHROPIC, script) as at:
        result = await at.agent.run("What is new in Oslo?", thread="t")
        assert (result.stop_reason, result.text) == ("end", "Searching.Found it.")


async def test_a_result_without_a_word_is_taken() -> None:
    def script(moment: Moment) -> Step:
        return "Nothing." if moment.results else Ask("ask_text", {"question": "Who?"})

    async with stage(ANTHROPIC, script) as at:
        for output in ("", " \n"):
            paused = await at.agent.run("Ask", thread=f"t{len(output)}")
            result = await at.agent.answer(paused.thread, [(paused.pending[0].call_id, Success(output))])
            assert result.text == "Nothing."
