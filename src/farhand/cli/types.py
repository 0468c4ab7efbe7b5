"""`farhand types`: the TypeScript types of an agent's frontend tools."""

from __future__ import annotations

from pathlib import Path

import typer

from farhand.cli.target import load_target
from farhand.errors import BadSetting
from farhand.server.app import App
from farhand.tools.typescript import frontend_types


def write_types(target: str, output: str | None) -> None:
    """Writes to standard output, unless a file is named."""
    found = load_target(target)
    agent = found.agent if isinstance(found, App) else found
    text = frontend_types(agent.spec.toolbox.tools())
    if output is None:
        typer.echo(text, nl=False)
        return
    _write(Path(output), text)


def _write(path: Path, text: str) -> None:
    try:
        # a compiler that watches the file does not have to run if nothing changed
        if not path.is_file() or path.read_bytes() != text.encode():
            path.write_bytes(text.encode())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise BadSetting(
            f"'{path}' cannot be written: {reason}.", hint="Name another file with --output."
        ) from None
