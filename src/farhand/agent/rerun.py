"""Runs a recorded run again from one of its steps or calls: a new run, on a copy of the thread.

The original is unchanged. Tools that finished before the step are not run again: their results are part of
the copy. Must not know who asks for it, or how.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.context import AgentContext
from farhand.agent.offered_tools import OfferedTools
from farhand.agent.tool_context import person_of
from farhand.core.call import Call
from farhand.core.decide.opening import Opening
from farhand.core.decide.runs import NewRun
from farhand.core.decide.thread_copies import (
    CopiedCall,
    ThreadCopy,
    begin_copy,
    may_be_repeated,
    messages_before,
)
from farhand.core.event import CallRejected, CallSettled
from farhand.core.outcome import Denied, Failure, digest
from farhand.core.principal import Claims
from farhand.core.run import Run
from farhand.core.thread import AssistantMessage, Message, Text, UserMessage, text_of
from farhand.core.tool import Executor, Tool
from farhand.errors import Malformed, NotFound
from farhand.tools.schema_admission import check_input
from farhand.tools.timeouts import effective_timeout


class RerunRequest(Struct, frozen=True, kw_only=True):
    """From this step, or from one of its calls. `input` replaces the call's input, `text` the user's message
    that the run answers, from its first step. `repeats`: server tools that finished may run again."""

    step: int
    call_id: str | None = None
    input: dict[str, object] | None = None
    text: str | None = None
    repeats: bool = False


class Rerun(Struct, frozen=True):
    thread_id: str
    run_id: str


class NeedsConfirmation(Struct, frozen=True):
    """Nothing was started: these tools ran on the server and might run again."""

    tools: tuple[str, ...]


class _Recorded(NamedTuple):
    run: Run
    messages: Sequence[Message]
    calls: Sequence[Call]

    def step(self, step: int) -> AssistantMessage | None:
        own = [each for each in self.messages if isinstance(each, AssistantMessage)]
        return next((each for each in own if each.run_id == self.run.run_id and each.step == step), None)


async def rerun(
    context: AgentContext, run: Run, request: RerunRequest, claims: Claims
) -> Rerun | NeedsConfirmation:
    calls = await context.log.calls_of(run.owner, run.run_id)
    recorded = _Recorded(run, await context.log.messages(run.owner, run.thread_id), calls)
    chosen = _chosen(calls, request)
    tools = [await context.log.get_tool(version) for version in run.request_tools]
    request_tools = tuple(tool for tool in tools if tool is not None)
    new = NewRun(context.clock.fresh("run"), 0.0, claims, request_tools)
    copy = _copy(recorded, request, new)
    if chosen is not None:
        copy = await _from_call(context, recorded, copy, chosen, request.input)
    if not request.repeats and (unasked := await _repeated_tools(context, recorded, request, copy)):
        return NeedsConfirmation(tuple(dict.fromkeys(unasked)))
    thread_id = context.clock.fresh("thr")
    async with context.quotas.reserve_slot(run.owner, thread_id, 0):
        await context.log.decide(
            run.owner,
            thread_id,
            lambda thread, now: begin_copy(thread, copy, now=now, timeouts=context.settings.timeouts),
        )
    return Rerun(thread_id, new.run_id)


async def _repeated_tools(
    context: AgentContext, recorded: _Recorded, request: RerunRequest, copy: ThreadCopy
) -> list[str]:
    """The tools that the new run might repeat without asking anybody."""
    repeated = may_be_repeated(recorded.calls, step=request.step, call_id=request.call_id)
    # with another input, or since the tool was changed, a call that was approved may need no approval
    repeated += [
        call
        for call in recorded.calls
        if call.call_id == request.call_id
        and may_be_repeated([replace(call, approval=None)], step=request.step, call_id=request.call_id)
        and any(each.copy_of == call.call_id and not _asks(each) for each in copy.calls)
    ]
    names = [call.tool for call in repeated if not await _is_idempotent(context, call)]
    return names + _purged_tools(context, recorded, request)


def _asks(copied: CopiedCall) -> bool:
    return isinstance(copied.opening, Opening) and copied.opening.approval_id is not None


def _purged_tools(context: AgentContext, recorded: _Recorded, request: RerunRequest) -> list[str]:
    """The same, of calls that are known from the messages alone: they are kept longer."""
    known = {call.call_id for call in recorded.calls}
    first = request.step if request.call_id is None else request.step + 1
    purged = [
        asked.tool
        for each in recorded.messages
        if isinstance(each, AssistantMessage) and each.run_id == recorded.run.run_id and each.step >= first
        for asked in each.tool_calls
        if asked.call_id not in known
    ]
    declared = [context.toolbox.declared(name) for name in purged]
    return [
        each.tool.name
        for each in declared
        if each is not None and each.tool.executor is Executor.SERVER and not each.tool.idempotent
    ]


def _chosen(calls: Sequence[Call], request: RerunRequest) -> Call | None:
    if request.call_id is None:
        if request.input is not None:
            raise Malformed("input belongs to a call.", hint="Send callId as well.")
        return None
    if request.text is not None:
        raise Malformed("text belongs to the first step.", hint="Leave out callId, or text.")
    found = next((call for call in calls if call.call_id == request.call_id and call.parent is None), None)
    if found is None or found.step != request.step:
        raise NotFound("There is no such call in this step of the run.")
    return found


async def _is_idempotent(context: AgentContext, call: Call) -> bool:
    tool = await context.log.get_tool(call.tool_version)
    return tool is not None and tool.idempotent


def _copy(recorded: _Recorded, request: RerunRequest, new: NewRun) -> ThreadCopy:
    run = recorded.run
    before = messages_before(recorded.messages, run.run_id, request.step)
    asked = next((each for each in reversed(before) if isinstance(each, UserMessage)), None)
    if asked is None or asked.message_id != run.user_message_id:
        raise NotFound("The message that this run answers is no longer in its chat.")
    if request.step > 1 and recorded.step(request.step - 1) is None:
        raise NotFound("This run has no such step.")
    if request.text is not None:
        if request.step != 1 or before[-1] is not asked:
            raise Malformed("text replaces the user's message, so it belongs to the first step.")
        asked = _reworded(asked, request.text, new.run_id)
        before = (*before[:-1], asked)
    title = text_of(asked)[:70].strip() or "A run"
    return ThreadCopy(title=f"{title} (rerun)", messages=before, new=new, user_message_id=asked.message_id)


def _reworded(message: UserMessage, text: str, run_id: str) -> UserMessage:
    files = tuple(part for part in message.parts if not isinstance(part, Text))
    return UserMessage(f"msg_{run_id.removeprefix('run_')}", (Text(text), *files))


async def _from_call(
    context: AgentContext,
    recorded: _Recorded,
    copy: ThreadCopy,
    chosen: Call,
    input: dict[str, object] | None,
) -> ThreadCopy:
    run, step = recorded.run, recorded.step(chosen.step)
    if step is None:
        raise NotFound("The message of this step is no longer kept.")
    person = replace(person_of(run), claims=copy.new.claims)
    offered = await context.offered(person, run.request_tools)
    own = [call for call in recorded.calls if call.step == chosen.step and call.parent is None]
    copied = [
        _opened_anew(context, call, input if call is chosen else None, offered)
        if call is chosen or call.outcome is None
        else await _kept(context, call)
        for call in own
    ]
    return replace(copy, step=step, calls=tuple(copied))


def _opened_anew(
    context: AgentContext, call: Call, input: dict[str, object] | None, offered: OfferedTools
) -> CopiedCall:
    tool = offered.get(call.tool)
    if tool is None:
        raise NotFound(f"The tool '{call.tool}' no longer exists.")
    new_input = call.input if input is None else input
    declared = offered.declared(call.tool)
    wrong = check_input(tool, new_input) if declared is None else declared.bind(new_input)
    if isinstance(wrong, str | Failure):
        why = wrong.error if isinstance(wrong, Failure) else wrong
        raise Malformed(f"The input does not fit '{call.tool}': {why}", hint="Nothing was started.")
    asks = offered.asks(tool, new_input)
    opening = Opening(
        call_id=context.clock.fresh("call"),
        tool=tool,
        input=new_input,
        step=1,
        model_call_id=call.model_call_id,
        timeout_sec=effective_timeout(tool, new_input),
        approval_id=context.clock.fresh("apr") if asks else None,
    )
    return CopiedCall(copy_of=call.call_id, opening=opening)


async def _kept(context: AgentContext, call: Call) -> CopiedCall:
    """The call with its outcome: nothing of it runs again."""
    assert call.outcome is not None, "only what is over is kept"
    call_id = context.clock.fresh("call")
    tool = await context.log.get_tool(call.tool_version) or Tool(
        name=call.tool, description="", input_schema={"type": "object"}, executor=call.executor
    )
    if isinstance(call.outcome, Failure) and not call.tool_version:
        rejected = CallRejected(
            call_id=call_id,
            tool=call.tool,
            input=call.input,
            error=call.outcome.error,
            step=1,
            model_call_id=call.model_call_id,
            executor=call.executor,
        )
        return CopiedCall(copy_of=call.call_id, opening=rejected)
    opening = Opening(
        call_id=call_id,
        tool=tool,
        input=call.input,
        step=1,
        model_call_id=call.model_call_id,
        # a denial answers a question
        approval_id=context.clock.fresh("apr") if isinstance(call.outcome, Denied) else None,
    )
    settled = CallSettled(
        call_id=call_id,
        tool=call.tool,
        executor=call.executor,
        outcome=call.outcome,
        digest=call.digest or digest(call.outcome),
        title=call.title,
        metadata=call.metadata,
        summary=call.output_summary,
    )
    return CopiedCall(copy_of=call.call_id, opening=opening, settled=settled)
