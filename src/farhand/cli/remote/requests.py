"""The requests of the commands `call`, `tools`, `runs` and `inbox` to a running server. A refusal is one
line.

Exit code 1 if a tool failed or nobody answered the call; 2 if the request could not be made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

import typer

from farhand.cli.console import print_error, printable_text
from farhand.cli.options import ServerOptions
from farhand.cli.remote.http import RemoteServer, parse_argument, remote_server
from farhand.cli.remote.render import (
    first_line,
    format_input,
    print_json,
    print_table,
    print_value,
    show_progress,
)
from farhand.clock import SystemClock
from farhand.errors import BadSetting, Rejected

# what a server answers, read as JSON
Json = Any

LONGEST_CALL_SEC = 86_400


def call(
    tool: str,
    input: str,
    server: ServerOptions,
    *,
    within: float | None,
    request_id: str | None,
    session: str | None,
) -> None:
    given = parse_argument(input, "The input")
    if not isinstance(given, dict):
        raise BadSetting("The input is not a JSON object.", hint="""Write '{"name": "value"}'.""")
    if within is not None and not 0 < within <= LONGEST_CALL_SEC:
        raise BadSetting(f"--timeout must be a number of seconds up to {LONGEST_CALL_SEC}, not {within}.")
    body: dict[str, object] = {"toolID": tool, "input": given}
    # progress events carry the id of the request
    request_id = request_id or SystemClock().fresh("cli")
    named = {"requestID": request_id, "sessionID": session, "timeout": within and within * 1000}
    body |= {name: value for name, value in named.items() if value is not None}
    to = remote_server(server.url, server.token)
    with _exit_if_refused(server, too_late=504), show_progress(tool, to, request_id):
        answer: Json = to.post("/client-tools/execute", body, within=None)
    if server.as_json:
        print_json(answer)
    elif answer["status"] == "success":
        print_value(answer.get("output"))
    else:
        print_error(f"{tool}: {answer['error']}")
    if answer["status"] != "success":
        raise typer.Exit(1)


def list_tools(server: ServerOptions) -> None:
    listed = _fetch_list(server, "/api/tools")
    if server.as_json:
        return
    rows = [
        (each["name"], each["executor"], "yes" if each["approval"] else "", first_line(each["description"]))
        for each in listed["tools"]
    ]
    print_table(rows, columns=("tool", "runs in", "approval", "description"), nothing="There are no tools.")


def list_runs(server: ServerOptions, *, limit: int) -> None:
    listed = _fetch_list(server, f"/api/chat?limit={limit}")
    if server.as_json:
        return
    rows = [
        (
            each["id"],
            each["state"],
            str(each["openCalls"] or ""),
            each["updatedAt"],
            first_line(each["title"]),
        )
        for each in listed["threads"]
    ]
    print_table(rows, columns=("chat", "state", "open", "started", "title"), nothing="There are no chats.")


def list_waiting(server: ServerOptions) -> None:
    listed = _fetch_list(server, "/api/inbox")
    if server.as_json:
        return
    rows = [
        (
            each.get("approvalId") or each["callId"],
            "approval" if each.get("approvalId") else f"result from {each['executor']}",
            each["tool"],
            format_input(each["input"], each.get("runsWith")),
        )
        for each in listed["calls"]
    ]
    print_table(rows, columns=("id", "waits for", "tool", "input"), nothing="Nothing is waiting.")


def answer(call_id: str, server: ServerOptions, *, output: str | None, error: str | None) -> None:
    if output is None and error is None and _returns_nothing(call_id, server):
        output = "null"
    # a result cannot be taken back, so a forgotten one is not guessed
    if (output is None) == (error is None):
        raise BadSetting("Give an output or --error.", hint="The output of a tool without one is null.")
    if output is not None:
        # people answer with a text, which is JSON only in double quotes
        parsed = parse_argument(output, "The output", example="""'"yes"' or '{"name": "value"}'""")
        body = {"toolCallId": call_id, "status": "success", "output": parsed}
    else:
        body = {"toolCallId": call_id, "status": "failed", "errorText": error}
    _submit(remote_server(server.url, server.token), "/api/tools/ack", body, server)


def _returns_nothing(call_id: str, server: ServerOptions) -> bool:
    """Whether the tool of this open call has no output; False if the credential may not list it."""
    to = remote_server(server.url, server.token)
    try:
        calls: Json = to.get("/api/inbox")
        tools: Json = to.get("/api/tools")
    except Rejected:
        return False
    name = next((each["tool"] for each in calls["calls"] if each["callId"] == call_id), None)
    return any(each["name"] == name and each["outputSchema"] == {"type": "null"} for each in tools["tools"])


def send_approval(which: str, server: ServerOptions, *, scope: str, input: str | None) -> None:
    to = remote_server(server.url, server.token)
    edited = {} if input is None else {"input": parse_argument(input, "The input")}
    found = _find_approval(to, which, server)
    body = {"approvalId": found.approval_id, "approved": True, "scope": scope}
    # the defaults of the input as it was asked say nothing about another one
    call = found.call if input is None else {**found.call, **edited, "runsWith": None}
    _submit(to, "/api/tools/approve", {**body, **edited}, server, allowed=call if found.call else None)


def deny(which: str, server: ServerOptions, *, reason: str) -> None:
    to = remote_server(server.url, server.token)
    body = {"approvalId": _find_approval(to, which, server).approval_id, "approved": False, "reason": reason}
    _submit(to, "/api/tools/approve", body, server)


def _fetch_list(server: ServerOptions, path: str) -> Json:
    """The server's answer; already printed if JSON was requested."""
    with _exit_if_refused(server):
        listed: Json = remote_server(server.url, server.token).get(path)
    if server.as_json:
        print_json(listed)
    return listed


class PendingApproval(NamedTuple):
    """An approval and its call; the call is empty if it no longer waits for the approval."""

    approval_id: str
    call: dict[str, Json]


def _find_approval(to: RemoteServer, which: str, server: ServerOptions) -> PendingApproval:
    """By the id of the approval, or of its call."""
    is_call = which.startswith("call_")
    try:
        listed: Json = to.get("/api/inbox")
    except Rejected:
        # a credential may be allowed to approve but not to list the inbox
        if is_call:
            with _exit_if_refused(server):
                raise
        return PendingApproval(which, {})
    asking = [each for each in listed["calls"] if each.get("approvalId")]
    found = next((each for each in asking if which in (each["callId"], each["approvalId"])), None)
    if found is not None:
        return PendingApproval(found["approvalId"], found)
    if is_call:
        print_error(f"The call {quote(which)} does not wait for an approval.")
        raise typer.Exit(2)
    # already answered: the server has the receipt
    return PendingApproval(which, {})


def _submit(
    to: RemoteServer,
    path: str,
    body: object,
    server: ServerOptions,
    *,
    allowed: dict[str, Json] | None = None,
) -> None:
    """`allowed` is the call that runs now; it is printed again."""
    with _exit_if_refused(server):
        receipt: Json = to.post(path, body)
    if server.as_json:
        print_json(receipt)
    elif receipt.get("ignored"):
        print_value("Already done; nothing changed.")
    elif allowed:
        shown = format_input(allowed["input"], allowed.get("runsWith"))
        print_value(f"Done. Allowed: {printable_text(allowed['tool'])}  {shown}")
    else:
        print_value("Done.")


@contextmanager
def _exit_if_refused(server: ServerOptions, *, too_late: int | None = None) -> Iterator[None]:
    """`too_late` is a status that is not the user's mistake."""
    try:
        yield
    except Rejected as refusal:
        if server.as_json:
            print_json({"error": {"code": refusal.answered, "message": refusal.message}})
        print_error(str(refusal))
        raise typer.Exit(1 if refusal.status == too_late else 2) from None
