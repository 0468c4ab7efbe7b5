"""What each HTTP route takes and gives, for the OpenAPI document. A table; nothing obeys it.

The shapes are those that the faces read and write, so they can't say anything else; a test holds the two
lists of routes together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from farhand.faces.ack import shapes as ack
from farhand.faces.awaiting import shapes as awaiting
from farhand.faces.client_tools import shapes as client_tools
from farhand.faces.files import shapes as files
from farhand.faces.inspector import shapes as inspector
from farhand.faces.threads import shapes as threads
from farhand.faces.ui_stream import shapes as ui_stream
from farhand.server import upkeep

Key = tuple[str, str]
Schema = Mapping[str, object]


class Parameter(NamedTuple):
    name: str
    schema: Schema
    where: str = "query"
    required: bool = False


class Link(NamedTuple):
    """What can be asked next with what this answer, or its request, named."""

    to: str
    parameters: Mapping[str, str]


class Told(NamedTuple):
    """`gives` maps a status to a shape, to `STREAM` or to `EMPTY`."""

    what: str
    name: str = ""
    takes: object = None
    gives: Mapping[int | str, object] = {}
    parameters: tuple[Parameter, ...] = ()
    links: tuple[Link, ...] = ()
    takes_type: str = "application/json"
    example: object = None


_MESSAGE = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}
_TOOL = {"id": "lamp", "description": "Switch the lamp.", "parameters": {"type": "object"}}

STREAM: Final = "stream"
EMPTY: Final = "empty"


class Fault(Struct):
    code: str
    message: str


class Refusal(Struct):
    """What most faces say when they say no."""

    error: Fault


class Ok(Struct, omit_defaults=True):
    ok: bool
    ignored: bool = False


class Registered(Struct):
    registered: list[str]


class Unregistered(Struct):
    success: bool
    unregistered: list[str]


class Inbox(Struct):
    calls: list[threads.OpenCall]


class Tools(Struct):
    tools: list[threads.ToolShape]


class Waiting(Struct):
    calls: list[inspector.WaitingShape]


class Clients(Struct):
    clients: list[inspector.ClientShape]


class Inspected(Struct):
    tools: list[inspector.ToolShape]


class Taken(Struct, omit_defaults=True):
    success: bool
    ignored: bool = False


class UnknownRequest(Struct):
    """How the nested dialect says that a request is unknown."""

    error: str


def refusal_of(face: str) -> object:
    return _REFUSALS.get(face, Refusal)


_REFUSALS: Mapping[str, object] = {
    "ack": ack.Reply,
    "awaiting": awaiting.Refusal,
    "client_tools": {
        "type": "object",
        "properties": {"error": {"type": ["object", "string"]}},
        "required": ["error"],
    },
}

_POSITION: Schema = {
    "type": "string",
    "pattern": r"^[0-9]{1,15}(\.[0-9]{1,15}(\.[1-9][0-9]{0,14})?)?(~[A-Za-z0-9_-]{1,8})?$",
}
# one that is not known is answered with a gap, and everything
_ANY_POSITION: Schema = {"type": "string"}
# what cannot be read as a number is no wish, and no mistake
_SECONDS: Schema = {"type": "string"}
_AFTER = Parameter("after", _POSITION)
_LAST_EVENT = Parameter("Last-Event-ID", _ANY_POSITION, "header")
_FORMAT = Parameter("format", {"enum": ["xml", "raw"]})
_RESUME = Parameter("resume", {"enum": ["true", "false"]})
_HOLDER = Parameter("holder", {"type": "string"})
_SESSION_PAGE = (
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 100}),
    Parameter("offset", {"type": "integer", "minimum": 0, "maximum": 10_000}),
)
_CONVERSATION_PAGE = (
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 100}),
    Parameter("before", {"type": "integer", "minimum": 1, "maximum": 2**31}),
)
_THREAD_PAGE = (
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 100}),
    Parameter(
        "after", {"type": "string", "pattern": r"^[0-9]{1,12}(\.[0-9]{1,17})?:[A-Za-z0-9_.:-]{1,128}$"}
    ),
)
_PAGE = (
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 100}),
    Parameter("after", {"type": "string", "pattern": "^[A-Za-z0-9_.:-]{1,128}$"}),
)


def _same_chat(*names: str) -> tuple[Link, ...]:
    return tuple(Link(name, {"thread_id": "$request.body#/id"}) for name in names)


def _same_client(*names: str) -> tuple[Link, ...]:
    return tuple(Link(name, {"client_id": "$request.body#/clientID"}) for name in names)


def _look(what: str, name: str, shape: object, *parameters: Parameter) -> Told:
    return Told(what, name, None, {200: shape}, parameters)


_LAST_ONES = Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 1000})
_SEARCH = (
    *_PAGE,
    Parameter("state", {"enum": ["running", "waiting", "parked", "done", "stopped", "failed"]}),
    Parameter("search", {"type": "string", "maxLength": 200}),
)

TOLD: Mapping[Key, Told] = {
    ("POST", "/api/tools/ack"): Told("Bring a result.", "result", ack.Ack, {200: ack.Reply}),
    ("POST", "/ai/tools/ack"): Told(
        "The same, as it was spelled before.", "old_result", ack.Ack, {200: ack.Reply}
    ),
    ("POST", "/api/tools/take"): Told(
        "Claim a call before executing it.", "take", ack.TakeRequest, {200: ack.Reply}
    ),
    ("POST", "/api/tools/approve"): Told("Say yes or no.", "approve", ack.ApproveRequest, {200: ack.Reply}),
    ("POST", "/agent/run"): Told(
        "Begin or go on.",
        "run",
        awaiting.RunRequest,
        {200: STREAM},
        (_FORMAT,),
        (Link("awaiting.stream", {"agent_uuid": "$request.body#/agent_uuid"}),),
        example={"user_prompt": "Hello"},
    ),
    ("POST", "/agent/tool_results"): Told(
        "Bring the results of a pause.",
        "tool_results",
        awaiting.ToolResultsRequest,
        {200: STREAM},
        (_FORMAT,),
    ),
    ("GET", "/agent/sessions"): Told(
        "List the caller's threads.", "sessions", None, {200: awaiting.SessionList}, _SESSION_PAGE
    ),
    ("GET", "/agent/{agent_uuid}/conversations"): Told(
        "Read what was said in a thread.",
        "conversations",
        None,
        {200: awaiting.ConversationList},
        _CONVERSATION_PAGE,
    ),
    ("GET", "/agent/{agent_uuid}/stream"): Told(
        "Resume a stream.", "stream", None, {200: STREAM}, (_FORMAT, _LAST_EVENT)
    ),
    ("POST", "/agent/{agent_uuid}/abort"): Told("Stop the run.", "abort", None, {200: Ok}),
    ("POST", "/api/chat"): Told(
        "Say something, or bring answers.",
        "chat",
        ui_stream.ChatRequest,
        {200: STREAM},
        links=_same_chat(
            "ui_stream.resume", "ui_stream.stop", "threads.thread", "threads.rename", "threads.delete"
        ),
        example={"id": "first-chat", "messages": [_MESSAGE]},
    ),
    ("GET", "/api/chat/{thread_id}/stream"): Told(
        "Resume the answer under way.", "resume", None, {200: STREAM, 204: EMPTY}, (_AFTER,)
    ),
    ("POST", "/api/chat/{thread_id}/stop"): Told("Stop the run.", "stop", None, {200: Ok}),
    ("GET", "/api/chat"): Told(
        "Your chats, newest first.",
        "list",
        None,
        {200: threads.ThreadPage},
        _THREAD_PAGE,
    ),
    ("GET", "/api/chat/{thread_id}"): Told(
        "One chat.", "thread", None, {200: threads.ThreadShape}, (_RESUME,)
    ),
    ("PATCH", "/api/chat/{thread_id}"): Told("Give it a title.", "rename", threads.Rename, {200: Ok}),
    ("DELETE", "/api/chat/{thread_id}"): Told("Remove it and all it holds.", "delete", None, {200: Ok}),
    ("GET", "/api/inbox"): Told("What waits for you.", "inbox", None, {200: Inbox}),
    ("GET", "/api/tools"): Told("The tools your runs would see.", "tools", None, {200: Tools}),
    ("POST", "/client-tools/register"): Told(
        "Offer tools.",
        "register",
        client_tools.Register,
        {200: Registered},
        links=_same_client("client_tools.tools_of", "client_tools.pending"),
        example={"clientID": "desk", "tools": [_TOOL]},
    ),
    ("DELETE", "/client-tools/unregister"): Told(
        "Withdraw tools.", "unregister", client_tools.Unregister, {200: Unregistered}
    ),
    ("GET", "/client-tools/tools"): Told(
        "All tools of clients.", "all_tools", None, {200: dict[str, object]}
    ),
    ("GET", "/client-tools/tools/{client_id}"): Told(
        "The tools of one client.", "tools_of", None, {200: list[client_tools.ToolShape]}
    ),
    ("GET", "/client-tools/pending/{client_id}"): Told(
        "The stream of calls for a client.", "pending", None, {200: STREAM}, (_HOLDER,)
    ),
    ("POST", "/client-tools/execute"): Told(
        "Run one tool.",
        "execute",
        client_tools.Execute,
        {200: client_tools.Executed, 504: client_tools.Refusal},
    ),
    ("POST", "/client-tools/result"): Told(
        "Bring a result.", "bring_result", client_tools.ResultBody, {200: bool | Taken}
    ),
    ("GET", "/api/events"): Told(
        "Everything that happens to what is yours.",
        "events",
        None,
        {200: STREAM},
        (Parameter("after", _ANY_POSITION), Parameter("keepAlive", _SECONDS), _LAST_EVENT),
    ),
    ("POST", "/api/purge"): Told(
        "Remove what is old, for whoever started the server.",
        "purge",
        upkeep.PurgeRequest,
        {200: upkeep.Purged},
        example={"olderThanSec": 604_800, "dryRun": True},
    ),
    ("GET", "/api/about"): Told(
        "What a page says about its server.", "about", None, {200: threads.AboutShape}
    ),
    ("POST", "/client-tools/progress"): Told(
        "Say that a request is still worked on.", "progress", client_tools.ProgressBody, {200: bool | Taken}
    ),
    ("POST", "/api/files"): Told(
        "Upload a file.",
        "upload",
        {"type": "string", "maxLength": 4096},
        {201: files.Uploaded},
        (
            Parameter("X-Farhand", {"type": "string", "minLength": 1}, "header", required=True),
            Parameter("X-File-Name", {"type": "string"}, "header"),
        ),
        tuple(Link(name, {"ref": "$response.body#/ref"}) for name in ("files.download", "files.describe")),
        takes_type="text/plain",
    ),
    ("GET", "/api/files/{ref}"): Told("Download a file.", "download", None, {200: {"*/*": {}}}),
    ("HEAD", "/api/files/{ref}"): Told("What a download would bring.", "describe", None, {200: EMPTY}),
    ("GET", "/api/inspect"): _look("Who looks, and at what.", "server", inspector.ServerShape),
    ("GET", "/api/inspect/runs"): _look("Runs, newest first.", "runs", inspector.RunPage, *_SEARCH),
    ("GET", "/api/inspect/runs/{run_id}"): _look("One run, as a waterfall.", "run", inspector.RunShape),
    ("GET", "/api/inspect/runs/{run_id}/events"): _look(
        "Its last events.", "events_of", inspector.EventPage, _LAST_ONES
    ),
    ("GET", "/api/inspect/runs/{run_id}/test"): _look("The run as a test.", "test", inspector.TestShape),
    ("GET", "/api/inspect/calls/{call_id}"): _look("One call's life.", "call", inspector.CallShape),
    ("GET", "/api/inspect/events"): _look("The last that happened.", "feed", inspector.EventPage, _LAST_ONES),
    ("GET", "/api/inspect/inbox"): _look("Open questions.", "inbox", Waiting),
    ("GET", "/api/inspect/clients"): _look("Registered clients.", "clients", Clients),
    ("GET", "/api/inspect/tools"): _look("What the tools are.", "tools", Inspected),
    ("POST", "/api/inspect/calls/{call_id}/again"): Told(
        "Bring the answer that a call has once more.",
        "again",
        dict[str, object],
        {200: inspector.ReceiptShape},
    ),
    ("GET", "/openapi.json"): Told("This document.", "document", None, {200: dict[str, object]}),
}
