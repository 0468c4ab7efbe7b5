"""An agent whose tool runs in a page, beside those of clients."""

from __future__ import annotations

from farhand import Agent, ScriptedModel, tool
from farhand.models.scripted import Ask, Moment, Step


@tool(executor="frontend")
def open_page(text: str) -> dict[str, str]:
    """Open a page.

    Args:
        text: Which one.

    Returns:
        viewKey of the page.
    """
    raise NotImplementedError(text)


def paging(*more: Ask) -> Agent:
    """Asks for the page, and for these beside it; then says what came back."""

    def script(moment: Moment) -> Step:
        if not moment.results:
            return [Ask("open_page", {"text": "a"}), *more]
        return " | ".join(result.seen for result in moment.results)

    return Agent(ScriptedModel(script), frontend_tools=[open_page])
