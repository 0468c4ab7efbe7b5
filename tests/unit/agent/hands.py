"""Tools for the tests of the loop: on the server, on far hands, with approval."""

from __future__ import annotations

from farhand.tools.decorate import tool


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The one.
        b: The other.
    """
    return a + b


@tool
def broken(why: str) -> str:
    """Raise.

    Args:
        why: What the exception says.
    """
    raise ValueError(why)


@tool
def a_set() -> object:
    """Return what JSON cannot hold."""
    return object()


@tool(executor="frontend", card="open_page")
def open_url(url: str) -> dict[str, str]:
    """Open a page beside the chat.

    Args:
        url: The address.

    Returns:
        viewKey of the page that was opened.
    """
    raise AssertionError("a frontend tool never runs here")


@tool(executor="frontend", timeout_sec=5)
def ask_text(question: str) -> str:
    """Ask the user.

    Args:
        question: What to ask.

    Returns:
        What the user wrote.
    """
    raise AssertionError("a frontend tool never runs here")


@tool(executor="frontend", needs_approval=True)
def take_photo(camera: str) -> str:
    """Take a photo.

    Args:
        camera: Which one.

    Returns:
        The photo.
    """
    raise AssertionError("a frontend tool never runs here")
