"""An agent whose tools are called without a run. Each notes that it ran, in the room that TEST_ROOM names.

A server that finds one of these files in the room, with its process id, kills or stops itself at a moment
that no test could hit:

- `kill-before-start`: an approval is stored, and its tool is about to be taken for this server;
- `kill-before-tool`: the tool is taken, and its function is about to be called;
- `stop-before-tool`: the same, and the process continues when somebody says so.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from farhand import Agent, ScriptedModel, tool
from farhand.agent import direct_executor
from farhand.agent.context import AgentContext
from farhand.agent.execute import run_tool
from farhand.calls.desk import Desk
from farhand.core.call import Call, Phase
from farhand.core.outcome import Outcome
from farhand.core.tool import Tool
from tests.chaos.recording_agent import gate, note


@tool(needs_approval=True)
def delete_file(path: str) -> dict[str, str]:
    """Delete a file for good.

    Args:
        path: Which one.
    """
    note("executions", {"tool": "delete_file", "subject": path})
    return {"deleted": path}


@tool(needs_approval=True)
async def charge(account: str) -> dict[str, str]:
    """Take money; waits for the gate `<account>`.

    Args:
        account: Whose.
    """
    note("executions", {"tool": "charge", "subject": account})
    await gate(account)
    return {"charged": account}


@tool(needs_approval=True, idempotent=True)
async def look_up(name: str) -> dict[str, str]:
    """Look something up; waits for the gate `<name>`.

    Args:
        name: What.
    """
    note("executions", {"tool": "look_up", "subject": name})
    await gate(name)
    return {"found": name}


@tool
async def count(name: str) -> dict[str, str]:
    """Count something, without asking anybody; waits for the gate `<name>`.

    Args:
        name: What.
    """
    note("executions", {"tool": "count", "subject": name})
    await gate(name)
    return {"counted": name}


@tool(executor="frontend", needs_approval=True)
def take_photo(camera: str) -> dict[str, str]:
    """Take a photo.

    Args:
        camera: Which one.

    Returns:
        The name of the photo.
    """
    raise NotImplementedError(camera)


def fall_into(trap: str, how: signal.Signals = signal.SIGKILL) -> None:
    path = Path(os.environ["TEST_ROOM"]) / trap
    if path.exists() and path.read_text() == str(os.getpid()):
        path.unlink()
        os.kill(os.getpid(), how)


start_direct = Desk.start_direct


async def start_or_die(desk: Desk, call: Call, tool: Tool | None, worker: str) -> Call | None:
    if call.phase is Phase.READY:
        fall_into("kill-before-start")
    return await start_direct(desk, call, tool, worker)


async def run_or_die(context: AgentContext, call: Call, *, since: float) -> Outcome | None:
    fall_into("kill-before-tool")
    fall_into("stop-before-tool", signal.SIGSTOP)
    return await run_tool(context, call, since=since)


setattr(Desk, "start_direct", start_or_die)  # noqa: B010
setattr(direct_executor, "run_tool", run_or_die)  # noqa: B010

agent = Agent(
    ScriptedModel(lambda moment: "hm"),
    tools=[delete_file, charge, look_up, count],
    frontend_tools=[take_photo],
)
