"""Bearer tokens from a file, read again whenever it changes: a line taken out is a sign-in taken back.

Tokens are compared by their digests, so that no comparison tells how much of a guess was right, and the file
may hold nothing but digests. A file that is missing or makes no sense lets nobody in: better that than to let
in whoever was to be shut out.
"""

from __future__ import annotations

import hashlib
import logging
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, ValidationError, convert
from starlette.requests import HTTPConnection

from farhand.auth.shown import PERSON, bearer, known_scopes
from farhand.core.principal import Principal
from farhand.errors import BadSetting

log = logging.getLogger("farhand.auth")

SHORTEST = 16
_SHA256 = re.compile(r"[0-9a-f]{64}")


class TokenFile:
    """A hook: `create_app(agent, authenticate=TokenFile("tokens.toml"))`. Write the file anew by renaming."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._seen = self._stamp()
        # what can't be read at the start is the program's mistake, and said at once
        self._known = read_tokens(self._path)

    def __call__(self, request: HTTPConnection) -> Principal | None:
        self._read_again()
        token = bearer(request)
        return None if token is None else self._known.get(digest_of(token))

    def _read_again(self) -> None:
        seen = self._stamp()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._known = read_tokens(self._path)
        except BadSetting as error:
            self._known = {}
            log.error("nobody is let in: %s", error)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def digest_of(token: str) -> str:
    """What stands in the file as `sha256`."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(path: Path) -> Mapping[str, Principal]:
    """Who each token is, by its digest. `BadSetting` never repeats a token."""
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        listed = convert(read, _File).token
    except OSError as error:
        raise BadSetting(f"The tokens in '{path}' cannot be read: {error.strerror}.") from None
    except (ValueError, ValidationError):
        # its words may hold what stands in the file
        raise BadSetting(f"The tokens in '{path}' cannot be read.", hint=_HOW) from None
    known: dict[str, Principal] = {}
    for number, entry in enumerate(listed, 1):
        digest = _digest(entry, f"Token {number} in '{path}'")
        if digest in known:
            raise BadSetting(f"Token {number} in '{path}' stands there twice.")
        known[digest] = Principal(entry.tenant, entry.subject, known_scopes(entry.scopes))
    return known


_HOW = "Each entry is a [[token]] with sha256 (or token), tenant, subject and scopes."


class _Entry(Struct, forbid_unknown_fields=True):
    tenant: str
    subject: str
    sha256: str = ""
    token: str = ""
    scopes: tuple[str, ...] = PERSON


class _File(Struct, forbid_unknown_fields=True):
    # a default for each file, not one for all
    token: list[_Entry] = []


def _digest(entry: _Entry, what: str) -> str:
    if bool(entry.sha256) == bool(entry.token):
        raise BadSetting(f"{what} has to have either sha256 or token.")
    if entry.sha256:
        if not _SHA256.fullmatch(entry.sha256):
            raise BadSetting(f"{what} has no digest in sha256.", hint="64 hexadecimal digits, lower case.")
        return entry.sha256
    if len(entry.token) < SHORTEST:
        raise BadSetting(f"{what} is too short to be safe.", hint=f"Take {SHORTEST} characters or more.")
    return digest_of(entry.token)
