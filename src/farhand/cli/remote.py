"""Asks a running server. With the standard library alone, so that the command line needs nothing more.

Where the server is and what lets one in are the server's own settings, unless the command says otherwise.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

import msgspec

from farhand.cli.serve import address_of
from farhand.errors import BadSetting, FarhandError, Rejected
from farhand.server.settings import load_settings

ANSWER_WITHIN_SEC = 30.0


class NotReached(FarhandError):
    code = "away"


@dataclass(frozen=True)
class Remote:
    url: str
    token: str | None

    def get(self, path: str) -> object:
        return self._ask("GET", path, None, ANSWER_WITHIN_SEC)

    def post(self, path: str, body: object, *, within: float | None = ANSWER_WITHIN_SEC) -> object:
        """`within` None waits for as long as the server does."""
        return self._ask("POST", path, body, within)

    def _ask(self, method: str, path: str, body: object, within: float | None) -> object:
        content = None if body is None else msgspec.json.encode(body)
        try:
            status, answer = self._send(method, path, content, within)
        except (OSError, HTTPException) as error:
            why = str(error) or type(error).__name__
            raise NotReached(
                f"No server answers at {self.url}: {why}.",
                hint="Start one with farhand run, or name it: --url.",
            ) from None
        if status != 200:
            raise _refusal(status, answer)
        return answer

    def _send(
        self, method: str, path: str, content: bytes | None, within: float | None
    ) -> tuple[int, object]:
        place = urlsplit(self.url)
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        connection = kind(place.hostname or "", place.port, timeout=within)
        headers = {} if content is None else {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, place.path.rstrip("/") + path, body=content, headers=headers)
            response = connection.getresponse()
            return response.status, _read(response.read())
        finally:
            connection.close()


def remote(url: str | None, token: str | None) -> Remote:
    """What was said, else the settings of a server on this machine."""
    if url is not None and urlsplit(url).scheme not in {"http", "https"}:
        raise BadSetting(f"--url: '{url}' is not an address.", hint="Write http://127.0.0.1:8787.")
    settings = load_settings({})
    return Remote(url or address_of(settings.host, settings.port), token or settings.token)


def read_json(text: str, what: str) -> object:
    """JSON that was typed on the command line."""
    try:
        read: object = json.loads(text)
    except ValueError as error:
        raise BadSetting(f"{what} is not JSON: {error}.", hint="""Quote it: '{"name": "value"}'.""") from None
    return read


def _read(content: bytes) -> object:
    try:
        read: object = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content[:200].decode(errors="replace")
    return read


def _refusal(status: int, answer: object) -> Rejected:
    """What the server said, whichever face said it."""
    fault = answer.get("error", answer) if isinstance(answer, dict) else answer
    if not isinstance(fault, dict):
        return Rejected(f"The server answered {status}: {fault}", status=status)
    code = fault.get("code", fault.get("reason", ""))
    message = fault.get("message", fault.get("detail")) or f"The server refused: {code}."
    return Rejected(str(message), status=status, answered=str(code))
