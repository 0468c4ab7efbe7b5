"""The commands that talk to a running server, with their options: `call`, `tools`, `runs`, `inbox`.

The requests themselves are in `requests.py`, which is imported when one of the commands runs.
"""

from typing import Annotated

import typer

from farhand.cli.options import ServerOptions, with_options
from farhand.errors import BadSetting

inbox = typer.Typer(help="Calls that wait for your result or approval.", invoke_without_command=True)


def add_remote_commands(commands: typer.Typer) -> None:
    commands.command()(call)
    commands.command()(tools)
    commands.command()(runs)
    commands.add_typer(inbox, name="inbox")


@with_options
def call(
    tool: Annotated[str, typer.Argument(help="Its name, for example client_notes_read.")],
    input: Annotated[str, typer.Argument(help="""Its input, a JSON object: '{"name": "todo"}'.""")] = "{}",
    *,
    server: ServerOptions,
    within: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="Give up after this time.")
    ] = None,
    request_id: Annotated[
        str | None,
        typer.Option(
            "--request-id",
            metavar="ID",
            help="Repeating the command with the same id returns the same call instead of a new one.",
        ),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The chat that the call belongs to.")
    ] = None,
) -> None:
    """Call a tool and print its result."""
    from farhand.cli.remote import requests

    requests.call(tool, input, server, within=within, request_id=request_id, session=session)


@with_options
def tools(server: ServerOptions) -> None:
    """List the tools that are available to your runs."""
    from farhand.cli.remote import requests

    requests.list_tools(server)


@with_options
def runs(
    server: ServerOptions,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many chats to list.")] = 20,
) -> None:
    """List your chats with the state of their last run, newest first."""
    from farhand.cli.remote import requests

    requests.list_runs(server, limit=limit)


@inbox.callback()
@with_options
def waiting(context: typer.Context, server: ServerOptions) -> None:
    """Calls that wait for your result or approval."""
    if context.invoked_subcommand is None:
        from farhand.cli.remote import requests

        requests.list_waiting(server)
    elif server != ServerOptions():
        # refused, not guessed: an approval must not go to the wrong server
        name = context.invoked_subcommand
        raise BadSetting(f"Options come after the subcommand: farhand inbox {name} --url ...")


@inbox.command("list")
@with_options
def list_waiting(server: ServerOptions) -> None:
    """List what is waiting, oldest first."""
    from farhand.cli.remote import requests

    requests.list_waiting(server)


@inbox.command()
@with_options
def answer(
    call_id: Annotated[str, typer.Argument(help="The call.")],
    output: Annotated[str, typer.Argument(help="""The output, as JSON: yes is a text.""")] = "null",
    *,
    server: ServerOptions,
    error: Annotated[
        str | None, typer.Option("--error", metavar="TEXT", help="The call failed, for this reason.")
    ] = None,
) -> None:
    """Submit the result of a call yourself, instead of the page or program that it waits for."""
    from farhand.cli.remote import requests

    requests.answer(call_id, server, output=output, error=error)


@inbox.command()
@with_options
def approve(
    which: Annotated[str, typer.Argument(metavar="ID", help="The approval or its call.")],
    server: ServerOptions,
    *,
    always: Annotated[bool, typer.Option("--always", help="Approve this tool for the whole chat.")] = False,
    input: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Run it with this input instead.")
    ] = None,
) -> None:
    """Approve a call."""
    from farhand.cli.remote import requests

    requests.send_approval(which, server, scope="thread" if always else "once", input=input)


@inbox.command()
@with_options
def deny(
    which: Annotated[str, typer.Argument(metavar="ID", help="The approval or its call.")],
    server: ServerOptions,
    *,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The model reads this reason.")
    ] = "",
) -> None:
    """Deny a call."""
    from farhand.cli.remote import requests

    requests.deny(which, server, reason=reason)
