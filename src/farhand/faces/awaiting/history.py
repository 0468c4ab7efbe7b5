"""The threads of an owner and their conversations, which a page of this wire reads after a reload.

A conversation is one message of the user with the run that answers it. It is built from the thread's
messages, without those that an edit or a regeneration has removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from farhand.agent.service import AgentService
from farhand.core.call import Phase
from farhand.core.outcome import public, seen_by_model
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.thread import (
    AssistantMessage,
    File,
    Message,
    Note,
    Part,
    Reasoning,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
    text_of,
)
from farhand.errors import NotFound
from farhand.faces.awaiting.decode import ConversationPage, SessionPage
from farhand.faces.awaiting.shapes import (
    AnthropicMessage,
    AwaitedTool,
    Conversation,
    ConversationList,
    Session,
    SessionList,
)
from farhand.faces.base import format_time

Blocks = list[dict[str, object]]


async def sessions(service: AgentService, owner: Owner, page: SessionPage) -> SessionList:
    found = await service.log.threads_of(owner, limit=page.offset + page.limit)
    rows = [
        Session(
            thread.thread_id,
            thread.title or None,
            format_time(thread.created_at),
            format_time(thread.updated_at),
            thread.runs,
        )
        for thread in found[page.offset :]
    ]
    return SessionList(rows, await service.log.count_threads(owner))


async def conversations(
    service: AgentService, owner: Owner, thread_id: str, page: ConversationPage
) -> ConversationList:
    thread = await service.log.get_thread(owner, thread_id)
    if thread is None:
        raise NotFound("There is no such agent_uuid.")
    turns = _turns(await service.log.messages(owner, thread_id), await service.log.last_run(owner, thread_id))
    before = turns if page.before is None else turns[: page.before - 1]
    shown = before[-page.limit :]
    listed = [await _conversation(service, owner, turn) for turn in reversed(shown)]
    return ConversationList(listed, len(before) > len(shown), thread.title or None)


class _Turn(Struct, frozen=True):
    number: int
    user: UserMessage
    messages: Sequence[Message]
    run_id: str | None


def _turns(messages: Sequence[Message], last: Run | None) -> list[_Turn]:
    starts = [at for at, message in enumerate(messages) if isinstance(message, UserMessage)]
    turns: list[_Turn] = []
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(messages)], strict=True), 1):
        user, turn = messages[start], messages[start:end]
        assert isinstance(user, UserMessage), "a turn starts with one"
        runs = [each.run_id for each in turn if not isinstance(each, UserMessage)]
        # a run without a message yet is known only as the thread's last run
        run_id = runs[-1] if runs else last.run_id if last and end == len(messages) else None
        turns.append(_Turn(number, user, turn, run_id))
    return turns


async def _conversation(service: AgentService, owner: Owner, turn: _Turn) -> Conversation:
    run = await service.log.get_run(owner, turn.run_id) if turn.run_id is not None else None
    pending = await _pending(service, run)
    texts = [text_of(message) for message in turn.messages if isinstance(message, AssistantMessage)]
    has_ended = run is None or not run.active
    return Conversation(
        conversation_id=turn.user.message_id,
        run_id=turn.run_id,
        sequence_number=turn.number,
        user_message=text_of(turn.user),
        final_response=texts[-1] if texts and has_ended else None,
        started_at=None if run is None else format_time(run.started_at),
        completed_at=None if run is None or run.ended_at is None else format_time(run.ended_at),
        stop_reason=_stop_reason(run, pending),
        total_steps=run.step if run else None,
        messages=[_message(message) for message in turn.messages],
        pending_frontend_tools=pending,
    )


async def _pending(service: AgentService, run: Run | None) -> list[AwaitedTool]:
    if run is None or not run.waits:
        return []
    pause = await service.pause(run.owner, run.thread_id)
    return [
        AwaitedTool(call.call_id, call.tool, call.input, call.phase is Phase.ASKING) for call in pause.open
    ]


def _stop_reason(run: Run | None, pending: Sequence[AwaitedTool]) -> str | None:
    if pending:
        return "awaiting_frontend_tools"
    return None if run is None else _STOP_REASONS.get(run.state)


_STOP_REASONS = {RunState.DONE: "end_turn", RunState.STOPPED: "aborted", RunState.FAILED: "error"}


def _message(message: Message) -> AnthropicMessage:
    match message:
        case UserMessage(parts=parts):
            return AnthropicMessage("user", _blocks(parts))
        case AssistantMessage(parts=parts):
            return AnthropicMessage("assistant", _blocks(parts))
        case _:
            return AnthropicMessage("user", [_result(each) for each in message.results])


def _blocks(parts: Sequence[Part]) -> Blocks:
    # a provider may leave a part without text in the history
    shown = [part for part in parts if not isinstance(part, Note)]
    return [_block(part) for part in shown if not isinstance(part, Reasoning) or part.text]


def _block(part: Text | Reasoning | File | ToolCallPart) -> dict[str, object]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Reasoning(text=text):
            # the provider's signature is not for pages
            return {"type": "thinking", "thinking": text, "signature": ""}
        case File(ref=ref, name=name, media_type=media_type):
            source = {"type": "file", "file_id": ref}
            if media_type.startswith("image/"):
                return {"type": "image", "source": source}
            return {"type": "document", "source": source, "title": name}
        case ToolCallPart(call_id=call_id, tool=tool, input=input):
            return {"type": "tool_use", "id": call_id, "name": tool, "input": input}
    assert_never(part)


def _result(resolved: ToolResultPart) -> dict[str, object]:
    seen = seen_by_model(public(resolved.outcome))
    error = {"is_error": True} if seen.is_error else {}
    return {"type": "tool_result", "tool_use_id": resolved.call_id, "content": seen.text, **error}
