"""`current()` in a server tool: the person who asked, distinguished from the one who approved.

In plain functions and on the event loop, for two people at once, when the approval comes three days later,
after a restart, and at another worker. `tests/chaos/test_hands.py` repeats it with real kills.
"""

from __future__ import annotations

import asyncio

import pytest

from farhand.agent.start_run import Asker
from farhand.core.approval import Answer
from farhand.core.decide.calls import Reply
from farhand.core.event import CallOpened, RunFinished, RunParked
from farhand.core.outcome import Success
from farhand.core.principal import Owner, Principal
from farhand.core.result import Accepted
from farhand.core.run import Run
from farhand.core.settings import Settings, Timeouts
from farhand.core.thread import Text, UserMessage
from farhand.models.scripted import Ask
from farhand.tools.context import Context, current
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.failover import Workers, successors
from tests.unit.agent.stage import THREAD, Stage, text_in
from tests.unit.agent.test_recovery import Machine, asking

__all__ = ["successors"]
"""The fixture, for this file."""

DAYS = 86_400.0
PEOPLE = ("ann", "ben")


def _who(context: Context) -> str:
    asked = f"{context.owner.subject}/{context.claims['name']}"
    yes = context.approval
    return asked if yes is None else f"{asked} by {yes.claims['name']} at {yes.at:g} edited {yes.is_edited}"


@tool
def look(amount: int) -> str:
    """Look, in a thread.

    Args:
        amount: At how much.
    """
    return f"{amount} {_who(current())}"


@tool
async def look_async(amount: int, context: Context) -> str:
    """Look, on the event loop.

    Args:
        amount: At how much.
    """
    await asyncio.sleep(0)
    assert current() is context
    return f"{amount} {_who(context)}"


@tool(needs_approval=True)
def pay(amount: int, context: Context) -> str:
    """Pay, in a thread.

    Args:
        amount: How much.
    """
    assert current() is context
    return f"{amount} {_who(context)}"


@tool(needs_approval=True)
async def pay_async(amount: int) -> str:
    """Pay, on the event loop.

    Args:
        amount: How much.
    """
    await asyncio.sleep(0)
    return f"{amount} {_who(current())}"


TOOLS = (look, look_async, pay, pay_async)


async def _start(on: Stage, name: str, *, hold_for: float = 0.0) -> Run:
    message = UserMessage(on.clock.fresh("msg"), (Text("go"),))
    asker = Asker({"name": name})
    owner = Owner("acme", name)
    return (await on.service.start(owner, THREAD, message, hold_for=hold_for, asker=asker)).run


async def _approve(on: Stage, name: str, tool: str, amount: int | None = None) -> None:
    """Mia says yes at this server, with another amount if there is one."""
    owner = Owner("acme", name)
    [call] = [each for each in await on.log.open_calls(owner, THREAD) if each.tool == tool]
    assert call.approval is not None
    answer = Answer(approved=True, input=None if amount is None else {"amount": amount})
    yes = Reply(call.approval.approval_id, answer, {"name": "mia"})
    assert await on.service.desk.accept(owner, yes) == [Accepted()]


@requirement("hands:who-asks")
async def test_two_people_at_once_are_told_apart_by_tools_of_both_kinds(
    successors: Machine | Workers,
) -> None:
    script = asking([Ask("look", {"amount": 1}), Ask("look_async", {"amount": 2})])
    one = await successors.boot(script, *TOOLS)
    other = await successors.boot(script, *TOOLS)
    places = {"ann": one if isinstance(successors, Workers) else other, "ben": other}
    runs = dict(
        zip(PEOPLE, await asyncio.gather(*(_start(places[each], each) for each in PEOPLE)), strict=True)
    )
    for name, run in runs.items():
        said = text_in(await other.told(run, RunFinished))
        assert said == f"1 {name}/{name} 2 {name}/{name}"


@requirement("hands:who-asks")
async def test_three_days_later_the_next_server_knows_who_asked_and_who_approved(
    successors: Machine | Workers,
) -> None:
    successors.settings = Settings(timeouts=Timeouts(hold_for=0.0, park_for=7 * DAYS))
    script = asking([Ask("pay", {"amount": 5}), Ask("pay_async", {"amount": 6})])
    before = await successors.boot(script, *TOOLS)
    runs = dict(zip(PEOPLE, await asyncio.gather(*(_start(before, each) for each in PEOPLE)), strict=True))
    for run in runs.values():
        await before.told(run, RunParked)
    at = successors.clock.advance(3 * DAYS)
    after = await successors.boot(script, *TOOLS)
    for name in PEOPLE:
        await _approve(after, name, "pay", amount=4)
        await _approve(after, name, "pay_async")
    for name, run in runs.items():
        by = f"{name}/{name} by mia at {at:g} edited"
        assert text_in(await after.told(run, RunFinished)) == f"4 {by} True 6 {by} False"


@requirement("hands:who-asks")
@pytest.mark.parametrize("name", ["pay", "pay_async"])
async def test_three_days_later_the_next_server_knows_who_made_a_call_without_a_run(
    successors: Machine | Workers, name: str
) -> None:
    successors.settings = Settings(timeouts=Timeouts(park_for=7 * DAYS))
    before = await successors.boot(asking(), *TOOLS)
    people = [Principal("acme", each, claims={"name": each}) for each in PEOPLE]

    async def call(on: Stage, person: Principal, within: float | None = None) -> object:
        return await on.service.call(
            name, {"amount": 5}, thread=THREAD, key="job", owner=person, within=within
        )

    await asyncio.gather(*(call(before, each, within=0.0) for each in people))
    at = successors.clock.advance(3 * DAYS)
    after = await successors.boot(asking(), *TOOLS)
    for each in PEOPLE:
        await _approve(after, each, name)
    told = await asyncio.gather(*(call(after, each) for each in people))
    assert told == [Success(f"5 {each}/{each} by mia at {at:g} edited False") for each in PEOPLE]


@requirement("hands:who-asks")
async def test_the_worker_that_holds_the_run_is_told_who_approved_at_another(
    successors: Machine | Workers,
) -> None:
    script = asking([Ask("pay", {"amount": 5}), Ask("pay_async", {"amount": 6})])
    one = await successors.boot(script, *TOOLS)
    other = await successors.boot(script, *TOOLS) if isinstance(successors, Workers) else one
    runs = {each: await _start(one, each, hold_for=60.0) for each in PEOPLE}
    for name, run in runs.items():
        await one.told(run, CallOpened)
        await _approve(other, name, "pay_async", amount=7)
        await _approve(other, name, "pay")
        by = f"{name}/{name} by mia at {successors.clock.now():g} edited"
        assert text_in(await one.told(run, RunFinished)) == f"5 {by} False 7 {by} True"
        assert (await one.stored(run)).fence == 1, "nobody took it from its holder"
