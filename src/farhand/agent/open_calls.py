"""Turns a call that the model requests into an opening, or rejects it with a reason for the model.

An unknown tool, an input that is not JSON or does not match its schema, an unfinished input: only the model
gets to see those.
"""

from __future__ import annotations

from msgspec import Struct

from farhand.agent.context import AgentContext
from farhand.agent.model_stream import RequestedCall, whole
from farhand.agent.offered_tools import OfferedTools
from farhand.core.decide.opening import Opening
from farhand.core.event import CallRejected
from farhand.core.outcome import Failure, public_error
from farhand.core.tool import Executor, Tool
from farhand.errors import Malformed
from farhand.models.base import Stop
from farhand.tools.schema_admission import check_input
from farhand.tools.timeouts import effective_timeout
from farhand.wire.json_reader import read_json


class StepContext(Struct, frozen=True):
    """What the calls of one step have in common. `is_held`: a stream is kept open for their results."""

    step: int
    stop: Stop
    is_held: bool
    offered: OfferedTools


def prepare_call(
    context: AgentContext, requested: RequestedCall, step_context: StepContext
) -> Opening | CallRejected:
    tool = step_context.offered.get(requested.tool)
    understood = _read(requested)
    wrong = _wrong(context, requested, tool, understood, step_context)
    if wrong is not None or tool is None or not isinstance(understood, dict):
        return _rejected(
            context, requested, tool, understood, wrong or "The input is not a JSON object.", step_context
        )
    return Opening(
        call_id=requested.call_id,
        tool=tool,
        input=understood,
        step=step_context.step,
        model_call_id=requested.model_call_id,
        timeout_sec=effective_timeout(tool, understood),
        is_held=step_context.is_held,
        approval_id=context.clock.fresh("apr") if step_context.offered.asks(tool, understood) else None,
    )


def _wrong(
    context: AgentContext,
    requested: RequestedCall,
    tool: Tool | None,
    understood: object,
    step_context: StepContext,
) -> str | Failure | None:
    """Why this call cannot be opened, worded for the model."""
    if requested.input is None:
        return "The input was cut off before it was complete; the call was not executed."
    if step_context.stop.reason != "calls":
        return f"The answer ended early ({step_context.stop.reason}); the call was not executed."
    if tool is None:
        known = ", ".join(sorted(each.name for each in step_context.offered.tools())[:20])
        return f"There is no tool '{requested.tool}'. Known tools: {known or 'none'}."
    if len(requested.input.encode(errors="replace")) > context.settings.limits.call_input:
        return f"The input is larger than {context.settings.limits.call_input} bytes."
    if isinstance(understood, _Unreadable):
        return understood.why
    declared = step_context.offered.declared(requested.tool)
    if declared is None:
        return check_input(tool, understood)
    bound = declared.bind(understood)
    return bound if isinstance(bound, Failure) else None


# a rejected call consists of these six values
def _rejected(
    context: AgentContext,
    requested: RequestedCall,
    tool: Tool | None,
    understood: object,
    why: str | Failure,
    step_context: StepContext,
) -> CallRejected:
    failure = context.recorded(why if isinstance(why, Failure) else Failure(why))
    assert isinstance(failure, Failure), "a failure is recorded as a failure"
    error = public_error(failure)
    return CallRejected(
        call_id=requested.call_id,
        tool=requested.tool,
        tool_version="" if tool is None else tool.version,
        executor=Executor.SERVER if tool is None else tool.executor,
        input=understood.text if isinstance(understood, _Unreadable) else understood,
        error=error,
        failure=None if failure == Failure(error) else failure,
        step=step_context.step,
        model_call_id=requested.model_call_id,
    )


class _Unreadable(Struct, frozen=True):
    text: str
    why: str


def _read(requested: RequestedCall) -> object:
    text = requested.input or ""
    try:
        # some providers send nothing at all for a tool without parameters
        return read_json(text.encode()) if text.strip() else {}
    except (Malformed, UnicodeEncodeError) as fault:
        return _Unreadable(whole(text)[:4096], _in_words_for_a_model(fault))


def _in_words_for_a_model(fault: Malformed | UnicodeEncodeError) -> str:
    """The error text for a request body does not help a model that writes an input."""
    why = (
        fault.message.replace("The body", "It")
        if isinstance(fault, Malformed)
        else "A character is cut in half."
    )
    return f"The input is not valid JSON. {why} Call the tool again with the whole input as one JSON object."
