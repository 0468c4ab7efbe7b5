"""What a program does with the app that `create_app` returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from farhand import (
    Agent,
    Answer,
    App,
    Denied,
    Limits,
    Owner,
    Principal,
    ScriptedModel,
    Settings,
    Success,
    Timeouts,
    Toolbox,
    Waiting,
    create_app,
    current,
)
from farhand.errors import BadSetting, Misuse

AGENT = Agent(ScriptedModel([]))
paid: list[int] = []


@pytest.fixture
async def hands() -> AsyncIterator[App]:
    toolbox = Toolbox()

    @toolbox.tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay an invoice.

        Args:
            amount: In euros.
        """
        paid.append(amount)
        approval = current().approval
        assert approval is not None
        return f"paid {amount} for {approval.claims.get('name', 'nobody')}"

    async with create_app(toolbox, store="memory:") as app:
        yield app


async def _ask_to_pay(hands: App, *, key: str | None = None) -> str:
    waiting = await hands.call("pay", {"amount": 3}, thread="invoices", key=key, within=0)
    assert isinstance(waiting, Waiting)
    assert waiting.approval_id is not None
    return waiting.approval_id


async def test_open_calls_are_listed_with_what_a_person_has_to_know(hands: App) -> None:
    approval_id = await _ask_to_pay(hands, key="invoice-7")
    [call] = await hands.open_calls()
    assert (call.tool, call.input, call.thread, call.key) == ("pay", {"amount": 3}, "invoices", "invoice-7")
    assert call.approval_id == approval_id
    assert await hands.open_calls(thread="invoices") == [call]
    assert await hands.open_calls(thread="another") == []
    assert await hands.open_calls(owner=Owner("local", "someone else")) == []


async def test_an_approved_call_runs_and_is_no_longer_open(hands: App) -> None:
    assert await hands.approve(await _ask_to_pay(hands, key="invoice-7"))
    outcome = await hands.call("pay", {"amount": 3}, thread="invoices", key="invoice-7")
    assert outcome == Success("paid 3 for nobody")
    assert await hands.open_calls() == []


async def test_a_denied_call_does_not_run_and_the_first_answer_counts(hands: App) -> None:
    paid.clear()
    approval_id = await _ask_to_pay(hands, key="invoice-7")
    no = Answer(approved=False, reason="too much")
    assert await hands.approve(approval_id, no)
    assert await hands.approve(approval_id, no), "the same answer again"
    assert not await hands.approve(approval_id)
    outcome = await hands.call("pay", {"amount": 3}, thread="invoices", key="invoice-7")
    assert isinstance(outcome, Denied)
    assert paid == []


async def test_an_approval_with_a_principal_records_who_approved(hands: App) -> None:
    approval_id = await _ask_to_pay(hands, key="invoice-7")
    assert await hands.approve(approval_id, owner=Principal("local", "me", claims={"name": "Ann"}))
    async with asyncio.timeout(30):
        outcome = await hands.call("pay", {"amount": 3}, thread="invoices", key="invoice-7")
    assert outcome == Success("paid 3 for Ann")


async def test_approving_what_does_not_exist_or_belongs_to_someone_else_returns_false(hands: App) -> None:
    assert not await hands.approve("apr_unknown")
    approval_id = await _ask_to_pay(hands)
    assert not await hands.approve(approval_id, owner=Owner("local", "someone else"))


async def test_an_owner_that_is_a_string_is_refused_with_one_sentence(hands: App) -> None:
    with pytest.raises(Misuse, match="owner must be an Owner"):
        await hands.open_calls(owner="me")  # type: ignore[arg-type]


async def test_a_call_takes_the_name_of_a_tool_and_not_its_function(hands: App) -> None:
    function: Any = _ask_to_pay
    with pytest.raises(Misuse, match="names its tool with a string"):
        await hands.call(function, {}, thread="t")


# Any: what a program without a type checker may pass
@pytest.mark.parametrize(
    "agent", [[], AGENT.run, "anthropic:claude-sonnet-5", ScriptedModel([]), Agent, None]
)
def test_an_app_of_anything_but_an_agent_or_a_toolbox_is_refused_at_once(agent: Any) -> None:
    with pytest.raises(Misuse, match=r"create_app\(\) needs an Agent or a Toolbox, not .*Write create_app"):
        create_app(agent)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("store", 5),
        ("store", "notes.db"),
        ("authenticate", "a token"),
        ("allow_origins", "https://app.example.org"),
        ("allow_origins", [5]),
        ("allow_hosts", "app.example.org"),
        ("allow_headers", "X-Tenant"),
        ("settings", {"limits": {}}),
        ("settings", Limits()),
        ("settings", Settings(limits=dict[str, object]())),  # type: ignore[arg-type]
        ("client_tools", "never"),
        ("request_tools", "never"),
        ("page", "no"),
        ("inspector", 1),
        ("prices", {"claude-sonnet-5": 3}),
        ("prices", [3]),
        ("show_tool_errors", "yes"),
    ],
)
def test_an_argument_of_the_wrong_type_is_refused_at_once(argument: str, value: Any) -> None:
    with pytest.raises(BadSetting):
        create_app(AGENT, **{argument: value})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            Settings(timeouts=Timeouts(hold_for=-5)),
            "settings.timeouts.hold_for: expected at least 0, got -5.",
        ),
        (
            Settings(limits=Limits(chat_body="4 MiB")),  # type: ignore[arg-type]
            "settings.limits.chat_body: expected a whole number, got '4 MiB'.",
        ),
        (
            Settings(limits=Timeouts()),  # type: ignore[arg-type]
            "settings.limits must be a Limits(…), not a Timeouts(…).",
        ),
    ],
)
def test_a_setting_with_an_impossible_value_is_refused_at_once(settings: Settings, sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        create_app(AGENT, settings=settings)
    assert str(caught.value) == sentence


def test_a_toolbox_takes_its_tools_at_once() -> None:
    def add(a: int) -> int:
        """Add one.

        Args:
            a: A number.
        """
        return a + 1

    assert [tool.name for tool in create_app(Toolbox(add)).tools()] == ["add"]
