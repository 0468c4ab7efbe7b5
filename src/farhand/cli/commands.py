"""The commands and their options. A mistake is one line on standard error and exit code 2.

The code of a command is imported when it runs, so that help appears immediately and a server imports nothing
that only other commands need.
"""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from farhand.cli.console import print_error
from farhand.cli.gc_tuning import without_gc
from farhand.cli.options import AsJson, ServeOptions, ServerOptions, with_options
from farhand.errors import BadSetting, FarhandError

commands = typer.Typer(
    name="farhand", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


def main() -> None:
    """The console script."""
    try:
        commands(prog_name="farhand")
    except FarhandError as error:
        print_error(str(error))
        sys.exit(2)


def _print_version(asked: object) -> None:
    if asked:
        typer.echo(f"farhand {version('farhand')}")
        raise typer.Exit


@commands.callback()
def farhand(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Tool calls that run elsewhere: in a browser, in another program, or after a person's approval."""


Target = Annotated[str, typer.Argument(help="module:agent, path/to/file.py:agent, or module:app")]


@commands.command()
@with_options
def run(
    target: Target,
    options: ServeOptions,
    *,
    workers: Annotated[
        int, typer.Option(metavar="NUMBER", help="Number of server processes; needs PostgreSQL.")
    ] = 1,
    inherited: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Serve your own agent.

    Only this machine has access, with a token that is printed at the start.

    To serve other machines, pass an app built with create_app(authenticate=...).
    """
    with without_gc():
        from farhand.cli.run import serve_target
    serve_target(target, options, workers=workers, inherited=inherited)


@commands.command()
@with_options
def demo(
    options: ServeOptions,
    *,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open your browser, if there is one. [on]")
    ] = True,
) -> None:
    """Serve the demo: an agent with a tool of every kind and a scripted model. Needs no key or account."""
    with without_gc():
        from farhand.cli.run import serve_demo
    serve_demo(options, opens_browser=browser)


@commands.command()
def types(
    target: Target,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file. [standard output]"),
    ] = None,
) -> None:
    """Write TypeScript types for an agent's frontend tools.

    A page whose handlers use these types does not compile if a handler is missing or has the wrong type.
    """
    from farhand.cli.types import write_types

    write_types(target, output)


@commands.command()
@with_options
def purge(
    server: ServerOptions,
    *,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Minimum age of the data to remove: 12h, 7d, 4w. [7d]"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only; remove nothing.")] = False,
    store: Annotated[
        str | None, typer.Option(metavar="STORE", help="The store, if it is not the default one.")
    ] = None,
) -> None:
    """Remove old settled calls, events of ended runs and unused files. Threads and messages stay."""
    from farhand.cli.purge import remove_old

    remove_old(server, older_than=older_than, dry_run=dry_run, store=store)


@commands.command()
def rebuild(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only; change nothing.")] = False,
    store: Annotated[
        str | None, typer.Option(metavar="STORE", help="The store, if it is not the default one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the look-up tables of a store from the logs of its threads.

    Lists and searches read these tables; after a repair or a restored backup they may differ from the logs.
    A SQLite file must not be in use by a server; PostgreSQL may be.

    Exit code 1 if a thread cannot be read.
    """
    from farhand.cli.rebuild import rebuild_store

    rebuild_store(store, dry_run=dry_run, as_json=as_json)


@commands.command()
@with_options
def doctor(
    server: ServerOptions,
    *,
    store: Annotated[str | None, typer.Option(metavar="STORE", help="Check this store.")] = None,
) -> None:
    """Check versions, settings, the store, its clock, and streaming. Exit code 1 if a check fails."""
    from farhand.cli.doctor import examine

    examine(server, store=store)


@commands.command()
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


@commands.command()
@with_options
def tools(server: ServerOptions) -> None:
    """List the tools that are available to your runs."""
    from farhand.cli.remote import requests

    requests.list_tools(server)


@commands.command()
@with_options
def runs(
    server: ServerOptions,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many chats to list.")] = 20,
) -> None:
    """List your chats, newest first, with the state and start of their last run."""
    from farhand.cli.remote import requests

    requests.list_runs(server, limit=limit)


inbox = typer.Typer(help="Calls that wait for your result or approval.", invoke_without_command=True)
commands.add_typer(inbox, name="inbox")


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
    output: Annotated[
        str | None,
        typer.Argument(
            help="""The output, as JSON. A text needs its quotes: '"yes"'. """
            "A tool that returns nothing needs none."
        ),
    ] = None,
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
