"""Every way a call can end, over every provider: the model is told, and the provider accepts the history."""

from __future__ import annotations

from farhand import Answer, Failure, Success
from farhand.core.event import CallSettled, RunFinished
from farhand.core.outcome import TimedOut
from farhand.models.scripted import Ask, Moment, Step
from tests.models.stage import Provider, deleted, stage


def outputs(moment: Moment) -> list[object]:
    """What came back, as far as a provider tells: some know no errors."""
    return [result.output if result.kind == "success" else result.error for result in moment.results]


async def test_a_server_tool_runs_and_the_model_continues_with_its_output(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return ["Let me see. ", Ask("add", {"a": 2, "b": 3})]
        return f"It is {moment.results[0].output}."

    async with stage(provider, script) as at:
        result = await at.agent.run("What is 2 + 3?", thread="t")
        assert (result.stop_reason, result.text) == ("end", "Let me see. It is 5.")
        asked = at.fake.prompts[0]
        assert asked.instructions == "Be brief."
        names = [tool.name for tool in asked.tools]
        assert names == ["add", "delete_file", "note", "ask_text", "ask_quickly", "bring"]
        assert asked.tools[0].input_schema["required"] == ["a", "b"]


async def test_a_frontend_tool_is_answered_after_a_restart(provider: Provider, file_store: str) -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return Ask("ask_text", {"question": "Your name?"})
        return f"Hello, {moment.results[0].output}."

    async with stage(provider, script, file_store) as at:
        paused = await at.agent.run("Greet me", thread="t")
        assert paused.stop_reason == "awaiting_frontend_tools"
        await at.restart()
        result = await at.agent.answer("t", [(paused.pending[0].call_id, Success("Ada"))])
        assert (result.stop_reason, result.text) == ("end", "Hello, Ada.")
        assert len(at.fake.prompts) == 2


async def test_a_denied_call_is_not_run_and_the_model_is_told_why(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return Ask("delete_file", {"path": "a.txt"})
        return f"Heard: {outputs(moment)[0]}"

    async with stage(provider, script) as at:
        paused = await at.agent.run("Delete a.txt", thread="t")
        answer = Answer(approved=False, reason="I still need it")
        result = await at.agent.answer("t", [(paused.pending[0].call_id, answer)])
        assert "The user denied this call; it was not executed." in result.text
        assert "I still need it" in result.text
        assert deleted == []


async def test_a_model_hears_of_the_input_that_a_person_changed(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return Ask("delete_file", {"path": "a.txt"})
        return f"Heard: {outputs(moment)[0]}"

    async with stage(provider, script) as at:
        paused = await at.agent.run("Delete a.txt", thread="t")
        answer = Answer(approved=True, input={"path": "b.txt"})
        result = await at.agent.answer("t", [(paused.pending[0].call_id, answer)])
        assert 'The user edited the input before approving it, to {"path":"b.txt"}.' in result.text
        assert "deleted b.txt" in result.text
        assert deleted == ["b.txt"]


async def test_a_mixed_step_gives_all_results_back_at_once_in_the_order_of_its_calls(
    provider: Provider,
) -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return [
                Ask("ask_text", {"question": "Who?"}),
                Ask("add", {"a": 1, "b": 1}),
                Ask("delete_file", {"path": "a.txt"}),
                Ask("no_such_tool", {}),
            ]
        return f"{[result.tool for result in moment.last]} {outputs(moment)[:3]}"

    async with stage(provider, script) as at:
        paused = await at.agent.run("All at once", thread="t")
        by_tool = {pending.tool: pending.call_id for pending in paused.pending}
        result = await at.agent.answer(
            "t", [(by_tool["delete_file"], Answer(approved=True)), (by_tool["ask_text"], Success("me"))]
        )
        assert result.text == (
            "['ask_text', 'add', 'delete_file', 'no_such_tool'] ['me', 2, 'deleted a.txt']"
        )
        assert len(at.fake.prompts) == 2


async def test_a_call_that_nobody_answers_times_out_and_the_model_continues(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return Ask("ask_quickly", {"question": "Anybody?"})
        return f"Nobody: {outputs(moment)[0]}"

    async with stage(provider, script) as at:
        await at.agent.run("Ask", thread="t")
        events = await at.until("t", RunFinished)
        settled = [event.outcome for event in events if isinstance(event, CallSettled)]
        assert isinstance(settled[0], TimedOut)
        assert "timeout" in await at.text_at_end("t")


async def test_a_failure_reaches_the_model_as_one(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return Ask("ask_text", {"question": "Who?"})
        return f"Heard: {outputs(moment)[0]}"

    async with stage(provider, script) as at:
        paused = await at.agent.run("Ask", thread="t")
        result = await at.agent.answer("t", [(paused.pending[0].call_id, Failure("skipped by the user"))])
        assert "skipped by the user" in result.text


async def test_a_run_may_pause_several_times_over_restarts(provider: Provider, file_store: str) -> None:
    def script(moment: Moment) -> Step:
        if len(moment.results) < 3:
            return Ask("ask_text", {"question": f"Question {len(moment.results) + 1}?"})
        return f"All of it: {outputs(moment)}"

    async with stage(provider, script, file_store) as at:
        result = await at.agent.run("Interview me", thread="t")
        for word in ("one", "two", "three"):
            await at.restart()
            result = await at.agent.answer("t", [(result.pending[0].call_id, Success(word))])
        assert result.text == "All of it: ['one', 'two', 'three']"


async def test_a_new_message_settles_the_open_calls_and_the_model_hears_both(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if "name" in moment.text and not moment.results:
            return Ask("ask_text", {"question": "Your name?"})
        return "As you like."

    async with stage(provider, script) as at:
        await at.agent.run("Ask for my name", thread="t")
        result = await at.agent.run("Never mind", thread="t")
        assert result.text == "As you like."
        assert "This call was cancelled and has no result: the user moved on." in str(
            at.fake.requests[-1].body
        )


async def test_ids_that_repeat_in_every_turn_never_mix_calls_up(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        number = int(moment.text.split()[-1])
        if not moment.results:
            return Ask("add", {"a": number, "b": 100}, id="call_0")
        return f"{number}: {moment.results[-1].input} gave {moment.results[-1].output}."

    async with stage(provider, script) as at:
        for number in (1, 2, 3):
            result = await at.agent.run(f"Turn {number}", thread="t")
            assert result.text == f"{number}: {{'a': {number}, 'b': 100}} gave {100 + number}."


async def test_ids_that_repeat_within_a_run_never_mix_calls_up(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        done = len(moment.results)
        if done < 3:
            return Ask("add", {"a": done, "b": 10}, id="call_0")
        return f"{outputs(moment)}"

    async with stage(provider, script) as at:
        result = await at.agent.run("Count", thread="t")
        assert result.text == "[10, 11, 12]"
