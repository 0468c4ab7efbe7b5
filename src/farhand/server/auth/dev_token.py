"""The development token, and the cookie derived from it.

Programs send the token as `Authorization: Bearer`, browsers send the cookie. The cookie is a signature made
with the token and does not contain it: browsers send cookies to every port of the same machine.
"""

from __future__ import annotations

import hmac
import re
import secrets

from farhand.errors import BadSetting
from farhand.server.auth.host_origin import HeaderMap

TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,256}")


class DevToken:
    def __init__(self, token: str | None = None) -> None:
        if token is not None and not TOKEN.fullmatch(token):
            raise BadSetting(
                "The token is not valid.", hint="Use 16 to 256 characters: letters, digits, and . _ ~ -"
            )
        self.token = token or secrets.token_urlsafe(32)
        self._bytes = self.token.encode()
        self._bearer = b"Bearer " + self._bytes
        self._cookie = hmac.digest(self._bytes, b"farhand.server.auth.dev_token", "sha256").hex().encode()

    def matches(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(errors="replace"), self._bytes)

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
