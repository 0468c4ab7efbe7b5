"""Encodes threads, messages, open calls and tools for the threads wire.

Messages have the form that `useChat` reads after a reload: one for each run, parts in their stored states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple, assert_never

from msgspec import UNSET, UnsetType

from farhand.agent.branding import LogoFile
from farhand.agent.service import Spec
from farhand.core.call import Call, Phase
from farhand.core.event import RunFailed
from farhand.core.outcome import (
    Cancelled,
    Denied,
    Failure,
    Outcome,
    Success,
    TimedOut,
    kind_of,
    public_error,
)
from farhand.core.position import Entry
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.state import ToolPermission
from farhand.core.template import without_values
from farhand.core.thread import (
    AssistantMessage,
    CallRecord,
    File,
    ListedThread,
    Message,
    Note,
    Reasoning,
    Text,
    Thread,
    ThreadCursor,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
from farhand.core.thread import Part as StoredPart
from farhand.core.tool import Tool
from farhand.faces.base import format_time
from farhand.faces.threads.shapes import (
    AboutShape,
    AllowedShape,
    AllowedTool,
    ApprovalShape,
    FailureShape,
    InboxShape,
    OpenCall,
    Part,
    RunsWith,
    StarterShape,
    ThreadPage,
    ThreadRow,
    ThreadShape,
    ToolShape,
    ToolsShape,
    UIMessage,
)
from farhand.tools.defaults import complete_input
from farhand.wire.json_writer import encode

ToolsByVersion = Mapping[str, Tool | None]


class ThreadSnapshot(NamedTuple):
    """A thread, its last run, and how the journal of that run ends."""

    thread: Thread
    run: Run | None
    last: Sequence[Entry] = ()
    unfinished: AssistantMessage | None = None
    """What the model has written of the current step."""
    tools: ToolsByVersion | None = None
    """Those of the calls that ask for approval."""


LOGO_PATH = "/logo"

ResultParts = Mapping[str, ToolResultPart]
CallsById = Mapping[str, Call]


def encode_page(listed: Sequence[ListedThread], following: ThreadCursor | None) -> bytes:
    threads = [
        ThreadRow(
            thread.thread_id,
            thread.title,
            _state(thread.run_state),
            format_time(thread.updated_at),
            thread.open_calls,
        )
        for thread in listed
    ]
    # a position, not a thread: the thread may be used again or deleted before the next page is read
    return encode(
        ThreadPage(threads, UNSET if following is None else f"{following.at}:{following.thread_id}")
    )


def encode_thread(
    seen: ThreadSnapshot,
    messages: Sequence[Message],
    calls: Sequence[Call],
    *,
    root: str = "",
    to_resume: bool = False,
    reader: str = "",
) -> bytes:
    """`calls` are those of the last run and every open one; `root` is the path under which a host mounts us,
    `reader` what the person is called who reads it.

    With `to_resume`, the current answer is left out because the stream sends it: some clients would show it
    twice.
    """
    thread, run = seen.thread, seen.run
    open_calls = [
        open_call(call, thread.title, seen.tools or {}) for call in calls if call.phase is not Phase.SETTLED
    ]
    shown = ui_messages(messages, {call.call_id: call for call in calls})
    _add_unfinished(shown, seen.unfinished)
    active = run if run is not None and run.active else None
    if active is not None and to_resume:
        shown = [message for message in shown if message.id != active.run_id]
    for part in (part for message in shown for part in message.parts):
        part.url = part.url if part.url is UNSET else f"{root}{part.url}"
        part.answered_by = UNSET if part.answered_by == reader else part.answered_by
    shape = ThreadShape(
        thread.thread_id,
        thread.title,
        _state(run.state if run else None),
        shown,
        open_calls,
        active is not None,
    )
    shape.run_id = run.run_id if run is not None else UNSET
    shape.failure = failure_part(run, seen.last)
    return encode(shape)


def encode_inbox(calls: Iterable[tuple[Call, str]], tools: ToolsByVersion) -> bytes:
    return encode(InboxShape([open_call(call, title, tools) for call, title in calls]))


def encode_tools(tools: Iterable[Tool]) -> bytes:
    return encode(ToolsShape([_tool(tool) for tool in tools]))


def encode_allowed(allowed: Iterable[ToolPermission]) -> bytes:
    return encode(AllowedShape([AllowedTool(each.tool, format_time(each.at), each.by) for each in allowed]))


def encode_about(spec: Spec, largest_file: int, *, root: str, has_inspector: bool, owner: Owner) -> bytes:
    """`root` is the path under which a host mounts us."""
    shown = spec.branding
    return encode(
        AboutShape(
            model=spec.model.name,
            largest_file=largest_file,
            title=shown.title,
            welcome=shown.welcome,
            starters=[StarterShape(each.title, each.prompt, each.about) for each in shown.starters],
            logo=f"{root}{LOGO_PATH}" if isinstance(shown.logo, LogoFile) else shown.logo,
            demo=shown.is_demo,
            inspector=has_inspector,
            words=None if shown.words is None else dict(shown.words),
            reader=sha256(f"{owner.tenant}\0{owner.subject}".encode()).hexdigest()[:16],
        )
    )


def _state(of_last_run: RunState | None) -> str:
    return "done" if of_last_run is None else of_last_run.value


def failure_part(run: Run | None, last: Sequence[Entry]) -> FailureShape | UnsetType:
    if run is None or run.state is not RunState.FAILED:
        return UNSET
    failures = [each.event for each in last if isinstance(each.event, RunFailed)]
    code = failures[-1].code if failures else "failed"
    return FailureShape(code, run.error or "The last answer failed. Send the message again.")


def open_call(call: Call, title: str, tools: ToolsByVersion) -> OpenCall:
    asks = call.approval is not None and call.phase is Phase.ASKING
    return OpenCall(
        call_id=call.call_id,
        thread_id=call.thread_id,
        title=title,
        tool=call.tool,
        input=call.input,
        phase=call.phase.value,
        executor=call.executor.value,
        deadline=format_time(call.deadline) if call.deadline is not None else None,
        card=call.card,
        opened_at=format_time(call.opened_at),
        client_id=call.client_id if call.client_id is not None else UNSET,
        approval_id=call.approval.approval_id if asks and call.approval else UNSET,
        call_title=call.heading or UNSET,
        runs_with=_runs_with(call, tools.get(call.tool_version)) if asks else UNSET,
    )


def _runs_with(call: Call, tool: Tool | None) -> RunsWith | UnsetType:
    if tool is None:
        return UNSET
    whole = complete_input(tool.input_schema, call.input)
    if not whole.defaults and not whole.left_out:
        return UNSET
    return RunsWith(
        whole.input, list(map(list, whole.defaults)), list(whole.left_out), not tool.applies_defaults
    )


def ui_messages(messages: Sequence[Message], calls: CallsById) -> list[UIMessage]:
    results: dict[str, ToolResultPart] = {}
    for message in messages:
        if not isinstance(message, UserMessage | AssistantMessage):
            results |= {resolved.call_id: resolved for resolved in message.results}
    shown: list[UIMessage] = []
    for message in messages:
        if isinstance(message, UserMessage):
            shown.append(UIMessage(message.message_id, "user", _parts(message.parts, results, calls)))
        elif isinstance(message, AssistantMessage):
            _add_step(shown, message, _parts(message.parts, results, calls))
    return shown


def _add_step(shown: list[UIMessage], step: AssistantMessage, parts: list[Part]) -> None:
    """All steps of a run are one message for the page."""
    if not shown or shown[-1].id != step.run_id:
        shown.append(UIMessage(step.run_id, "assistant", []))
    shown[-1].parts.extend([Part(type="step-start"), *parts])


def _add_unfinished(shown: list[UIMessage], step: AssistantMessage | None) -> None:
    """What the model has written of the current step, marked as AI SDK marks it."""
    if step is None:
        return
    parts = _parts(step.parts, {}, {})
    parts[-1].state = "streaming"
    _add_step(shown, step, parts)


def _parts(parts: Iterable[StoredPart], results: ResultParts, calls: CallsById) -> list[Part]:
    # notes are for the model, not for people
    return [_part(part, results, calls) for part in parts if not isinstance(part, Note)]


def _part(part: Text | Reasoning | File | ToolCallPart, results: ResultParts, calls: CallsById) -> Part:
    match part:
        case Text(text=text):
            return Part(type="text", text=text, state="done")
        case Reasoning(text=text):
            return Part(type="reasoning", text=text, state="done")
        case File(ref=ref, name=name, media_type=media_type):
            return Part(type="file", media_type=media_type, filename=name, url=f"/api/files/{ref}")
        case ToolCallPart():
            return _tool_part(part, results.get(part.call_id), calls.get(part.call_id))
    assert_never(part)


def _tool_part(asked: ToolCallPart, result: ToolResultPart | None, call: Call | None) -> Part:
    """The input that ran, from the call or the result: a person may have edited what the model asked for."""
    known = call or result
    shown = Part(
        type=f"tool-{asked.tool}",
        tool_call_id=asked.call_id,
        input=known.input if known is not None else asked.input,
        approval=_approval(call),
    )
    _add_record(shown, known.record if known is not None else None)
    if known is not None and known.outcome is not None:
        return _ended(shown, known.outcome)
    shown.state = _open_state(call)
    return shown


def _add_record(shown: Part, record: CallRecord | None) -> None:
    if record is None:
        return
    shown.took_ms = UNSET if record.took_sec is None else round(record.took_sec * 1000)
    shown.title, shown.summary = record.title or UNSET, record.summary or UNSET
    shown.edited, shown.always_allowed = record.is_edited or UNSET, record.is_always_allowed or UNSET
    shown.answered_by = record.answered_by or UNSET


def _ended(shown: Part, outcome: Outcome) -> Part:
    shown.outcome = kind_of(outcome)
    if isinstance(outcome, TimedOut) and outcome.after_sec is not None:
        shown.after_sec = outcome.after_sec
    match outcome:
        case Success(output=output):
            shown.state, shown.output = "output-available", output
        case Denied(reason=reason):
            shown.state = "output-denied"
            # the client's type requires one, but only the answer of an older call is known
            shown.approval = shown.approval or ApprovalShape(str(shown.tool_call_id), False, reason or UNSET)
        case Failure() | TimedOut() | Cancelled():
            shown.state, shown.error_text = "output-error", public_error(outcome)
        case _:
            assert_never(outcome)
    return shown


def _open_state(call: Call | None) -> str:
    if call is None or call.approval is None:
        return "input-available"
    return "approval-requested" if call.phase is Phase.ASKING else "approval-responded"


def _approval(call: Call | None) -> ApprovalShape | UnsetType:
    if call is None or call.approval is None:
        return UNSET
    answer = call.approval.answer
    if answer is None:
        return ApprovalShape(call.approval.approval_id)
    return ApprovalShape(call.approval.approval_id, answer.approved, answer.reason or UNSET)


def _tool(tool: Tool) -> ToolShape:
    return ToolShape(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.shown_output_schema,
        executor=tool.executor.value,
        approval=tool.may_ask,
        card=tool.card,
        version=tool.version,
        title=_title_without_input(tool),
    )


def _title_without_input(tool: Tool) -> str | None:
    """The title with … for its placeholders, since pages get no templates; None if nothing else is in it."""
    title = "" if tool.title is None else without_values(tool.title)
    return title if any(map(str.isalnum, title)) else None
