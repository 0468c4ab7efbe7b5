"""Bearer tokens from a file, which is read again whenever it changes: removing an entry revokes its token.

Tokens are compared by their digests, so that the time of a comparison reveals nothing about a token, and the
file may contain only digests. If the file is missing or invalid, every token is refused: otherwise a revoked
one might stay valid.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, ValidationError, convert
from starlette.requests import HTTPConnection

from farhand.auth.credentials import bearer, check_scopes, is_name
from farhand.core.principal import DEFAULT_SCOPES, Principal
from farhand.errors import BadSetting

log = logging.getLogger("farhand.auth")

SHORTEST = 16
Stamp: TypeAlias = tuple[int, int, int, int]
_SHA256 = re.compile(r"[0-9a-f]{64}")


class TokenFile:
    """A hook: `create_app(agent, authenticate=TokenFile("tokens.toml"))`. Replace the file atomically."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._seen = self._stamp()
        self._failed: Stamp | None = None
        # a file that cannot be read at start is a mistake in the program: raise at once
        self._known = read_tokens(self._path)

    def __call__(self, request: HTTPConnection) -> Principal | None:
        self._reload()
        token = bearer(request)
        return None if token is None else self._known.get(digest_of(token))

    def _reload(self) -> None:
        seen = self._stamp()
        if seen is not None and seen == self._seen:
            return
        # first: if anything below fails, earlier tokens must not stay valid
        known, self._known, self._seen = self._known, {}, None
        try:
            self._known = read_tokens(self._path)
        # the file may contain anything, and a fault must not grant access
        except Exception as error:  # noqa: BLE001
            # not marked as read: the next request tries again
            self._log_failure(seen, error, were=len(known))
            return
        self._seen, self._failed = seen, None

    def _log_failure(self, seen: Stamp | None, error: Exception, *, were: int) -> None:
        """Once for each state of the file, not for each request."""
        if were or seen != self._failed:
            why = error if isinstance(error, BadSetting) else type(error).__name__
            log.error("all tokens are refused: %s", why)
        self._failed = seen

    def _stamp(self) -> Stamp | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        # ctime also changes with the permissions of the file, and cannot be forged
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


def digest_of(token: str) -> str:
    """The value of `sha256` in the file."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(path: Path) -> Mapping[str, Principal]:
    """Principals by the digest of their token. A `BadSetting` never contains a token."""
    try:
        _refuse_writable(path)
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        listed = convert(read, _File).token
    except OSError as error:
        raise BadSetting(f"The token file '{path}' cannot be read: {error.strerror}.") from None
    except (ValueError, ValidationError, RecursionError):
        # the message of the parser may contain parts of the file
        raise BadSetting(f"The token file '{path}' is not valid.", hint=_FORMAT) from None
    known: dict[str, Principal] = {}
    for number, entry in enumerate(listed, 1):
        digest = _digest(entry, f"Token {number} in '{path}'")
        if digest in known:
            raise BadSetting(f"Token {number} in '{path}' is listed twice.", hint="Remove one of the two.")
        if not is_name(entry.tenant) or not is_name(entry.subject):
            raise BadSetting(f"Token {number} in '{path}' has no tenant or no subject.", hint=_FORMAT)
        known[digest] = Principal(entry.tenant, entry.subject, check_scopes(entry.scopes))
    return known


_FORMAT = "Each entry is a [[token]] with sha256 (or token), tenant, subject and scopes."


def _refuse_writable(path: Path) -> None:
    """Anyone who can write to the file can grant access."""
    if os.name == "posix" and path.stat().st_mode & stat.S_IWOTH:
        raise BadSetting(
            f"Every user of this machine can write to '{path}' and add tokens.",
            hint=f"Remove the permission: chmod o-w {path}",
        )


class _Entry(Struct, forbid_unknown_fields=True):
    tenant: str
    subject: str
    sha256: str = ""
    token: str = ""
    scopes: frozenset[str] = DEFAULT_SCOPES


class _File(Struct, forbid_unknown_fields=True):
    # a default per file, not a shared one
    token: list[_Entry] = []


def _digest(entry: _Entry, what: str) -> str:
    if bool(entry.sha256) == bool(entry.token):
        raise BadSetting(f"{what} must have either `sha256` or `token`.", hint=_FORMAT)
    if entry.sha256:
        if not _SHA256.fullmatch(entry.sha256):
            raise BadSetting(
                f"{what} has an invalid `sha256`.", hint="It must be 64 lower-case hexadecimal digits."
            )
        return entry.sha256
    if len(entry.token) < SHORTEST:
        raise BadSetting(f"{what} is too short to be safe.", hint=f"Use {SHORTEST} characters or more.")
    return digest_of(entry.token)
