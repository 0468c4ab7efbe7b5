"""The demo's agent: `farhand demo` serves it, as does `farhand run farhand.demo.agent:agent`."""

import dataclasses
import random
from pathlib import Path

from msgspec.structs import replace

from farhand import Agent, Context, Toolbox
from farhand.demo import lamp
from farhand.demo.browser import FRONTEND_TOOLS
from farhand.demo.question_repeater import QuestionRepeater
from farhand.demo.scratch_folder import scratch
from farhand.models import Model, ScriptedModel

SCRIPT = Path(__file__).with_name("script.yaml")

INSTRUCTIONS = """\
You show what farhand can do: some of your tools run on the server, some in the user's browser, and some only
with the user's approval. Use a tool that fits instead of asking in text, use several at once if they do not
depend on each other, and answer in one or two short sentences. If a call is denied, times out or fails, say
so and do not repeat it unless asked. The files you can delete are in a scratch folder: old-draft.txt,
notes.md and photos/holiday.txt.
"""

STARTERS = (
    (
        "Report a street lamp",
        "The street lamp outside number 14 is dead. Can you report it for me?",
        "Place, photo, questions, approval",
    ),
    ("Where am I?", "Where am I?", "Shares your place, once"),
    ("Take a photo", "Take a photo", "Uses your camera, with your approval"),
    ("Pick a file", "Let me pick a file", "From this device"),
    ("Copy a greeting", 'Copy "Hello from far away"', "Puts words on your clipboard"),
    ("Delete an old draft", "Delete the file old-draft.txt", "On the server, with your approval"),
    ("Open a page", "Open the lamp form", "Beside this chat; it is a page of this server"),
    ("Yes or no", "Ask me to confirm something", "A question"),
    ("Two things at once", "Ask me two things at once", "Two questions in one turn"),
    ("Answer in ten seconds", "Ask me something and give me ten seconds", "What happens when time runs out"),
    ("Read the thermometer", "Read the thermometer", "A card made from the tool's schema"),
    ("A long story", "Tell me a long story", "Pull the plug in the middle"),
)

_TITLES = {prompt: title for title, prompt, _ in STARTERS}

# slow enough to watch, fast enough not to be in the way
_TYPING_SEC = 0.015

toolbox = Toolbox()


@toolbox.tool(idempotent=True, title="Weather in {location}", summary="{condition}, {temperature} °F")
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


@toolbox.tool(needs_approval=True, title="Delete {path}", summary="{deleted} is gone")
def delete_file(path: str, context: Context) -> dict[str, str]:
    """Delete one file of the demo's scratch folder. A person is asked first.

    Args:
        path: The file, relative to the scratch folder, for example "old-draft.txt".

    Returns:
        deleted, the name of the file that is gone.
    """
    folder = scratch()
    folder.enter(context.thread_id)
    return {"deleted": folder.delete(path)}


def demo_agent(model: str | Model = "scripted") -> Agent:
    """The agent with this model: `scripted`, the name of another model, or a model."""
    demo = Agent(
        model=_scripted() if model == "scripted" else model,
        tools=[toolbox, lamp.toolbox],
        frontend_tools=[*FRONTEND_TOOLS, lamp.photograph],
        instructions=INSTRUCTIONS,
        welcome="Ask for something only your browser can do.",
        starters=STARTERS,
        # any other chat gets its first words as a title
        chat_title=lambda text: _TITLES.get(text, ""),
    )
    shown = replace(
        demo.spec.branding,
        is_demo=True,
        pages={lamp.FORM_PATH: lamp.show_form},
        on_served=lamp.set_address,
        on_visited=lamp.note_visit,
    )
    demo.spec = dataclasses.replace(demo.spec, branding=shown)
    return demo


def _scripted() -> Model:
    return QuestionRepeater(
        ScriptedModel.from_yaml(SCRIPT, delay=_TYPING_SEC, keep_prompts=0), delay=_TYPING_SEC
    )


agent = demo_agent()
