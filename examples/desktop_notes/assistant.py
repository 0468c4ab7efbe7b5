"""The agent on the server. It has no notes of its own: it uses the tools that the user's programs offer."""

from __future__ import annotations

from farhand import Agent, ScriptedModel
from farhand.models import Ask, Moment, Step


def speak(moment: Moment) -> Step:
    """Searches for the words of the message, reads the notes it finds, and shows a notification."""
    if "client_desk_search_notes" not in moment.tools:
        return "Your desk is not connected."
    match moment.steps:
        case 0:
            return Ask("client_desk_search_notes", {"words": moment.text.removeprefix("find ")})
        case 1:
            names = moment.last[0].output
            assert isinstance(names, list), "search_notes returns a list"
            return [
                Ask("client_desk_read_note", {"name": name}) for name in names
            ] or "There is no such note."
        case 2:
            return Ask("client_desk_notify", {"text": f"I read {len(moment.last)} of your notes."})
        case _:
            notes = [result for result in moment.results if result.tool == "client_desk_read_note"]
            return " / ".join(note.seen for note in notes)


agent = Agent(ScriptedModel(speak), instructions="Help the user with the notes on their desk.")
