"""HTTP requests to a running server, with the standard library only.

Address and token come from the settings of this machine, unless the command names others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

import msgspec

from farhand.cli.console import address_of
from farhand.errors import BadSetting, FarhandError, Malformed, Rejected
from farhand.server.settings import load_settings
from farhand.wire import json_reader
from farhand.wire.sse import Parser

ANSWER_WITHIN_SEC = 30.0


class ServerUnreachable(FarhandError):
    code = "unreachable"


@dataclass(frozen=True)
class RemoteServer:
    url: str
    token: str | None

    def get(self, path: str) -> object:
        return self._ask("GET", path, None, ANSWER_WITHIN_SEC)

    def post(self, path: str, body: object, *, within: float | None = ANSWER_WITHIN_SEC) -> object:
        """With `within=None`, waits as long as the server does."""
        return self._ask("POST", path, body, within)

    def events(self) -> Iterator[dict[str, object]]:
        """The server's events from now on, until the connection ends. The first one is empty: it means that
        the stream is open."""
        with self.open("/api/events") as response:
            if response.status == 200:
                yield {}
                yield from _events(response)

    def _ask(self, method: str, path: str, body: object, within: float | None) -> object:
        content = None if body is None else _encode(body)
        try:
            with self.open(path, method=method, content=content, within=within) as response:
                status, answer = response.status, _read(response.read())
        except (OSError, HTTPException) as error:
            why = str(error) or type(error).__name__
            raise ServerUnreachable(
                f"No server answers at {self.url}: {why}.",
                hint="Start one with farhand run, or name it: --url.",
            ) from None
        if status != 200:
            raise _refusal(status, answer)
        return answer

    @contextmanager
    def open(
        self, path: str, *, method: str = "GET", content: bytes | None = None, within: float | None = None
    ) -> Iterator[HTTPResponse]:
        """The response before its body is read. `within` limits each wait for data, in seconds."""
        place = urlsplit(self.url)
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        connection = kind(place.hostname or "", place.port, timeout=within)
        headers = {} if content is None else {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, place.path.rstrip("/") + path, body=content, headers=headers)
            yield connection.getresponse()
        finally:
            connection.close()


def remote_server(url: str | None, token: str | None) -> RemoteServer:
    """The server that was named, or the one that the settings of this machine describe."""
    if url is not None and not _is_address(url):
        raise BadSetting(f"--url: '{url}' is not an address.", hint="Use one such as http://127.0.0.1:8787.")
    settings = load_settings({})
    secret = token or settings.token
    if secret is not None and not (secret.isascii() and secret.isprintable() and " " not in secret):
        raise BadSetting(
            "The token contains characters that are not allowed in a header.",
            hint="Check --token or FARHAND_TOKEN, for example for a line break at its end.",
        )
    return RemoteServer(url or address_of(settings.host, settings.port), secret)


def _is_address(url: str) -> bool:
    try:
        place = urlsplit(url)
        # as it is sent; raises if it is not the name of a host
        (place.hostname or "").encode("idna")
        sound = place.scheme in {"http", "https"} and bool(place.hostname) and place.port != 0
        return sound and place.path.isascii()
    except ValueError:
        return False


def parse_argument(text: str, what: str, *, example: str = """'{"name": "value"}'""") -> object:
    """JSON from the command line, checked by the server's own rules: it is sent as it was typed."""
    try:
        # its error names the position; but it accepts too much: NaN, for example, would be sent as null
        json.loads(text)
        return json_reader.read_json(text.encode(errors="surrogateescape"))
    except ValueError as error:
        raise BadSetting(f"{what} is not JSON: {error}.", hint=f"Quote it: {example}.") from None
    except Malformed as fault:
        raise BadSetting(f"{what} cannot be sent: {fault.message}", hint=fault.hint) from None


def _encode(body: object) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        raise BadSetting("An argument is not UTF-8 text.", hint="Nothing was sent.") from None


def _events(response: HTTPResponse) -> Iterator[dict[str, object]]:
    parser = Parser()
    while piece := response.read1(65_536):
        decoded = (_read(event.data.encode()) for event in parser.feed(piece))
        yield from (event for event in decoded if isinstance(event, dict))


def _read(content: bytes) -> object:
    try:
        read: object = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content[:200].decode(errors="replace")
    return read


def _refusal(status: int, answer: object) -> Rejected:
    """The error for a refusal from any of the server's faces."""
    fault = answer.get("error", answer) if isinstance(answer, dict) else answer
    if not isinstance(fault, dict):
        return Rejected(f"The server answered {status}: {fault}", status=status)
    code = fault.get("code", fault.get("reason", ""))
    message = fault.get("message", fault.get("detail")) or _REFUSALS.get(
        str(code), f"The server refused: {code}."
    )
    return Rejected(str(message), status=status, answered=str(code))


_REFUSALS = {
    "unknown": "There is no such call or approval, or it is not yours.",
    "conflict": "It already has a different answer, which it keeps.",
    "expired": "It has expired.",
    "cancelled": "It was cancelled.",
    "not_approved": "It is not approved yet.",
    "taken": "Somebody else is working on it.",
}
"""Sentences for the receipts of the ack wire."""
