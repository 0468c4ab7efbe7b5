"""Whether a stream arrives piece by piece at an address, or is kept back by something in between.

A server tells the reader of its news at once where it stands, and a moment later that it is still there. What
is first leaves with the head of the response, and may pass where all that follows is kept back.
"""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

PATIENCE_SEC = 5.0


class Stream(NamedTuple):
    """`works` None: it could not be found out."""

    works: bool | None
    told: str
    do: str = ""


def check_stream(url: str, token: str | None, *, patience: float = PATIENCE_SEC) -> Stream:
    place = urlsplit(url)
    kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
    connection = kind(place.hostname or "", place.port, timeout=patience)
    headers = {"accept": "text/event-stream"} | ({"authorization": f"Bearer {token}"} if token else {})
    try:
        connection.request("GET", place.path.rstrip("/") + "/api/events?keepAlive=1", headers=headers)
        return _judge(connection.getresponse())
    except TimeoutError:
        return Stream(False, f"nothing arrived within {patience:g} s: the response is kept back", _UNBUFFER)
    except (OSError, HTTPException) as error:
        return Stream(None, f"no server answers at {url}: {error}", "Start one, or name it: --url.")
    finally:
        connection.close()


_UNBUFFER = "Switch buffering and compression of responses off in the proxy (nginx: proxy_buffering off)."


def _judge(response: HTTPResponse) -> Stream:
    if response.status in (401, 403):
        return Stream(None, f"the server let nobody in ({response.status})", "Show a token: --token.")
    if response.status != 200:
        return Stream(None, f"the server answered {response.status}", "See GET /readyz.")
    if response.getheader("content-encoding"):
        return Stream(False, "it is compressed on its way, which keeps small pieces back", _UNBUFFER)
    arrived = b""
    # until something follows on the first event
    while not arrived.partition(b"\n\n")[2]:
        try:
            piece = response.read1(4096)
        except TimeoutError:
            what = "the first piece of the body and no other" if arrived else "no piece of the body"
            return Stream(False, f"the head arrived and {what}: it is kept back", _UNBUFFER)
        if not piece:
            return Stream(False, "the stream ended at once", "Look for a proxy that ends responses early.")
        arrived += piece
    return Stream(True, "arrives piece by piece")
