"""A run as a pytest file that anybody can save and run: its model scripted, its far hands played.

Pure, and written from masked records only. What the file asserts: the same calls are asked, with the same
input, every answer is taken, and the run comes to the same end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.event import ApprovalAnswered, CallOpened, CallSettled, Entry, RunFailed
from farhand.core.outcome import Cancelled, Failure, Success
from farhand.core.run import RunState
from farhand.core.thread import AssistantMessage
from farhand.core.tool import Executor, Tool
from farhand.faces.inspector.as_test_tools import tool_lines
from farhand.faces.inspector.as_test_words import literal, sentence, slug_of, step_of

Calls: TypeAlias = dict[str, Call]


class Recording(Struct, frozen=True, kw_only=True):
    """All of it masked. `steps` are the model's messages, `calls` those that passed their checks."""

    title: str
    prompt: str
    state: RunState
    steps: Sequence[AssistantMessage]
    calls: Sequence[Call]
    tools: Sequence[Tool]
    entries: Sequence[Entry]
    answer: str


class Written(Struct, frozen=True):
    name: str
    text: str


def file_of(recording: Recording) -> Written:
    slug = slug_of(recording.title)
    play = "\n".join(_play(recording))
    script = _script(recording)
    words = ", ".join(word for word in ("Ask", "Fail", "Say", "Think") if f"{word}(" in script)
    scripted = f"from farhand.models.scripted import {words}\n" if words else ""
    parts = (
        _HEAD.format(title=sentence(recording.title), what=_what(recording), scripted=scripted),
        script,
        *tool_lines(recording.calls, recording.tools),
        _TEST.format(slug=slug, prompt=literal(recording.prompt), play=play, knobs=_knobs(recording)),
    )
    return Written(f"test_{slug}.py", "\n".join(parts))


_HEAD = '''\
"""{title}

{what}
Put your own tools into `toolbox` to test them in this scene.
"""

import asyncio

from farhand import Agent, ScriptedModel, Toolbox
{scripted}from farhand.testing import FarClient
'''

_TEST = """

def test_{slug}() -> None:
    asyncio.run(play())


async def play() -> None:
    agent = Agent(model=ScriptedModel(SCRIPT), tools=[toolbox]{knobs})
    async with FarClient(agent, patience=30) as far:
        await far.chat({prompt})
{play}
"""


def _what(recording: Recording) -> str:
    ends = {
        RunState.DONE: "It came to its end.",
        RunState.STOPPED: "It was stopped.",
        RunState.FAILED: "It failed.",
    }
    calls = len(recording.calls)
    return f"A recorded run: {calls} call{'' if calls == 1 else 's'}. " + ends.get(
        recording.state, "It was still open."
    )


def _knobs(recording: Recording) -> str:
    code = next((each.event.code for each in recording.entries if isinstance(each.event, RunFailed)), "")
    return f", max_steps={len(recording.steps)}" if code == "max_steps" else ""


def _script(recording: Recording) -> str:
    steps = [step_of(message) for message in recording.steps]
    failed = next((each.event for each in recording.entries if isinstance(each.event, RunFailed)), None)
    if failed is not None and failed.code not in {"max_steps", "stuck"}:
        steps.append(f"[Fail({literal(failed.message)})]")
    elif recording.state in {RunState.STOPPED, RunState.RUNNING} and not _stopped_at_calls(recording):
        # it was thinking when it was stopped
        steps.append('[Say("…", delay=30)]')
    return "\nSCRIPT = [\n" + "".join(f"    {step},\n" for step in steps) + "]\n"


def _stopped_at_calls(recording: Recording) -> bool:
    return any(call.outcome is None or isinstance(call.outcome, Cancelled) for call in recording.calls)


def _play(recording: Recording) -> Iterator[str]:
    for line in _Hands(recording).lines():
        yield f"        {line}" if line else ""
    for line in _ending(recording):
        yield f"        {line}"


def _ending(recording: Recording) -> list[str]:
    match recording.state:
        case RunState.DONE:
            return [f"assert await far.text() == {literal(recording.answer)}"]
        case RunState.STOPPED:
            return ["assert (await far.stop()).status == 200", "await far.text()"]
        case RunState.FAILED:
            return ["await far.text()", 'assert any(chunk["type"] == "error" for chunk in far.chunks)']
        case RunState.RUNNING | RunState.WAITING:
            return ["assert far.chunks"]


class _Hands:
    """Plays whoever answered, in the order in which the answers came."""

    def __init__(self, recording: Recording) -> None:
        self._entries = recording.entries
        self._calls: Calls = {call.call_id: call for call in recording.calls}
        self._stopped = recording.state is RunState.STOPPED
        self._names: dict[str, str] = {}

    def lines(self) -> Iterator[str]:
        for entry in self._entries:
            event = entry.event
            if not isinstance(event, CallOpened | ApprovalAnswered | CallSettled):
                continue
            call = self._calls.get(event.call_id)
            if call is None:
                continue
            match event:
                case CallOpened():
                    yield from self._opened(event, call)
                case ApprovalAnswered():
                    yield from self._answered(event, call)
                case CallSettled():
                    yield from self._settled(event, call)

    def _opened(self, event: CallOpened, call: Call) -> Iterator[str]:
        if event.approval_id is not None:
            yield from self._hear("asked", call, event.input)
        elif call.executor is not Executor.SERVER:
            yield from self._hear("called", call, event.input)

    def _hear(self, how: str, call: Call, input: object) -> Iterator[str]:
        name = f"{how}_{len(self._names) + 1}"
        self._names[f"{how} {call.call_id}"] = name
        yield f"{name} = await far.{how}({literal(call.tool)})"
        yield f"assert {name}.input == {literal(input)}"

    def _answered(self, event: ApprovalAnswered, call: Call) -> Iterator[str]:
        name = self._names.get(f"asked {call.call_id}")
        answer = call.approval.answer if call.approval is not None else None
        if name is None or answer is None:
            return
        if not event.approved:
            yield f"assert (await far.deny({name}.approval_id, {literal(event.reason)})).accepted"
            return
        edited = "" if answer.input is None else f", input={literal(event.input)}"
        scope = "" if answer.scope == "once" else f", scope={literal(answer.scope)}"
        yield f"assert (await far.approve({name}.approval_id{edited}{scope})).accepted"
        if call.executor is not Executor.SERVER:
            yield from self._hear("called", call, event.input)

    def _settled(self, event: CallSettled, call: Call) -> Iterator[str]:
        called = self._names.get(f"called {call.call_id}")
        asked = self._names.get(f"asked {call.call_id}")
        match event.outcome:
            case Success(output=output) if called is not None:
                yield f"assert (await far.ack({called}.call_id, {literal(output)})).accepted"
            case Failure(error=error) if called is not None:
                yield f"assert (await far.fail({called}.call_id, {literal(error)})).accepted"
            case Cancelled(reason=reason) if not self._stopped:
                yield from self._give_up(called, asked, reason)
            case _:
                # a server tool, a no that was said above, or time that passes by itself
                return

    def _give_up(self, called: str | None, asked: str | None, reason: str) -> Iterator[str]:
        """Its hand was gone; here somebody has to say so."""
        if called is not None:
            yield f"assert (await far.fail({called}.call_id, {literal(reason)})).accepted"
        elif asked is not None:
            yield f"assert (await far.deny({asked}.approval_id, {literal(reason)})).accepted"
