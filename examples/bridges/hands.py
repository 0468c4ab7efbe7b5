"""Shared by the examples: an app with one tool that needs approval, and a person who approves it."""

from __future__ import annotations

import asyncio
import sys

from farhand import App, Toolbox, create_app

toolbox = Toolbox()
paid: list[int] = []


@toolbox.tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an invoice.

    Args:
        amount: In euros.
    """
    paid.append(amount)
    sys.stdout.write(f"the tool ran: paid {amount} euros\n")
    return f"paid {amount} euros"


hands = create_app(toolbox, store="memory:")


async def approve_next(hands: App) -> None:
    """Does what a person does in the inbox, or with `farhand inbox approve`, minutes or days later."""
    async with asyncio.timeout(30):
        # the loop opens the call when its model requests it
        while not (waiting := await hands.open_calls()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    sys.stdout.write(f"a person approves: {waiting[0].tool} {waiting[0].input}\n")
    approval_id = waiting[0].approval_id
    assert approval_id is not None
    assert await hands.approve(approval_id)
