"""The demo's agent: `farhand demo` serves it, as does `farhand run farhand.demo.agent:agent`."""

from pathlib import Path

from farhand import Agent

# the two are imported for what it does: their tools are in the toolbox then
from farhand.demo import files, weather  # noqa: F401
from farhand.demo.browser import FRONTEND_TOOLS
from farhand.demo.toolbox import toolbox
from farhand.models.base import Model
from farhand.models.scripted import ScriptedModel

SCRIPT = Path(__file__).with_name("script.yaml")

INSTRUCTIONS = """\
You show what farhand can do: some of your tools run on the server, some in the user's browser, and some only
after the user says yes. Use the tool that fits instead of asking in words, use several at once where they do
not depend on each other, and answer in one or two short sentences. If a call is denied, times out or fails,
say so plainly and do not repeat it unasked. The files you can delete are in a scratch folder: old-draft.txt,
notes.md and photos/holiday.txt.
"""

# slow enough to be watched, fast enough not to be waited for
_TYPING_SEC = 0.015


def demo_agent(model: str | Model = "scripted") -> Agent:
    """The agent with this model: `scripted`, the name of another one, or a model itself."""
    chosen = _scripted() if model == "scripted" else model
    return Agent(model=chosen, tools=[toolbox], frontend_tools=FRONTEND_TOOLS, instructions=INSTRUCTIONS)


def _scripted() -> ScriptedModel:
    return ScriptedModel.from_yaml(SCRIPT, delay=_TYPING_SEC, keep_prompts=0)


agent = demo_agent()
