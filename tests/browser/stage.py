"""The agent of the page tests: it makes exactly the calls that a message names. Served by `farhand run`.

A message is a list of steps, separated by `---`; each line of a step is a call: the tool's name and its input
as JSON. A line that begins with `slowly` is written a word at a time. A step `tell NAME` is text that stops
in the middle, at the gate of that name; `think NAME` does so before its text, in thought; `write` writes the
rest of its step. "Please ask me again." makes it ask for a text. When all steps are played, the model says
what came back. Tools on the server note what they did in the room that TEST_ROOM names.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path

from pydantic import BaseModel

from farhand import Agent, ScriptedModel, ask_form, current, tool
from farhand.demo.browser import FRONTEND_TOOLS
from farhand.models.scripted import Ask, Moment, Say, Step, Think, ToolResult

ROOM = Path(os.environ["TEST_ROOM"])
GATE_OPENS_WITHIN_SEC = 40.0
SLOWLY_SEC = 0.6


@tool(needs_approval=True)
def send_report(to: str, copies: int) -> dict[str, object]:
    """Send a report.

    Args:
        to: Who gets it.
        copies: How many.
    """
    note({"to": to, "copies": copies})
    return {"sent": to}


@tool(needs_approval=True)
def file_claim(
    first_name: str,
    last_name: str,
    street: str,
    town: str,
    country: str,
    phone: str,
    mail: str,
    policy: str,
    insured_since: str,
    happened_on: str,
    happened_at: str,
    place: str,
    weather: str,
    witness: str,
    damage: str,
    amount: str,
    account: str,
    bank: str,
    reference: str,
    pay_to: str,
) -> dict[str, object]:
    """File a claim: more than a card has room for.

    Args:
        first_name: Of the insured person.
        last_name: Of the insured person.
        street: As in the letter.
        town: As in the letter.
        country: As in the letter.
        phone: As in the letter.
        mail: As in the letter.
        policy: As in the letter.
        insured_since: As in the letter.
        happened_on: As in the letter.
        happened_at: As in the letter.
        place: As in the letter.
        weather: As in the letter.
        witness: As in the letter.
        damage: As in the letter.
        amount: As in the letter.
        account: As in the letter.
        bank: As in the letter.
        reference: As in the letter.
        pay_to: Who gets the money.
    """
    note({"to": pay_to, "copies": 1})
    return {"filed": pay_to}


class Parcel(BaseModel):
    weight: int
    unit: str = "kg"


@tool(needs_approval=True, title="Send a parcel to {to}, urgent: {urgent}")
def send_parcel(
    to: str, parcel: Parcel, urgent: bool = True, greeting: str = "Dear all", remark: str | None = None
) -> dict[str, object]:
    """Send a parcel: the model may leave out most of it.

    Args:
        to: Who gets it.
        parcel: What is in it.
        urgent: Whether it is.
        greeting: How it begins.
        remark: What to add.
    """
    sent = {"to": to, "parcel": parcel.model_dump(), "urgent": urgent, "greeting": greeting, "remark": remark}
    note({"parcel": sent})
    return sent


@tool(needs_approval=True)
def set_prices(prices: dict[str, int]) -> dict[str, object]:
    """Set prices: no field can be made for them, so they are edited as JSON and the server checks them.

    Args:
        prices: The price of each thing.
    """
    note({"prices": prices})
    return {"set": prices}


@tool(needs_approval=True)
async def print_report(name: str) -> dict[str, object]:
    """Print a report: waits at the gate of its name.

    Args:
        name: Which one.
    """
    await gate(name)
    return {"printed": name}


@tool
async def bake(name: str) -> dict[str, object]:
    """Bake something: waits at the gate of its name.

    Args:
        name: What.
    """
    note({"baked": name})
    current().progress(f"3 of 12 trays of {name}")
    await gate(name)
    return {"baked": name}


@tool(idempotent=True)
async def interview(
    about: str,
    schema: dict[str, object] | None = None,
    url: str | None = None,
    seconds: float | None = None,
) -> dict[str, object]:
    """Ask the user to fill in a form, or to open a page.

    Args:
        about: What it is for.
        schema: The fields.
        url: The page.
        seconds: How long to wait.
    """
    answer = await ask_form(about, schema, url=url, timeout_sec=seconds)
    return {"action": answer.action, "content": answer.content}


@tool(executor="frontend", card="select")
def choose(question: str, options: list[str]) -> str:
    """Let the user choose, within the park.

    Args:
        question: The question.
        options: What there is.

    Returns:
        The option.
    """
    raise NotImplementedError


@tool(executor="frontend")
def approve_plan(message: str) -> str:
    """Ask the user for a yes or no, with no card named.

    Args:
        message: The question.

    Returns:
        "yes" or "no"
    """
    raise NotImplementedError


@tool(executor="frontend")
def count_rows(table: str) -> list[dict[str, int]]:
    """Count the rows of a table: no form can be made of what comes back.

    Args:
        table: Which one.

    Returns:
        One object for each part of the table.
    """
    raise NotImplementedError


@tool(executor="frontend")
def stretch(minutes: int) -> None:
    """Ask the user to stretch: nothing comes back.

    Args:
        minutes: How long.

    Returns:
        Nothing.
    """
    raise NotImplementedError


def play(moment: Moment) -> Step | AsyncGenerator[Step, None]:
    steps = moment.text.split("\n---\n")
    if moment.steps >= len(steps):
        return " ".join(map(tale, moment.results))
    verb, _, rest = steps[moment.steps].partition(" ")
    if verb == "tell":
        return tell(rest)
    if verb == "think":
        return think(rest)
    if verb == "write":
        return Say(rest)
    if moment.text == "Please ask me again.":
        # a model may ask in other words
        return Ask("ask_text", {"question": "Which one was it?"})
    return [call for line in steps[moment.steps].splitlines() for call in calls(line)]


async def tell(name: str) -> AsyncGenerator[Step, None]:
    yield f"The tale of {name} begins. "
    await gate(name)
    yield f"The tale of {name} ends."


async def think(name: str) -> AsyncGenerator[Step, None]:
    yield Think(f"About {name}.")
    await gate(name)
    yield f"I have thought about {name}."


def calls(line: str) -> list[Ask]:
    delay = SLOWLY_SEC if line.startswith("slowly ") else None
    name, _, text = line.removeprefix("slowly ").partition(" ")
    return [Ask(name, json.loads(text or "{}"), delay=delay)]


def tale(result: ToolResult) -> str:
    if result.kind == "success":
        return f"{result.tool} brought {json.dumps(result.output, sort_keys=True)}."
    return f"{result.tool} brought nothing: {result.kind}, {result.error}."


def note(what: dict[str, object]) -> None:
    with (ROOM / "notes.jsonl").open("a") as notes:
        notes.write(json.dumps(what) + "\n")


async def gate(name: str) -> None:
    path = ROOM / "gates" / name
    async with asyncio.timeout(GATE_OPENS_WITHIN_SEC):
        # the test is another process: a file is all that it can set
        while not path.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


agent = Agent(
    model=ScriptedModel(play),
    tools=[send_report, send_parcel, set_prices, print_report, file_claim, bake, interview],
    frontend_tools=[*FRONTEND_TOOLS, choose, approve_plan, count_rows, stretch],
    title="The stage",
    welcome="It plays whatever it is told to.",
    starters=[
        "write Hello.",
        ("Choose", 'choose {"question": "Which?", "options": ["a", "b"]}', "One of two"),
    ],
    words={"placeholder": "Tell it what to play", "cards.chooseOne": "Take your pick"},
)
