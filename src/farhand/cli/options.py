"""Options that several commands share: those that serve, and those that talk to a server."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")]


@dataclass(frozen=True)
class ServerOptions:
    """Which server to talk to, and whether to print its answer as JSON."""

    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="The server, if it is not the one on this machine."),
    ] = None
    token: Annotated[
        str | None,
        typer.Option(
            "--token", metavar="TOKEN", help="The access token; FARHAND_TOKEN keeps it off the command line."
        ),
    ] = None
    as_json: AsJson = False


_NOT_SETTINGS = frozenset({"config", "verbose"})


@dataclass(frozen=True)
class ServeOptions:
    """None for an option that was not given: then the variable, the settings file or the default applies."""

    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address to listen on. [127.0.0.1]")] = (
        None
    )
    port: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Port to listen on; 0 picks a free one. [8787]")
    ] = None
    store: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            help="Where to store everything: sqlite:///file.db, postgresql://host/database, or memory:",
        ),
    ] = None
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Use this model, for example scripted:talk.yaml")
    ] = None
    open: Annotated[
        bool | None, typer.Option("--open", help="Accept every program on this machine without a token.")
    ] = None
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN", help="Allow pages of this origin, e.g. http://localhost:5173. Repeatable."
        ),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also accept requests for this host name. Repeatable."),
    ] = None
    allow_header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also allow this header from those pages. Repeatable."),
    ] = None
    page: Annotated[
        bool | None,
        typer.Option("--page/--no-page", help="Show the chat page at /. [on]"),
    ] = None
    inspector: Annotated[
        bool | None,
        typer.Option(
            "--inspector/--no-inspector",
            help="Show runs and calls at /_farhand. [on without an authenticate hook]",
        ),
    ] = None
    show_tool_errors: Annotated[
        bool | None,
        typer.Option(
            "--show-tool-errors/--no-show-tool-errors",
            help="Show users the error that a tool raised. [on without an authenticate hook]",
        ),
    ] = None
    hold_for: Annotated[
        str | None,
        typer.Option(metavar="SECONDS", help="How long a stream waits for a call that runs elsewhere. [90]"),
    ] = None
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="Use this token instead of a new one; FARHAND_TOKEN keeps it off the command line.",
        ),
    ] = None
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Settings file. [~/.config/farhand/config.toml or .json]"),
    ] = None
    log_level: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="Lowest level to log: debug, info, warning, error. [warning]"),
    ] = None
    log_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="text, or json for one JSON object per line. [text]")
    ] = None
    access_log: Annotated[
        bool | None, typer.Option("--access-log", help="Log every request, without its query and body.")
    ] = None
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Short for --log-level info.")] = False

    def given(self) -> dict[str, object]:
        """The settings among the options that were given."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.verbose and self.log_level is None:
            values["log_level"] = "info"
        return {
            name: value
            for name, value in values.items()
            if name not in _NOT_SETTINGS and value not in (None, [])
        }


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the command's parameter of type `ServeOptions` or `ServerOptions` by one option for each of
    its fields."""
    parameters = inspect.signature(command).parameters.values()
    [options] = [each for each in parameters if is_dataclass(each.annotation)]

    @wraps(command)
    def spread(**arguments: object) -> None:
        values = {field.name: arguments.pop(field.name) for field in fields(options.annotation)}
        command(**arguments, **{options.name: options.annotation(**values)})

    listed = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in fields(options.annotation)
    ]
    spread_out = [*(each for each in parameters if each is not options), *listed]
    # typer reads a command's options from its signature and its annotations
    spread.__signature__ = inspect.Signature(spread_out)  # type: ignore[attr-defined]
    spread.__annotations__ = {each.name: each.annotation for each in spread_out}
    return spread
