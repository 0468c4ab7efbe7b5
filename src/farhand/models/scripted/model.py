"""`ScriptedModel`: plays a script through the interface of every model.

It records its prompts, refuses a history that a provider would refuse, and yields to the event loop before
every event, as a model behind a network does.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from types import CodeType
from typing import TypeAlias, assert_never

import msgspec
from msgspec import Struct

from farhand.core.explained_struct import ExplainedStruct
from farhand.core.outcome import (
    Cancelled,
    Denied,
    Failure,
    Outcome,
    Success,
    TimedOut,
    kind_of,
    seen_by_model,
)
from farhand.core.thread import (
    AssistantMessage,
    Message,
    ResultsMessage,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
    text_of,
)
from farhand.errors import BadSetting, FarhandError, ModelFault
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    ModelEvent,
    Prompt,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    StopReason,
    TextDelta,
)


class Say(Struct, frozen=True):
    """Text: `Say("It is raining.")`.

    A sequence of strings becomes exactly these deltas; `delay` is in seconds before each of them.
    """

    text: str | Sequence[str]
    delay: float | None = None


class Think(Struct, frozen=True):
    """Reasoning: `Think("The user wants the weather.")`.

    `echo` stands for an item of the provider that has to be sent back unchanged.
    """

    text: str | Sequence[str]
    delay: float | None = None
    echo: object = None


class Ask(ExplainedStruct, frozen=True):
    """A call: `Ask("get_weather", {"location": "Oslo"})`.

    An `input` that is a `str` is sent unchanged: JSON text, valid or not.
    """

    tool: str
    # the struct creates a new one for each Ask
    input: object = {}
    id: str | None = None
    delay: float | None = None


class Begin(Struct, frozen=True):
    """A call that is never completed, as if the model ran out of tokens: `Begin("get_weather", '{"loc')`."""

    tool: str
    input: str = ""
    id: str | None = None
    delay: float | None = None


class Fail(Struct, frozen=True):
    """The provider fails here: `Fail("The model is overloaded.")`."""

    message: str
    hint: str = ""


ScriptItem: TypeAlias = str | Say | Think | Ask | Begin | Fail | Stop
Step: TypeAlias = ScriptItem | Sequence[ScriptItem]
"""What a model does before results come back: `[Say("Let me look."), Ask("get_weather")]`."""

_ITEMS = (str, Say, Think, Ask, Begin, Fail, Stop)
_WORD = re.compile(r"\S+\s*|\s+")


def items_of(step: object) -> tuple[ScriptItem, ...]:
    """The items of a step, in order. Raises `BadSetting` for anything that is not a step."""
    if isinstance(step, _ITEMS):
        return (step,)
    if not isinstance(step, list | tuple):
        raise BadSetting(
            f"A step of a scripted model cannot be {_named(step)}.",
            hint="Use a str, Say, Think, Ask, Begin, Fail or Stop, or a list of them.",
        )
    for item in step:
        if not isinstance(item, _ITEMS):
            raise BadSetting(f"A step of a scripted model cannot contain {_named(item)}.")
    if any(isinstance(item, Stop) for item in step[:-1]):
        raise BadSetting("Stop must be the last item in a step of a scripted model.")
    return tuple(step)


class StepPlayer:
    """Turns the items of one step into events: numbers its calls and knows how it ends."""

    def __init__(self) -> None:
        self._calls = 0
        self._reason: StopReason = "end"
        self._stop: Stop | None = None

    def events(self, item: ScriptItem) -> Iterator[ModelEvent]:
        """The events of an item, in order. A `Stop` yields nothing here: it comes last."""
        match item:
            case str() | Say():
                yield from map(TextDelta, _deltas(item if isinstance(item, str) else item.text))
            case Think():
                yield from map(ReasoningDelta, _deltas(item.text))
                if item.echo is not None:
                    yield ReasoningDone(item.echo)
            case Ask() | Begin():
                yield from self._call(item)
            case Fail():
                raise ModelFault(item.message, hint=item.hint)
            case Stop():
                self._stop = item
            case _:
                assert_never(item)

    @property
    def stop(self) -> Stop:
        return self._stop or Stop(self._reason)

    def _call(self, item: Ask | Begin) -> Iterator[ModelEvent]:
        index, self._calls = self._calls, self._calls + 1
        yield CallStart(index, item.tool, item.id)
        text = item.input if isinstance(item.input, str) else _json(item)
        for piece in _deltas(text):
            yield InputDelta(index, piece)
        if isinstance(item, Begin):
            self._reason = "length"
            return
        yield CallDone(index, text)
        if self._reason == "end":
            self._reason = "calls"


def _deltas(text: str | Sequence[str]) -> Sequence[str]:
    """One for each word, with the white space after it, unless the script says where to cut."""
    return _WORD.findall(text) if isinstance(text, str) else text


def _json(item: Ask | Begin) -> str:
    # with white space, so that an input is divided into deltas at its words as well
    try:
        return json.dumps(item.input, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ModelFault(
            f"The script calls {item.tool} with an input that JSON cannot represent: {error}."
        ) from error


def _named(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


class ToolResult(Struct, frozen=True):
    """The result of a call in a `Moment`: `moment.results[0].output`."""

    call_id: str
    tool: str
    input: object
    outcome: Outcome

    @property
    def kind(self) -> str:
        """`success`, `failure`, `denied`, `timed_out` or `cancelled`."""
        return kind_of(self.outcome)

    @property
    def output(self) -> object:
        """The output of a success, otherwise None."""
        return self.outcome.output if isinstance(self.outcome, Success) else None

    @property
    def error(self) -> str:
        """Why there is no output; empty for a success."""
        match self.outcome:
            case Success():
                return ""
            case Failure(error=error):
                return error
            case Denied(reason=reason):
                return f"denied: {reason}" if reason else "denied"
            case TimedOut(after_sec=after):
                return "timed out" if after is None else f"timed out after {after:g} s"
            case Cancelled(reason=reason):
                return reason

    @property
    def seen(self) -> str:
        """The result as a model reads it."""
        return seen_by_model(self.outcome).text


class Moment(Struct, frozen=True, kw_only=True):
    """The conversation so far, as a script sees it. `steps` and `results` count from the last user message.

    ```python
    from farhand.models import Ask, Moment, Step


    def script(moment: Moment) -> Step:
        if not moment.results:
            return Ask("get_weather", {"location": moment.text})
        return f"It is {moment.results[-1].output} there."
    ```
    """

    text: str
    """The text of the last user message."""
    steps: int
    """The number of steps of the model since then."""
    results: tuple[ToolResult, ...]
    """The results since then, in order."""
    last: tuple[ToolResult, ...]
    """The results of the step before this one."""
    tools: tuple[str, ...]
    """The names of the tools that are offered."""
    messages: tuple[Message, ...]
    instructions: str = ""
    thread_id: str = ""


def moment_of(prompt: Prompt) -> Moment:
    text, since = _split(prompt.messages)
    rounds = [tuple(map(_tool_result, each.results)) for each in since if isinstance(each, ResultsMessage)]
    waiting = bool(since) and isinstance(since[-1], ResultsMessage)
    return Moment(
        text=text,
        steps=sum(isinstance(each, AssistantMessage) for each in since),
        results=tuple(result for each in rounds for result in each),
        last=rounds[-1] if waiting else (),
        tools=tuple(tool.name for tool in prompt.tools),
        messages=tuple(prompt.messages),
        instructions=prompt.instructions,
        thread_id=prompt.thread_id,
    )


def check_history(messages: Sequence[Message]) -> None:
    """Refuses, as providers do, a history in which calls and results do not match."""
    if not messages or not isinstance(messages[0], UserMessage):
        raise _invalid("it does not begin with a user message")
    owed: tuple[ToolCallPart, ...] = ()
    known: set[str] = set()
    for message in messages:
        if isinstance(message, ResultsMessage):
            _check_results(owed, message.results)
            owed = ()
            continue
        if owed:
            raise _invalid(f"the next message has no result for {_list(owed)}")
        if isinstance(message, AssistantMessage):
            owed = message.tool_calls
            _check_new(owed, known)
    if owed:
        raise _invalid(f"it ends without a result for {_list(owed)}")


def _split(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], UserMessage):
            return text_of(messages[index]), messages[index + 1 :]
    return "", messages


def _tool_result(call: ToolResultPart) -> ToolResult:
    return ToolResult(call.call_id, call.tool, call.input, call.outcome)


def _check_results(owed: tuple[ToolCallPart, ...], results: tuple[ToolResultPart, ...]) -> None:
    expected = [(call.call_id, call.tool, call.model_call_id) for call in owed]
    got = [(call.call_id, call.tool, call.model_call_id) for call in results]
    if expected != got:
        raise _invalid(f"after the calls {_list(owed)} it has the results {_list(results)}")
    if not expected:
        raise _invalid("it has results without calls")


def _check_new(calls: tuple[ToolCallPart, ...], known: set[str]) -> None:
    for call in calls:
        if call.call_id in known:
            raise _invalid(f"it has the call {call.call_id} twice")
        known.add(call.call_id)


def _list(calls: Sequence[ToolCallPart | ToolResultPart]) -> str:
    named = (f"{call.call_id} ({call.tool})" for call in calls)
    return ", ".join(named) or "(none)"


def _invalid(why: str) -> ModelFault:
    return ModelFault(f"The history is not valid for a model: {why}.")


ScriptAnswer: TypeAlias = Step | Awaitable[Step] | AsyncGenerator[Step, None]
Script: TypeAlias = Callable[[Moment], ScriptAnswer]


class ScriptedModel:
    """A model that follows a script instead of asking a provider.

    ```python
    from farhand import Agent
    from farhand.models import Ask, ScriptedModel

    agent = Agent(ScriptedModel([Ask("get_weather", {"location": "Oslo"}), "It is raining."]))
    ```

    Args:
        script: A function from a `Moment` to the next step (it may be async, or an async generator of
            items), or a list of steps and functions, played one per request.
        delay: Seconds before each delta of an item without a delay of its own.
        keep_prompts: How many of the newest prompts are kept in `prompts`.
    """

    def __init__(
        self,
        script: Script | Sequence[Step | Script],
        *,
        delay: float = 0.0,
        keep_prompts: int = 100,
    ) -> None:
        self.name = "scripted"
        self._script = script if callable(script) else _InOrder(script)
        self._delay = delay
        self._prompts: deque[Prompt] = deque(maxlen=keep_prompts)

    @classmethod
    def from_yaml(cls, source: str | Path, *, delay: float = 0.0, keep_prompts: int = 100) -> ScriptedModel:
        """From a file (a `Path`, or a `str` of one line) or from YAML text."""
        # a script in Python needs no YAML reader, which takes longest to import
        from farhand.models.scripted.yaml_reader import read_script  # noqa: PLC0415

        return cls(read_script(source), delay=delay, keep_prompts=keep_prompts)

    @property
    def prompts(self) -> list[Prompt]:
        """The prompts that the model got, oldest first."""
        return list(self._prompts)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        # the caller may change its list of messages later
        self._prompts.append(
            msgspec.structs.replace(prompt, messages=tuple(prompt.messages), tools=tuple(prompt.tools))
        )
        check_history(prompt.messages)
        player = StepPlayer()
        async with aclosing(self._items(prompt)) as items:
            async for item in items:
                delay = self._delay_of(item)
                for event in player.events(item):
                    await asyncio.sleep(delay)
                    yield event
        yield player.stop

    async def _items(self, prompt: Prompt) -> AsyncGenerator[ScriptItem, None]:
        async with aclosing(_steps(self._script, moment_of(prompt))) as steps:
            async for step in steps:
                for item in _checked(step, self._script):
                    yield item

    def _delay_of(self, item: ScriptItem) -> float:
        if isinstance(item, str | Fail | Stop) or item.delay is None:
            return self._delay
        return item.delay


class _InOrder:
    """A list of steps as a script: one for each request, then a fault."""

    def __init__(self, steps: Sequence[Step | Script]) -> None:
        if not isinstance(steps, list | tuple):
            raise BadSetting(
                f"A scripted model cannot be created from a value of type {type(steps).__name__}.",
                hint="Pass a function or a list of steps.",
            )
        self._steps = tuple(step if callable(step) else items_of(step) for step in steps)
        self._played = 0

    def __call__(self, moment: Moment) -> ScriptAnswer:
        if self._played == len(self._steps):
            raise ModelFault(
                f"The script has {len(self._steps)} steps, but the model was asked once more.",
                hint="Add one step for each request, including the answer after the last result.",
            )
        step = self._steps[self._played]
        self._played += 1
        return step(moment) if callable(step) else step


async def _steps(script: Script, moment: Moment) -> AsyncGenerator[Step, None]:
    """The answer of the script. An exception in it becomes a `ModelFault` that helps its author."""
    async with aclosing(_answers(script, moment)) as steps:
        while (step := await _next(steps)) is not _END:
            yield step


async def _answers(script: Script, moment: Moment) -> AsyncGenerator[Step, None]:
    answer = script(moment)
    if not isinstance(answer, AsyncGenerator):
        yield await answer if isinstance(answer, Awaitable) else answer
        return
    async with aclosing(answer):
        async for step in answer:
            yield step


_END = Stop("end")
"""Marks the end of the steps; recognized by identity."""


async def _next(steps: AsyncGenerator[Step, None]) -> Step:
    try:
        return await anext(steps, _END)
    except FarhandError:
        raise
    # the script is a user's function and may raise anything
    except Exception as error:
        raise ModelFault(
            f"The script raised {type(error).__name__}: {error}.",
            hint="Fix the script, then send the message again.",
        ) from error


def _checked(step: object, script: Script) -> tuple[ScriptItem, ...]:
    try:
        return items_of(step)
    except BadSetting as error:
        # in the middle of a run this is a fault of the model, and the run ends as with any other
        raise ModelFault(f"{error.message}{_origin(script)}", hint=error.hint) from error


def _origin(script: Script) -> str:
    """Whose step it was, for the author of the script."""
    code = getattr(script, "__code__", None)
    if not isinstance(code, CodeType):
        return ""
    return f" It was returned by {code.co_name}() ({Path(code.co_filename).name}:{code.co_firstlineno})."
