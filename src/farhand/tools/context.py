"""For whom a server tool works, and what it may do besides its own work: report, ask, read and keep files.

Owns the variable that `current()` reads. It is set for one execution of one tool, from what is stored with
the call, never from what was set when a request came in: a call may run days later, in another process. Must
not know desks, logs or threads of conversation: the agent hands in what acts on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeAlias, TypeVar, get_type_hints

from msgspec import Struct, field

from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.principal import Claims, Owner
from farhand.errors import Misuse
from farhand.tools.execute import ToolFailed

T = TypeVar("T")

NoAnswer: TypeAlias = Failure | Denied | TimedOut | Cancelled


class NotAnswered(ToolFailed):
    """A question of a tool that has no answer: it was declined, timed out, cancelled, or failed. Uncaught, it
    fails the tool in these words. `outcome` says which."""

    def __init__(self, question: str, outcome: NoAnswer) -> None:
        super().__init__(f"{question} was not answered: {_reason(outcome)}.")
        self.outcome = outcome


class ToolFiles(Protocol):
    """The files of the owner whom the tool works for."""

    async def read(self, ref: str) -> bytes:
        """All bytes of a file; `NotFound` if the owner has no such file."""
        ...

    async def save(self, data: bytes, *, name: str, media_type: str) -> str:
        """Keeps a file and gives its reference, which people can open."""
        ...


class Link(Protocol):
    """What one execution does outside its own work. The agent implements it."""

    @property
    def files(self) -> ToolFiles: ...

    def progress(self, text: str) -> None: ...

    def wait_for(self, work: Coroutine[object, object, T]) -> T: ...

    async def ask(
        self, tool: str, input: dict[str, object], *, key: str | None, timeout_sec: float | None
    ) -> Outcome: ...


class Approved(Struct, frozen=True):
    """The yes that a call got. `claims` are those of the person who gave it, who may be another than the one
    who asked."""

    claims: Claims
    at: float
    is_edited: bool = False
    """Whether that person changed the input."""


class Context(Struct, frozen=True, kw_only=True):
    """For whom a tool works. `current()` gives it inside a server tool, and so does a parameter of this type.

    >>> from farhand import Context, tool
    >>> @tool
    ... def list_orders(status: str, context: Context) -> str:
    ...     '''List the orders of the person who asks.
    ...
    ...     Args:
    ...         status: open or closed.
    ...     '''
    ...     return f"{status} orders of {context.owner.subject}"
    """

    owner: Owner
    """Tenant and subject, as the `authenticate` hook named them."""
    claims: Claims = field(default_factory=dict)
    """What that hook put on the `Principal` when the run, or the call, began."""
    thread_id: str = ""
    run_id: str | None = None
    """None for a call that a program made without a run, and where instructions or tools are chosen."""
    call_id: str = ""
    approval: Approved | None = None
    link: Link | None = None

    @property
    def idempotency_key(self) -> str:
        """The same if this call is executed again after a crash: give it to services that take one."""
        return self.call_id

    @property
    def files(self) -> ToolFiles:
        return self._linked().files

    def progress(self, text: str) -> None:
        """Reports how far it is, to anyone who watches; returns at once. At most two per second are sent."""
        self._linked().progress(text)

    async def ask(
        self,
        tool: str,
        input: dict[str, object],
        *,
        key: str | None = None,
        timeout_sec: float | None = None,
    ) -> object:
        """Asks a person, or a page, in the middle of a tool, and waits for the answer: see `farhand.ask`."""
        outcome = await self._linked().ask(tool, input, key=key, timeout_sec=timeout_sec)
        if isinstance(outcome, Success):
            return outcome.output
        raise NotAnswered(f"The question `{tool}`", outcome)

    def wait_for(self, work: Coroutine[object, object, T]) -> T:
        """What `work` returns, for a tool that is a plain function and cannot await: such a tool runs in a
        thread of its own, which waits here while others continue.

        >>> from farhand import ask, current, tool
        >>> @tool(idempotent=True)
        ... def archive() -> str:
        ...     '''Archive old files once the user has confirmed.'''
        ...     answer = current().wait_for(ask("user_confirm", {"message": "Archive 14 files?"}))
        ...     return "archived" if answer == "yes" else "kept"
        """
        try:
            link = self._linked()
            if _is_on_a_loop():
                raise Misuse(
                    "wait_for() is for tools that are plain functions; this runs on the event loop.",
                    hint="Write `await` instead.",
                )
        except Misuse:
            # nobody will await it
            work.close()
            raise
        return link.wait_for(work)

    def _linked(self) -> Link:
        if self.link is None:
            raise Misuse(
                "Only a tool that is being executed can do this.",
                hint="Instructions and lists of tools are chosen before the model is asked.",
            )
        return self.link


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_current: ContextVar[Context] = ContextVar("farhand.context")


def current() -> Context:
    """For whom the tool that calls this works.

    >>> from farhand import current, tool
    >>> @tool
    ... def whose_orders() -> str:
    ...     '''Say whose orders would be listed.'''
    ...     return current().owner.subject
    """
    context = _current.get(None)
    if context is None:
        raise Misuse(
            "current() is for server tools while farhand executes them.",
            hint="Nothing is executed here; in a test, use `with farhand.testing.acting_for(owner):`.",
        )
    return context


async def ask(
    tool: str, input: dict[str, object], *, key: str | None = None, timeout_sec: float | None = None
) -> object:
    """Inside a server tool: asks a person, or a page, and returns the answer.

    `tool` is a frontend tool of the agent, or a tool of a registered client. The asking tool's own time limit
    stands still meanwhile. Without an answer, `NotAnswered` is raised. A tool that is a plain function writes
    `current().wait_for(ask(…))`. If the process dies while the question
    is open, a tool that is `idempotent` runs again and finds the answer that was given; questions are told
    apart by `key`, or else by their order.

    >>> from farhand import ask, tool
    >>> @tool(idempotent=True)
    ... async def clean_up() -> str:
    ...     '''Delete old files once the user has confirmed.'''
    ...     answer = await ask("user_confirm", {"message": "Delete 14 files?"})
    ...     return "deleted" if answer == "yes" else "kept"
    """
    return await current().ask(tool, input, key=key, timeout_sec=timeout_sec)


@contextmanager
def acting(context: Context) -> Iterator[None]:
    """`current()` gives this context inside the block."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def context_parameter(function: Callable[..., object]) -> str | None:
    """The name of the parameter that takes the context; it is not part of the schema."""
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError, SyntaxError, AttributeError):
        # a hint that cannot be resolved is refused where the schema is made
        return None
    return next((name for name, hint in hints.items() if hint is Context and name != "return"), None)


def _reason(outcome: NoAnswer) -> str:
    if isinstance(outcome, Denied):
        return f"declined ({outcome.reason})" if outcome.reason else "declined"
    if isinstance(outcome, Cancelled):
        return f"cancelled ({outcome.reason})" if outcome.reason else "cancelled"
    return "nobody answered in time" if isinstance(outcome, TimedOut) else outcome.error
