"""The command line: what is said there becomes settings, an agent and a server. Nothing imports it."""

from farhand.cli.garbage import loading

__all__ = ["main"]


def main() -> None:
    """The console script."""
    # not above: a program that serves with the parts of this package has no command line
    with loading():
        from farhand.cli import commands
    commands.main()
