"""What can be said on the command line: every command and its words. A mistake is one line and code 2.

The work of a command is loaded when it runs, so that help is there at once and a server loads nothing of what
the other commands need.
"""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from farhand.cli.garbage import loading
from farhand.cli.lines import fail
from farhand.cli.lookups import add_lookups
from farhand.cli.options import AsJson, Asked, Options, Token, Url, with_options
from farhand.errors import FarhandError

commands = typer.Typer(
    name="farhand", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


def main() -> None:
    """The console script."""
    try:
        commands(prog_name="farhand")
    except FarhandError as error:
        fail(str(error))
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
    """Tool calls for agents whose hands are elsewhere: in a browser, in another program, behind a yes."""


Target = Annotated[str, typer.Argument(help="module:agent, path/to/file.py:agent, or module:app")]


@commands.command()
@with_options
def run(
    target: Target,
    options: Options,
    *,
    workers: Annotated[
        int, typer.Option(metavar="NUMBER", help="Serve with so many processes; PostgreSQL only.")
    ] = 1,
    inherited: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Serve your own agent.

    Only this machine is let in, with a token that is printed at start.

    To serve others, name an app of create_app that has an authenticate hook.
    """
    with loading():
        from farhand.cli.run import serve_target
    serve_target(target, options, workers=workers, inherited=inherited)


@commands.command()
@with_options
def demo(options: Options) -> None:
    """Serve the demo: an agent with a tool of every kind, and a scripted model. No key, no account."""
    with loading():
        from farhand.cli.run import serve_demo
    serve_demo(options)


@commands.command()
def types(
    target: Target,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write here. [standard output]")
    ] = None,
) -> None:
    """Write TypeScript types of an agent's frontend tools.

    A page whose handlers have these types does not compile when a handler is missing or does not fit.
    """
    from farhand.cli.types import write_types

    write_types(target, output)


# each of them a word of the command
@commands.command()
def purge(
    *,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="How old it has to be: 12h, 7d, 4w. [7d]"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count, remove nothing.")] = False,
    store: Annotated[
        str | None, typer.Option(metavar="STORE", help="The store, if not the usual one.")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Remove settled calls, events of ended runs and loose files that are old. Threads and messages stay."""
    from farhand.cli.purge import remove_old

    remove_old(Asked(url, token, as_json), older_than=older_than, dry_run=dry_run, store=store)


@commands.command()
def doctor(
    *,
    store: Annotated[str | None, typer.Option(metavar="STORE", help="Look at this store.")] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Look at versions, settings, the store, its clock, and whether streams arrive. Code 1 if one is bad."""
    from farhand.cli.doctor import examine

    examine(Asked(url, token, as_json), store=store)


add_lookups(commands)
