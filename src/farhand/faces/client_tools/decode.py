"""Decodes requests of the client-tools wire."""

from __future__ import annotations

import re
from enum import Enum
from math import isfinite

from msgspec import UNSET

from farhand.agent.direct_calls import DirectCall
from farhand.clients.inbox import ClientStream
from farhand.clients.registration import Registration, ToolOffer, check_client_id
from farhand.clients.sessions import ProgressReport
from farhand.core.call import ProgramRequest
from farhand.core.decide.opening import BACKSTOP_SEC
from farhand.core.ids import is_chosen_id
from farhand.core.outcome import Failure, Outcome, Success, canonical
from farhand.core.principal import Owner, Principal
from farhand.core.result import Result
from farhand.core.settings import Limits
from farhand.errors import Malformed, TooLarge
from farhand.faces.client_tools.shapes import (
    ClientToolProgress,
    ClientToolResult,
    ExecuteTool,
    OfferedTool,
    RegisterTools,
    ToolResponse,
    UnregisterTools,
)
from farhand.wire.json_reader import read_as

DIRECT_THREAD = "direct-calls"
"""The thread of calls that name no session: one for each tool, so that a client that does not answer fills
up no other tool's thread."""
LONGEST_MS = 86_400_000


class Dialect(Enum):
    """How results and receipts are written."""

    FLAT = "flat"
    NESTED = "nested"


def decode_registration(body: bytes) -> Registration:
    register = read_as(body, RegisterTools)
    offers = tuple(_offer(tool) for tool in register.tools)
    if register.holder is not None:
        _check_holder(register.client_id, register.holder)
    return Registration(register.client_id, offers, register.grace_sec, register.holder)


def _offer(tool: OfferedTool) -> ToolOffer:
    return ToolOffer(
        tool_id=tool.id,
        description=tool.description,
        parameters=tool.parameters,
        output=tool.output,
        title=tool.title,
        timeout_sec=tool.timeout_sec,
        needs_approval=tool.needs_approval,
        untrusted=tool.untrusted,
    )


def decode_unregister(body: bytes) -> UnregisterTools:
    unregister = read_as(body, UnregisterTools)
    check_client_id(unregister.client_id)
    if unregister.holder is not None:
        _check_holder(unregister.client_id, unregister.holder)
    return unregister


def decode_client_id(text: str) -> str:
    check_client_id(text)
    return text


def decode_stream(owner: Owner, client_id: str, query: dict[str, str]) -> ClientStream:
    """`holder` distinguishes programs that listen as the same client one after the other."""
    return _stream(owner, client_id, query.get("holder", client_id))


def decode_progress(body: bytes, owner: Owner, limits: Limits) -> ProgressReport:
    read = read_as(body, ClientToolProgress)
    _check_request_id(read.request_id)
    if len(read.text.encode()) > limits.title:
        raise TooLarge(f"text is larger than {limits.title} bytes.", hint="Nothing was reported.")
    stream = _stream(owner, read.client_id, read.client_id if read.holder is None else read.holder)
    return ProgressReport(stream, read.request_id, read.text, is_progress=not read.keep_alive)


def _stream(owner: Owner, client_id: str, holder: str) -> ClientStream:
    check_client_id(client_id)
    _check_holder(client_id, holder)
    return ClientStream(owner, client_id, holder)


def _check_holder(client_id: str, holder: str) -> None:
    if holder != client_id and not _SUFFIXED.fullmatch(holder.removeprefix(client_id)):
        raise Malformed("holder must be the client's id, or that and a suffix.", hint=f"{client_id}.1f3c")


def decode_execute(body: bytes, principal: Principal, limits: Limits) -> DirectCall:
    execute = read_as(body, ExecuteTool)
    if len(canonical(execute.input)) > limits.call_input:
        raise TooLarge(f"The input is larger than {limits.call_input} bytes.")
    chosen = (execute.request_id, execute.session_id, execute.message_id)
    if any(each is not None and not is_chosen_id(each) for each in chosen):
        raise Malformed("An id is too long or contains characters that are not allowed.", hint=_IDS)
    within = _seconds(execute.timeout)
    return DirectCall(
        owner=principal.owner,
        claims=principal.claims,
        thread_id=execute.session_id or f"{DIRECT_THREAD}.{execute.tool_id}",
        tool=execute.tool_id,
        input=execute.input,
        # a call that outlives its caller has the tool's timeout; else the caller's timeout comes first
        timeout_sec=None if execute.keep or within is None else within + BACKSTOP_SEC,
        caller_timeout_sec=within,
        keep_after_timeout=execute.keep,
        model_call_id=execute.call_id,
        request=ProgramRequest(execute.request_id, execute.message_id),
        title="" if execute.session_id else f"Direct calls of {execute.tool_id}",
    )


def decode_result(body: bytes, limits: Limits) -> tuple[Result, Dialect]:
    read = read_as(body, ClientToolResult)
    _check_request_id(read.request_id)
    dialect = Dialect.FLAT if read.result is UNSET else Dialect.NESTED
    response = _response(read)
    _check_sizes(response, limits)
    outcome = _outcome(response, dialect)
    metadata = response.metadata
    return Result(call_id=read.request_id, outcome=outcome, title=response.title, metadata=metadata), dialect


_IDS = "Use 1 to 128 letters, digits, `_`, `.`, `:` or `-`."
_SUFFIXED = re.compile(r"\.[A-Za-z0-9_-]{1,60}")


def _seconds(timeout: float | None) -> float | None:
    if timeout is None:
        return None
    if not isfinite(timeout) or not 1 <= timeout <= LONGEST_MS:
        raise Malformed(f"timeout must be a number of milliseconds from 1 to {LONGEST_MS}.")
    return timeout / 1000


def _check_request_id(request_id: str) -> None:
    if not request_id:
        raise Malformed("requestID is empty.", hint="Nothing was applied.")


def _response(read: ClientToolResult) -> ToolResponse:
    if read.result is not UNSET:
        if read.status is not UNSET or read.output is not UNSET or read.title or read.metadata or read.error:
            raise Malformed("A result is flat or nested, not both.", hint="Nothing was applied.")
        return read.result
    if read.status is UNSET:
        raise Malformed("The result has no status.", hint="Nothing was applied.")
    return ToolResponse(read.status, read.title, read.output, read.metadata, read.error)


def _check_sizes(response: ToolResponse, limits: Limits) -> None:
    for name, size, limit in (
        ("title", len((response.title or "").encode()), limits.title),
        ("error", len((response.error or "").encode()), limits.error_text),
        ("metadata", len(canonical(response.metadata or {})), limits.metadata),
    ):
        if size > limit:
            raise TooLarge(f"{name} is larger than {limit} bytes.", hint="Nothing was applied.")


def _outcome(response: ToolResponse, dialect: Dialect) -> Outcome:
    if response.status == "success":
        if response.output is UNSET and dialect is Dialect.NESTED:
            raise Malformed("A success needs an output.", hint="Nothing was applied.")
        return Success(None if response.output is UNSET else response.output)
    if response.error is None and dialect is Dialect.NESTED:
        raise Malformed("An error needs a text in `error`.", hint="Nothing was applied.")
    return Failure(response.error or "failed")
