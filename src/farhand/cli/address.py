"""The address of a server, as a person and a program write it."""

from __future__ import annotations


def address_of(host: str, port: int) -> str:
    """What to open in a browser."""
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
