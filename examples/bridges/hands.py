"""Shared by the examples: an app with one tool that needs approval, and a person who approves it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from farhand import Answer, Owner, Toolbox, create_app

if TYPE_CHECKING:
    from farhand.bridges.bridge import Hands

toolbox = Toolbox()
paid: list[int] = []


@toolbox.tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an invoice.

    Args:
        amount: In euros.
    """
    paid.append(amount)
    return f"paid {amount} euros"


hands = create_app(toolbox, store="memory:")


async def approve_next(hands: Hands) -> None:
    """Does what a person does in the inbox, or with `farhand inbox approve`, minutes or days later."""
    async with asyncio.timeout(30):
        # the loop opens the call when its model requests it
        while not (waiting := await hands.service.open_calls(Owner("local", "me"))):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    approval = waiting[0].approval
    assert approval is not None
    await hands.service.desk.approve(waiting[0].owner, approval.approval_id, Answer(approved=True))
