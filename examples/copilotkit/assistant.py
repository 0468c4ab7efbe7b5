"""The agent behind the page. Its model is scripted, so nothing needs a key.

`add_todo` and `choose_time` are not declared here: the page brings them, with `useFrontendTool` and
`useHumanInTheLoop`. `send_invitation` runs on the server once a person has approved it, and `book_room` asks
a person while it runs: the page renders both with `useInterrupt`.
"""

from __future__ import annotations

from farhand import Agent, ScriptedModel, ask_form, tool
from farhand.models import Ask, Moment, Say, Step, ToolResult

SLOTS = ["Tuesday at 10:00", "Wednesday at 14:00"]
HELP = "Ask me to add something to your list, to find a time, to invite somebody, or to book a room."


@tool(needs_approval=True)
def send_invitation(to: str, when: str) -> str:
    """Invite somebody by e-mail.

    Args:
        to: Who is invited.
        when: Day and time.
    """
    return f"{to} is invited for {when}."


@tool(idempotent=True)
async def book_room(when: str) -> str:
    """Book a room for a meeting, as large as it has to be.

    Args:
        when: Day and time.
    """
    fields = {
        "people": {"type": "integer", "title": "How many people?", "minimum": 1},
        "floor": {"type": "string", "title": "Floor", "enum": ["Ground floor", "First floor"]},
    }
    wanted = {"type": "object", "properties": fields, "required": ["people", "floor"]}
    answer = await ask_form("Which room do you need?", wanted, key="room")
    if answer.action != "accept":
        return "No room is booked."
    people, floor = answer.content["people"], answer.content["floor"]
    return f"A room for {people} is booked for {when}. {floor}."


def speak(moment: Moment) -> Step:
    """The model's next step: calls that match the message, then a sentence about each result."""
    if moment.last:
        return " ".join(map(_describe, moment.last))
    said = moment.text.lower()
    asked: list[str | Say | Ask] = []
    if "list" in said and "add_todo" in moment.tools:
        asked.append(Ask("add_todo", {"text": "Book a room"}))
    if "time" in said and "choose_time" in moment.tools:
        asked.append(Ask("choose_time", {"question": "When shall we meet?", "slots": SLOTS}))
    if "invite" in said:
        who = [name for name in ("ada", "bob") if name in said]
        asked += [Ask("send_invitation", {"to": f"{name}@example.com", "when": SLOTS[0]}) for name in who]
    if "book" in said:
        asked.append(Ask("book_room", {"when": SLOTS[0]}))
    if "story" in said:
        asked.append(Say("Once upon a time there was a very long story. " * 12, delay=0.2))
    return asked or HELP


def _describe(result: ToolResult) -> str:
    match result.kind, result.tool:
        case "success", "add_todo":
            return f"It is on your list: {result.output}."
        case "success", "choose_time":
            return f"Then we meet on {result.output}."
        case "success", "send_invitation" | "book_room":
            return str(result.output)
        case "denied", _:
            return f"I did not do it ({result.error})."
        case _:
            return f"{result.tool} gave nothing: {result.error}"


agent = Agent(
    ScriptedModel(speak),
    tools=[send_invitation, book_room],
    instructions="Help the user to plan their meetings.",
)
