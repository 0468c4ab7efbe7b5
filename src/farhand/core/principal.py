"""Who asks, and whose things they may see."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct, field

from farhand.core.explained_struct import ExplainedStruct
from farhand.core.outcome import canonical

Claims: TypeAlias = dict[str, object]
"""What a sign-in says about a person besides the name: a small JSON object."""

CLAIMS_BYTES = 4096
"""Maximum size as JSON: they are stored with every run and call that the person starts."""

SCOPES = frozenset({"chat", "answer", "approve", "client", "execute", "inspect"})
DEFAULT_SCOPES = frozenset({"chat", "answer", "approve"})
"""What a person in front of a page needs. Registering tools, running them and inspecting must be granted."""


def are_claims(value: object) -> bool:
    """Whether this can be stored as claims: a JSON object of at most 4 KiB."""
    if not isinstance(value, dict):
        return False
    try:
        text = canonical(value)
    # what JSON cannot encode: a date, a number as a key, a lone surrogate
    except (TypeError, ValueError):
        return False
    return len(text) <= CLAIMS_BYTES and b"\\u0000" not in text


NAMES = ("name", "preferred_username", "email", "sub")
"""Claims that name a person, as OpenID Connect calls them; the first one present wins."""
NAME_CHARS = 80


def name_in(claims: Claims) -> str:
    """A person's name, for others to read; empty if the sign-in has none."""
    if not claims:
        return ""
    names = (claims.get(each) for each in NAMES)
    name = next((each for each in names if isinstance(each, str) and each.strip()), "")
    return "".join(each if each.isprintable() else " " for each in name)[:NAME_CHARS].strip()


class Owner(Struct, frozen=True, gc=False, order=True):
    """The space a thread, run, call or client belongs to. Two owners never see each other's things."""

    tenant: str
    subject: str


def is_of(owner: Owner, tenant: str, subject: str | None) -> bool:
    """Whether it is this subject of the tenant; None matches any of them."""
    return owner.tenant == tenant and subject in (None, owner.subject)


class Principal(ExplainedStruct, frozen=True, gc=False):
    """What the `authenticate` hook returns: one person or program, and what it may do.

    A program that registers tools gets `Principal("acme", "indexer", frozenset({"client", "answer"}))`.
    `claims` is a small JSON object, at most 4 KiB, that server tools find in `current().claims`: it is stored
    with the runs and calls that this person starts, and with the approvals that this person gives.
    """

    tenant: str
    subject: str
    scopes: frozenset[str] = DEFAULT_SCOPES
    claims: Claims = field(default_factory=dict)

    @property
    def owner(self) -> Owner:
        return Owner(self.tenant, self.subject)


Who: TypeAlias = Owner | Principal
"""Whose call it is; a principal's claims reach the tool as well."""

LOCAL = Owner("local", "me")
"""The owner of everything when an Agent is used without an app."""


def space_of(who: Who) -> Owner:
    """The owner in whose space this person or program works."""
    return who.owner if isinstance(who, Principal) else who


def claims_of(who: Who) -> Claims:
    return who.claims if isinstance(who, Principal) else {}
