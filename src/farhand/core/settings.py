"""Timeouts and limits. Values only, wherever they come from, and how a limit of bytes is written."""

from __future__ import annotations

from typing import Literal, TypeAlias

from farhand.core.explained_struct import ExplainedStruct
from farhand.core.file import FileRules
from farhand.errors import BadSetting

Wait: TypeAlias = Literal["turn", "hold"]
"""What a response does while only far hands are waited for: `turn` ends it, `hold` keeps it open."""


class Timeouts(ExplainedStruct, frozen=True, kw_only=True):
    """All in seconds."""

    hold_for: float = 90.0
    unread_for: float = 5.0
    """A held run that nobody reads parks after this long."""
    park_for: float = 3 * 24 * 3600.0
    held_call: float = 60.0
    typed_call: float = 5 * 60.0
    """The same if its card takes longer than a click: the person types, picks a file or takes a photo."""
    client_call: float = 30.0
    server_tool: float = 120.0
    lease: float = 15.0
    keep_alive: float = 15.0
    client_ping: float = 30.0
    """The same on the stream of a registered client."""
    client_grace: float = 5.0
    """How long a registered client may be without its stream, unless it asked for another time."""
    client_first: float = 60.0
    """The same for a client that never had a stream."""
    keep_settled: float = 7 * 24 * 3600.0
    recheck: float = 30.0
    """Within this time of a revocation the open streams and sockets of a sign-in are closed."""


class Limits(ExplainedStruct, frozen=True, kw_only=True):
    """In bytes, unless the name says otherwise."""

    result_body: int = 1024 * 1024
    chat_body: int = 4 * 1024 * 1024
    register_body: int = 256 * 1024
    call_input: int = 256 * 1024
    tool_output: int = 1024 * 1024
    """The output of a server tool as JSON; a far hand's is bounded by `result_body`."""
    error_text: int = 4 * 1024
    title: int = 256
    metadata: int = 16 * 1024
    running_per_principal: int = 16
    """Active runs; a run that waits for a person or a far hand does not count."""
    running_per_tenant: int = 1_000
    runs_per_min: int = 60
    """New runs per principal."""
    runs_per_min_of_tenant: int = 6_000
    stored_bytes: int = 1024 * 1024 * 1024
    """Messages and files per principal."""
    stored_bytes_of_tenant: int = 64 * 1024 * 1024 * 1024
    open_calls_per_run: int = 32
    open_calls_per_thread: int = 64
    open_calls_per_tenant: int = 10_000
    tools_per_client: int = 64
    clients_per_principal: int = 32
    max_steps: int = 50
    same_failure: int = 3
    """The same call with the same input failing this often in a row ends the run."""
    socket_frame: int = 4 * 1024 * 1024
    """As much as a post: a client sends the same chat either way."""
    socket_frames_per_sec: int = 50
    socket_idle_sec: float = 60.0
    streams_per_principal: int = 64
    """Open streams and sockets; a socket that many requests share counts once for each of them."""
    streams_per_worker: int = 20_000
    results_per_sec: int = 500
    results_burst: int = 1_000
    registrations_per_min: int = 120
    failed_sign_ins_per_min: int = 10
    body_within_sec: float = 10.0
    stalled_after_sec: float = 30.0
    """A reader that takes nothing for this long is disconnected; it can resume."""


# `object`: not every caller checks types
def check_wait(value: object, name: str) -> None:
    if value not in ("turn", "hold"):
        raise BadSetting(f"{name} must be 'turn' or 'hold', not {value!r}.")


class ChatRules(ExplainedStruct, frozen=True, kw_only=True):
    wait: Wait = "turn"
    """For a chat request that does not say how it waits."""

    def __post_init__(self) -> None:
        check_wait(self.wait, "chat.wait")


class Settings(ExplainedStruct, frozen=True, kw_only=True):
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    files: FileRules = FileRules()
    chat: ChatRules = ChatRules()


KIB, MIB, GIB = 1024, 1024**2, 1024**3


def size_in_words(count: int) -> str:
    """`1 MiB` for a round limit, `20.1 MB` for the size of an upload, `812 bytes` for a small one."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    if count >= 1_000_000:
        return f"{count / 1_000_000:,.1f} MB"
    return f"{count:,} bytes"
