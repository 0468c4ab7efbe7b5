"""Turns a wish of the model into a call: opened, or rejected with the reason the model is told.

An unknown tool, an input that is no JSON or breaks its schema, an input the model never finished: nobody but
the model hears of those.
"""

from __future__ import annotations

from msgspec import Struct

from farhand.agent.kit import Kit
from farhand.agent.listen import Wish, whole
from farhand.calls.opening import Opening, opened_event
from farhand.core.call import Call, Phase, rejected_call
from farhand.core.event import CallOpened, CallRejected
from farhand.core.outcome import Failure, told_to_people
from farhand.core.run import Run
from farhand.core.thread import Thread
from farhand.core.tool import Executor, Tool
from farhand.errors import Malformed
from farhand.models.base import Stop
from farhand.tools.gate import complaint_about
from farhand.tools.timeouts import chosen_timeout
from farhand.wire.guard import read_json


class Circumstances(Struct, frozen=True):
    """What the calls of one step have in common."""

    run: Run
    step: int
    stop: Stop
    held: bool
    thread: Thread | None


class Opened(Struct, frozen=True):
    """A call ready to be stored, with what readers will be told."""

    call: Call
    tool: Tool | None
    event: CallOpened | CallRejected


def open_wish(kit: Kit, wish: Wish, tool: Tool | None, around: Circumstances) -> Opened:
    """`tool` is the one that it names, if there is one."""
    understood = _read(wish)
    wrong = _wrong(kit, wish, tool, understood, around)
    if wrong is not None or tool is None or not isinstance(understood, dict):
        return _rejected(kit, wish, around, understood, wrong or "The input is not a JSON object.")
    wish.understood = understood
    call = kit.desk.prepare(_opening(kit, wish, around, tool, understood))
    return Opened(call, tool, opened_event(call))


def too_many(kit: Kit, wish: Wish, around: Circumstances, why: str) -> Opened:
    """One for which a limit leaves no room."""
    return _rejected(kit, wish, around, _read(wish), f"Not executed: {why}")


def _wrong(
    kit: Kit, wish: Wish, tool: Tool | None, understood: object, around: Circumstances
) -> str | Failure | None:
    """Why this call cannot be opened, in words for the model."""
    if wish.input is None:
        return "The input was cut off before it was complete; the call was not executed."
    if around.stop.reason != "calls":
        return f"The answer ended early ({around.stop.reason}); the call was not executed."
    if tool is None:
        known = ", ".join(sorted(each.name for each in kit.tools(around.run.owner))[:20])
        return f"There is no tool '{wish.tool}'. Known tools: {known or 'none'}."
    if len(wish.input.encode(errors="replace")) > kit.settings.limits.call_input:
        return f"The input is larger than {kit.settings.limits.call_input} bytes."
    if isinstance(understood, _Unreadable):
        return understood.why
    declared = kit.toolbox.declared(wish.tool)
    if declared is None:
        return complaint_about(tool, understood)
    bound = declared.bind(understood)
    return bound if isinstance(bound, Failure) else None


def _opening(
    kit: Kit, wish: Wish, around: Circumstances, tool: Tool, understood: dict[str, object]
) -> Opening:
    asks = kit.asks(around.run.owner, tool, understood)
    allowed = around.thread is not None and tool.version in around.thread.allowed
    return Opening(
        call_id=wish.call_id,
        owner=around.run.owner,
        thread_id=around.run.thread_id,
        tool=tool,
        input=understood,
        run_id=around.run.run_id,
        step=around.step,
        model_call_id=wish.model_call_id,
        timeout_sec=chosen_timeout(tool, understood),
        held=around.held,
        approval_id=kit.clock.fresh("apr") if asks else None,
        allowed_before=asks and allowed,
    )


def _rejected(kit: Kit, wish: Wish, around: Circumstances, understood: object, why: str | Failure) -> Opened:
    failure = kit.recorded(why if isinstance(why, Failure) else Failure(why))
    tool = kit.tool(around.run.owner, wish.tool)
    shown = wish.understood = understood.text if isinstance(understood, _Unreadable) else understood
    now = kit.store.now()
    call = Call(
        call_id=wish.call_id,
        owner=around.run.owner,
        thread_id=around.run.thread_id,
        run_id=around.run.run_id,
        step=around.step,
        tool=wish.tool,
        tool_version=tool.version if tool is not None else "",
        executor=tool.executor if tool is not None else Executor.SERVER,
        input=shown if isinstance(shown, dict) else {},
        model_call_id=wish.model_call_id,
        opened_at=now,
        phase=Phase.READY,
    )
    event = CallRejected(call_id=wish.call_id, tool=wish.tool, input=shown, error=told_to_people(failure))
    return Opened(rejected_call(call, failure, at=now), None, event)


class _Unreadable(Struct, frozen=True):
    text: str
    why: str


def _read(wish: Wish) -> object:
    text = wish.input or ""
    try:
        # some providers send nothing at all for a tool without parameters
        return read_json(text.encode()) if text.strip() else {}
    except (Malformed, UnicodeEncodeError) as fault:
        return _Unreadable(whole(text)[:4096], _in_words_for_a_model(fault))


def _in_words_for_a_model(fault: Malformed | UnicodeEncodeError) -> str:
    """What a sender of bytes is told of its body is no help to who writes an input."""
    why = (
        fault.message.replace("The body", "It")
        if isinstance(fault, Malformed)
        else "A character is cut in half."
    )
    return f"The input is not valid JSON. {why} Call the tool again with the whole input as one JSON object."
