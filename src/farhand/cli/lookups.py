"""The words of the commands that speak to a running server: `call`, `tools`, `runs`, `inbox`.

What they do is in `asking.py`, and loaded when one of them runs.
"""

from typing import Annotated

import typer

from farhand.cli.options import AsJson, Asked, Token, Url
from farhand.errors import BadSetting

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
    from farhand.cli import asking

    wanted = asking.Wanted(tool, input, within, request_id, session)
    asking.call(wanted, Asked(url, token, as_json))


def tools(*, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """List the tools that a run of yours would be offered."""
    from farhand.cli import asking

    asking.list_tools(Asked(url, token, as_json))


def runs(
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many of the newest.")] = 20,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List your chats with the state of their last run, newest first."""
    from farhand.cli import asking

    asking.list_runs(Asked(url, token, as_json), limit=limit)


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
    from farhand.cli import asking

    asking.list_waiting(Asked(url, token, as_json))


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
    from farhand.cli import asking

    asking.answer(call_id, Asked(url, token, as_json), output=output, error=error)


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
    from farhand.cli import asking

    asking.approve(which, Asked(url, token, as_json), scope="thread" if always else "once", input=input)


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
    from farhand.cli import asking

    asking.deny(which, Asked(url, token, as_json), reason=reason)
