"""The commands that speak to a running server: `call`, `tools`, `runs`, `inbox`. A refusal is one line.

A tool that failed, or a call that nobody answered, is exit code 1; whatever could not be asked is 2.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from urllib.parse import quote

import typer

from farhand.cli.lines import fail
from farhand.cli.remote import Remote, read_json, remote
from farhand.cli.tables import compact, first_line, show, show_json, show_value
from farhand.cli.waiting import waiting_for
from farhand.clock import SystemClock
from farhand.errors import BadSetting, Rejected

# what a server answers, read as JSON
Json = Any

LONGEST_SEC = 86_400

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="The server, if not on this machine.")]
Token = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", help="What lets you in. FARHAND_TOKEN keeps it unseen."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")]

inbox = typer.Typer(
    help="What waits for you: calls to answer and questions to say yes or no to.", invoke_without_command=True
)


def add_lookups(commands: typer.Typer) -> None:
    commands.command()(call)
    commands.command()(tools)
    commands.command()(runs)
    commands.add_typer(inbox, name="inbox")


# each of them a word of the command
def call(  # noqa: PLR0913
    tool: Annotated[str, typer.Argument(help="Its name, for example client_notes_read.")],
    input: Annotated[str, typer.Argument(help="""Its input, a JSON object: '{"name": "todo"}'.""")] = "{}",
    *,
    within: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="Give up after so long.")
    ] = None,
    request_id: Annotated[
        str | None,
        typer.Option("--request-id", metavar="ID", help="One call, however often you ask."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The chat in which the call stands.")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Call a tool and print what comes back."""
    given = read_json(input, "The input")
    if not isinstance(given, dict):
        raise BadSetting("The input is not a JSON object.", hint="""Write '{"name": "value"}'.""")
    if within is not None and not 0 < within <= LONGEST_SEC:
        raise BadSetting(f"--timeout is a number of seconds up to {LONGEST_SEC}, not {within}.")
    body: dict[str, object] = {"toolID": tool, "input": given}
    # the server tells of progress by the id of the request
    request_id = request_id or SystemClock().fresh("cli")
    named = {"requestID": request_id, "sessionID": session, "timeout": within and within * 1000}
    body |= {name: value for name, value in named.items() if value is not None}
    to = remote(url, token)
    with _one_line_if_refused(as_json=as_json, too_late=504), waiting_for(tool, to, request_id):
        answer: Json = to.post("/client-tools/execute", body, within=None)
    if as_json:
        show_json(answer)
    elif answer["status"] == "success":
        show_value(answer.get("output"))
    else:
        fail(f"{tool}: {answer['error']}")
    if answer["status"] != "success":
        raise typer.Exit(1)


def tools(*, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """List the tools that a run of yours would be offered."""
    with _one_line_if_refused(as_json=as_json):
        listed: Json = remote(url, token).get("/api/tools")
    if as_json:
        show_json(listed)
        return
    rows = [
        (each["name"], each["executor"], "yes" if each["approval"] else "", first_line(each["description"]))
        for each in listed["tools"]
    ]
    show(rows, columns=("tool", "runs in", "asks", "description"), nothing="There are no tools.")


def runs(
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many of the newest.")] = 20,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List your chats with the state of their last run, newest first."""
    with _one_line_if_refused(as_json=as_json):
        listed: Json = remote(url, token).get(f"/api/chat?limit={limit}")
    if as_json:
        show_json(listed)
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


@inbox.callback()
def waiting(context: typer.Context, *, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """What waits for you: calls to answer and questions to say yes or no to."""
    if context.invoked_subcommand is None:
        list_waiting(url=url, token=token, as_json=as_json)
    elif url or token or as_json:
        # not passed on: a yes that goes to the wrong server would be worse than a refusal
        name = context.invoked_subcommand
        raise BadSetting(f"Options come behind the subcommand: farhand inbox {name} --url ...")


@inbox.command("list")
def list_waiting(*, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """List what waits, oldest first."""
    with _one_line_if_refused(as_json=as_json):
        listed: Json = remote(url, token).get("/api/inbox")
    if as_json:
        show_json(listed)
        return
    rows = [
        (
            each.get("approvalId") or each["callId"],
            "yes or no" if each.get("approvalId") else f"answer from {each['executor']}",
            each["tool"],
            compact(each["input"]),
        )
        for each in listed["calls"]
    ]
    show(rows, columns=("id", "waits for", "tool", "input"), nothing="Nothing waits.")


@inbox.command()
def answer(
    call_id: Annotated[str, typer.Argument(help="The call.")],
    output: Annotated[str, typer.Argument(help="What it brings, as JSON.")] = "null",
    *,
    error: Annotated[
        str | None, typer.Option("--error", metavar="TEXT", help="It failed, for this reason.")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Bring a result to a call, in the place of whoever should have."""
    if error is None:
        body = {"toolCallId": call_id, "status": "success", "output": read_json(output, "The output")}
    else:
        body = {"toolCallId": call_id, "status": "failed", "errorText": error}
    _bring(remote(url, token), "/api/tools/ack", body, as_json=as_json)


@inbox.command()
def approve(
    which: Annotated[str, typer.Argument(metavar="ID", help="The question, or its call.")],
    *,
    always: Annotated[bool, typer.Option("--always", help="For this tool, in the whole chat.")] = False,
    input: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Run it with this input instead.")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Say yes."""
    to = remote(url, token)
    edited = {} if input is None else {"input": read_json(input, "The input")}
    body = {
        "approvalId": _question(to, which, as_json=as_json),
        "approved": True,
        "scope": "thread" if always else "once",
    }
    _bring(to, "/api/tools/approve", {**body, **edited}, as_json=as_json)


@inbox.command()
def deny(
    which: Annotated[str, typer.Argument(metavar="ID", help="The question, or its call.")],
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The model is told so.")] = "",
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Say no."""
    to = remote(url, token)
    body = {"approvalId": _question(to, which, as_json=as_json), "approved": False, "reason": reason}
    _bring(to, "/api/tools/approve", body, as_json=as_json)


def _question(to: Remote, which: str, *, as_json: bool) -> str:
    """The approval's own id; for a call, the one that it asks with."""
    if not which.startswith("call_"):
        return which
    with _one_line_if_refused(as_json=as_json):
        listed: Json = to.get("/api/inbox")
    asked = {each["callId"]: each.get("approvalId") for each in listed["calls"]}
    found: str | None = asked.get(which)
    if found is None:
        fail(f"The call {quote(which)} asks for no yes or no.")
        raise typer.Exit(2)
    return found


def _bring(to: Remote, path: str, body: object, *, as_json: bool) -> None:
    with _one_line_if_refused(as_json=as_json):
        receipt: Json = to.post(path, body)
    if as_json:
        show_json(receipt)
    else:
        show_value("Done before; nothing changed." if receipt.get("ignored") else "Done.")


@contextmanager
def _one_line_if_refused(*, as_json: bool, too_late: int | None = None) -> Iterator[None]:
    """`too_late` is a status that is no mistake of the asker."""
    try:
        yield
    except Rejected as refusal:
        if as_json:
            show_json({"error": {"code": refusal.answered, "message": refusal.message}})
        fail(str(refusal))
        raise typer.Exit(1 if refusal.status == too_late else 2) from None
