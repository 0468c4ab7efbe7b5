"""Answers that follow no API, over every provider: one sentence with the next step, and the thread
continues."""

from __future__ import annotations

import pytest

from farhand.models.scripted import Moment, Say, Step
from tests.models.stage import PROVIDERS, Provider, Stage, stage

PAGE = b"<!DOCTYPE html><html><body>Please sign in</body></html>"
WHO = {
    "anthropic": "Anthropic",
    "openai": "model server at 127.0.0.1:",
    "openai-chat": "model server at 127.0.0.1:",
    "backboard": "Backboard",
}

# Backboard's library leaves out a line that is no JSON, and says nothing of it
TELLING = PROVIDERS[:3]

NO_JSON = {
    "anthropic": b'event: content_block_delta\ndata: {"type": "content_block_del\n\n',
    "openai": b'event: response.output_text.delta\ndata: {"type": "response.\n\n',
    "openai-chat": b'data: {"id": "chatcmpl-1", "choi\n\n',
    "backboard": b'data: {"type": "content_strea\n\n',
}
OTHER_SHAPES = {
    "anthropic": [
        b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0}\n\n',
        b'event: x\ndata: {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 7}}\n\n',
        b'event: content_block_start\ndata: {"type": "content_block_start", "index": 3}\n\n',
        b'event: message_delta\ndata: {"type": "message_delta"}\n\n',
    ],
    "openai": [
        b'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "delta": {}}\n\n',
        b'event: response.output_item.added\ndata: {"type": "response.output_item.added"}\n\n',
        b'event: response.completed\ndata: {"type": "response.completed"}\n\n',
    ],
    "openai-chat": [
        b'data: {"choices": 7}\n\n',
        b'data: {"choices": [{}]}\n\n',
        b'data: {"choices": [{"delta": {"content": ["a"]}}]}\n\n',
        b'data: {"choices": [{"delta": {"tool_calls": [7]}}]}\n\n',
    ],
    "backboard": [
        b"data: [1, 2]\n\n",
        b'data: "word"\n\n',
        b'data: {"type": "tool_submit_required", "tool_calls": 7}\n\n',
        b'data: {"type": "tool_submit_required", "tool_calls": [7]}\n\n',
    ],
}
SHAPES = [
    pytest.param(provider, raw, id=f"{provider.name}-{number}")
    for provider in PROVIDERS
    for number, raw in enumerate(OTHER_SHAPES[provider.name])
]
UNKNOWN = {
    "anthropic": b'event: weather_report\ndata: {"type": "weather_report", "sky": "blue"}\n\n: a comment\n\n',
    "openai": b'event: response.weather.delta\ndata: {"type": "response.weather.delta", "sky": "blue"}\n\n',
    "openai-chat": b'data: {"object": "weather", "choices": [], "sky": "blue"}\n\n: a comment\n\n',
    "backboard": b'data: {"type": "weather_report", "sky": "blue"}\n\n: a comment\n\n',
}


def story(moment: Moment) -> Step:
    if moment.text.endswith("a story"):
        return Say(["Once ", "upon ", "a ", "time."])
    return "Here I am."


async def trouble(at: Stage) -> str:
    """The sentence that the run ended with; afterwards the thread continues."""
    failed = await at.agent.run("Tell me a story", thread="t")
    assert failed.stop_reason == "failed"
    assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."
    told = failed.error or ""
    assert WHO[at.provider.name] in told
    return told


@pytest.mark.parametrize(
    ("body", "media_type"),
    [(PAGE, "text/html"), (b'{"hello": "world"}', "application/json"), (b"", "text/event-stream")],
    ids=["a page", "JSON of another service", "nothing"],
)
async def test_somebody_else_at_the_address_is_told_as_such(
    provider: Provider, body: bytes, media_type: str
) -> None:
    async with stage(provider, story) as at:
        at.fake.reply(body, media_type=media_type)
        told = await trouble(at)
        assert "answered, but not with its API" in told
        assert "Check the address (base_url)" in told


@pytest.mark.parametrize("status", [403, 404, 405])
async def test_an_error_that_is_a_page_is_told_without_the_page(provider: Provider, status: int) -> None:
    async with stage(provider, story) as at:
        at.fake.reply(PAGE, status=status, times=2 if provider.name == "backboard" and status == 404 else 1)
        told = await trouble(at)
        assert f"it sent a web page ({status})" in told
        assert "Check the address (base_url)" in told
        assert "<" not in told


@pytest.mark.parametrize("provider", TELLING, ids=lambda provider: provider.name)
async def test_an_event_that_is_no_json_ends_the_run_with_a_sentence(provider: Provider) -> None:
    async with stage(provider, story) as at:
        at.fake.insert(NO_JSON[provider.name], after=2)
        assert "sent something that cannot be decoded" in await trouble(at)


@pytest.mark.parametrize(("provider", "raw"), SHAPES)
async def test_an_event_of_another_shape_ends_the_run_with_a_sentence(provider: Provider, raw: bytes) -> None:
    async with stage(provider, story) as at:
        at.fake.insert(raw, after=2)
        assert "sent something that cannot be decoded" in await trouble(at)


async def test_events_of_a_kind_that_nobody_knows_are_passed_over(provider: Provider) -> None:
    async with stage(provider, story) as at:
        at.fake.insert(UNKNOWN[provider.name], after=2)
        result = await at.agent.run("Tell me a story", thread="t")
        assert (result.stop_reason, result.text) == ("end", "Once upon a time.")


async def test_a_stream_that_ends_within_an_event_broke_off_or_cannot_be_read(provider: Provider) -> None:
    async with stage(provider, story) as at:
        at.fake.insert(NO_JSON[provider.name].rstrip(b"\n"), after=2)
        at.fake.cut(after=3, how="end")
        told = await trouble(at)
        assert "was cut off" in told or "cannot be decoded" in told
