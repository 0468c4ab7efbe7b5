"""The agent behind the pages of the documentation: it calls the tools they ask for. Served by `farhand
run`."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from farhand import Agent, ScriptedModel, tool
from farhand.models.scripted import Ask, Moment, Step, ToolResult
from tests.browser.stage import gate, note


@tool(needs_approval=True)
def delete_file(path: str) -> dict[str, object]:
    """Delete a file for good.

    Args:
        path: Which one.
    """
    note({"deleted": path})
    return {"deleted": path}


@tool(executor="frontend")
def open_url(url: str) -> dict[str, object]:
    """Open a page beside the chat.

    Args:
        url: Its address.

    Returns:
        url and viewKey of the page.
    """
    raise NotImplementedError


@tool(executor="frontend", needs_approval=True)
def take_photo(camera: str) -> dict[str, object]:
    """Take a photo.

    Args:
        camera: Which one.

    Returns:
        name of the photo.
    """
    raise NotImplementedError


@tool(executor="frontend", card="confirm")
def user_confirm(message: str) -> str:
    """Ask the person to confirm something.

    Args:
        message: The question.

    Returns:
        yes or no.
    """
    raise NotImplementedError


@tool(executor="frontend", card="rating")
def rate(message: str) -> int:
    """Ask the person for stars.

    Args:
        message: The question.

    Returns:
        How many.
    """
    raise NotImplementedError


ASKS = {
    "Take a photo": Ask("take_photo", {"camera": "front"}),
    "Open the report": Ask("open_url", {"url": "https://example.org/report"}),
    "Ask me to confirm something": Ask("user_confirm", {"message": "Shall I go on?"}),
    "Clean up": Ask("user_confirm", {"message": "Really?"}),
    "How was it?": Ask("rate", {"message": "How was it?"}),
}


def play(moment: Moment) -> Step | AsyncGenerator[Step, None]:
    word, _, rest = moment.text.partition(" ")
    if moment.steps > 0:
        return " ".join(map(tale, moment.results))
    if moment.text == "Tell me a long story" or word == "tell":
        return story(rest if word == "tell" else moment.thread_id)
    if word == "delete":
        return [Ask("delete_file", {"path": rest})]
    return [ASKS[moment.text]] if moment.text in ASKS else f"You said: {moment.text}"


async def story(name: str) -> AsyncGenerator[Step, None]:
    yield "Once upon a time "
    await gate(name)
    yield "there was a gate."


def tale(result: ToolResult) -> str:
    return (
        f"{result.tool} gave {result.output}."
        if result.kind == "success"
        else f"{result.tool}: {result.kind}."
    )


agent = Agent(
    model=ScriptedModel(play), tools=[delete_file], frontend_tools=[open_url, take_photo, user_confirm, rate]
)
