"""What pages show of an agent: its title, its welcome text, its suggested prompts, its logo.

Owns what is accepted for each. A logo is read once, when the agent is created, so that a wrong path is an
error there. Must not know how a page looks, or where the logo is served.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from farhand.core.principal import Owner
from farhand.core.thread import printable
from farhand.errors import BadSetting

MOST_STARTERS = 12
MOST_TITLE = 80
MOST_WELCOME = 600
MOST_PROMPT = 2_000
MOST_WORDS = 1_000
MOST_LOGO = 512 * 1024
MEDIA_TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".ico": "image/x-icon",
}


class Starter(Struct, frozen=True):
    """A suggested prompt: `title` is on the button, `prompt` is what is sent."""

    title: str
    prompt: str
    about: str = ""
    """One line below the title."""


class LogoFile(Struct, frozen=True):
    media_type: str
    content: bytes


StarterLike: TypeAlias = str | tuple[str, str] | tuple[str, str, str]
"""A text; or title and text; or both and a line about it."""
Logo: TypeAlias = str | os.PathLike[str]


class ShownImage(NamedTuple):
    """An image that a page may show: its name, and its content as a data URL."""

    name: str
    data_url: str


ReadImage: TypeAlias = Callable[[str], Awaitable[ShownImage | None]]
"""Reads a stored image by its ref; None if the visitor has no such image."""
ExtraPage: TypeAlias = Callable[[Mapping[str, str], ReadImage], Awaitable[bytes]]
"""Renders a page for the query of its URL."""


class Branding(Struct, frozen=True, kw_only=True):
    title: str | None = None
    welcome: str | None = None
    starters: tuple[Starter, ...] = ()
    logo: str | LogoFile | None = None
    """A URL, or a file that the server sends."""
    words: Mapping[str, str] | None = None
    """Texts of the page by name, replacing its defaults."""
    is_demo: bool = False
    """Whether pages show what only a demonstration has."""
    pages: Mapping[str, ExtraPage] = {}
    """HTML pages without scripts, by path: for a demonstration without the internet."""
    on_served: Callable[[str], None] | None = None
    """Called with the URL once the server has a port."""
    on_visited: Callable[[Owner, str], None] | None = None
    """Called with the person and the URL by which they reach the server, whenever a page of theirs is loaded:
    a server may have several names."""


def make_branding(
    *,
    title: str | None,
    welcome: str | None,
    starters: Iterable[StarterLike],
    logo: Logo | None,
    words: Mapping[str, str] | None = None,
) -> Branding:
    """Raises `BadSetting` for what cannot be shown."""
    if isinstance(starters, str | bytes) or not isinstance(starters, Iterable):
        raise BadSetting(
            f"starters must be a list of strings, not {starters!r}.", hint='Write starters=["What is new?"].'
        )
    read = tuple(_starter(each) for each in starters)
    if len(read) > MOST_STARTERS:
        raise BadSetting(f"starters has {len(read)} entries; a page shows at most {MOST_STARTERS}.")
    return Branding(
        title=None if title is None else _line(title, "title", MOST_TITLE),
        welcome=None if welcome is None else _line(welcome, "welcome", MOST_WELCOME),
        starters=read,
        logo=None if logo is None else _logo(logo),
        words=None if words is None else _words(words),
    )


def _starter(entry: object) -> Starter:
    match entry:
        case (title, prompt, *about) if len(about) <= 1:
            lines = [_line(each, "a line of a starter", MOST_TITLE) for each in (title, *about)]
            return Starter(lines[0], _prompt(prompt), *lines[1:])
        case str():
            prompt = _prompt(entry)
            line = printable(prompt)
            return Starter(line if len(line) <= MOST_TITLE else f"{line[: MOST_TITLE - 1].rstrip()}…", prompt)
        case _:
            raise BadSetting(
                f"A starter must be a string, or a pair of title and text, not {entry!r}.",
                hint='Write starters=["What is new?", ("Weather", "What is the weather in Oslo?")].',
            )


def _prompt(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadSetting(f"A starter needs a prompt to send, not {value!r}.")
    if len(value) > MOST_PROMPT:
        raise BadSetting(f"A starter has at most {MOST_PROMPT} characters, not {len(value)}.")
    return value


def _line(value: object, name: str, most: int) -> str:
    line = printable(value) if isinstance(value, str) else ""
    if not line:
        raise BadSetting(f"{name} must be a string, not {value!r}.")
    if len(line) > most:
        raise BadSetting(f"{name} has at most {most} characters, not {len(line)}.")
    return line


def _words(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or len(value) > MOST_WORDS:
        raise BadSetting("words must be a dictionary from names of the page's texts to strings.")
    for name, text in value.items():
        if not isinstance(name, str) or not isinstance(text, str) or len(text) > MOST_WELCOME:
            raise BadSetting(
                f"The text in words for {name!r} must be a string of at most {MOST_WELCOME} characters."
            )
    return dict(value)


def _logo(value: object) -> str | LogoFile:
    if isinstance(value, str) and "://" in value:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or not value.isascii() or " " in value:
            raise BadSetting(f"logo must be a URL that starts with https://, or a file, not {value!r}.")
        return value
    if not isinstance(value, str | os.PathLike):
        raise BadSetting(f"logo must be a URL or the path of a file, not {value!r}.")
    return _logo_file(Path(value))


def _logo_file(path: Path) -> LogoFile:
    media_type = MEDIA_TYPES.get(path.suffix.lower())
    if media_type is None:
        raise BadSetting(
            f"logo {str(path)!r} is not an image type that pages can show.",
            hint=f"Use {', '.join(MEDIA_TYPES)}.",
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadSetting(f"logo {str(path)!r} cannot be read: {error.strerror or error}.") from None
    if not 0 < len(content) <= MOST_LOGO:
        raise BadSetting(f"logo {str(path)!r} has {len(content)} bytes; it may have 1 to {MOST_LOGO}.")
    return LogoFile(media_type, content)
