"""An outside party that registered to run tools: a desktop program, an editor, a command line, a worker.

Its id is a name that it chose inside its owner's space: the same id of another owner is another client.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from farhand.core.principal import Owner
from farhand.core.tool import Tool


class Client(Struct, frozen=True, kw_only=True):
    owner: Owner
    client_id: str
    tools: tuple[Tool, ...]
    grace_sec: float
    """How long it may be without a stream before its tools are removed."""
    registered_at: float
    listened: bool = False
    """Whether it ever had a stream: a client that never had one gets more time to open its first one."""
    version: int = 1
    holder: str = ""
    """The program that currently is this client: the tools are removed only when it leaves."""
    former: str = ""
    """The previous program, which may not know yet that it was replaced."""


def tool_name(client_id: str, tool_id: str) -> str:
    """The name of a client's tool everywhere but on its own wire."""
    return f"client_{client_id}_{tool_id}"


def tool_id(client_id: str, name: str) -> str:
    """The short id under which the client registered the tool."""
    return name.removeprefix(tool_name(client_id, ""))


def with_tools(client: Client, tools: Sequence[Tool]) -> Client:
    """The client after it registered these tools: one with the same name is replaced, the others stay."""
    merged = {tool.name: tool for tool in (*client.tools, *tools)}
    return replace(client, tools=tuple(merged.values()), version=client.version + 1)


def held_by(client: Client, holder: str) -> Client:
    """The client once this program holds it."""
    return client if holder == client.holder else replace(client, holder=holder, former=client.holder)


def without_tools(client: Client, names: Collection[str]) -> Client:
    kept = tuple(tool for tool in client.tools if tool.name not in names)
    return replace(client, tools=kept, version=client.version + 1)
