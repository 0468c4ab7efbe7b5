"""Chat titles made by an agent's own function."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from farhand import Agent, ScriptedModel
from farhand.errors import BadSetting
from tests.faces.conftest import Serve
from tests.faces.threads.test_threads import shown
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement


async def titles(serve: Serve, name: Callable[[str], str], *messages: str) -> list[str]:
    """The title of one chat after each of its messages."""
    page = Page((await serve(Agent(ScriptedModel(lambda _: "Done."), chat_title=name))).http)
    found = []
    for message in messages:
        await page.say(message)
        found.append((await shown(page))["title"])
    return found


@requirement("threads:rename")
async def test_a_chat_is_named_by_the_function_of_its_agent_and_by_the_first_message_alone(
    serve: Serve,
) -> None:
    asked: list[str] = []

    def name(text: str) -> str:
        asked.append(text)
        return f"Lamp:\n {text}"

    assert await titles(serve, name, "it is dead", "hello?") == ["Lamp: it is dead", "Lamp: it is dead"]
    assert asked == ["it is dead"]


@requirement("threads:rename")
@pytest.mark.parametrize("name", [lambda text: "", lambda text: 1 / 0, lambda text: None])
async def test_a_function_that_says_nothing_or_fails_leaves_the_first_words(
    serve: Serve, name: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL, logger="farhand.runs"):
        assert await titles(serve, name, "**it** is dead") == ["it is dead"]


@requirement("threads:rename")
async def test_a_long_name_is_cut_like_any_other_title(serve: Serve) -> None:
    [title] = await titles(serve, lambda text: "word " * 50, "x")
    assert (len(title) <= 81, title.endswith("…")) == (True, True)


async def wait(text: str) -> str:
    return text


@pytest.mark.parametrize("name", ["Lamp", wait, 7])
def test_what_is_no_plain_function_is_refused(name: object) -> None:
    with pytest.raises(BadSetting, match="chat_title must be a function of the first message"):
        Agent(ScriptedModel(["x"]), chat_title=name)  # type: ignore[arg-type]  # it is about wrong ones
