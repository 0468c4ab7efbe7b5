"""A person's approval or denial before a call may run."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from farhand.core.explained_struct import ExplainedStruct
from farhand.errors import Misuse


class Answer(ExplainedStruct, frozen=True, gc=False, kw_only=True):
    """What the person decided. Edited input arrives here and nowhere else."""

    approved: bool
    reason: str = ""
    input: dict[str, object] | None = None
    scope: Literal["once", "thread"] = "once"

    def __post_init__(self) -> None:
        # a host may pass on what a form sent: the text "false" is not an approval
        if not isinstance(self.approved, bool):
            raise Misuse(f"approved must be True or False, not {self.approved!r}.")
        if self.scope not in ("once", "thread"):
            raise Misuse(f"scope must be 'once' or 'thread', not {self.scope!r}.")


class Approval(Struct, frozen=True, gc=False, kw_only=True):
    """Asked with `digest` (tool version and input); answered once. An edit keeps both inputs."""

    approval_id: str
    digest: str
    answer: Answer | None = None
    answered_at: float | None = None
    asked_input: dict[str, object] | None = None
    """The input as the model wrote it, when the person edited it."""
    by: dict[str, object] = {}
    """The claims of the person who answered, who may differ from the person who asked."""
