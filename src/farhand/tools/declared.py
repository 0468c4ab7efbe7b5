"""A declared tool: its description for the model, its function, and how JSON input becomes its arguments.

It must not know how a tool is declared, or which other tools exist.
"""

from __future__ import annotations

import copy
import functools
import json
import logging
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

from pydantic import ValidationError

from farhand.core.outcome import Failure
from farhand.core.template import fill, shorten_line
from farhand.core.tool import Executor, Tool
from farhand.errors import Misuse
from farhand.tools.check import compile_schema, describe_refusal
from farhand.tools.context import context_parameter
from farhand.tools.execute import CaughtError, attempt, to_failure
from farhand.tools.schema import ToolArguments
from farhand.tools.to_json import why_not_json

log = logging.getLogger("farhand.tools")

_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

NeedsApproval: TypeAlias = bool | Callable[[dict[str, object]], bool]
# Any: a summary function names the type that its tool returns
Summary: TypeAlias = str | Callable[[Any], str]


def decide_approval(decide: Callable[[], object], what: str) -> bool:
    """The decision of a function of the host; True if it raises or returns no bool."""
    answer = attempt(decide)
    if isinstance(answer, bool):
        return answer
    log.warning("%s %s; asking for approval", what, _describe(answer, "a bool"))
    return True


def _describe(answer: object, expected: str) -> str:
    if isinstance(answer, CaughtError):
        return f"raised {type(answer.error).__name__}"
    return f"returned {type(answer).__name__}, not {expected}"


class DeclaredTool(Generic[P, R_co]):
    """The result of `@tool`. Calling it calls the function, if it is a server tool."""

    tool: Tool
    function: Callable[P, R_co] | None
    """None only for a frontend tool that was added without a function."""

    def __init__(
        self,
        tool: Tool,
        function: Callable[P, R_co] | None,
        *,
        needs_approval: NeedsApproval = False,
        summary: Summary | None = None,
        arguments: ToolArguments | None = None,
    ) -> None:
        if function is not None:
            # updated=(): an attribute of the function must not become one of the tool
            functools.update_wrapper(self, function, updated=())
        self.tool = tool
        self.function = function
        self.context_parameter = None if function is None else context_parameter(function)
        """The parameter that gets the `Context`, if the function has one."""
        self._needs_approval = needs_approval
        self._summary = summary
        self._arguments = arguments
        self._checker = compile_schema(tool.input_schema)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        if self.function is None or self.tool.executor is not Executor.SERVER:
            raise Misuse(
                f"`{self.tool.name}` runs in the {self.tool.executor}; its body is never executed here.",
                hint="Pass it to an agent and answer its calls from the page.",
            )
        return self.function(*args, **kwargs)

    def asks(self, input: dict[str, object]) -> bool:
        """True if this input needs a person's approval; also if the decision raises or is not a bool."""
        decide = self._needs_approval
        if isinstance(decide, bool):
            return decide
        # a copy: the decision must be about the input that runs
        return decide_approval(
            lambda: decide(copy.deepcopy(input)), f"needs_approval of tool {self.tool.name}"
        )

    def summarize(self, output: object) -> str | None:
        """The output in a few words; None without a summary, or if its function raises or returns no text."""
        summary = self._summary
        if summary is None:
            return None
        if isinstance(summary, str):
            values = output if isinstance(output, dict) else {}
            return fill(summary, {"output": output, **values})
        # a copy: what is stored must be what the tool returned
        text: object = attempt(lambda: summary(copy.deepcopy(output)))
        if isinstance(text, str):
            return shorten_line(text) or None
        log.warning("summary of tool %s %s; showing none", self.tool.name, _describe(text, "text"))
        return None

    def bind(self, input: object) -> dict[str, object] | Failure:
        """The keyword arguments for this input: new values of the declared types."""
        mismatch = self._checker.mismatch(input)
        if mismatch is not None:
            return self._bad_input(mismatch)
        try:
            text = _encode(input).encode()
        except (ValueError, TypeError, RecursionError):
            return self._bad_input(why_not_json(input))
        if self._arguments is None:
            # Any: the result of json; the schema has ensured that it is an object
            read: Any = json.loads(text)
            return dict(read)
        bound = attempt(functools.partial(self._arguments.bind, text))
        if not isinstance(bound, CaughtError):
            return bound
        if isinstance(bound.error, ValidationError):
            return self._bad_input(describe_refusal(bound.error))
        return to_failure(self.tool.name, bound.error)

    def _bad_input(self, mismatch: str) -> Failure:
        return Failure(f"Invalid input for `{self.tool.name}`: {mismatch}.")
