"""A post of a client that sends all it has, and what the log says about its parts. Pure.

The client keeps its own history. It is not trusted: it only says what the client need not be sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.attachments import MessageInput
from farhand.agent.start_run import ANSWER_FIRST
from farhand.agent.turns import Turn, last_turn
from farhand.calls.desk import Reply, Submission
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.event import MessageQueued
from farhand.core.outcome import Failure, Outcome, cut
from farhand.core.position import START, Entry, Position
from farhand.core.result import Accepted, Receipt, Repeated, Result
from farhand.core.run import Run
from farhand.core.state import ThreadState
from farhand.core.thread import AssistantMessage, Message, ResultsMessage, Text, UserMessage
from farhand.core.tool import Executor, Tool
from farhand.errors import Malformed, Unanswered


class PostedMessage(Struct, frozen=True):
    """A message of the user at the end of the client's history."""

    message_id: str
    parts: tuple[MessageInput, ...]

    @property
    def text(self) -> str:
        return "".join([part.text for part in self.parts if isinstance(part, Text)])


class QuestionAnswer(Struct, frozen=True):
    """An answer by the id of its question: an approval, or what a tool asks.

    `answer` is None if this is neither an approval nor a denial, and `complaint` says why; `outcome` is the
    same as the answer to a tool.
    """

    question_id: str
    answer: Answer | None
    outcome: Outcome
    complaint: str = ""


class Post(Struct, frozen=True, kw_only=True):
    """`messages` and `results` are those after the last answer in the client's history. `shown_calls` and
    `shown_results` are the calls and results anywhere in it."""

    thread_id: str
    alias: str
    tools: tuple[Tool, ...] = ()
    messages: tuple[PostedMessage, ...] = ()
    results: tuple[Result, ...] = ()
    answers: tuple[QuestionAnswer, ...] = ()
    shown_calls: frozenset[str] = frozenset()
    shown_results: frozenset[str] = frozenset()


class PostedTurn(Struct, frozen=True, kw_only=True):
    """A run, and what the client must be sent of it: the events after `after`, without results that it
    has."""

    run: Run
    after: Position = START
    seen: tuple[Entry, ...] = ()
    """The events up to there."""
    past: int = 0
    """The run's last event when the turn was stored: a pause before it is over."""
    is_at_rest: bool = False
    """Nothing happens until a person or a page answers: the response ends after the event `past`."""
    shown_calls: frozenset[str] = frozenset()
    shown_results: frozenset[str] = frozenset()
    history: tuple[Message, ...] | None = None
    """The messages up to `after`, for a client whose own history is wrong; None if it needs no correction."""
    settled: tuple[Call, ...] = ()
    """Calls of the last message in `history` that have their outcome."""
    hidden: frozenset[str] = frozenset()
    """Calls for the page that the client has not been sent yet: it executes whatever it sees."""
    following: str | None = None
    """The run that answers the message sent with the answers: it starts when this one ends or waits again."""


class PostView(Struct, frozen=True):
    """A thread read once: its last run, its messages, and the message that is queued for that run."""

    turn: Turn | None
    messages: tuple[Message, ...]
    queued: MessageQueued | None = None

    def user_message(self, message_id: str) -> UserMessage | None:
        return next((each for each in self._said() if each.message_id == message_id), None)

    def message_ids(self) -> set[str]:
        """The user's messages that are known."""
        return {each.message_id for each in self._said()}

    def is_last(self, message_id: str) -> bool:
        """Whether the user has sent nothing since."""
        return [each.message_id for each in self._said()][-1:] == [message_id]

    def _said(self) -> list[UserMessage]:
        said = [each for each in self.messages if isinstance(each, UserMessage)]
        return said if self.queued is None else [*said, self.queued.message]


def looked(thread: ThreadState) -> PostView:
    return PostView(last_turn(thread), tuple(thread.messages), thread.queued)


def question_id(call: Call) -> str:
    """An approval by its own id; a tool's question by the id of its call."""
    if call.approval is None or (call.parent is not None and call.phase is not Phase.ASKING):
        return call.call_id
    return call.approval.approval_id


def was_asked(call: Call) -> bool:
    """Whether a person is or was asked about it: for an approval, or by a tool."""
    return call.approval is not None or call.parent is not None


def open_questions(calls: Collection[Call]) -> list[Call]:
    """Calls that wait for an approval, and questions of tools."""
    return [call for call in calls if call.asks]


def is_approved_work(call: Call) -> bool:
    """A server tool that a person has approved and that has not ended."""
    is_open = call.executor is Executor.SERVER and call.phase in (Phase.READY, Phase.TAKEN)
    return is_open and call.approval is not None


def is_hidden(call: Call, visible: Collection[str]) -> bool:
    is_open = call.executor is Executor.FRONTEND and call.phase is not Phase.SETTLED
    return is_open and call.call_id not in visible


def new_message(posted: Sequence[PostedMessage], look: PostView) -> PostedMessage | None:
    """What the user sent after the last known message; None if that is the last one."""
    new: list[PostedMessage] = []
    known = look.message_ids()
    for each in posted:
        if each.message_id in known:
            new.clear()
        else:
            new.append(each)
    if not new:
        return None
    return PostedMessage(new[-1].message_id, tuple(part for each in new for part in each.parts))


def text_sent_with_last(posted: Sequence[PostedMessage], look: PostView) -> str:
    """The last message with the unknown ones right before it: together they were stored as one."""
    known = look.message_ids()
    texts = [posted[-1].text]
    for each in reversed(posted[:-1]):
        if each.message_id in known:
            break
        texts.append(each.text)
    return "".join(reversed(texts))


def results_of_run(results: Sequence[Result], turn: Turn) -> list[Result]:
    """The results for calls of this run that far hands answer: nobody else answers for a server tool."""
    far = {call.call_id for call in turn.calls if call.executor is not Executor.SERVER}
    return [each for each in results if each.call_id in far]


def refuse_unanswered(calls: Sequence[Call], named: Collection[str] = ()) -> None:
    missing = [question_id(call) for call in calls if question_id(call) not in named]
    if missing:
        raise Unanswered(
            f"The thread waits for an answer to {', '.join(missing)}.",
            hint=ANSWER_FIRST,
        )


def submission_of(answered: QuestionAnswer, call: Call) -> Submission | None:
    """None for a question that has been answered since."""
    if call.phase is Phase.ASKING and call.approval is not None:
        if answered.answer is None:
            raise Malformed(
                f"The answer to {answered.question_id} {answered.complaint}.", hint="Nothing was applied."
            )
        return Reply(answered.question_id, answered.answer)
    if call.parent is not None and call.phase is not Phase.SETTLED:
        return Result(call_id=call.call_id, outcome=answered.outcome)
    return None


def with_short_errors(results: Sequence[Result], limit: int) -> tuple[Result, ...]:
    """Errors cut to a readable length: a page sends whatever was thrown in it, and cannot send less."""
    return tuple(
        replace(each, outcome=Failure(cut(each.outcome.error, limit)))
        if isinstance(each.outcome, Failure)
        else each
        for each in results
    )


def is_lost(receipts: Sequence[Receipt]) -> bool:
    return any(not isinstance(receipt, Accepted | Repeated) for receipt in receipts)


def is_until(message: Message, run: Run, step: int) -> bool:
    match message:
        case AssistantMessage(run_id=run.run_id, step=at):
            return at <= step
        case ResultsMessage(run_id=run.run_id, step=at):
            return at < step
        case _:
            return True
