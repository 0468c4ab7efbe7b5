"""Decodes requests of the Inspector."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from farhand.agent.rerun import RerunRequest
from farhand.core.ids import is_chosen_id
from farhand.errors import Malformed
from farhand.faces.base import decode_number
from farhand.faces.inspector.shapes import RerunBody
from farhand.wire.json_reader import read_as

STATES = ("running", "waiting", "parked", "done", "stopped", "failed")
RUNS_PER_PAGE = 100
MOST_EVENTS = 1000
LONGEST_SEARCH = 200


class Search(Struct, frozen=True):
    """Which runs to list. `words` are searched for in titles, ids and tool names, ignoring case."""

    limit: int
    after: str | None
    state: str | None
    words: str


def decode_search(parameters: Mapping[str, str]) -> Search:
    after = parameters.get("after")
    if after is not None and not is_chosen_id(after):
        raise Malformed("after is not a run id.", hint="Send the `next` of the previous page.")
    state = parameters.get("state")
    if state is not None and state not in STATES:
        raise Malformed(f"state must be one of {', '.join(sorted(STATES))}.")
    words = parameters.get("search", "").strip().casefold()
    if len(words) > LONGEST_SEARCH:
        raise Malformed(f"search may have at most {LONGEST_SEARCH} characters.")
    limit = decode_number(parameters, "limit", default=30, least=1, most=RUNS_PER_PAGE)
    return Search(limit, after, state, words)


def decode_limit(parameters: Mapping[str, str]) -> int:
    return decode_number(parameters, "limit", default=200, least=1, most=MOST_EVENTS)


def decode_rerun(body: bytes) -> RerunRequest:
    read = read_as(body, RerunBody)
    if read.step < 1:
        raise Malformed("step counts from 1.")
    text = None if read.text is None else read.text.strip()
    if text == "":
        raise Malformed("text is empty.")
    return RerunRequest(
        step=read.step, call_id=read.call_id, input=read.input, text=text, repeats=read.repeat
    )
