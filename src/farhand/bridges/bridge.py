"""What every bridge needs: the tools as a framework lists them, and one far call as its model is told of it.

A far call is an async tool body that waits, under a key that the framework's run can compute again. Nothing
before the wait has an effect, so a body that a framework runs twice is harmless. Must not know a framework.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Generic, Protocol, Required, TypeAlias, TypedDict, TypeVar

import anyio
from msgspec import Struct
from pydantic import validate_call

from farhand.agent.keyed_calls import Waiting
from farhand.agent.service import AgentService, Spec
from farhand.core.call import Call
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
from farhand.core.principal import LOCAL, Claims, Owner, Principal
from farhand.core.thread import Asked, Resolved
from farhand.core.tool import Tool
from farhand.errors import BadTool, DuplicateTool, Malformed, Misuse, NameTaken, TooMany
from farhand.models.base import Prompt
from farhand.models.provider_ids import ToolNames
from farhand.models.render import render_result
from farhand.models.tool_schema import define_tool
from farhand.tools.options import ToolOptions
from farhand.wire.json_reader import read_json

__all__ = [
    "CallOptions",
    "FarTool",
    "HandCaller",
    "Hands",
    "ModelCall",
    "ToolReply",
    "Where",
    "Who",
    "attach",
    "build_key",
    "call_all",
    "call_hand",
    "check_plain",
    "declare_function",
    "declare_own",
    "field_of",
    "list_far_tools",
    "read_arguments",
    "refuse_call",
    "side_by_side",
]

MOST_REPEATS = 100
"""Calls with other inputs under one id of a provider."""
RUN_CANCELLED = "the run that asked for it was cancelled"
CANCEL_WITHIN_SEC = 5.0
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_KEY = 190
"""Leaves room for the number of a repeated id."""

Who: TypeAlias = Owner | Principal
"""Whose call it is; a principal's claims reach the tool as well."""
C = TypeVar("C")
R = TypeVar("R")


class CallOptions(TypedDict, Generic[C], total=False):
    """To which owner the calls of a run belong: fixed, or a function of the context that the framework has of
    a run. And for how many seconds a call is held before the run parks; unset: until it is settled."""

    owner: Who | Callable[[C], Who]
    hold_for: float | None


class Where(CallOptions[C], Generic[C], total=False):
    """And to which thread."""

    thread: Required[str | Callable[[C], str]]


class Hands(Protocol):
    """What `create_app` returns, as far as bridges use it."""

    @property
    def spec(self) -> Spec: ...

    @property
    def service(self) -> AgentService: ...

    def tools(self, owner: Owner = LOCAL) -> Sequence[Tool]: ...


class FarTool(Struct, frozen=True):
    """A tool of the hands, in a form that every provider accepts."""

    name: str
    """As providers know it: an alias where they refuse ours."""
    description: str
    schema: dict[str, object]
    tool: str
    """As `App.call` knows it."""


class ToolReply(Struct, frozen=True):
    """What the model is told of an outcome."""

    text: str
    is_error: bool = False
    content: object = None
    """For frameworks that take values: the output itself, or the text if it says more than the output."""


class ModelCall(Struct, frozen=True):
    """A call in a provider's answer; its input may be refused already."""

    call_id: str
    name: str
    input: Mapping[str, object] | ToolReply


class HandCaller(Generic[C]):
    """Makes the calls of a framework's runs."""

    def __init__(self, hands: Hands, where: Where[C]) -> None:
        self._hands = hands
        self._thread = where["thread"]
        self._owner: Who | Callable[[C], Who] = where.get("owner", LOCAL)
        self._hold_for = where.get("hold_for")

    def list_tools(self, context: C | None = None, only: Sequence[str] | None = None) -> list[FarTool]:
        """Before there is a run: without the programs of an owner that depends on it."""
        if context is not None:
            return list_far_tools(self._hands, self.owner(context), only=only)
        return list_far_tools(self._hands, LOCAL if callable(self._owner) else self._owner, only=only)

    def find_tool(self, name: str, context: C) -> str | None:
        """The tool that a framework knows by this name, also one of the framework's own."""
        names = [tool.name for tool in self._hands.tools(_owner(self.owner(context)))]
        return next((each.tool for each in self.list_tools(context, names) if each.name == name), None)

    def owner(self, context: C) -> Who:
        return self._owner(context) if callable(self._owner) else self._owner

    async def call(
        self, tool: str, input: Mapping[str, object], context: C, *parts: object
    ) -> ToolReply | Waiting:
        """`parts` tell this call of the thread from all others, and are the same when the run is resumed."""
        thread = self._thread(context) if callable(self._thread) else self._thread
        return await call_hand(
            self._hands,
            tool,
            input,
            thread=thread,
            key=build_key(thread, *parts),
            owner=self.owner(context),
            within=self._hold_for,
        )

    async def wait(self, tool: str, input: Mapping[str, object], context: C, *parts: object) -> ToolReply:
        """The outcome, however long it takes; the call stays if the caller leaves after `hold_for`."""
        reply = await self.call(tool, input, context, *parts)
        if isinstance(reply, Waiting):
            return await attach(self._hands, str(reply.key), owner=self.owner(context))
        return reply


class BridgedFunction:
    """The body of a framework's own tool, as our toolbox runs it."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    def __call__(self, /, **input: object) -> object:
        return self._function(**input)


def list_far_tools(hands: Hands, owner: Who = LOCAL, *, only: Sequence[str] | None = None) -> list[FarTool]:
    """The tools that a call of this owner can name now, without those that `approved` made of a framework's
    own; with `only`, exactly these."""
    tools = [tool for tool in hands.tools(_owner(owner)) if _is_listed(hands, tool.name, only)]
    names = ToolNames(tool.name for tool in tools)
    defined = [(define_tool(tool, names.alias(tool.name)), tool.name) for tool in tools]
    return [FarTool(each.name, each.description, each.schema, name) for each, name in defined]


def declare_own(
    hands: Hands,
    function: Callable[..., object],
    *,
    name: str,
    description: str,
    schema: Mapping[str, object],
    options: ToolOptions | None = None,
) -> FarTool:
    """Makes a framework's own tool one of the hands, behind approval: our executor runs its body, once."""
    own: ToolOptions = {"needs_approval": True, **(options or {})}
    try:
        hands.spec.toolbox.add(name, description or name, schema, BridgedFunction(function), **own)
    except DuplicateTool:
        raise DuplicateTool(
            f"The hands have a tool `{name}` already.",
            hint="Call approved() once for each tool; what differs by run may be a function of it.",
        ) from None
    [tool] = list_far_tools(hands, only=[name])
    return tool


def declare_function(
    hands: Hands,
    function: Callable[..., object],
    *,
    name: str,
    description: str,
    schema: Mapping[str, object],
    options: ToolOptions | None = None,
) -> FarTool:
    """The same for the function in such a tool. Its arguments get the types that it declares."""
    check_plain(name, function, schema)
    run = validate_call(function)
    return declare_own(hands, run, name=name, description=description, schema=schema, options=options)


def check_plain(name: str, function: Callable[..., object], schema: Mapping[str, object]) -> None:
    """Refuses a function that takes more than its input: the context of a run is gone by the time a person
    approves the call."""
    members = schema.get("properties")
    known = members if isinstance(members, dict) else {}
    other = next((each for each in inspect.signature(function).parameters if each not in known), None)
    if other is not None:
        raise BadTool(
            f"`{name}` takes `{other}`, which is gone when a person approves the call tomorrow.",
            hint="Leave it out; farhand.current() says for whom the tool works.",
        )


# the options of a call, each of them a word that its bridge writes
async def call_hand(  # noqa: PLR0913
    hands: Hands,
    tool: str,
    input: Mapping[str, object],
    *,
    thread: str,
    key: str,
    owner: Who = LOCAL,
    within: float | None = None,
) -> ToolReply | Waiting:
    """One keyed call, as the model is told of it. The same id of a provider with another input is another
    call: its key counts up.

    Without `within` the call ends with the caller; with it, the call stays, and `Waiting` comes back.
    """
    unfit = _unfit(input, hands.service.settings.limits.call_input)
    if unfit is not None:
        return unfit
    for number in range(1, MOST_REPEATS + 1):
        own = key if number == 1 else f"{key}.{number}"
        try:
            return await _call(hands, tool, input, thread=thread, key=own, owner=owner, within=within)
        except NameTaken:
            continue
        except TooMany as refusal:
            return refuse_call(str(refusal))
    return refuse_call(f"This call id was used for {MOST_REPEATS} other calls; the call was not executed.")


async def call_all(
    hands: Hands, calls: Sequence[ModelCall], message_id: str, own: Collection[str], where: Where[None]
) -> list[tuple[ModelCall, ToolReply]]:
    """The calls of one message, side by side, without those of the program's `own` tools. `TimeoutError` if
    one is still open after `hold_for`."""
    if calls and not message_id:
        raise Misuse(
            "This message has no id, so its calls cannot be told from those of another one.",
            hint="Give it one of your own that stays the same: {**message.to_dict(), 'id': …}.",
        )
    caller = HandCaller(hands, where)
    names = {tool.name: tool.tool for tool in caller.list_tools(None)}
    ours = [call for call in calls if call.name not in own]

    async def reply_to(call: ModelCall) -> ToolReply | Waiting:
        if isinstance(call.input, ToolReply):
            return call.input
        return await caller.call(names.get(call.name, call.name), call.input, None, message_id, call.call_id)

    replies = await side_by_side([reply_to(call) for call in ours])
    told = [reply for reply in replies if isinstance(reply, ToolReply)]
    if len(told) < len(replies):
        raise TimeoutError(
            f"{len(replies) - len(told)} calls are still open; ask again with the same message."
        )
    return list(zip(ours, told, strict=True))


async def side_by_side(work: Sequence[Coroutine[object, object, R]]) -> list[R]:
    """All results, or the first error as it is; nothing is left running."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def field_of(item: object, name: str) -> Any:
    """Of an object of a provider's library, or of the same as JSON."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


async def attach(hands: Hands, key: str, *, owner: Who = LOCAL) -> ToolReply:
    """The outcome of a call that was made before, once it is there; nothing is opened here. A caller that is
    cancelled leaves the call open."""
    call = await hands.service.keyed_call(key, owner=_owner(owner))
    if call is None:
        return _reply(Cancelled("the call is gone"))
    outcome = await hands.service.call(
        call.tool, call.requested_input, thread=call.thread_id, key=key, owner=_owner(owner)
    )
    assert not isinstance(outcome, Waiting), "it is waited for without a bound"
    return _reply(outcome, await hands.service.keyed_call(key, owner=_owner(owner)))


def build_key(thread: str, *parts: object) -> str:
    """`thread:part:part`, so that `on_settled("thread:", …)` hears of all calls of a thread. Parts that a key
    cannot hold are replaced by their digests."""
    rest = ":".join(_part(str(part)) for part in parts)
    key = f"{thread}:{rest}"
    return key if len(key) <= _LONGEST_KEY else f"{thread}:{_digest(rest)}"


def refuse_call(why: str) -> ToolReply:
    return ToolReply(why, is_error=True, content=why)


def read_arguments(text: str) -> dict[str, object] | ToolReply:
    """The input that a model wrote as text; what is no JSON object is told to the model."""
    try:
        value = read_json((text or "{}").encode(errors="replace"))
    except Malformed as fault:
        return refuse_call(f"The input is no JSON object: {fault.message}")
    if not isinstance(value, dict):
        return refuse_call("The input is no JSON object.")
    return value


def _unfit(input: object, most: int) -> ToolReply | None:
    """What the model is told of an input that cannot be stored: it wrote it."""
    try:
        size = len(canonical(input))
    except (TypeError, ValueError):
        return refuse_call("The input is nothing that JSON can hold.")
    if not isinstance(input, Mapping):
        return refuse_call("The input is no JSON object.")
    return refuse_call(f"The input is larger than {most} bytes.") if size > most else None


# as `call_hand`
async def _call(  # noqa: PLR0913
    hands: Hands,
    tool: str,
    input: Mapping[str, object],
    *,
    thread: str,
    key: str,
    owner: Who,
    within: float | None,
) -> ToolReply | Waiting:
    whose = _owner(owner)
    claims: Claims = owner.claims if isinstance(owner, Principal) else {}
    service = hands.service
    try:
        outcome = await service.call(
            tool,
            input,
            thread=thread,
            key=key,
            owner=whose,
            within=within,
            claims=claims,
            ends_with_caller=within is None,
        )
    except asyncio.CancelledError:
        if within is None:
            # also where the framework cancels again at each await
            with anyio.move_on_after(CANCEL_WITHIN_SEC, shield=True):
                await _cancel(service, tool, input, key, whose)
        raise
    if isinstance(outcome, Waiting):
        return outcome
    return _reply(outcome, await service.keyed_call(key, owner=whose))


async def _cancel(
    service: AgentService, tool: str, input: Mapping[str, object], key: str, owner: Owner
) -> None:
    call = await service.keyed_call(key, owner=owner)
    if call is None or call.tool != tool or canonical(call.requested_input) != canonical(input):
        # a provider used its id for another call before, which is not ours to end
        return
    await service.cancel(key, owner=owner, reason=RUN_CANCELLED)


def _reply(outcome: Outcome, call: Call | None = None) -> ToolReply:
    if not isinstance(outcome, Success):
        return refuse_call(_words(outcome))
    plain = seen_by_model(outcome).text
    text = plain if call is None else _rendered(outcome, call)
    is_whole = text == (
        outcome.output if isinstance(outcome.output, str) else canonical(outcome.output).decode()
    )
    return ToolReply(text, content=outcome.output if is_whole else text)


def _rendered(outcome: Success, call: Call) -> str:
    """With the input that ran, if a person edited it, and a warning if strangers wrote the output."""
    asked = Asked(call.call_id, call.tool, call.requested_input)
    resolved = Resolved(call.call_id, call.tool, call.input, outcome, untrusted=call.untrusted)
    return render_result(resolved, asked, Prompt(())).text


def _words(outcome: Outcome) -> str:
    match outcome:
        case TimedOut():
            return f"{reason_of(outcome)} This call has no result."
        case Failure(error=error):
            return seen_by_model(Success(error)).text
        case _:
            return seen_by_model(outcome).text


def _owner(who: Who) -> Owner:
    return who.owner if isinstance(who, Principal) else who


def _is_listed(hands: Hands, name: str, only: Sequence[str] | None) -> bool:
    if only is not None:
        return name in only
    declared = hands.spec.toolbox.declared(name)
    return declared is None or not isinstance(declared.function, BridgedFunction)


def _part(text: str) -> str:
    """Without the colon that separates parts."""
    if text and not _UNFIT.search(text):
        return text
    return f"{_UNFIT.sub('_', text)[:40]}.{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]
