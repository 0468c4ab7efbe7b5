"""Writes a recorded run as a pytest file: a scripted model, and a client that plays the far hands.

Written from redacted records only. The file asserts that the same calls are made with the same input, that
every answer is accepted, and that the run ends in the same way.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from pprint import pformat
from textwrap import indent
from typing import TypeAlias

from msgspec import Struct

from farhand.agent.service import AgentService
from farhand.core.call import Call
from farhand.core.event import ApprovalAnswered, CallOpened, CallRejected, CallSettled, RunFailed
from farhand.core.outcome import Cancelled, Failure, Outcome, Success, TimedOut
from farhand.core.position import Entry
from farhand.core.run import Run, RunState
from farhand.core.thread import (
    AssistantMessage,
    File,
    Message,
    Note,
    Reasoning,
    Text,
    ToolCallPart,
    printable,
    text_of,
)
from farhand.core.tool import Executor, Schema, Tool
from farhand.faces.inspector.redaction import redact_call, redact_entries, redact_step, redact_text
from farhand.faces.inspector.run_search import RunSearch
from farhand.faces.inspector.shapes import InspectedTest
from farhand.tools.schema_admission import check_input
from farhand.tools.timeouts import PARAMETERS

Calls: TypeAlias = dict[str, Call]


class Recording(Struct, frozen=True, kw_only=True):
    """A redacted run: `steps` are the model's messages, `calls` those that passed their checks."""

    prompt: str
    state: RunState
    steps: Sequence[AssistantMessage]
    calls: Sequence[Call]
    tools: Sequence[Tool]
    entries: Sequence[Entry]
    answer: str


async def write_test(service: AgentService, run: Run) -> InspectedTest:
    recording = await _record(service, run)
    # in a thread: a run may be long
    return await asyncio.to_thread(test_of, recording)


def test_of(recording: Recording) -> InspectedTest:
    slug = slug_of(recording.prompt)
    play = "\n".join(_play(recording))
    script = _script(recording)
    words = ", ".join(word for word in ("Ask", "Fail", "Say", "Think") if f"{word}(" in script)
    scripted = f"from farhand.models import {words}\n" if words else ""
    parts = (
        _HEAD.format(
            title=docstring_line(recording.prompt),
            what=_what(recording),
            name=f"test_{slug}.py",
            scripted=scripted,
        ),
        script,
        *tool_lines(recording.calls, recording.tools),
        _TEST.format(slug=slug, prompt=literal(recording.prompt), play=play, options=_options(recording)),
    )
    return InspectedTest(f"test_{slug}.py", "\n".join(parts))


_HEAD = '''\
"""{title}

{what}
Save it as {name} and run it anywhere:

    pip install 'farhand[testing]'
    pytest {name}

Put your own tools into `toolbox` to test them in this conversation.
"""

import asyncio

from farhand import Agent, ScriptedModel, Toolbox
{scripted}from farhand.testing import FarClient
'''

_TEST = """

def test_{slug}() -> None:
    asyncio.run(play())


async def play() -> None:
    agent = Agent(model=ScriptedModel(SCRIPT), tools=[toolbox]{options})
    async with FarClient(agent, timeout_sec=30) as far:
        await far.chat({prompt})
{play}
"""


def _what(recording: Recording) -> str:
    ends = {
        RunState.DONE: "It was completed.",
        RunState.STOPPED: "It was stopped.",
        RunState.FAILED: "It failed.",
    }
    calls = len(recording.calls)
    return f"A recorded run: {calls} call{'' if calls == 1 else 's'}. " + ends.get(
        recording.state, "It had not ended."
    )


def _options(recording: Recording) -> str:
    code = next((each.event.code for each in recording.entries if isinstance(each.event, RunFailed)), "")
    return f", max_steps={len(recording.steps)}" if code == "max_steps" else ""


def _script(recording: Recording) -> str:
    steps = [step_of(message) for message in recording.steps]
    failed = next((each.event for each in recording.entries if isinstance(each.event, RunFailed)), None)
    if failed is not None and failed.code not in {"max_steps", "stuck"}:
        steps.append(f"[Fail({literal(failed.message)})]")
    elif recording.state in {RunState.STOPPED, RunState.RUNNING} and not _stopped_at_calls(recording):
        # the model was still writing when it was stopped
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
    """Plays everyone who answered, in the order of the answers."""

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
                # a server tool, a denial that is written above, or a timeout
                return

    def _give_up(self, called: str | None, asked: str | None, reason: str) -> Iterator[str]:
        """The client had left; in the test somebody has to answer."""
        if called is not None:
            yield f"assert (await far.fail({called}.call_id, {literal(reason)})).accepted"
        elif asked is not None:
            yield f"assert (await far.deny({asked}.approval_id, {literal(reason)})).accepted"


WIDTH = 96


def literal(value: object) -> str:
    """The value as a Python literal; a long one over several lines, in brackets."""
    text = pformat(value, width=WIDTH, sort_dicts=False)
    if "\n" not in text:
        return text
    # a long string becomes several pieces, which need brackets around them
    return text if text[0] in "[{(" else f"({text})"


def slug_of(title: str) -> str:
    """The end of a function's name."""
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "_".join(words)[:50].rstrip("_") or "a_recorded_run"


def docstring_line(title: str) -> str:
    """As the first line of a docstring."""
    words = printable(title).replace("\\", "/").replace('"', "'")[:90].strip()
    return words if words.endswith((".", "?", "!")) else f"{words}."


def step_of(message: AssistantMessage) -> str:
    """One step of the script: the text and the calls of the model, in order."""
    return f"[{', '.join(_item(part) for part in message.parts if not isinstance(part, Note))}]"


def _item(part: Text | Reasoning | File | ToolCallPart) -> str:
    match part:
        case Text(text=text):
            return literal(text)
        case Reasoning(text=text):
            return f"Think({literal(text)})"
        case File(name=name):
            return literal(f"[{name}]")
        case ToolCallPart(tool=tool, input=input):
            return f"Ask({literal(tool)}, {literal(input)})"


async def _record(service: AgentService, run: Run) -> Recording:
    entries = await service.log.entries(run)
    calls = await service.calls(run)
    messages = await service.log.messages(run.owner, run.thread_id)
    tools: dict[str, Tool] = {}
    for call in calls:
        # the last version of a tool that changed during the run
        tool = await service.tool_of(call)
        if tool is not None:
            tools[tool.name] = tool
    prompt = await RunSearch(service).prompt(run)
    # in a thread: redacting may take long
    return await asyncio.to_thread(_redacted, run, prompt, messages, calls, list(tools.values()), entries)


def _redacted(
    run: Run,
    prompt: str,
    messages: Sequence[Message],
    calls: Sequence[Call],
    tools: Sequence[Tool],
    entries: Sequence[Entry],
) -> Recording:
    entries = redact_entries(entries)
    rejected = {entry.event.call_id for entry in entries if isinstance(entry.event, CallRejected)}
    prompt = redact_text(prompt) or "Go on."
    steps = [
        redact_step(message)
        for message in messages
        if isinstance(message, AssistantMessage) and message.run_id == run.run_id
    ]
    return Recording(
        prompt=prompt,
        state=run.state,
        steps=steps,
        calls=[redact_call(call) for call in calls if call.call_id not in rejected],
        tools=tools,
        entries=entries,
        answer="".join(text_of(step) for step in steps),
    )


def tool_lines(calls: Sequence[Call], tools: Sequence[Tool]) -> Iterator[str]:
    """`calls` are those that passed their checks."""
    yield _recorded(calls, [tool.name for tool in tools if tool.executor is Executor.SERVER])
    yield "toolbox = Toolbox()"
    for tool in tools:
        yield _added(tool, [call for call in calls if call.tool == tool.name])


_ANSWER = '''
def recorded(tool):
    """Returns the recorded result of each input, once."""
    left = list(RECORDED[tool])

    async def answer(**input):
        for each in left:
            if each[0] == input:
                left.remove(each)
                return await each[1]()
        raise LookupError(f"the recording has no call of {tool} with {input}")

    return answer


def gives(output):
    async def give():
        return output

    return give


def fails(error):
    async def fail():
        raise RuntimeError(error)

    return fail


async def hangs():
    await asyncio.sleep(3600)


'''


def _recorded(calls: Sequence[Call], names: Sequence[str]) -> str:
    if not names:
        return "\n"
    lines = ["\nRECORDED = {"]
    for name in names:
        own = [call for call in calls if call.tool == name and call.outcome is not None]
        answers = [f"        ({literal(call.input)}, {_answer(call.outcome)}),\n" for call in own]
        lines.append(f"    {literal(name)}: [\n{''.join(answers)}    ],")
    lines.append("}\n")
    functions = _ANSWER.strip("\n")
    return f"\n\n{functions}\n\n" + "\n".join(lines)


def _answer(outcome: Outcome | None) -> str:
    match outcome:
        case Success(output=output):
            return f"gives({literal(output)})"
        case Failure(error=error):
            return f"fails({literal(error)})"
        case _:
            return "hangs"


def _added(tool: Tool, calls: Sequence[Call]) -> str:
    late = [call for call in calls if isinstance(call.outcome, TimedOut)]
    own = tool.executor is Executor.SERVER
    options = [f"recorded({literal(tool.name)})" if own else 'executor="frontend"', *_asking(calls)]
    if any(call.approval is None or call.approval.answer is not None for call in late):
        options.append("timeout_sec=1")
    if any(call.approval is not None and call.approval.answer is None for call in late):
        options.append("approval_timeout_sec=1")
    schema = _schema(tool, calls, shortened=bool(late))
    arguments = [literal(tool.name), literal(tool.description), literal(schema), *options]
    lines = "".join(f"{each},\n" for each in arguments)
    return f"toolbox.add(\n{indent(lines, '    ')})"


def _asking(calls: Sequence[Call]) -> list[str]:
    asked = [call for call in calls if call.approval and call.approval.answered_at != call.opened_at]
    if not asked:
        return []
    if len(asked) == len(calls):
        return ["needs_approval=True"]
    inputs = [_as_asked(call) for call in asked]
    return [f"needs_approval=lambda input: input in {literal(inputs)}"]


def _as_asked(call: Call) -> dict[str, object]:
    edited = call.approval.asked_input if call.approval is not None else None
    return call.input if edited is None else edited


def _schema(tool: Tool, calls: Sequence[Call], *, shortened: bool) -> Schema:
    schema = dict(tool.input_schema)
    if any(check_input(tool, _as_asked(call)) is not None for call in calls):
        # redacted input may not fit the schema
        return {"type": "object"}
    properties = schema.get("properties")
    if shortened and isinstance(properties, dict) and not properties.keys().isdisjoint(PARAMETERS):
        # else the test would wait for the timeout that the model chose
        schema["properties"] = {name: each for name, each in properties.items() if name not in PARAMETERS}
        schema.pop("additionalProperties", None)
    return schema
