"""The tools of a generated test: declared as they were, answering as they did. Knows no order of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent

from farhand.core.call import Call
from farhand.core.outcome import Failure, Outcome, Success, TimedOut
from farhand.core.tool import Executor, Schema, Tool
from farhand.faces.inspector.as_test_words import literal
from farhand.tools.gate import complaint_about
from farhand.tools.timeouts import PARAMETERS


def tool_lines(calls: Sequence[Call], tools: Sequence[Tool]) -> Iterator[str]:
    """`calls` are those that passed their checks."""
    yield _recorded(calls, [tool.name for tool in tools if tool.executor is Executor.SERVER])
    yield "toolbox = Toolbox()"
    for tool in tools:
        yield _added(tool, [call for call in calls if call.tool == tool.name])


_ANSWER = '''
def recorded(tool):
    """Answers as it did then, each input once."""
    left = list(RECORDED[tool])

    async def answer(**input):
        for each in left:
            if each[0] == input:
                left.remove(each)
                return await each[1]()
        raise LookupError(f"{tool} was not called with {input} then")

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
    knobs = [f"recorded({literal(tool.name)})" if own else 'executor="frontend"', *_asking(calls)]
    if any(call.approval is None or call.approval.answer is not None for call in late):
        knobs.append("timeout_sec=1")
    if any(call.approval is not None and call.approval.answer is None for call in late):
        knobs.append("approval_timeout_sec=1")
    schema = _schema(tool, calls, shortened=bool(late))
    arguments = [literal(tool.name), literal(tool.description), literal(schema), *knobs]
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
    if any(complaint_about(tool, _as_asked(call)) is not None for call in calls):
        # what was masked need not fit any more
        return {"type": "object"}
    properties = schema.get("properties")
    if shortened and isinstance(properties, dict) and not properties.keys().isdisjoint(PARAMETERS):
        # the model's own choice of time would be waited for
        schema["properties"] = {name: each for name, each in properties.items() if name not in PARAMETERS}
        schema.pop("additionalProperties", None)
    return schema
