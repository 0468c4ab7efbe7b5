"""The built pages, from `make ui` or the wheel: the chat page and the Inspector.

Owns which files are served and with which headers. Must not know who may see a page: `pages.py` decides. The
files are read once, at start, so a requested name is a dictionary key and never a path.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from urllib.parse import urlsplit

from starlette.types import Scope, Send

from farhand.wire.http import Header, header, respond_body

CHAT = "index.html"
INSPECTOR = "inspector.html"
GALLERY = "cards.html"

_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
}

# Scripts and styles only from this server, none inline. The side panel frames pages that the assistant
# opened, sandboxed; blob: is for a photo, its preview and its upload.
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
    b"connect-src 'self' blob:; frame-src http: https:; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'"
)

_PAGE: tuple[Header, ...] = (
    (b"content-security-policy", _POLICY),
    (b"permissions-policy", b"camera=(self), geolocation=(self), clipboard-write=(self), microphone=()"),
    (b"x-frame-options", b"DENY"),
    # over plain http, only the Referer tells the requests of this page from those of other sites
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    # it refers to the assets of this build
    (b"cache-control", b"no-store"),
    (b"vary", b"accept, accept-encoding, cookie"),
)

_ASSET: tuple[Header, ...] = (
    (b"cross-origin-resource-policy", b"same-origin"),
    # its name contains its hash
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"vary", b"accept-encoding"),
)


class BuiltFile:
    """One file of the build, plain and compressed."""

    def __init__(self, content_type: bytes, plain: bytes) -> None:
        self.content_type = content_type
        self.plain = plain

    @cached_property
    def packed(self) -> bytes:
        """Compressed on first use, to keep the start fast."""
        # without a timestamp, every worker sends the same bytes
        return gzip.compress(self.plain, compresslevel=9, mtime=0)


class BuiltPages:
    """The pages and their assets by name; empty if they were not built."""

    def __init__(self, pages: Mapping[str, BuiltFile], assets: Mapping[str, BuiltFile]) -> None:
        self._pages = pages
        self._assets = assets

    @property
    def is_built(self) -> bool:
        return CHAT in self._pages

    def has(self, name: str) -> bool:
        return name in self._pages

    async def page(self, scope: Scope, send: Send, name: str, *, logo: str | None = None) -> None:
        """`logo` is the address of an image elsewhere that the page may load."""
        await _send(scope, send, self._pages[name], _PAGE if logo is None else _page_with(logo))

    async def asset(self, scope: Scope, send: Send) -> bool:
        """Sends the asset; False if there is none of this name."""
        built = self._assets.get(scope["path_params"]["name"])
        if built is None:
            return False
        await _send(scope, send, built, _ASSET)
        return True


def load_pages(folder: Traversable | None = None) -> BuiltPages:
    """The pages in the package, or in a folder."""
    root = folder or files("farhand").joinpath("_ui")
    # in a folder of its own, since its path is one step deeper
    pages = {**_read(root), **_read(root.joinpath("gallery"))}
    return BuiltPages(pages, _read(root.joinpath("assets")))


def wants_page(scope: Scope) -> bool:
    """Browsers accept text/html when they open an address; curl and programs accept anything."""
    return b"text/html" in (header(scope, b"accept") or b"")


def _page_with(logo: str) -> tuple[Header, ...]:
    # its address has been checked; what ends a directive is escaped in one
    source = urlsplit(logo)._replace(query="", fragment="").geturl().translate({0x2C: "%2C", 0x3B: "%3B"})
    policy = _POLICY.replace(b"img-src 'self'", b"img-src 'self' " + source.encode())
    return ((b"content-security-policy", policy), *_PAGE[1:])


def _read(folder: Traversable) -> dict[str, BuiltFile]:
    if not folder.is_dir():
        return {}
    return {
        file.name: BuiltFile(_TYPES[_suffix(file.name)], file.read_bytes())
        for file in folder.iterdir()
        if _suffix(file.name) in _TYPES
    }


def _suffix(name: str) -> str:
    return f".{name.rpartition('.')[2]}"


async def _send(scope: Scope, send: Send, built: BuiltFile, headers: tuple[Header, ...]) -> None:
    if b"gzip" in (header(scope, b"accept-encoding") or b""):
        headers = (*headers, (b"content-encoding", b"gzip"))
        await respond_body(send, 200, built.content_type, built.packed, headers)
        return
    await respond_body(send, 200, built.content_type, built.plain, headers)
