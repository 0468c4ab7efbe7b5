"""What a program does with the app that `create_app` returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from farhand import Answer, App, Denied, Owner, Principal, Success, Toolbox, Waiting, create_app, current
from farhand.errors import Misuse

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
