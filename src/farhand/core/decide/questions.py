"""The rules of a question: a call that a server tool opens while it is at work, and waits for."""

from __future__ import annotations

from msgspec import Struct

from farhand.core.call import Call, Phase
from farhand.core.call_state import opened_call
from farhand.core.decide.decision import Decision
from farhand.core.decide.direct import NoRoom
from farhand.core.decide.opening import BACKSTOP_SEC, Opening, opened
from farhand.core.decide.runs import no_room
from farhand.core.event import TakeRenewed
from farhand.core.outcome import canonical
from farhand.core.settings import Settings
from farhand.core.state import ThreadState


class AskerGone(Struct, frozen=True, gc=False):
    """The call whose tool asks is not at work any more: it was settled, or somebody else runs it."""


class QuestionChanged(Struct, frozen=True, gc=False):
    """The same question was asked before, of another tool or with another input."""


Asked = Call | NoRoom | AskerGone | QuestionChanged


def open_question(
    thread: ThreadState, opening: Opening, holder: str, *, now: float, settings: Settings, room: int
) -> Decision[Asked]:
    """The question as it is opened, or as it was when a tool that is run again asked it before. `holder` runs
    the tool that asks. While a question is open, the deadline of that tool is out of reach."""
    assert opening.parent is not None, "a question names the call that asks it"
    parent = thread.calls.get(opening.parent.call_id)
    if parent is None or parent.phase is not Phase.TAKEN:
        return Decision(AskerGone())
    if parent.take is None or parent.take.holder != holder:
        return Decision(AskerGone())
    known = next((call for call in thread.calls.values() if call.parent == opening.parent), None)
    if known is not None:
        if known.tool != opening.tool.name or canonical(known.input) != canonical(opening.input):
            return Decision(QuestionChanged())
        still = () if known.phase is Phase.SETTLED else (_hold(parent, known, holder, now, settings),)
        return Decision(known, still)
    event = opened(thread, opening, now=now, patience=settings.patience)
    run_id = None if thread.run is None else thread.run.run_id
    call = opened_call(event, thread.owner, thread.thread_id, run_id, now)
    waiting = sum(each.blocks for each in thread.open_calls())
    full = no_room(waiting, room, settings.limits)
    if full is not None:
        return Decision(NoRoom(full))
    return Decision(call, (event, _hold(parent, call, holder, now, settings)), tools=(opening.tool,))


def _hold(parent: Call, question: Call, holder: str, now: float, settings: Settings) -> TakeRenewed:
    """The asking tool gets its whole time once the question is answered."""
    span = parent.timeout_sec or settings.patience.server_tool
    # a question that needs an approval gets its own deadline with the yes
    answered_by = (question.deadline or now) + settings.patience.park_for
    deadline = max(parent.deadline or 0.0, answered_by + span + BACKSTOP_SEC)
    return TakeRenewed(parent.call_id, holder, deadline)
