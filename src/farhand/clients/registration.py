"""Checks the registration of a client and builds its tools. Pure; compiling schemas takes time."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from farhand.core.client import tool_id, tool_name
from farhand.core.ids import is_client_id
from farhand.core.tool import Executor, Tool
from farhand.errors import BadTool, Malformed
from farhand.tools.docstring import clean_text
from farhand.tools.schema_admission import admit_output_schema, admit_schema
from farhand.tools.timeouts import parse_tool_timeout
from farhand.tools.to_json import shorten

LONGEST_GRACE_SEC = 86_400.0
LONGEST_TITLE = 256


class ToolOffer(Struct, frozen=True):
    """A tool as its client describes it; its schemas are not checked yet, and `output` may be missing."""

    tool_id: str
    description: str
    parameters: object
    output: object = None
    title: str | None = None
    timeout_sec: float | None = None
    needs_approval: bool = False
    untrusted: bool = False


class Registration(Struct, frozen=True):
    """`grace_sec` is None for the server's default, `holder` if the program has no name of its own."""

    client_id: str
    offers: tuple[ToolOffer, ...]
    grace_sec: float | None = None
    holder: str | None = None


def check_registration(registration: Registration) -> None:
    """Raises `Malformed` for bad ids and times."""
    check_client_id(registration.client_id)
    ids = [offer.tool_id for offer in registration.offers]
    for each in ids:
        if not is_client_id(each):
            raise Malformed(f"A tool can't have the id '{shorten(each)}'.", hint=_IDS)
    if len(set(ids)) < len(ids):
        raise Malformed("Two of the tools have the same id.", hint="Nothing was registered.")
    grace = registration.grace_sec
    if grace is not None and not 0 <= grace <= LONGEST_GRACE_SEC:
        raise Malformed("graceSec must be a number of seconds from 0 to 86400.")


def check_client_id(client_id: str) -> None:
    if not is_client_id(client_id):
        raise Malformed(f"A client can't have the id '{shorten(client_id)}'.", hint=_IDS)


def build_tools(registration: Registration, *, may_ask: bool) -> list[Tool]:
    """The tools of this client; `Malformed` for one that cannot be used."""
    try:
        return [_tool(registration.client_id, offer, may_ask=may_ask) for offer in registration.offers]
    except BadTool as error:
        raise Malformed(error.message, hint=f"{error.hint} Nothing was registered.".strip()) from error


def full_names(tools: Sequence[Tool], client_id: str, ids: Sequence[str]) -> list[str]:
    """The full names of the tools with these ids, short or full."""
    wanted = set(ids)
    return [tool.name for tool in tools if {tool.name, tool_id(client_id, tool.name)} & wanted]


_IDS = "Choose 1 to 64 letters, digits, `_` or `-`."


def _tool(client_id: str, offer: ToolOffer, *, may_ask: bool) -> Tool:
    what = f"tool '{offer.tool_id}'"
    description = clean_text(offer.description, what)
    if not description:
        raise BadTool(f"The {what} has no description.", hint="Describe what it does; the model reads it.")
    return Tool(
        name=tool_name(client_id, offer.tool_id),
        description=description,
        input_schema=admit_schema(offer.parameters, f"The schema of {what}"),
        output_schema=None
        if offer.output is None
        else admit_output_schema(offer.output, f"The output of {what}"),
        executor=Executor.CLIENT,
        timeout_sec=parse_tool_timeout(offer.timeout_sec, f"timeoutSec of {what}"),
        # a client can ask for an approval, but never switch it off
        may_ask=may_ask or offer.needs_approval,
        client_id=client_id,
        is_foreign=True,
        title=None if offer.title is None else _title(offer.title, what),
        needs_approval=offer.needs_approval,
        untrusted=offer.untrusted,
    )


def _title(text: str, what: str) -> str:
    title = clean_text(text, what)
    if not title:
        raise BadTool(f"The title of {what} is empty.", hint="Leave it out to show the tool's name.")
    if len(title.encode()) > LONGEST_TITLE:
        raise BadTool(f"The title of {what} is longer than {LONGEST_TITLE} bytes.")
    return title
