"""Runs server tools and settles them like any other hand.

What was in flight when a process died is not run again, unless the tool is declared idempotent: the model is
told that nobody knows how it ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec.structs import replace

from farhand.agent.kit import Kit
from farhand.calls.desk import BACKSTOP_SEC
from farhand.core.call import Call, Phase
from farhand.core.outcome import Failure, Outcome, TimedOut
from farhand.core.run import Run
from farhand.core.tool import Executor, digest_of_approval
from farhand.store.base import When, Write, WriteRun

UNKNOWN = Failure(
    "The server stopped while this tool was running. Whether it took effect is unknown; it was not run again."
)
CHANGED = Failure("The tool changed since it was approved and was not run; ask again.")


async def execute(kit: Kit, calls: Iterable[Call], run: Run, *, opened_here: bool = False) -> bool:
    """Runs every call of this side that may run, all at once, to its end; False if there was none.

    None is begun once another claim on the run exists. A call that was not opened here, a moment ago, and is
    taken all the same was begun by whoever took it: by a worker that took the run over, perhaps.
    """
    own = _own(calls)
    if own and not opened_here:
        own = [call for call in own if call.phase is Phase.READY or may_repeat(kit, call)]
    if not own:
        return False
    try:
        async with asyncio.TaskGroup() as group:
            for call in own:
                begun = opened_here and call.phase is Phase.TAKEN
                group.create_task(_execute(kit, call, run, begun=begun))
    except ExceptionGroup as several:
        # tools do not raise here: it is the store, or a fault of ours, and one of them says it
        raise several.exceptions[0] from several
    return True


async def recover(kit: Kit, run: Run) -> Run:
    """Before a run goes on elsewhere or later: what was in flight then has an unknown end.

    However late it is: that a deadline has passed meanwhile says nothing about what the tool did. Returns the
    run as it is then, with what this added to its journal.
    """
    for call in _own(await kit.store.calls_of(run.owner, run.run_id, run.step)):
        if call.phase is Phase.TAKEN and not may_repeat(kit, call):
            await kit.desk.finish(call, UNKNOWN, when=When.ANY_TIME)
        elif call.phase is Phase.TAKEN:
            # begun afresh, so its time begins afresh
            await kit.desk.start(call)
    now = await kit.store.get_run(run.owner, run.run_id)
    return replace(run, last_seq=now.last_seq) if now is not None else run


def may_repeat(kit: Kit, call: Call) -> bool:
    declared = kit.toolbox.declared(call.tool)
    return declared is not None and declared.tool.idempotent


async def _execute(kit: Kit, call: Call, run: Run, *, begun: bool) -> None:
    held = WriteRun(run_id=run.run_id, fence=run.fence)
    taken = await begin_call(kit, call, held, is_begun=begun)
    if taken is not None:
        await kit.desk.finish(taken, await run_tool(kit, taken))


async def begin_call(kit: Kit, call: Call, *beside: Write, is_begun: bool) -> Call | None:
    """The call as it is taken for this side; None if its tool is not to be run. One that `is_begun` was
    opened as taken."""
    tool = kit.toolbox.get(call.tool)
    if tool is None or tool.version != call.tool_version or not _is_what_was_approved(call):
        await kit.desk.finish(call, CHANGED)
        return None
    return call if is_begun else await kit.desk.start(call, *beside)


async def run_tool(kit: Kit, call: Call) -> Outcome:
    within = call.timeout_sec or kit.settings.patience.server_tool
    if call.run_id is None and call.deadline is not None:
        # its time has been running since it was opened or approved, whenever the tool is started
        left = call.deadline - BACKSTOP_SEC - kit.store.now()
        if left <= 0:
            return TimedOut(within)
        within = min(within, left)
    most = kit.settings.limits.tool_output
    outcome = await kit.toolbox.execute(
        call.tool, call.input, within=within, call_id=call.call_id, at_most=most
    )
    return kit.recorded(outcome)


def _is_what_was_approved(call: Call) -> bool:
    return call.approval is None or call.approval.digest == digest_of_approval(call.tool_version, call.input)


def _own(calls: Iterable[Call]) -> list[Call]:
    running = (Phase.READY, Phase.TAKEN)
    return [call for call in calls if call.executor is Executor.SERVER and call.phase in running]
