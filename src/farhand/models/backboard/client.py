"""Backboard's official library; the only module that imports it.

Owns its types, because the library has none, keys and addresses, what the library raises, and retries,
because the library never retries.
"""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias, TypeVar

from farhand.errors import BadSetting, ModelFault, not_installed
from farhand.models.error_messages import (
    ProviderError,
    is_context_overflow,
    model_fault,
    stream_cut,
    unexpected_response,
    unreadable_stream,
)
from farhand.models.retry_after import LONGEST_WAIT_SEC, busy_message, report_delay, retry_after_sec
from farhand.models.settings import (
    SETUP_ERRORS,
    ProviderConnection,
    check_base_url,
    check_key,
    check_reserved,
    one_line,
    parameters_of,
)
from farhand.models.stream_guard import GARBLED

try:
    with warnings.catch_warnings():
        # its records are written for an older pydantic, which warns at every import
        warnings.simplefilter("ignore", DeprecationWarning)
        # the library has no types: the protocols below describe what is used of it
        from backboard import (  # type: ignore[import-untyped]
            BackboardAPIError,
            BackboardClient,
        )
except ModuleNotFoundError as error:
    raise not_installed("Models of Backboard", "backboard") from error


# the library's own names that other modules may import from here
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

# Any: an event is JSON of any shape until it is decoded
BackboardEvent: TypeAlias = dict[str, Any]
Events: TypeAlias = AsyncGenerator[BackboardEvent, None]


class AssistantRecord(Protocol):
    assistant_id: object
    name: str


class MessageRecord(Protocol):
    status: str | None
    metadata_: dict[str, object] | None


class ThreadRecord(Protocol):
    thread_id: object
    messages: Sequence[MessageRecord]


class BackboardApi(Protocol):
    """The part of `BackboardClient` that is used."""

    async def list_assistants(self, *, name: str) -> Sequence[AssistantRecord]: ...

    async def create_assistant(
        self, *, name: str, system_prompt: str, tools: Sequence[BackboardEvent]
    ) -> AssistantRecord: ...

    async def create_thread(self, assistant_id: str) -> ThreadRecord: ...

    async def get_thread(self, thread_id: str) -> ThreadRecord: ...

    async def send_message(self, content: str, **options: object) -> Events: ...

    async def submit_tool_outputs(
        self, thread_id: str, run_id: str, tool_outputs: Sequence[BackboardEvent], **options: object
    ) -> Events: ...

    async def cancel_run(self, thread_id: str, run_id: str) -> object: ...

    async def aclose(self) -> None: ...


def connection(
    api_key: str | None, base_url: str | None, timeout_sec: float
) -> ProviderConnection[BackboardApi]:
    """Arguments that are None come from the environment."""
    key = api_key or os.environ.get(KEY)
    if not key:
        raise BadSetting("Backboard requires a key.", hint=f"Set {KEY}.")
    check_key(key, "api_key" if api_key else KEY)
    address = check_base_url(
        base_url or os.environ.get(ADDRESS) or OFFICIAL, "base_url" if base_url else ADDRESS
    )

    def make() -> BackboardApi:
        made: BackboardApi = BackboardClient(api_key=key, base_url=address, timeout=timeout_sec)
        return made

    try:
        return ProviderConnection(make, lambda client: client.aclose())
    except SETUP_ERRORS as error:
        raise BadSetting(f"Backboard's library cannot be set up: {error}") from error


def message_options(options: Mapping[str, object]) -> dict[str, object]:
    """Options of a message; the library accepts only those that it knows."""
    check_reserved(options, _RESERVED)
    known = parameters_of(BackboardClient.send_message) - _RESERVED - {"self"}
    unknown = sorted(options.keys() - known)
    if unknown:
        raise BadSetting(
            f"options: Backboard's library has no option '{one_line(unknown[0])}'.",
            hint=f"Its options are {', '.join(sorted(known))}.",
        )
    return dict(options)


class BackboardRefusal(Exception):
    """The request was refused and changed nothing; a new thread may help. Otherwise `fault` is raised."""

    def __init__(self, fault: ModelFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class ProviderBusy(Exception):
    """A temporary error before any answer; a retry may help. Otherwise `fault` is raised."""

    def __init__(self, fault: ModelFault, status: int | None, wait_sec: float | None) -> None:
        super().__init__(str(fault))
        self.fault = fault
        self.status = status
        self.wait_sec = wait_sec


@contextmanager
def translate_errors(model: str, *, is_answering: bool) -> Iterator[None]:
    """Translates errors to `ModelFault`; before the answer, to `BackboardRefusal` or `ProviderBusy`."""
    try:
        yield
    except BackboardAPIError as error:
        wait = _wait_of(error)
        fault = _fault(error.status_code, _words(error), model, is_answering=is_answering, wait_sec=wait)
        if not is_answering and error.status_code in {400, 404, 409, 422}:
            raise BackboardRefusal(fault) from error
        if not is_answering and _is_temporary(error):
            raise ProviderBusy(fault, error.status_code, wait) from error
        raise fault from error
    except GARBLED as error:
        # not JSON, or not the record that the library expects
        raise unreadable_stream(WHO) if is_answering else unexpected_response(WHO) from error


def _words(error: Exception) -> str:
    """The message of Backboard, which the library does not read if a stream is refused."""
    return str(error).removesuffix("<no body>").removesuffix(": ")


def _is_temporary(error: BackboardAPIError) -> bool:
    status = error.status_code
    if status is None:
        return _words(error).startswith(_NO_ANSWER)
    return status in {408, 429} or status >= 500


def _wait_of(error: BackboardAPIError) -> float | None:
    """How long Backboard asks to wait."""
    response = getattr(error, "response", None)
    return None if response is None else retry_after_sec(response.headers)


def _fault(
    status: int | None, words: str, model: str, *, is_answering: bool, wait_sec: float | None = None
) -> ModelFault:
    if status is None and is_context_overflow(words):
        # in the middle of a stream there is no status
        status = 400
    if status is None and not words.startswith(_NO_ANSWER):
        return ModelFault("Backboard's run failed.", hint="Send the message again.", provider_message=words)
    if status is None and is_answering:
        return stream_cut(WHO, words)
    return model_fault(
        ProviderError(
            provider=WHO, model=model, key_setting=KEY, status=status, words=words, wait_sec=wait_sec
        )
    )


# only their messages distinguish these from failed runs
_NO_ANSWER = ("Connection error", "Request timed out", "Request failed: ")


T = TypeVar("T")

log = logging.getLogger("farhand.models")

MAX_RETRIES = 2
_FIRST_WAIT_SEC = 0.5


async def with_retries(ask: Callable[[], Awaitable[T]], max_retries: int) -> T:
    """The result of `ask`. Raises the fault after `max_retries`, or if Backboard asks for a long wait."""
    tried = 0
    while True:
        try:
            return await ask()
        except ProviderBusy as refused:
            asked_for = refused.wait_sec
            wait = _FIRST_WAIT_SEC * 2**tried if asked_for is None else asked_for
            if tried >= max_retries or wait > LONGEST_WAIT_SEC:
                raise refused.fault from refused
            report_delay(_delay_message(refused, asked_for))
        tried += 1
        await asyncio.sleep(wait)


def _delay_message(refused: ProviderBusy, asked_for: float | None) -> str:
    if refused.status is None:
        log.info("%s could not be reached; retrying", WHO)
        return "The model could not be reached; trying again."
    log.info("%s is busy (%d); retrying", WHO, refused.status)
    return busy_message(asked_for)
