"""Results that a Python program hands in: checked as strictly as those from a wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from farhand.agent.answers import Pause, Reaction
from farhand.core.approval import Answer
from farhand.core.call import Phase
from farhand.core.outcome import Failure, Outcome, Success
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Repeated, Unknown
from farhand.errors import Misuse, ResultRefused
from farhand.tools.plain import NotJson, is_text, plain


def reaction_of(call_id: str, brought: Outcome | Answer) -> Reaction:
    """A far hand brings a Success or a Failure, a person an Answer; all else is the program's mistake."""
    match brought:
        case Answer():
            return Reaction(call_id, answer=brought)
        case Success(output=output):
            return Reaction(call_id, Success(_json(call_id, output)))
        case Failure(error=str(error)) if is_text(error):
            return Reaction(call_id, brought)
        case _:
            raise Misuse(
                f"{brought!r} is no result for {call_id}.",
                hint="Bring Success(output), Failure(text), or an Answer for a call that needs a yes.",
            )


def refusal_of(pause: Pause, call_ids: Sequence[str], receipts: Sequence[Receipt]) -> ResultRefused:
    """Why none of the results was taken."""
    asking = {call.call_id for call in pause.open if call.phase is Phase.ASKING}
    told = [
        f"{call_id} {_NEEDS_YES if call_id in asking else _why(receipt)}"
        for call_id, receipt in zip(call_ids, receipts, strict=True)
    ]
    return ResultRefused(f"No result was taken: {'; '.join(told)}.")


_NEEDS_YES = "needs a person's yes first, brought as an Answer"


def _json(call_id: str, output: object) -> object:
    try:
        return plain(output)
    except NotJson as error:
        raise Misuse(f"The output for {call_id} is nothing that JSON can hold: {error}") from None


def _why(receipt: Receipt) -> str:
    match receipt:
        case Refused(reason=reason):
            return f"is {reason}"
        case Conflict(winner=winner):
            return f"has another result already ({winner.kind}) and keeps it"
        case Repeated() | Accepted():
            return "has this result already"
        case Unknown():
            return "is not known here"
    assert_never(receipt)
