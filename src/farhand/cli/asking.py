"""Asks a running server for what `call`, `tools`, `runs` and `inbox` want. A refusal is one line.

A tool that failed, or a call that nobody answered, is exit code 1; whatever could not be asked is 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

import typer

from farhand.cli.lines import fail, plain
from farhand.cli.options import Asked
from farhand.cli.remote import Remote, read_json, remote
from farhand.cli.tables import first_line, show, show_json, show_value, spell_input
from farhand.cli.waiting import waiting_for
from farhand.clock import SystemClock
from farhand.errors import BadSetting, Rejected

# what a server answers, read as JSON
Json = Any

LONGEST_SEC = 86_400


class Wanted(NamedTuple):
    """One use of a tool, as it was typed."""

    tool: str
    input: str
    within: float | None
    request_id: str | None
    session: str | None


def call(wanted: Wanted, asked: Asked) -> None:
    tool, within = wanted.tool, wanted.within
    given = read_json(wanted.input, "The input")
    if not isinstance(given, dict):
        raise BadSetting("The input is not a JSON object.", hint="""Write '{"name": "value"}'.""")
    if within is not None and not 0 < within <= LONGEST_SEC:
        raise BadSetting(f"--timeout is a number of seconds up to {LONGEST_SEC}, not {within}.")
    body: dict[str, object] = {"toolID": tool, "input": given}
    # the server tells of progress by the id of the request
    request_id = wanted.request_id or SystemClock().fresh("cli")
    named = {"requestID": request_id, "sessionID": wanted.session, "timeout": within and within * 1000}
    body |= {name: value for name, value in named.items() if value is not None}
    to = remote(asked.url, asked.token)
    with _one_line_if_refused(asked, too_late=504), waiting_for(tool, to, request_id):
        answer: Json = to.post("/client-tools/execute", body, within=None)
    if asked.as_json:
        show_json(answer)
    elif answer["status"] == "success":
        show_value(answer.get("output"))
    else:
        fail(f"{tool}: {answer['error']}")
    if answer["status"] != "success":
        raise typer.Exit(1)


def list_tools(asked: Asked) -> None:
    listed = _listed(asked, "/api/tools")
    if asked.as_json:
        return
    rows = [
        (each["name"], each["executor"], "yes" if each["approval"] else "", first_line(each["description"]))
        for each in listed["tools"]
    ]
    show(rows, columns=("tool", "runs in", "asks", "description"), nothing="There are no tools.")


def list_runs(asked: Asked, *, limit: int) -> None:
    listed = _listed(asked, f"/api/chat?limit={limit}")
    if asked.as_json:
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
    show(rows, columns=("chat", "state", "open", "updated", "title"), nothing="There are no chats.")


def list_waiting(asked: Asked) -> None:
    listed = _listed(asked, "/api/inbox")
    if asked.as_json:
        return
    rows = [
        (
            each.get("approvalId") or each["callId"],
            "yes or no" if each.get("approvalId") else f"answer from {each['executor']}",
            each["tool"],
            spell_input(each["input"]),
        )
        for each in listed["calls"]
    ]
    show(rows, columns=("id", "waits for", "tool", "input"), nothing="Nothing waits.")


def answer(call_id: str, asked: Asked, *, output: str, error: str | None) -> None:
    if error is None:
        body = {"toolCallId": call_id, "status": "success", "output": read_json(output, "The output")}
    else:
        body = {"toolCallId": call_id, "status": "failed", "errorText": error}
    _bring(remote(asked.url, asked.token), "/api/tools/ack", body, asked)


def approve(which: str, asked: Asked, *, scope: str, input: str | None) -> None:
    to = remote(asked.url, asked.token)
    edited = {} if input is None else {"input": read_json(input, "The input")}
    found = _question(to, which, asked)
    body = {"approvalId": found.approval_id, "approved": True, "scope": scope}
    _bring(to, "/api/tools/approve", {**body, **edited}, asked, allowed={**found.call, **edited})


def deny(which: str, asked: Asked, *, reason: str) -> None:
    to = remote(asked.url, asked.token)
    body = {"approvalId": _question(to, which, asked).approval_id, "approved": False, "reason": reason}
    _bring(to, "/api/tools/approve", body, asked)


def _listed(asked: Asked, path: str) -> Json:
    """What the server answers; printed already if it is wanted as JSON."""
    with _one_line_if_refused(asked):
        listed: Json = remote(asked.url, asked.token).get(path)
    if asked.as_json:
        show_json(listed)
    return listed


class Question(NamedTuple):
    """What is asked, and the call that asks; an empty one if it does not ask any more."""

    approval_id: str
    call: dict[str, Json]


def _question(to: Remote, which: str, asked: Asked) -> Question:
    """By the approval's own id, or by its call's."""
    is_call = which.startswith("call_")
    try:
        listed: Json = to.get("/api/inbox")
    except Rejected:
        # a sign-in may say yes and no and not look at what waits
        if is_call:
            with _one_line_if_refused(asked):
                raise
        return Question(which, {})
    asking = [each for each in listed["calls"] if each.get("approvalId")]
    found = next((each for each in asking if which in (each["callId"], each["approvalId"])), None)
    if found is not None:
        return Question(found["approvalId"], found)
    if is_call:
        fail(f"The call {quote(which)} asks for no yes or no.")
        raise typer.Exit(2)
    # one that was answered before: the server has the receipt
    return Question(which, {})


def _bring(
    to: Remote, path: str, body: object, asked: Asked, *, allowed: dict[str, Json] | None = None
) -> None:
    """`allowed`: the call that runs now, which is told once more."""
    with _one_line_if_refused(asked):
        receipt: Json = to.post(path, body)
    if asked.as_json:
        show_json(receipt)
    elif receipt.get("ignored"):
        show_value("Done before; nothing changed.")
    elif allowed:
        show_value(f"Done. Allowed: {plain(allowed['tool'])}  {spell_input(allowed['input'])}")
    else:
        show_value("Done.")


@contextmanager
def _one_line_if_refused(asked: Asked, *, too_late: int | None = None) -> Iterator[None]:
    """`too_late` is a status that is no mistake of the asker."""
    try:
        yield
    except Rejected as refusal:
        if asked.as_json:
            show_json({"error": {"code": refusal.answered, "message": refusal.message}})
        fail(str(refusal))
        raise typer.Exit(1 if refusal.status == too_late else 2) from None
