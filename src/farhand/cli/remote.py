"""Asks a running server. With the standard library alone, so that the command line needs nothing more.

Where the server is and what lets one in are the server's own settings, unless the command says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

import msgspec

from farhand.cli.address import address_of
from farhand.errors import BadSetting, FarhandError, Malformed, Rejected
from farhand.server.settings import load_settings
from farhand.wire import guard
from farhand.wire.sse import Parser

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

    def happenings(self) -> Iterator[dict[str, object]]:
        """What happens from now on, as the server tells it; ends with the connection. The first is empty and
        says that the server listens."""
        connection, response = self._open("GET", "/api/events", None, None)
        try:
            if response.status != 200:
                return
            yield {}
            yield from _told(response)
        finally:
            connection.close()

    def _ask(self, method: str, path: str, body: object, within: float | None) -> object:
        content = None if body is None else _encode(body)
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
        connection, response = self._open(method, path, content, within)
        try:
            return response.status, _read(response.read())
        finally:
            connection.close()

    def _open(
        self, method: str, path: str, content: bytes | None, within: float | None
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """For the caller to close."""
        place = urlsplit(self.url)
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        connection = kind(place.hostname or "", place.port, timeout=within)
        headers = {} if content is None else {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, place.path.rstrip("/") + path, body=content, headers=headers)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise


def remote(url: str | None, token: str | None) -> Remote:
    """What was said, else the settings of a server on this machine."""
    if url is not None and not _is_address(url):
        raise BadSetting(f"--url: '{url}' is not an address.", hint="Write http://127.0.0.1:8787.")
    settings = load_settings({})
    return Remote(url or address_of(settings.host, settings.port), token or settings.token)


def _is_address(url: str) -> bool:
    try:
        place = urlsplit(url)
        return place.scheme in {"http", "https"} and bool(place.hostname) and place.port != 0
    except ValueError:
        return False


def read_json(text: str, what: str) -> object:
    """JSON that was typed on the command line, by the server's own rules: it is sent as it was typed."""
    try:
        # says where the mistake is, and takes too much: NaN, for instance, which would be sent as null
        json.loads(text)
        return guard.read_json(text.encode(errors="surrogateescape"))
    except ValueError as error:
        raise BadSetting(f"{what} is not JSON: {error}.", hint="""Quote it: '{"name": "value"}'.""") from None
    except Malformed as fault:
        raise BadSetting(f"{what} is not taken: {fault.message}") from None


def _encode(body: object) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        raise BadSetting("What was typed is not UTF-8 text.", hint="Nothing was sent.") from None


def _told(response: HTTPResponse) -> Iterator[dict[str, object]]:
    parser = Parser()
    while piece := response.read1(65_536):
        heard = (_read(event.data.encode()) for event in parser.feed(piece))
        yield from (told for told in heard if isinstance(told, dict))


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
    message = fault.get("message", fault.get("detail")) or _WORDS.get(
        str(code), f"The server refused: {code}."
    )
    return Rejected(str(message), status=status, answered=str(code))


_WORDS = {
    "unknown": "There is no such call or question, or it is not yours.",
    "conflict": "It has another answer already; that one stands.",
    "expired": "It is over: its time had run out.",
    "cancelled": "It is over: it was cancelled.",
    "not_approved": "It was not approved yet.",
    "taken": "Somebody else is working on it.",
}
"""What a receipt of the ack wire means, which says it in a word."""
