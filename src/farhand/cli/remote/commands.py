"""The commands that talk to a running server, with their options: `call`, `tools`, `runs`, `inbox`.

What they do is in `requests.py`, which is imported when one of them runs.
"""

from typing import Annotated

import typer

from farhand.cli.options import AsJson, ServerOptions, Token, Url
from farhand.errors import BadSetting

inbox = typer.Typer(help="Calls that wait for your result or approval.", invoke_without_command=True)


def add_remote_commands(commands: typer.Typer) -> None:
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
        float | None, typer.Option("--timeout", metavar="SECONDS", help="Give up after this time.")
    ] = None,
    request_id: Annotated[
        str | None,
        typer.Option(
            "--request-id",
            metavar="ID",
            help="The same id makes the same call, however often you repeat the command.",
        ),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The chat that the call belongs to.")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Call a tool and print its result."""
    from farhand.cli.remote import requests

    wanted = requests.ToolCall(tool, input, within, request_id, session)
    requests.call(wanted, ServerOptions(url, token, as_json))


def tools(*, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """List the tools that are available to your runs."""
    from farhand.cli.remote import requests

    requests.list_tools(ServerOptions(url, token, as_json))


def runs(
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many of the newest.")] = 20,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List your chats with the state of their last run, newest first."""
    from farhand.cli.remote import requests

    requests.list_runs(ServerOptions(url, token, as_json), limit=limit)


@inbox.callback()
def waiting(context: typer.Context, *, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Calls that wait for your result or approval."""
    if context.invoked_subcommand is None:
        list_waiting(url=url, token=token, as_json=as_json)
    elif url or token or as_json:
        # not passed on: an approval that goes to the wrong server would be worse than a refusal
        name = context.invoked_subcommand
        raise BadSetting(f"Options come after the subcommand: farhand inbox {name} --url ...")


@inbox.command("list")
def list_waiting(*, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """List what is waiting, oldest first."""
    from farhand.cli.remote import requests

    requests.list_waiting(ServerOptions(url, token, as_json))


@inbox.command()
def answer(
    call_id: Annotated[str, typer.Argument(help="The call.")],
    output: Annotated[str, typer.Argument(help="The output, as JSON.")] = "null",
    *,
    error: Annotated[
        str | None, typer.Option("--error", metavar="TEXT", help="The call failed, for this reason.")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Submit the result of a call, in place of the page or program that should have."""
    from farhand.cli.remote import requests

    requests.answer(call_id, ServerOptions(url, token, as_json), output=output, error=error)


@inbox.command()
def approve(
    which: Annotated[str, typer.Argument(metavar="ID", help="The approval or its call.")],
    *,
    always: Annotated[bool, typer.Option("--always", help="Approve this tool for the whole chat.")] = False,
    input: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Run it with this input instead.")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Approve a call."""
    from farhand.cli.remote import requests

    requests.send_approval(
        which, ServerOptions(url, token, as_json), scope="thread" if always else "once", input=input
    )


@inbox.command()
def deny(
    which: Annotated[str, typer.Argument(metavar="ID", help="The approval or its call.")],
    *,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The model reads this reason.")
    ] = "",
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Deny a call."""
    from farhand.cli.remote import requests

    requests.deny(which, ServerOptions(url, token, as_json), reason=reason)
