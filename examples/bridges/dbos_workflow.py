"""A DBOS workflow with a step that waits for a person and survives a kill: `FOLDER start`, later `FOLDER`.

The step is a keyed call. DBOS runs an unfinished step again; with the same key, the second attempt attaches
to the call of the first, so the person is asked once and the invoice is paid once.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dbos import DBOS, SetWorkflowID, WorkflowHandleAsync

from farhand import Success, Toolbox, Waiting, create_app

FOLDER = Path(sys.argv[1])
toolbox = Toolbox()


@toolbox.tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an invoice.

    Args:
        amount: In euros.
    """
    with (FOLDER / "effects.txt").open("a") as file:
        file.write(f"paid {amount}\n")
    return f"paid {amount}"


hands = create_app(toolbox, store=f"sqlite:///{FOLDER}/hands.db")


@DBOS.step()
async def pay_with_approval(amount: int) -> str:
    key = f"{DBOS.workflow_id}:pay"
    outcome = await hands.call("pay", {"amount": amount}, thread="invoices", key=key, within=0.1)
    if isinstance(outcome, Waiting):
        say("waiting")
        outcome = await hands.call("pay", {"amount": amount}, thread="invoices", key=key)
    return str(outcome.output if isinstance(outcome, Success) else outcome)


@DBOS.workflow()
async def settle_invoice(amount: int) -> str:
    return f"done: {await pay_with_approval(amount)}"


async def main() -> None:
    DBOS(config={"name": "invoices", "system_database_url": f"sqlite:///{FOLDER}/dbos.db"})
    async with hands:
        # inside the loop, after the hands: DBOS runs the steps of recovered workflows on this loop
        DBOS.launch()
        if sys.argv[2:] == ["start"]:
            with SetWorkflowID("invoice-7"):
                await DBOS.start_workflow_async(settle_invoice, 3)
        handle: WorkflowHandleAsync[str] = await DBOS.retrieve_workflow_async("invoice-7")
        say(await handle.get_result())
    # after the hands: DBOS ends the threads of this loop
    DBOS.destroy()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
