"""Errors of providers: each ends in one clear sentence, and the thread continues."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import pytest

from farhand import Agent, Success
from farhand.core.event import ModelDelayed, RunFailed, RunFinished
from farhand.core.principal import LOCAL
from farhand.core.thread import Text, UserMessage
from farhand.models.openai import OpenAIChat
from farhand.models.scripted import Ask, Fail, Moment, Say, Step
from tests.fakes.backboard import FakeBackboard
from tests.fakes.openai import FakeOpenAI
from tests.models.stage import PROVIDERS, Provider, stage
from tests.requirement import requirement

both_clients = pytest.mark.usefixtures("http_client")
# those whose libraries ask again by themselves
RETRYING = PROVIDERS[:3]


def well(moment: Moment) -> Step:
    return "Here I am."


@both_clients
@pytest.mark.parametrize("status", [429, 500, 503])
@requirement("models:trouble")
async def test_passing_trouble_is_retried(provider: Provider, status: int) -> None:
    async with stage(provider, well) as at:
        at.fake.refuse(status, "busy", times=2)
        assert (await at.agent.run("Hello", thread="t")).text == "Here I am."
        assert [request.status for request in at.fake.requests[:3]] == [status, status, 200]
        events = await at.until("t", RunFinished)
        delays = [event.message for event in events if isinstance(event, ModelDelayed)]
        assert len(delays) == 2
        assert delays[0] == "The model is busy; trying again in 0.01 s."


@both_clients
@pytest.mark.parametrize("headers", [{"retry-after": "3600"}, {"retry-after-ms": "3600000"}], ids=["s", "ms"])
@requirement("models:trouble")
async def test_a_provider_that_wants_an_hour_is_not_waited_for_and_says_so(
    provider: Provider, headers: dict[str, str]
) -> None:
    async with stage(provider, well) as at:
        at.fake.refuse(429, "slow down", headers=headers)
        failed = await at.agent.run("Hello", thread="t")
        assert "(429). Send the message again in 60 minutes" in (failed.error or "")
        assert (failed.error or "").endswith("\nThe provider says: slow down")
        assert not any(isinstance(event, ModelDelayed) for event in await at.until("t", RunFailed))
        assert len(at.fake.requests) == 1
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."


@pytest.mark.parametrize("provider", RETRYING, ids=lambda provider: provider.name)
@requirement("models:trouble")
async def test_another_try_that_the_provider_itself_asks_for_is_told(provider: Provider) -> None:
    async with stage(provider, well) as at:
        at.fake.refuse(400, "not yet", headers={"x-should-retry": "true"})
        assert (await at.agent.run("Hello", thread="t")).text == "Here I am."
        events = await at.until("t", RunFinished)
        (delay,) = (event.message for event in events if isinstance(event, ModelDelayed))
        assert delay == "The model is busy; trying again in 0.01 s."


@requirement("models:trouble")
async def test_a_delay_is_told_only_if_the_model_is_asked_again(provider: Provider) -> None:
    async with stage(provider, well) as at:
        at.fake.refuse(500, times=3)
        await at.agent.run("Hello", thread="t")
        events = await at.until("t", RunFailed)
        assert sum(isinstance(event, ModelDelayed) for event in events) == 2


@pytest.mark.parametrize("provider", RETRYING, ids=lambda provider: provider.name)
@pytest.mark.parametrize(
    ("status", "words", "told"),
    [
        (429, "slow down", "accepts no more requests for now (429).|The provider says: slow down"),
        (500, "oh dear", "has an internal error (500).|The provider says: oh dear"),
        (403, "not for you", "did not accept the key (403).|The provider says: not for you"),
        (404, "model: nope", "does not know the requested resource (404).|The provider says: model: nope"),
        (400, "prompt is too long: 9 > 8", "The conversation is too long for"),
        (413, "too much", "The conversation is too long for"),
        (400, "no such thing", "refused the request"),
    ],
)
@requirement("models:trouble")
async def test_trouble_that_stays_ends_the_run_with_a_sentence(
    provider: Provider, status: int, words: str, told: str
) -> None:
    async with stage(provider, well) as at:
        at.fake.refuse(status, words, times=3 if status in {429, 500} else 1)
        failed = await at.agent.run("Hello", thread="t")
        assert failed.stop_reason == "failed"
        assert all(part in (failed.error or "") for part in told.split("|"))
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."


@requirement("models:trouble")
async def test_a_conversation_that_is_too_long_for_backboard_is_told_as_such() -> None:
    async with stage(PROVIDERS[3], well) as at:
        # a refusal is tried again, in a new conversation
        at.fake.refuse(400, "prompt is too long: 9 > 8", times=2)
        failed = await at.agent.run("Hello", thread="t")
        assert "The conversation is too long for openai/gpt-4o." in (failed.error or "")
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."


@requirement("models:trouble")
async def test_a_server_of_ones_own_that_wants_a_key_is_told_so() -> None:
    async with FakeOpenAI(["never said"], key="right") as fake:
        for key, told in (
            (None, "requires a key (401), and none is set."),
            ("wrong", "did not accept the key (401)"),
        ):
            async with Agent(OpenAIChat("llama3", api_key=key, base_url=fake.url)) as agent:
                failed = await agent.run("Hello", thread="t")
            assert told in (failed.error or "")
            assert "OPENAI_API_KEY" in (failed.error or "")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": "model \'llama9\' not found"}', "model 'llama9' not found"),
        (b'{"detail": "no"}', "The provider says: no"),
    ],
    ids=["Ollama", "FastAPI"],
)
@requirement("models:trouble")
async def test_compatible_servers_are_quoted_in_their_own_form(body: bytes, words: str) -> None:
    async with stage(PROVIDERS[2], well) as at:
        at.fake.reply(body, status=404, media_type="application/json")
        failed = await at.agent.run("Hello", thread="t")
        assert words in (failed.error or "")
        assert "Check the address and the model's name, 'llama3'." in (failed.error or "")


@pytest.mark.parametrize("status", [429, 500, 403])
@requirement("models:trouble")
async def test_trouble_of_backboard_ends_the_run_with_a_sentence(status: int) -> None:
    async with stage(PROVIDERS[3], well) as at:
        at.fake.refuse(status, "not now", times=1 if status == 403 else 3)
        failed = await at.agent.run("Hello", thread="t")
        assert failed.stop_reason == "failed"
        assert f"({status})." in (failed.error or "")
        assert "The provider says: not now" in (failed.error or "")
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."


@requirement("models:trouble")
async def test_a_message_that_backboard_heard_before_it_broke_is_not_said_twice_in_one_thread() -> None:
    async with stage(PROVIDERS[3], well) as at:
        assert isinstance(at.fake, FakeBackboard)
        await at.agent.run("Hello", thread="t")
        (thread,) = at.fake.threads.values()
        # heard, and then the server broke
        at.fake.refuse(500, "oh dear")
        service = await at.service()
        heard = UserMessage("m2", (Text("Hello?"),))
        thread.records.append(
            {**thread.records[0], "message_id": str(UUID(int=7)), "metadata_": {"farhand_message": "m2"}}
        )
        await service.start(LOCAL, "t", heard, hold_for=0.0)
        assert await at.text_at_end("t") == "Here I am."
        assert len(at.fake.threads) == 2, "the other thread was told everything"


@both_clients
@pytest.mark.parametrize("how", ["drop", "end"])
async def test_a_stream_that_is_cut_in_mid_answer_ends_the_run_and_the_thread_continues(
    provider: Provider, how: Literal["drop", "end"]
) -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("a story"):
            return Say(["Once ", "upon ", "a ", "time."])
        return "Here I am."

    async with stage(provider, script) as at:
        at.fake.cut(after=2, how=how)
        failed = await at.agent.run("Tell me a story", thread="t")
        assert failed.stop_reason == "failed"
        assert "was cut off" in (failed.error or "")
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."


@both_clients
async def test_a_connection_that_is_lost_before_the_first_word_of_an_answer_cut_it(
    provider: Provider,
) -> None:
    async with stage(provider, well) as at:
        at.fake.cut(after=0)
        failed = await at.agent.run("Hello", thread="t")
        who = "the model server at " if "openai" in provider.name else provider.name.capitalize()
        assert (failed.error or "").startswith(f"The answer of {who}")
        assert "was cut off" in (failed.error or "")
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."


async def test_a_call_in_a_stream_that_is_cut_is_not_executed(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("Add") and not moment.results:
            return [Say("Well. "), Ask("add", '{"a": 1, "b": 2}')]
        return f"{len(moment.results)} results."

    async with stage(provider, script) as at:
        at.fake.cut(after=4)
        failed = await at.agent.run("Add", thread="t")
        assert failed.stop_reason == "failed"
        assert (await at.agent.run("Hello?", thread="t")).text == "0 results."


@requirement("models:trouble")
async def test_an_error_in_the_stream_ends_the_run_with_its_words(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("Hello?"):
            return "Here I am."
        return [Say("I do "), Fail("Overloaded")]

    async with stage(provider, script) as at:
        failed = await at.agent.run("Hello", thread="t")
        assert failed.stop_reason == "failed"
        assert "The provider says: Overloaded" in (failed.error or "")
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."


TOO_LONG_IN_STREAM = {
    "anthropic": b"event: error\n"
    b'data: {"type": "error", "error": {"type": "api_error", "message": "prompt is too long"}}\n\n',
    "openai": b"event: response.failed\n"
    b'data: {"type": "response.failed", "response": {"status": "failed", "error": '
    b'{"code": "context_length_exceeded", "message": "Your input is too long"}}}\n\n',
    "openai-chat": b'data: {"error": {"message": "too long", "code": "context_length_exceeded"}}\n\n',
    "backboard": b'data: {"type": "error", "error": "This exceeds the maximum context length"}\n\n',
}


@requirement("models:trouble")
async def test_a_conversation_that_gets_too_long_in_mid_answer_is_told_as_such(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        return "Here I am." if moment.text.endswith("Hello?") else Say(["Once ", "upon ", "a ", "time."])

    async with stage(provider, script) as at:
        at.fake.insert(TOO_LONG_IN_STREAM[provider.name], after=2)
        failed = await at.agent.run("A story", thread="t")
        assert "The conversation is too long for" in (failed.error or "")
        assert "Start a new thread, or choose a model with a larger context window." in (failed.error or "")
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."


@requirement("models:trouble")
async def test_results_that_came_before_the_trouble_are_kept(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("Ask me") and not moment.results:
            return Ask("ask_text", {"question": "Who?"})
        if moment.text.endswith("Ask me"):
            return [Say("I "), Fail("Overloaded")]
        return "Here I am."

    async with stage(provider, script) as at:
        paused = await at.agent.run("Ask me", thread="t")
        failed = await at.agent.answer("t", [(paused.pending[0].call_id, Success("Grace"))])
        assert failed.stop_reason == "failed"
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."
        assert "Grace" in str(at.fake.requests[-1].body)


@both_clients
async def test_a_provider_that_is_not_there_is_told_as_such(provider: Provider) -> None:
    async with stage(provider, well) as at:
        address = at.fake.url
    gone = provider.model(at.fake)
    assert address == at.fake.url
    async with stage(provider, well) as at:
        at.agent.spec = at.agent.spec.__class__(model=gone)
        failed = await at.agent.run("Hello", thread="t")
        assert "could not be reached" in (failed.error or "")
        events = await at.until("t", RunFailed)
        assert isinstance(events[-1], RunFailed)
        assert events[-1].code == "model_fault"
        delays = [event.message for event in events if isinstance(event, ModelDelayed)]
        assert len(delays) == 2
        assert all("could not be reached; trying again" in delay for delay in delays)
