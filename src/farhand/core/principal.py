"""Who asks, and whose things they may see."""

from __future__ import annotations

from msgspec import Struct

SCOPES = frozenset({"chat", "answer", "approve", "client", "execute", "inspect"})
DEFAULT_SCOPES = frozenset({"chat", "answer", "approve"})
"""What a person in front of a page needs. Registering tools, running them and inspecting must be granted."""


class Owner(Struct, frozen=True, gc=False, order=True):
    """The space a thread, run, call or client belongs to. Two owners never see each other's things."""

    tenant: str
    subject: str


def is_of(owner: Owner, tenant: str, subject: str | None) -> bool:
    """Whether it is this subject of the tenant; None is any of them."""
    return owner.tenant == tenant and subject in (None, owner.subject)


class Principal(Struct, frozen=True, gc=False):
    """What the `authenticate` hook answers: one person or program, and what it may do.

    A program that registers tools gets `Principal("acme", "indexer", frozenset({"client", "answer"}))`.
    """

    tenant: str
    subject: str
    scopes: frozenset[str] = DEFAULT_SCOPES

    @property
    def owner(self) -> Owner:
        return Owner(self.tenant, self.subject)


LOCAL = Owner("local", "me")
"""The owner of everything when an Agent is used without an app."""
