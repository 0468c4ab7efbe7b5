"""The command line: what is said there becomes settings, an agent and a server. Nothing imports it."""

from farhand.cli.commands import main

__all__ = ["main"]
