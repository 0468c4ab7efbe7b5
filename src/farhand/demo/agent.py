"""The demo's agent: `farhand demo` serves it, as does `farhand run farhand.demo.agent:agent`."""

import random
from pathlib import Path

from farhand import Agent, Toolbox
from farhand.demo.browser import FRONTEND_TOOLS
from farhand.demo.scratch import scratch
from farhand.models import Model, ScriptedModel

SCRIPT = Path(__file__).with_name("script.yaml")

INSTRUCTIONS = """\
You show what farhand can do: some of your tools run on the server, some in the user's browser, and some only
with the user's approval. Use a tool that fits instead of asking in text, use several at once if they do not
depend on each other, and answer in one or two short sentences. If a call is denied, times out or fails, say
so and do not repeat it unless asked. The files you can delete are in a scratch folder: old-draft.txt,
notes.md and photos/holiday.txt.
"""

# slow enough to watch, fast enough not to wait for
_TYPING_SEC = 0.015

toolbox = Toolbox()


@toolbox.tool(idempotent=True)
def get_current_weather(location: str) -> dict[str, str | int]:
    """Get the current weather of a place.

    Args:
        location: The city, and the country if the name is common, for example "Oslo" or "Paris, Texas".

    Returns:
        location, temperature (a whole number), unit and condition.
    """
    return {
        "location": location,
        "temperature": random.randint(65, 75),
        "unit": "Fahrenheit",
        "condition": "Sunny",
    }


@toolbox.tool(needs_approval=True)
def delete_file(path: str) -> dict[str, str]:
    """Delete one file of the demo's scratch folder. A person is asked first.

    Args:
        path: The file, relative to the scratch folder, for example "old-draft.txt".

    Returns:
        deleted, the name of the file that is gone.
    """
    return {"deleted": scratch().delete(path)}


def demo_agent(model: str | Model = "scripted") -> Agent:
    """The agent with this model: `scripted`, the name of another model, or a model."""
    chosen = _scripted() if model == "scripted" else model
    return Agent(model=chosen, tools=[toolbox], frontend_tools=FRONTEND_TOOLS, instructions=INSTRUCTIONS)


def _scripted() -> ScriptedModel:
    return ScriptedModel.from_yaml(SCRIPT, delay=_TYPING_SEC, keep_prompts=0)


agent = demo_agent()
