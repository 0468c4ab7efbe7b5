"""The registered clients and their tools, in memory because every step of every run looks them up.

Owns the look-ups and nothing else: `sessions` registers and removes clients.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Literal, TypeAlias

from farhand.core.client import Client
from farhand.core.explained_struct import ExplainedStruct
from farhand.core.principal import Owner
from farhand.core.tool import Tool
from farhand.errors import BadSetting
from farhand.eventlog.log import EventLog
from farhand.tools.declared import decide_approval

ApprovalPolicy: TypeAlias = Literal["never", "always"] | Callable[[Tool, dict[str, object]], bool]
"""Whether a person must approve the calls of registered clients; a function decides call by call."""


class ClientTools(ExplainedStruct, frozen=True):
    """How a server treats the tools of registered clients."""

    approval: ApprovalPolicy = "never"

    def __post_init__(self) -> None:
        if self.approval not in ("never", "always") and not callable(self.approval):
            raise BadSetting(
                f"client_tools.approval must be 'never', 'always' or a function, not {self.approval!r}."
            )


class ClientRegistry:
    """A `ToolSource`. Every look-up names an owner, and finds the clients of that owner alone."""

    def __init__(self, eventlog: EventLog, rules: ClientTools | None = None) -> None:
        self._log = eventlog
        self._approval = (rules or ClientTools()).approval
        self._clients: dict[Owner, dict[str, Client]] = {}
        self._tools: dict[Owner, dict[str, Tool]] = {}

    @property
    def may_ask(self) -> bool:
        return self._approval != "never"

    async def load(self, owner: Owner | None = None) -> list[Client]:
        """Reads the registered clients of one owner, or of all owners, from the store."""
        clients = await self._log.clients.all(owner)
        if owner is None:
            self._clients, self._tools = {}, {}
        else:
            self._clients.pop(owner, None)
            self._tools.pop(owner, None)
        for client in clients:
            self.keep(client)
        return clients

    def tools(self, owner: Owner) -> list[Tool]:
        """The tools of all clients of this owner."""
        tools = self._tools.get(owner)
        return [] if tools is None else list(tools.values())

    def get(self, owner: Owner, name: str) -> Tool | None:
        return self._tools.get(owner, {}).get(name)

    def tools_of(self, owner: Owner, client_id: str) -> list[Tool]:
        client = self.client(owner, client_id)
        return [] if client is None else list(client.tools)

    def client(self, owner: Owner, client_id: str) -> Client | None:
        return self._clients.get(owner, {}).get(client_id)

    def clients(self, owner: Owner) -> list[Client]:
        """Sorted by their ids."""
        return [client for _, client in sorted(self._clients.get(owner, {}).items())]

    def count(self, owner: Owner) -> int:
        return len(self._clients.get(owner, ()))

    def asks(self, tool: Tool, input: dict[str, object]) -> bool:
        """True if the client wants it, or if the policy requires it; also if the policy's function raises or
        returns no bool."""
        if tool.needs_approval:
            return True
        if isinstance(self._approval, str):
            return self._approval == "always"
        decide = self._approval
        # a copy: the function must not change the input that runs
        return decide_approval(
            lambda: decide(tool, copy.deepcopy(input)), f"the approval policy for tool {tool.name}"
        )

    def keep(self, client: Client) -> None:
        """Keeps the client as it is stored now."""
        self._clients.setdefault(client.owner, {})[client.client_id] = client
        self._index(client.owner)

    def forget(self, client: Client) -> None:
        self._clients.get(client.owner, {}).pop(client.client_id, None)
        self._index(client.owner)

    def _index(self, owner: Owner) -> None:
        clients = self._clients.get(owner, {})
        if not clients:
            self._clients.pop(owner, None)
            self._tools.pop(owner, None)
            return
        self._tools[owner] = {tool.name: tool for client in clients.values() for tool in client.tools}
