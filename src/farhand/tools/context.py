"""The context of a server tool: the owner it works for, and its access to progress, questions and files.

Owns the variable that `current()` reads. It is set for one execution of one tool, from what is stored with
the call, never from the request that opened it: a call may run days later, in another process. It must not
know desks, logs or conversations: the agent passes in what acts on them.
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
    """A tool's question got no answer: it was declined or cancelled, it failed, or nobody answered in time.

    `outcome` says which. If the tool does not catch it, the tool fails with this message.
    """

    def __init__(self, question: str, outcome: NoAnswer) -> None:
        super().__init__(f"{question} was not answered: {_reason(outcome)}.")
        self.outcome = outcome


class ToolFiles(Protocol):
    """The files of the owner that the tool works for."""

    async def read(self, ref: str) -> bytes:
        """All bytes of a file; `NotFound` if the owner has no such file."""
        ...

    async def save(self, data: bytes, *, name: str, media_type: str) -> str:
        """Store a file. Returns its reference, which people can open."""
        ...


class Link(Protocol):
    """What a running tool can ask of the agent, which implements it."""

    @property
    def files(self) -> ToolFiles: ...

    def progress(self, text: str) -> None: ...

    def wait_for(self, work: Coroutine[object, object, T]) -> T: ...

    async def ask(
        self, tool: str, input: dict[str, object], *, key: str | None, timeout_sec: float | None
    ) -> Outcome: ...


class Approved(Struct, frozen=True):
    """The approval that a call received. `claims` are those of the person who approved it, who is not always
    the person who asked."""

    claims: Claims
    at: float
    is_edited: bool = False
    """Whether that person changed the input."""


class Context(Struct, frozen=True, kw_only=True):
    """Whom a tool works for. A server tool gets it from `current()`, or as a parameter of this type.

    >>> from farhand import Context, tool
    >>> @tool
    ... def list_orders(status: str, context: Context) -> str:
    ...     '''List the orders of the current user.
    ...
    ...     Args:
    ...         status: open or closed.
    ...     '''
    ...     return f"{status} orders of {context.owner.subject}"
    """

    owner: Owner
    """Tenant and subject, as the `authenticate` hook named them."""
    claims: Claims = field(default_factory=dict)
    """The claims that hook put on the `Principal` when the run, or the call, began."""
    thread_id: str = ""
    run_id: str | None = None
    """None for a call that a program made without a run, and while instructions or tools are chosen."""
    call_id: str = ""
    approval: Approved | None = None
    link: Link | None = None

    @property
    def idempotency_key(self) -> str:
        """The same value if this call is executed again after a crash. Pass it to services that accept
        one."""
        return self.call_id

    @property
    def files(self) -> ToolFiles:
        return self._require_link().files

    def progress(self, text: str) -> None:
        """Report progress to everyone who watches the call. Returns immediately; at most two reports per
        second are sent."""
        self._require_link().progress(text)

    async def ask(
        self,
        tool: str,
        input: dict[str, object],
        *,
        key: str | None = None,
        timeout_sec: float | None = None,
    ) -> object:
        """Ask a person or a page, and wait for the answer: see `farhand.ask`."""
        outcome = await self._require_link().ask(tool, input, key=key, timeout_sec=timeout_sec)
        if isinstance(outcome, Success):
            return outcome.output
        raise NotAnswered(f"The question `{tool}`", outcome)

    def wait_for(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine from a tool that is a plain function, and return its result. Such a tool runs in a
        thread of its own; only that thread waits.

        >>> from farhand import ask, current, tool
        >>> @tool(idempotent=True)
        ... def archive() -> str:
        ...     '''Archive old files once the user has confirmed.'''
        ...     answer = current().wait_for(ask("user_confirm", {"message": "Archive 14 files?"}))
        ...     return "archived" if answer == "yes" else "kept"
        """
        try:
            link = self._require_link()
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

    def _require_link(self) -> Link:
        if self.link is None:
            raise Misuse(
                "Progress, questions and files are available only while a tool is being executed.",
                hint="A function that chooses instructions or tools runs before the model is asked.",
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
    """The context of the running tool: whom it works for, and which call it executes.

    >>> from farhand import current, tool
    >>> @tool
    ... def whose_orders() -> str:
    ...     '''Say whose orders would be listed.'''
    ...     return current().owner.subject
    """
    context = _current.get(None)
    if context is None:
        raise Misuse(
            "current() works only inside a server tool that farhand is executing.",
            hint="In a test, use `with farhand.testing.acting_for(owner):`.",
        )
    return context


async def ask(
    tool: str, input: dict[str, object], *, key: str | None = None, timeout_sec: float | None = None
) -> object:
    """Inside a server tool: ask a person or a page, and return the answer.

    `tool` is a frontend tool of the agent, or a tool of a registered client. The asking tool's own time limit
    is paused meanwhile. Raises `NotAnswered` if there is no answer. A tool that is a plain function writes
    `current().wait_for(ask(…))`. If the process dies while the question is open, a tool that is `idempotent`
    runs again and gets the answer that was given: questions are matched by `key`, or by their order if they
    have none.

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
    """Inside the block, `current()` returns this context."""
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
        # a hint that cannot be resolved is reported where the schema is built
        return None
    return next((name for name, hint in hints.items() if hint is Context and name != "return"), None)


def _reason(outcome: NoAnswer) -> str:
    if isinstance(outcome, Denied):
        return f"declined ({outcome.reason})" if outcome.reason else "declined"
    if isinstance(outcome, Cancelled):
        return f"cancelled ({outcome.reason})" if outcome.reason else "cancelled"
    return "nobody answered in time" if isinstance(outcome, TimedOut) else outcome.error
