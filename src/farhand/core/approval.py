"""A person's yes or no before a call may run."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Answer(Struct, frozen=True, kw_only=True):
    """What the person said. Edited input arrives here and nowhere else."""

    approved: bool
    reason: str = ""
    input: dict[str, object] | None = None
    scope: Literal["once", "thread"] = "once"


class Approval(Struct, frozen=True, kw_only=True):
    """Asked with `digest` (tool version and input); answered once. An edit keeps both inputs."""

    approval_id: str
    digest: str
    answer: Answer | None = None
    answered_at: float | None = None
    asked_input: dict[str, object] | None = None
    """The input as the model wrote it, when the person edited it."""
