"""The command line: turns options into settings, an agent and a server."""

import sys

from farhand.cli.gc_tuning import without_gc

__all__ = ["main"]


def main() -> None:
    """The console script."""
    # not at the top: a program that calls `farhand.serve` does not need the command line
    try:
        with without_gc():
            from farhand.cli import commands
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit("farhand: The command line is not installed. Install it: pip install 'farhand[serve]'.")
    commands.main()
