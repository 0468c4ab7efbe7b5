"""A program with a loop of its own that uses far hands: `python -m … STORE call|approve|die|told`.

`call` makes the keyed call, or attaches to it, and prints its outcome; `approve` says yes to whatever waits;
`die` makes it, says yes itself, and is killed as soon as that is accepted;
`told` waits until it is told of the outcome. The tool notes that it ran, in the room that TEST_ROOM names.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import msgspec

from farhand import Answer, Owner, SettledCall, Toolbox, Waiting, create_app, current
from tests.chaos.recorded import note

ANN = Owner("acme", "ann")
toolbox = Toolbox()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@toolbox.tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: How much.
    """
    note("executions", {"tool": "pay", "subject": current().idempotency_key})
    return f"paid {amount}"


async def main(store: str, what: str) -> None:
    hands = create_app(toolbox, store=store)
    told = asyncio.Event()

    async def note_it(settled: SettledCall) -> None:
        note("told", {"key": settled.key})
        told.set()

    hands.on_settled("order-", note_it)
    async with hands:
        say("ready")
        match what:
            case "call":
                outcome = await hands.call("pay", {"amount": 3}, thread="t1", key="order-7", owner=ANN)
                say(msgspec.json.encode(outcome).decode())
            case "approve":
                desk = hands.service.desk
                # another program opens it
                while not (waiting := await hands.service.open_calls(ANN)):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                assert waiting[0].approval is not None
                await desk.approve(ANN, waiting[0].approval.approval_id, Answer(approved=True))
                say("approved")
                await asyncio.sleep(60)
            case "die":
                opened = await hands.call(
                    "pay", {"amount": 3}, thread="t1", key="order-7", owner=ANN, within=0.01
                )
                assert isinstance(opened, Waiting)
                assert opened.approval_id is not None
                await hands.service.desk.approve(ANN, opened.approval_id, Answer(approved=True))
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                await told.wait()


asyncio.run(main(*sys.argv[1:]))
