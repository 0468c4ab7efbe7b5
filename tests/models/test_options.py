"""Options that a user passes to a provider."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from farhand.core.thread import Text, UserMessage
from farhand.errors import BadSetting
from farhand.models.anthropic import Anthropic
from farhand.models.backboard import Backboard
from farhand.models.base import Model, Prompt, Stop
from farhand.models.openai import OpenAI, OpenAIChat
from tests.fakes.anthropic import FakeAnthropic
from tests.fakes.openai import FakeOpenAI
from tests.fakes.provider import FakeProvider
from tests.models.stage import said

HELLO = UserMessage("m1", (Text("hello"),))
UNKNOWN: dict[str, object] = {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}}
MAKERS: dict[str, tuple[Callable[..., Model], type[FakeProvider]]] = {
    "anthropic": (Anthropic, FakeAnthropic),
    "openai": (OpenAI, FakeOpenAI),
    "openai-chat": (OpenAIChat, FakeOpenAI),
}


@pytest.mark.parametrize(("make", "fake_of"), MAKERS.values(), ids=MAKERS.keys())
async def test_members_that_the_library_does_not_know_reach_the_server_as_they_are_written(
    make: Callable[..., Model], fake_of: type[FakeProvider]
) -> None:
    async with fake_of(["Hi."]) as fake:
        options = {**UNKNOWN, "temperature": 0.5, "extra_body": {"min_p": 0.1}}
        model = make("m", api_key="key", base_url=fake.url, options=options)
        assert isinstance((await said(model, Prompt([HELLO])))[-1], Stop)
        body = fake.requests[0].body
        wanted = {**UNKNOWN, "temperature": 0.5, "min_p": 0.1}
        assert {name: body.get(name) for name in wanted} == wanted
        assert "extra_body" not in body


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (Anthropic, ["model", "messages", "system", "stream", "timeout"]),
        (OpenAI, ["model", "input", "instructions", "stream", "previous_response_id"]),
        (OpenAIChat, ["model", "messages", "tools", "stream", "timeout"]),
        (
            lambda name, **rest: Backboard(f"openai/{name}", **rest),
            ["content", "tools", "stream", "metadata"],
        ),
    ],
    ids=["anthropic", "openai", "openai-chat", "backboard"],
)
def test_what_farhand_says_itself_is_no_option(make: Callable[..., Model], names: list[str]) -> None:
    for name in names:
        with pytest.raises(BadSetting, match=f"options: '{name}' is set by farhand"):
            make("m", api_key="key", options={name: "x"})


@pytest.mark.parametrize("make", [Anthropic, OpenAI, OpenAIChat])
def test_what_farhand_says_itself_is_no_option_in_the_body_either(make: Callable[..., Model]) -> None:
    with pytest.raises(BadSetting, match="options: 'stream' is set by farhand"):
        make("m", api_key="key", options={"extra_body": {"stream": False}})
    with pytest.raises(BadSetting, match="'extra_body' must be an object"):
        make("m", api_key="key", options={"extra_body": "stream"})


def test_tools_of_the_provider_itself_are_a_list() -> None:
    with pytest.raises(BadSetting, match="'tools' must be a list"):
        Anthropic("m", api_key="key", options={"tools": {"type": "web_search"}})


def test_an_option_that_backboard_does_not_know_is_told_with_those_it_does() -> None:
    with pytest.raises(BadSetting, match=r"has no option 'top_k'.*Its options are .*memory, .*web_search"):
        Backboard("openai/gpt-4o", api_key="key", options={"top_k": 5})
