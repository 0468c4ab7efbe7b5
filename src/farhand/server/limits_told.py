"""Every limit in one table: what it bounds, how much, and what whoever passes it is told.

Settings are read from where they stand and fixed ones from the code that holds them, so the table can't be
wrong about a number. `docs/reference/limits.md` is written from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from farhand.core.file import FileRules
from farhand.core.settings import Limits, Patience
from farhand.server.door import HOOK_WITHIN_SEC
from farhand.tools import gate
from farhand.tools.docstring import LONGEST_DESCRIPTION
from farhand.wire import guard


class Limit(NamedTuple):
    """`setting` is empty for one that is fixed."""

    what: str
    default: str
    answer: str
    setting: str = ""


class Group(NamedTuple):
    title: str
    limits: tuple[Limit, ...]


def groups() -> tuple[Group, ...]:
    """As the reference lists them. Every field of `Limits` stands in one of them, and a test says so."""
    return (
        Group("Bodies and texts", tuple(_of(_BODIES))),
        Group("Files", tuple(_of_files())),
        Group("How many", tuple(_of(_COUNTS))),
        Group("How fast, and for how long", (*_of(_RATES), *_of_patience())),
        Group("JSON from outside", _JSON),
        Group("Schemas from outside", _SCHEMAS),
        Group("Sign-in", _SIGN_IN),
    )


_413 = "413, nothing was applied"
_NEW_MESSAGES = "judged at a new message (uploads: `files.*`)"
_429 = "429 with `Retry-After`"
_FAILURE = "the model is given a Failure that says so"

Told = dict[str, tuple[str, str]]

_BODIES: Told = {
    "result_body": ("body of a result, a take or an approval, in bytes", _413),
    "chat_body": ("body of a chat message, in bytes", "413, and how to send only the last message"),
    "register_body": ("body of a registration, in bytes", _413),
    "call_input": ("input of a call, in bytes", f"413 on `execute`; else {_FAILURE}"),
    "tool_output": ("output of a server tool, in bytes of JSON", _FAILURE),
    "error_text": ("an error or a reason that comes from outside, in bytes", _413),
    "title": ("title of a thread or a result, in bytes", _413),
    "metadata": ("metadata of a result, in bytes", _413),
    "socket_frame": ("one frame of a WebSocket, in bytes", "the socket is closed with 1009"),
}

_COUNTS: Told = {
    "running_per_principal": ("runs of one principal that are at work, not waiting", _429),
    "running_per_tenant": ("runs of one tenant that are at work, not waiting", _429),
    "stored_bytes": (f"messages and files of one principal, in bytes, {_NEW_MESSAGES}", _429),
    "stored_bytes_of_tenant": (f"messages and files of one tenant, in bytes, {_NEW_MESSAGES}", _429),
    "open_calls_per_run": ("open calls of one run", _FAILURE),
    "open_calls_per_thread": ("open calls of one thread", f"{_429} on `execute`; else {_FAILURE}"),
    "open_calls_per_tenant": ("open calls of one tenant", f"{_429} on `execute`; else {_FAILURE}"),
    "tools_per_client": ("tools of one registered client", "400, nothing was registered"),
    "clients_per_principal": ("registered clients of one principal", _429),
    "streams_per_principal": (
        "open streams and sockets of one principal; requests that share one socket",
        f"{_429}; a socket is closed with 4429; a shared socket gets an `error` frame",
    ),
    "streams_per_worker": (
        "open streams and sockets of one process",
        f"{_429}; a socket is closed with 4429",
    ),
    "max_steps": ("steps of one run, counted across pauses", "the run ends with an event that says so"),
    "same_failure": ("times the same call fails in a row", "the run ends with an event that says so"),
}

_RATES: Told = {
    "runs_per_min": ("new runs of one principal, each minute", _429),
    "runs_per_min_of_tenant": ("new runs of one tenant, each minute", _429),
    "results_per_sec": ("results, takes and approvals of one principal, each second", _429),
    "results_burst": ("the same at once", _429),
    "registrations_per_min": ("registrations of one principal, each minute", _429),
    "failed_sign_ins_per_min": ("failed sign-ins from one address, each minute", _429),
    "socket_frames_per_sec": ("frames on one WebSocket, each second", "the socket is closed with 4429"),
    "socket_idle_sec": ("silence of a WebSocket with nothing under way, in seconds", "closed with 4408"),
    "body_within_sec": ("time for a body to arrive, in seconds", "408, nothing was applied"),
    "stalled_after_sec": ("time in which a reader takes nothing, in seconds", "let go; it can resume"),
}

_FILES: Told = {
    "size": ("one file, in bytes", f"{_413}, at once where its length is told"),
    "per_principal": ("files of one principal", _429),
    "bytes_per_principal": ("all files of one principal, in bytes", _413),
    "bytes_per_tenant": ("all files of one tenant, in bytes", _413),
    "uploads_per_principal": ("files of one principal that arrive at the same time", _429),
}

_JSON = (
    Limit("levels of nesting", str(guard.MAX_DEPTH), "400"),
    Limit("values in one body", str(guard.MAX_NODES), "400"),
    Limit("digits of an integer", str(guard.MAX_DIGITS), "400"),
    Limit("numbers in one body with an exponent beyond 200", str(guard.MAX_EXTREMES), "400"),
    Limit("equal keys in one object", "1", "400"),
    Limit("NaN, Infinity, overflow, half a surrogate pair, a byte order mark", "none", "400"),
)

_SCHEMAS = (
    Limit("bytes", str(gate.MOST_BYTES), "400, nothing was registered"),
    Limit("levels of nesting", str(gate.DEEPEST), "400, nothing was registered"),
    Limit(
        "parts, each counted as often as it is reached", str(gate.MOST_NODES), "400, nothing was registered"
    ),
    Limit("characters of a pattern", str(gate.LONGEST_PATTERN), "400, nothing was registered"),
    Limit("characters of a description", str(LONGEST_DESCRIPTION), "400, nothing was registered"),
    Limit("references to other places, or in a circle", "none", "400, nothing was registered"),
)

_SIGN_IN = (
    Limit("shortest token of a development server", "16", "the server does not start"),
    Limit("time for the `authenticate` hook to answer, in seconds", f"{HOOK_WITHIN_SEC:g}", "500, logged"),
)


def _of(told: Told) -> Iterator[Limit]:
    for name, (what, answer) in told.items():
        yield Limit(what, _number(getattr(Limits(), name)), answer, f"limits.{name}")


def _of_files() -> Iterator[Limit]:
    for name, (what, answer) in _FILES.items():
        yield Limit(what, _number(getattr(FileRules(), name)), answer, f"files.{name}")


def _of_patience() -> Iterator[Limit]:
    yield Limit(
        "time from a revocation until open streams and sockets are closed, in seconds",
        _number(Patience().recheck),
        "the stream is cut; a socket is closed with 4401",
        "patience.recheck",
    )


def _number(value: float) -> str:
    # `:g` would shorten a large integer
    return str(int(value)) if value == int(value) else str(value)
