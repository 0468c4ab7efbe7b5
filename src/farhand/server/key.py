"""What opens the door during development: one token, and the cookie made from it.

Programs show the token as `Authorization: Bearer`, browsers the cookie. It is signed with the token and does
not contain it: browsers show cookies to every server on the same machine, whatever its port.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from itsdangerous import Signer

from farhand.errors import BadSetting
from farhand.server.screen import Heads

TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,256}")


class Key:
    def __init__(self, token: str | None = None) -> None:
        if token is not None and not TOKEN.fullmatch(token):
            raise BadSetting(
                "The token is not usable.", hint="Take 16 to 256 letters, digits, or any of . _ ~ -"
            )
        self.token = token or secrets.token_urlsafe(32)
        self._bytes = self.token.encode()
        self._bearer = b"Bearer " + self._bytes
        signer = Signer(self._bytes, salt=b"farhand.server.key", digest_method=hashlib.sha256)
        self._cookie = signer.get_signature(b"local")

    def fits(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(errors="replace"), self._bytes)

    def opens(self, heads: Heads, port: int) -> bool:
        """Whether the headers show the token, or the cookie of the server on this port."""
        shown = heads.get(b"authorization")
        if shown is not None and self._is_bearer(shown):
            return True
        cookies = heads.get(b"cookie")
        return cookies is not None and self._has_cookie(cookies, port)

    def cookie(self, port: int) -> bytes:
        """The Set-Cookie that lets a browser in until it is closed."""
        return b"%s=%s; Path=/; HttpOnly; SameSite=Strict" % (cookie_name(port), self._cookie)

    def sign_in_cookie(self, port: int) -> bytes:
        """The Set-Cookie that names one sign-in, for scripts of the page: it opens nothing. A page repeats an
        approval that did not arrive only under the sign-in that it was given under."""
        name = b"%s_sign_in" % cookie_name(port)
        return b"%s=%s; Path=/; SameSite=Strict" % (name, secrets.token_urlsafe(12).encode())

    def _is_bearer(self, shown: bytes) -> bool:
        if hmac.compare_digest(shown, self._bearer):
            return True
        # the name of the scheme may be written in any case
        scheme, _, token = shown.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._bytes)

    def _has_cookie(self, cookies: bytes, port: int) -> bool:
        wanted = cookie_name(port)
        for cookie in cookies.split(b";"):
            name, _, value = cookie.strip().partition(b"=")
            if name == wanted and hmac.compare_digest(value, self._cookie):
                return True
        return False


def cookie_name(port: int) -> bytes:
    # cookies do not tell ports apart, two servers on one machine must
    return b"farhand_%d" % port
