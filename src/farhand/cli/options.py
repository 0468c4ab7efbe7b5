"""The options that commands share, listed once: of those that serve, and of those that ask a server."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Annotated, NamedTuple

import typer

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="The server, if not on this machine.")]
Token = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", help="What lets you in. FARHAND_TOKEN keeps it unseen."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")]


class Asked(NamedTuple):
    """Which server is asked, and how its answer is printed."""

    url: str | None
    token: str | None
    as_json: bool


_NOT_SETTINGS = frozenset({"config", "verbose"})


@dataclass(frozen=True)
class Options:
    """None where nothing was said: then a variable, a file or the default speaks, and is checked."""

    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Listen here. [127.0.0.1]")] = None
    port: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Listen on this port; 0 takes a free one. [8787]")
    ] = None
    store: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            help="Keep everything here: sqlite:///file.db, postgresql://host/database, or memory:",
        ),
    ] = None
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Use this model, for example scripted:talk.yaml")
    ] = None
    open: Annotated[
        bool | None, typer.Option("--open", help="Let every program on this machine in without the token.")
    ] = None
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN", help="Let pages from here in, e.g. http://localhost:5173. Repeatable."
        ),
    ] = None
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Answer for this host name, too. Repeatable.")
    ] = None
    allow_header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Let those pages send this header, too. Repeatable."),
    ] = None
    inspector: Annotated[
        bool | None,
        typer.Option(
            "--inspector/--no-inspector",
            help="Show runs and calls at /_farhand. On, unless an authenticate hook decides who comes in.",
        ),
    ] = None
    show_tool_errors: Annotated[
        bool | None,
        typer.Option(
            "--show-tool-errors/--no-show-tool-errors",
            help="Show people who chat what a tool raised. On, unless there is an authenticate hook.",
        ),
    ] = None
    hold_for: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Hold a stream so long for a far hand. [90]")
    ] = None
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN", help="Take this token, not a fresh one. FARHAND_TOKEN keeps it unseen."
        ),
    ] = None
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Read settings here. [~/.config/farhand/config.toml or .json]"),
    ] = None
    log_level: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="Log this and worse: debug, info, warning, error. [warning]"),
    ] = None
    log_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Log as text, or as one JSON object per line. [text]")
    ] = None
    access_log: Annotated[
        bool | None, typer.Option("--access-log", help="Log every request, without query and body.")
    ] = None
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Short for --log-level info.")] = False

    def said(self) -> dict[str, object]:
        """The settings among them that were said."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.verbose and self.log_level is None:
            values["log_level"] = "info"
        return {
            name: value
            for name, value in values.items()
            if name not in _NOT_SETTINGS and value not in (None, [])
        }


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every option beside its own arguments; it gets them as one `options`."""

    @wraps(command)
    def spread(**given: object) -> None:
        said = {field.name: given.pop(field.name) for field in fields(Options)}
        # typer has converted each value to the type of its field
        command(**given, options=Options(**said))  # type: ignore[arg-type]

    own = [each for name, each in inspect.signature(command).parameters.items() if name != "options"]
    listed = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in fields(Options)
    ]
    parameters = [*own, *listed]
    # typer reads a command's options from its signature and its annotations
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {each.name: each.annotation for each in parameters}
    return spread
