"""Shared by all bridges: makes one far call and describes its outcome to the model of a framework.

A far call is an async tool body that waits, under a key that the framework's run can compute again. Nothing
before the wait has an effect, so a framework may run the body twice. It must not know any framework.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from math import inf, isnan
from typing import Generic, Required, TypedDict, TypeVar
from uuid import UUID

from msgspec import Struct

from farhand.agent.keyed_calls import Waiting
from farhand.bridges.far_tools import FarTool, Hands, list_far_tools
from farhand.clock import monotonic
from farhand.core.call import Call
from farhand.core.ids import is_chosen_id
from farhand.core.outcome import (
    Cancelled,
    Failure,
    Outcome,
    Success,
    TimedOut,
    canonical,
    reason_of,
    seen_by_model,
)
from farhand.core.principal import LOCAL, Who
from farhand.core.thread import ToolCallPart, ToolResultPart
from farhand.errors import Malformed, Misuse, NameTaken, StoreDown, TooMany, suggest_name
from farhand.eventlog.pubsub import STORE_RETRY_SEC
from farhand.models.base import Prompt
from farhand.models.render import render_result
from farhand.wire.json_reader import read_json

__all__ = [
    "CallOptions",
    "HandCaller",
    "Hands",
    "ThreadOptions",
    "ToolReply",
    "attach",
    "build_key",
    "read_arguments",
    "refuse_call",
    "run_concurrently",
    "thread_name",
]

MOST_REPEATS = 100
"""Calls with different inputs under the same id of a provider."""
STORE_DOWN_SEC = 30.0
"""How long a call is tried again while the store is down."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_KEY = 190
"""Leaves room for the number of a repeated id."""

C = TypeVar("C")
R = TypeVar("R")


class CallOptions(TypedDict, Generic[C], total=False):
    """`owner` of the calls: fixed, or a function of the framework's run context. `hold_for` is how many
    seconds a call is held before the run parks; without it, until the call is settled."""

    owner: Who | Callable[[C], Who]
    hold_for: float | None


class ThreadOptions(CallOptions[C], Generic[C], total=False):
    """The same, and the thread of the calls: fixed, or a function of the framework's run context."""

    thread: Required[str | Callable[[C], str]]


class ToolReply(Struct, frozen=True):
    """An outcome as the model reads it."""

    text: str
    is_error: bool = False
    content: object = None
    """For frameworks that accept values: the output, or the text if it contains more than the output."""


# `object` and `Mapping`: not every caller checks types
def _check_options(hands: object, where: Mapping[str, object]) -> None:
    # not `hasattr`: an app that has not started has no service yet
    if "service" not in dir(hands):
        raise Misuse(
            f"A bridge needs an app, not a value of type {type(hands).__name__}.",
            hint="Pass create_app(toolbox).",
        )
    known = ("thread", "owner", "hold_for")
    for name in where:
        if name not in known:
            raise Misuse(f"The bridge has no argument `{name}`{suggest_name(name, known)}")
    if "thread" not in where:
        raise Misuse(
            "The bridge needs `thread`, the conversation that its calls belong to.",
            hint='Pass a name, thread="t1", or a function of the run\'s context.',
        )


class HandCaller(Generic[C]):
    """Makes the calls of a framework's runs."""

    def __init__(self, hands: Hands, where: ThreadOptions[C]) -> None:
        _check_options(hands, where)
        self._hands = hands
        self._thread = where["thread"]
        self._owner: Who | Callable[[C], Who] = where.get("owner", LOCAL)
        self._hold_for = _check_hold_for(where.get("hold_for"))

    def list_tools(self, context: C | None = None, only: Sequence[str] | None = None) -> list[FarTool]:
        """Without a context, the tools of programs are left out if the owner depends on the context."""
        if context is not None:
            return list_far_tools(self._hands, self.owner(context), only=only)
        return list_far_tools(self._hands, LOCAL if callable(self._owner) else self._owner, only=only)

    def find_tool(self, name: str, context: C) -> str | None:
        """The tool that the framework knows by this name, including the framework's own tools."""
        names = [tool.name for tool in self._hands.tools(self.owner(context))]
        return next((each.tool for each in self.list_tools(context, names) if each.name == name), None)

    def owner(self, context: C) -> Who:
        return self._owner(context) if callable(self._owner) else self._owner

    async def call(
        self, tool: str, input: Mapping[str, object], context: C, *parts: object
    ) -> ToolReply | Waiting:
        """One keyed call, with its outcome as the model reads it.

        `parts` identify the call within its thread, and are the same when the run is resumed. If a provider
        uses an id again with a different input, it is another call, and its key gets a number. Without
        `hold_for`, the call is cancelled with its last caller, unless another caller may still need it. With
        `hold_for`, it stays open, and `Waiting` is returned.
        """
        service, owner = self._hands.service, self.owner(context)
        thread = thread_name(self._thread(context) if callable(self._thread) else self._thread)
        refusal = _refuse_input(input, service.settings.limits.call_input)
        if refusal is not None:
            return refusal
        key = build_key(thread, *parts)
        for number in range(1, MOST_REPEATS + 1):
            own = key if number == 1 else f"{key}.{number}"
            call = partial(self._call_once, tool, input, thread=thread, key=own, owner=owner)
            try:
                return await _repeat_while_down(call)
            except NameTaken:
                continue
            except TooMany as error:
                return refuse_call(str(error))
        return refuse_call(
            f"This call id was used for {MOST_REPEATS} other calls; the call was not executed."
        )

    async def _call_once(
        self, tool: str, input: Mapping[str, object], *, thread: str, key: str, owner: Who
    ) -> ToolReply | Waiting:
        service = self._hands.service
        outcome = await service.call(
            tool,
            input,
            thread=thread,
            key=key,
            owner=owner,
            within=self._hold_for,
            ends_with_caller=self._hold_for is None,
        )
        if isinstance(outcome, Waiting):
            return outcome
        return _reply(outcome, await service.keyed_call(key, owner=owner))

    async def wait(self, tool: str, input: Mapping[str, object], context: C, *parts: object) -> ToolReply:
        """The outcome, however long it takes. If the caller leaves after `hold_for`, the call stays open."""
        reply = await self.call(tool, input, context, *parts)
        if isinstance(reply, Waiting):
            return await attach(self._hands, str(reply.key), owner=self.owner(context))
        return reply


async def _repeat_while_down(work: Callable[[], Awaitable[R]]) -> R:
    """The result of `work`, which may be repeated. A framework would end its run with the first error of the
    store."""
    until = inf
    while True:
        began = monotonic()
        try:
            return await work()
        except StoreDown:
            now = monotonic()
            if until == inf or now - began > STORE_DOWN_SEC:
                # until now it waited for its answer: that is no outage
                until = now + STORE_DOWN_SEC
            if now >= until:
                raise
            await asyncio.sleep(STORE_RETRY_SEC)


async def run_concurrently(work: Sequence[Coroutine[object, object, R]]) -> list[R]:
    """All results, or the first error, not wrapped in a group. Nothing is left running."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def attach(hands: Hands, key: str, *, owner: Who = LOCAL) -> ToolReply:
    """Wait for the outcome of a call that was made before. Opens no call; a caller that is cancelled leaves
    the call open."""
    call = await _repeat_while_down(partial(hands.service.attach, key, owner=owner))
    if call is None or call.outcome is None:
        return _reply(Cancelled("the call no longer exists"))
    return _reply(call.outcome, call)


def thread_name(thread: object) -> str:
    """The name of the thread for a framework's conversation id: the id itself if it is a valid name,
    otherwise its valid characters and a digest. All bridges apply it to the `thread` you pass.

    >>> thread_name("user@example.org/7")
    'user_example.org_7.023ef1f84ab35ac917411b70faf2c05b'
    """
    if isinstance(thread, bool) or not isinstance(thread, str | int | UUID) or thread == "":
        raise Misuse(
            f"`thread` must be the id of a conversation, not {thread!r}.",
            hint="Pass a non-empty string, or a function that returns one.",
        )
    name = str(thread)
    return name if is_chosen_id(name) else f"{_UNFIT.sub('_', name)[:40]}.{_digest(name)}"


def build_key(thread: str, *parts: object) -> str:
    """`thread:part:part`, so that `on_settled("thread:", …)` covers all calls of a thread. Parts that are not
    valid in a key are replaced by their digests."""
    rest = ":".join(_part(str(part)) for part in parts)
    key = f"{thread}:{rest}"
    return key if len(key) <= _LONGEST_KEY else f"{thread}:{_digest(rest)}"


def refuse_call(why: str) -> ToolReply:
    return ToolReply(why, is_error=True, content=why)


def read_arguments(text: object) -> dict[str, object] | ToolReply:
    """The input, parsed from the model's text. If that fails, a reply that tells the model why."""
    if isinstance(text, Mapping):
        # some servers have already parsed it
        return dict(text)
    if text is not None and not isinstance(text, str):
        return refuse_call("The input is not a JSON object.")
    try:
        value = read_json((text or "{}").encode(errors="replace"))
    except Malformed as fault:
        return refuse_call(f"The input is not a JSON object: {fault.message}")
    if not isinstance(value, dict):
        return refuse_call("The input is not a JSON object.")
    return value


def _check_hold_for(hold_for: object) -> float | None:
    if hold_for is None:
        return None
    if isinstance(hold_for, bool) or not isinstance(hold_for, int | float) or isnan(hold_for):
        raise Misuse(f"`hold_for` must be a number of seconds or None, not {hold_for!r}.")
    return hold_for


def _refuse_input(input: object, most: int) -> ToolReply | None:
    """A reply to the model if its input cannot be stored."""
    try:
        size = len(canonical(input))
    except (TypeError, ValueError):
        return refuse_call("JSON cannot represent the input.")
    if not isinstance(input, Mapping):
        return refuse_call("The input is not a JSON object.")
    return refuse_call(f"The input is larger than {most} bytes.") if size > most else None


def _reply(outcome: Outcome, call: Call | None = None) -> ToolReply:
    if not isinstance(outcome, Success):
        return refuse_call(_describe(outcome))
    plain = seen_by_model(outcome).text
    text = plain if call is None else _render(outcome, call)
    is_whole = text == (
        outcome.output if isinstance(outcome.output, str) else canonical(outcome.output).decode()
    )
    return ToolReply(text, content=outcome.output if is_whole else text)


def _render(outcome: Success, call: Call) -> str:
    """With the input that ran, if a person edited it, and a warning if the output is untrusted."""
    asked = ToolCallPart(call.call_id, call.tool, call.requested_input)
    resolved = ToolResultPart(call.call_id, call.tool, call.input, outcome, untrusted=call.untrusted)
    return render_result(resolved, asked, Prompt(())).text


def _describe(outcome: Outcome) -> str:
    match outcome:
        case TimedOut():
            return f"{reason_of(outcome)} This call has no result."
        case Failure(error=error):
            return seen_by_model(Success(error)).text
        case _:
            return seen_by_model(outcome).text


def _part(text: str) -> str:
    """Without the colon that separates parts."""
    if text and not _UNFIT.search(text):
        return text
    return f"{_UNFIT.sub('_', text)[:40]}.{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]
