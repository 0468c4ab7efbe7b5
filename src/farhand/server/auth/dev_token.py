"""The development token, and the cookie derived from it.

Programs send the token as `Authorization: Bearer`, browsers send the cookie. The cookie is a signature made
with the token and does not contain it: browsers send cookies to every port of the same machine.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
import stat
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from farhand.errors import BadSetting
from farhand.server.auth.host_origin import HeaderMap

log = logging.getLogger("farhand.server")

TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,256}")
CODE_SEC = 60.0


class _Code(NamedTuple):
    value: bytes
    until: float


class DevToken:
    def __init__(self, token: str | None = None) -> None:
        if token is not None and not TOKEN.fullmatch(token):
            raise BadSetting(
                "The token is not valid.", hint="Use 16 to 256 characters: letters, digits, and . _ ~ -"
            )
        self.token = token or secrets.token_urlsafe(32)
        self._bytes = self.token.encode()
        self._code: _Code | None = None
        self._bearer = b"Bearer " + self._bytes
        self._cookie = hmac.digest(self._bytes, b"farhand.server.auth.dev_token", "sha256").hex().encode()

    def matches(self, token: str) -> bool:
        """Whether it is the token, or a code that was issued a moment ago and not used since."""
        sent = token.encode(errors="replace")
        if hmac.compare_digest(sent, self._bytes):
            return True
        code, self._code = self._code, None
        if code is not None and hmac.compare_digest(sent, code.value) and monotonic() < code.until:
            return True
        # a wrong guess uses up nothing
        self._code = code
        return False

    def issue_code(self) -> str:
        """Signs in once, within a minute: for the address that a browser is started with, which other users
        of the machine can read in its command line."""
        code = secrets.token_urlsafe(32)
        self._code = _Code(code.encode(), monotonic() + CODE_SEC)
        return code

    def accepts(self, headers: HeaderMap, port: int) -> bool:
        """Whether the headers have the token, or the cookie of the server on this port."""
        sent = headers.get(b"authorization")
        if sent is not None and self._is_bearer(sent):
            return True
        cookies = headers.get(b"cookie")
        return cookies is not None and self._has_cookie(cookies, port)

    def cookie(self, port: int) -> bytes:
        """The Set-Cookie that authenticates a browser until it is closed."""
        return b"%s=%s; Path=/; HttpOnly; SameSite=Strict" % (cookie_name(port), self._cookie)

    def sign_in_cookie(self, port: int) -> bytes:
        """The Set-Cookie with an id of this sign-in, which is not a credential. Scripts of the page read it:
        an approval that did not arrive is sent again only under the same sign-in."""
        name = b"%s_sign_in" % cookie_name(port)
        return b"%s=%s; Path=/; SameSite=Strict" % (name, secrets.token_urlsafe(12).encode())

    def _is_bearer(self, sent: bytes) -> bool:
        if hmac.compare_digest(sent, self._bearer):
            return True
        # the scheme is case-insensitive
        scheme, _, token = sent.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._bytes)

    def _has_cookie(self, cookies: bytes, port: int) -> bool:
        wanted = cookie_name(port)
        for cookie in cookies.split(b";"):
            name, _, value = cookie.strip().partition(b"=")
            if name == wanted and hmac.compare_digest(value, self._cookie):
                return True
        return False


def cookie_name(port: int) -> bytes:
    # cookies ignore ports, so two servers on one machine need different names
    return b"farhand_%d" % port


def kept_token(path: Path) -> str:
    """The token in this file, which only its owner may read and write. A new one is kept there if there is
    none, or if someone else could have read or written it."""
    token = _read_token(path)
    if token is not None:
        return token
    fresh = secrets.token_urlsafe(32)
    try:
        path.unlink(missing_ok=True)
        # never open to others, not even for a moment
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{fresh}\n")
    except OSError as error:
        log.warning("the token cannot be kept in %s and is new at every start: %s", path, error.strerror)
    return fresh


def _read_token(path: Path) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        is_private = stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077
        if not is_private or found.st_uid != os.getuid():
            log.warning("others may have read the token in %s; it is replaced", path)
            return None
        token = file.read(300).decode("ascii", "replace").strip()
    return token if TOKEN.fullmatch(token) else None
