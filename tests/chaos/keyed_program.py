"""A program with its own loop that uses far hands: STORE call|approve|attach|told|die TOOL [MOMENT].

`call` makes the keyed call, or attaches to it, and prints its outcome; `approve` says yes to whatever waits;
`attach` has two callers and says yes itself; `told` waits until it is told of the outcome. `die` makes the
call, says yes itself, and is killed at a moment that no test could hit:

- `before-start`: the approval is stored, and the tool is about to be taken for this process;
- `before-tool`: the tool is taken, and its function is about to be called;
- `in-tool`: the function has had its effect, and the outcome is not stored;
- `in-report`: the outcome is stored, and the program is being told of it.

The tools note that they ran, in the room that TEST_ROOM names.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import msgspec

from farhand import Answer, Outcome, Owner, SettledCall, Toolbox, create_app, current
from farhand.agent import direct_executor
from farhand.agent.context import AgentContext
from farhand.agent.execute import run_tool
from farhand.calls.desk import Desk
from farhand.core.call import Call, Phase
from farhand.core.settings import Settings, Timeouts
from farhand.core.tool import Tool
from farhand.server.app import App
from tests.chaos.recording_agent import note

ANN = Owner("acme", "ann")
toolbox = Toolbox()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _reach(moment: str) -> None:
    if sys.argv[4:] == [moment]:
        os.kill(os.getpid(), signal.SIGKILL)


@toolbox.tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: How much.
    """
    note("executions", {"tool": "pay", "subject": current().idempotency_key})
    _reach("in-tool")
    return f"paid {amount}"


@toolbox.tool(needs_approval=True, idempotent=True)
def pay_again(amount: int) -> str:
    """Pay at a bank that knows what it was told before.

    Args:
        amount: How much.
    """
    note("executions", {"tool": "pay_again", "subject": current().idempotency_key})
    _reach("in-tool")
    return f"paid {amount}"


def main() -> None:
    store, what, tool = sys.argv[1:4]
    _set_traps()
    asyncio.run(_main(store, what, tool))


def _set_traps() -> None:
    start_direct = Desk.start_direct

    async def start_or_die(desk: Desk, call: Call, tool: Tool | None, worker: str) -> Call | None:
        if call.phase is Phase.READY:
            _reach("before-start")
        return await start_direct(desk, call, tool, worker)

    async def run_or_die(context: AgentContext, call: Call, *, since: float) -> Outcome | None:
        _reach("before-tool")
        return await run_tool(context, call, since=since)

    setattr(Desk, "start_direct", start_or_die)  # noqa: B010
    setattr(direct_executor, "run_tool", run_or_die)  # noqa: B010


async def _main(store: str, what: str, tool: str) -> None:
    hands = create_app(toolbox, store=store, settings=Settings(timeouts=Timeouts(lease=1.0)))
    told = asyncio.Event()

    async def note_it(settled: SettledCall) -> None:
        note("told", {"key": settled.key})
        _reach("in-report")
        told.set()

    hands.on_settled("order-", note_it)
    async with hands:
        say("ready")
        match what:
            case "call":
                await _open(hands, tool)
                say("opened")
                say(await _outcome(hands, tool))
            case "approve":
                await _approve(hands)
                say("approved")
            case "attach":
                async with asyncio.TaskGroup() as group:
                    callers = [group.create_task(_outcome(hands, tool)) for _ in range(2)]
                    group.create_task(_approve(hands))
                for caller in callers:
                    say(caller.result())
            case "die":
                await _open(hands, tool)
                await _approve(hands)
            case _:
                await told.wait()
                say("told")
        # until it is killed
        await asyncio.Event().wait()


async def _open(hands: App, tool: str) -> None:
    await hands.call(tool, {"amount": 3}, thread="t1", key="order-7", owner=ANN, within=0)


async def _outcome(hands: App, tool: str) -> str:
    outcome = await hands.call(tool, {"amount": 3}, thread="t1", key="order-7", owner=ANN)
    return msgspec.json.encode(outcome).decode()


async def _approve(hands: App) -> None:
    # another caller, perhaps of another process, opens it
    while not (waiting := await hands.service.log.open_calls(ANN)):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    assert waiting[0].approval is not None
    await hands.service.desk.approve(ANN, waiting[0].approval.approval_id, Answer(approved=True))
