"""A declared tool: its facts for the model, its function, and the way from JSON input to that function.

It must not know how a tool comes to be declared, or which others there are.
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
from farhand.core.tool import Executor, Tool
from farhand.errors import Misuse
from farhand.tools.check import checker
from farhand.tools.execute import Raised, attempt, failure_of
from farhand.tools.plain import why_not_json
from farhand.tools.schema import Arguments
from farhand.tools.wording import refusal

log = logging.getLogger("farhand.tools")

_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

NeedsApproval: TypeAlias = bool | Callable[[dict[str, object]], bool]


class DeclaredTool(Generic[P, R_co]):
    """What `@tool` makes of a function. Calling it calls the function, if it is a server tool."""

    tool: Tool
    function: Callable[P, R_co] | None
    """None only for a frontend tool that was added without one."""

    def __init__(
        self,
        tool: Tool,
        function: Callable[P, R_co] | None,
        *,
        needs_approval: NeedsApproval = False,
        arguments: Arguments | None = None,
    ) -> None:
        if function is not None:
            # updated=(): an attribute of the function must not become one of the tool
            functools.update_wrapper(self, function, updated=())
        self.tool = tool
        self.function = function
        self._needs_approval = needs_approval
        self._arguments = arguments
        self._checker = checker(tool.input_schema)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        if self.function is None or self.tool.executor is not Executor.SERVER:
            raise Misuse(
                f"`{self.tool.name}` runs in the {self.tool.executor}: its body is never executed here.",
                hint="Give it to an agent, and answer its calls from there.",
            )
        return self.function(*args, **kwargs)

    def asks(self, input: dict[str, object]) -> bool:
        """True if this input needs a person's yes. In doubt (it raises, or gives no bool): yes."""
        decide = self._needs_approval
        if isinstance(decide, bool):
            return decide
        # a copy: what is decided on must be what runs
        answer: object = attempt(lambda: decide(copy.deepcopy(input)))
        if isinstance(answer, bool):
            return answer
        what = type(answer.error if isinstance(answer, Raised) else answer).__name__
        log.warning("needs_approval of tool %s gave %s instead of a bool: asking", self.tool.name, what)
        return True

    def bind(self, input: object) -> dict[str, object] | Failure:
        """The keyword arguments this input stands for: fresh values, of the declared types."""
        complaint = self._checker.complaint(input)
        if complaint is not None:
            return self._bad_input(complaint)
        try:
            text = _encode(input).encode()
        except (ValueError, TypeError, RecursionError):
            return self._bad_input(why_not_json(input))
        if self._arguments is None:
            # Any: what json reads; the schema has said that it is an object
            read: Any = json.loads(text)
            return dict(read)
        bound = attempt(functools.partial(self._arguments.bind, text))
        if not isinstance(bound, Raised):
            return bound
        if isinstance(bound.error, ValidationError):
            return self._bad_input(refusal(bound.error))
        return failure_of(self.tool.name, bound.error)

    def _bad_input(self, complaint: str) -> Failure:
        return Failure(f"Bad input for `{self.tool.name}`: {complaint}.")
