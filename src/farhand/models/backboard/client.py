"""The official library of Backboard, and the only module that imports it.

Owns its types, of which the library tells nothing, keys and addresses, and what the library raises.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

from farhand.errors import BadSetting, ModelFault, not_installed
from farhand.models.connection import Connection
from farhand.models.delays import wait_asked_for
from farhand.models.faults import Trouble, broke_off, fault_of, is_too_long, no_answer_of_its_api, unreadable
from farhand.models.options import check_reserved, known_to
from farhand.models.reading import GARBLED
from farhand.models.settings import UNUSABLE, checked_address, checked_key, shown_as_set

try:
    with warnings.catch_warnings():
        # its records are written for an older pydantic, which says so at every import
        warnings.simplefilter("ignore", DeprecationWarning)
        # the library has no types: what is used of it stands in the protocols below
        from backboard import (  # type: ignore[import-untyped]
            BackboardAPIError,
            BackboardClient,
        )
except ModuleNotFoundError as error:
    raise not_installed("Models of Backboard", "backboard") from error

# the library's own names that others may take from here
__all__ = ["BackboardAPIError", "BackboardClient"]

WHO = "Backboard"
KEY = "BACKBOARD_API_KEY"
ADDRESS = "BACKBOARD_BASE_URL"
_RESERVED = frozenset(
    {
        "content",
        "thread_id",
        "assistant_id",
        "llm_provider",
        "model_name",
        "system_prompt",
        "tools",
        "stream",
        "metadata",
        "operation",
        "send_to_llm",
    }
)
OFFICIAL = "https://app.backboard.io/api"

# Any: an event is JSON of any shape until it was looked at
Event: TypeAlias = dict[str, Any]
Events: TypeAlias = AsyncGenerator[Event, None]


class AssistantRecord(Protocol):
    assistant_id: object
    name: str


class MessageRecord(Protocol):
    status: str | None
    metadata_: dict[str, object] | None


class ThreadRecord(Protocol):
    thread_id: object
    messages: Sequence[MessageRecord]


class Client(Protocol):
    """What is used of `BackboardClient`."""

    async def list_assistants(self, *, name: str) -> Sequence[AssistantRecord]: ...

    async def create_assistant(
        self, *, name: str, system_prompt: str, tools: Sequence[Event]
    ) -> AssistantRecord: ...

    async def create_thread(self, assistant_id: str) -> ThreadRecord: ...

    async def get_thread(self, thread_id: str) -> ThreadRecord: ...

    async def send_message(self, content: str, **options: object) -> Events: ...

    async def submit_tool_outputs(
        self, thread_id: str, run_id: str, tool_outputs: Sequence[Event], **options: object
    ) -> Events: ...

    async def cancel_run(self, thread_id: str, run_id: str) -> object: ...

    async def aclose(self) -> None: ...


def connection(api_key: str | None, base_url: str | None, timeout_sec: float) -> Connection[Client]:
    """What is None comes from the environment."""
    key = api_key or os.environ.get(KEY)
    if not key:
        raise BadSetting("Backboard needs a key.", hint=f"Set {KEY}.")
    checked_key(key, "api_key" if api_key else KEY)
    address = checked_address(
        base_url or os.environ.get(ADDRESS) or OFFICIAL, "base_url" if base_url else ADDRESS
    )

    def make() -> Client:
        made: Client = BackboardClient(api_key=key, base_url=address, timeout=timeout_sec)
        return made

    try:
        return Connection(make, lambda client: client.aclose())
    except UNUSABLE as error:
        raise BadSetting(f"Backboard's library cannot be set up: {error}") from error


def checked_options(options: Mapping[str, object]) -> dict[str, object]:
    """What may be told with a message; the library takes nothing but what it knows."""
    check_reserved(options, _RESERVED)
    known = known_to(BackboardClient.send_message) - _RESERVED - {"self"}
    unknown = sorted(options.keys() - known)
    if unknown:
        raise BadSetting(
            f"options: Backboard's library does not know '{shown_as_set(unknown[0])}'.",
            hint=f"It knows {', '.join(sorted(known))}.",
        )
    return dict(options)


class Refused(Exception):
    """The request was not taken and changed nothing; a new conversation may do. Else the fault is told."""

    def __init__(self, fault: ModelFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Busy(Exception):
    """A passing trouble, before any answer: asked again, it may do. Else the fault is told."""

    def __init__(self, fault: ModelFault, status: int | None, wait_sec: float | None) -> None:
        super().__init__(str(fault))
        self.fault = fault
        self.status = status
        self.wait_sec = wait_sec


@contextmanager
def in_our_words(model: str, *, begun: bool) -> Iterator[None]:
    """What the library raises becomes a `ModelFault`; before the answer began, `Refused` or `Busy`."""
    try:
        yield
    except BackboardAPIError as error:
        wait = _wait_of(error)
        fault = _fault(error.status_code, _words(error), model, begun=begun, wait_sec=wait)
        if not begun and error.status_code in {400, 404, 409, 422}:
            raise Refused(fault) from error
        if not begun and _is_passing(error):
            raise Busy(fault, error.status_code, wait) from error
        raise fault from error
    except GARBLED as error:
        # no JSON, or not the record that the library expects
        raise unreadable(WHO) if begun else no_answer_of_its_api(WHO) from error


def _words(error: Exception) -> str:
    """What Backboard says; of a refused stream, its library does not read it."""
    return str(error).removesuffix("<no body>").removesuffix(": ")


def _is_passing(error: BackboardAPIError) -> bool:
    status = error.status_code
    if status is None:
        return _words(error).startswith(_NO_ANSWER)
    return status in {408, 429} or status >= 500


def _wait_of(error: BackboardAPIError) -> float | None:
    """How long it wants to be left alone."""
    response = getattr(error, "response", None)
    return None if response is None else wait_asked_for(response.headers)


def _fault(
    status: int | None, words: str, model: str, *, begun: bool, wait_sec: float | None = None
) -> ModelFault:
    if status is None and is_too_long(words):
        # in the middle of a stream there is no status any more
        status = 400
    if status is None and not words.startswith(_NO_ANSWER):
        return ModelFault("Backboard's run failed.", hint="Send the message again.", words=words)
    if status is None and begun:
        return broke_off(WHO, words)
    return fault_of(
        Trouble(provider=WHO, model=model, key_setting=KEY, status=status, words=words, wait_sec=wait_sec)
    )


# the library tells these apart from failed runs by their words alone
_NO_ANSWER = ("Connection error", "Request timed out", "Request failed: ")
