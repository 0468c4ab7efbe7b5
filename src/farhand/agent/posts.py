"""What one post of a client does that sends all it has: its tools, results, answers and a new message.

The client keeps a history of its own. Nothing of that is believed: it only says what the client need not be
shown again. A post loads the thread once, decides, and returns a value for a face to encode.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.attachments import MessageInput, store_message
from farhand.agent.context import AgentContext
from farhand.agent.offered_tools import ToolDescription, admit_brought
from farhand.agent.start_run import (
    STOPPED_BY_USER,
    Asker,
    StartedRun,
    ThreadPlace,
    answer_again,
    start_run,
    stop_run,
)
from farhand.agent.turns import CallAnswers, Turn, Turns, begun_turn, last_turn
from farhand.agent.worker import Worker
from farhand.calls.desk import Reply, Submission
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.decide import runs
from farhand.core.outcome import Outcome
from farhand.core.position import START, Entry, Position
from farhand.core.principal import Owner, Principal
from farhand.core.result import Accepted, Receipt, Repeated, Result
from farhand.core.run import Run
from farhand.core.state import ThreadState
from farhand.core.thread import AssistantMessage, Message, ResultsMessage, Text, UserMessage, text_of
from farhand.core.tool import Executor, Tool
from farhand.errors import Busy, Malformed, NotAllowed, NotFound, Unanswered
from farhand.store.base import bounded_wait
from farhand.tools.context import Context

ABANDONED = "nobody was reading when the next message came"
READER_LEAVES_WITHIN_SEC = 1.0
"""A client that gave up a response and posts at once may be faster than the news that it is gone."""
LOOK_SEC = 0.05


class PostedMessage(Struct, frozen=True):
    """A message of the user at the end of the client's history."""

    message_id: str
    parts: tuple[MessageInput, ...]

    @property
    def text(self) -> str:
        return "".join([part.text for part in self.parts if isinstance(part, Text)])


class QuestionAnswer(Struct, frozen=True):
    """An answer by the id of its question: an approval, or what a tool asks.

    `answer` is None if this is no yes or no; `outcome` is the same as the answer to a tool.
    """

    question_id: str
    answer: Answer | None
    outcome: Outcome


class Post(Struct, frozen=True, kw_only=True):
    """`messages` and `results` are those behind the last answer in the client's history. `shown_calls` and
    `shown_results` are the calls and results that the client has anywhere in it."""

    thread_id: str
    alias: str
    tools: tuple[Tool, ...] = ()
    messages: tuple[PostedMessage, ...] = ()
    results: tuple[Result, ...] = ()
    answers: tuple[QuestionAnswer, ...] = ()
    shown_calls: frozenset[str] = frozenset()
    shown_results: frozenset[str] = frozenset()


class PostedTurn(Struct, frozen=True, kw_only=True):
    """A run, and what of it the client has to be shown: the events behind `after`, without results that it
    has."""

    run: Run
    after: Position = START
    seen: tuple[Entry, ...] = ()
    """The events up to there."""
    past: int = 0
    """The run's last event when the turn was stored: a pause before it is over."""
    is_at_rest: bool = False
    """Nothing happens until somebody answers: the response ends after the event `past`."""
    shown_calls: frozenset[str] = frozenset()
    shown_results: frozenset[str] = frozenset()
    history: tuple[Message, ...] | None = None
    """The record up to `after`, for a client whose own history is wrong; None if it need not be told."""
    settled: tuple[Call, ...] = ()
    """Calls of the last message in `history` that have their outcome."""
    hidden: frozenset[str] = frozenset()
    """Calls of the page that the client was not shown yet: it executes whatever it sees."""
    following: PostedMessage | None = None
    """A message that came beside answers: it is next when the run that they are for ends or waits again."""


class _Look(Struct, frozen=True):
    turn: Turn | None
    messages: tuple[Message, ...]

    def user_message(self, message_id: str) -> UserMessage | None:
        said = (each for each in self.messages if isinstance(each, UserMessage))
        return next((each for each in said if each.message_id == message_id), None)

    def message_ids(self) -> set[str]:
        """The user's messages that are known."""
        return {each.message_id for each in self.messages if isinstance(each, UserMessage)}


class Posts:
    def __init__(self, context: AgentContext, worker: Worker, turns: Turns) -> None:
        self._context = context
        self._worker = worker
        self._turns = turns

    async def admit(self, principal: Principal, tools: Sequence[ToolDescription]) -> tuple[Tool, ...]:
        """The tools that a request brings, as far as they count; `Malformed` for what cannot be a tool."""
        if not tools:
            return ()
        person = Context(owner=principal.owner, claims=principal.claims)
        return admit_brought(tools, await self._context.offered(person))

    async def take(self, principal: Principal, post: Post) -> PostedTurn:
        """Decides what the post means. `Unanswered`, `Busy`, `NotFound` and `Malformed` say why it means
        nothing now; nothing was applied then."""
        look = await self._look(principal.owner, post.thread_id)
        if post.answers:
            return await self._answer(principal, post, look)
        new = _new_message(post.messages, look)
        if new is not None:
            return await self._begin(principal, post, look.turn, new)
        if look.turn is None:
            raise NotFound("There is no such thread, and no message of a user to begin it with.")
        if post.messages:
            return await self._repeat(principal, post, look, post.messages[-1])
        mine = _of_run(post.results, look.turn)
        if not mine:
            return await self._whole(post, look.turn)
        return await self._settle(principal, post, look.turn.run, mine)

    async def connect(
        self, principal: Principal, thread_id: str, tools: tuple[Tool, ...]
    ) -> PostedTurn | None:
        """The thread's last run from its start, and the record before it; None if there is none."""
        look = await self._look(principal.owner, thread_id)
        if look.turn is None:
            return None
        return await self._whole(Post(thread_id=thread_id, alias="", tools=tools), look.turn)

    async def stop(self, owner: Owner, thread_id: str, alias: str | None) -> bool:
        """Stops the thread's run if it is still called so, or whatever it is called for None."""
        look = await self._look(owner, thread_id)
        run = None if look.turn is None else look.turn.run
        if run is None or not run.active or (alias is not None and run.alias != alias):
            return False
        return await self._stop(run, STOPPED_BY_USER)

    # ------------------------------------------------------------------------------------- a new message

    async def _begin(
        self, principal: Principal, post: Post, last: Turn | None, new: PostedMessage
    ) -> PostedTurn:
        results: tuple[Submission, ...] = ()
        if last is not None and last.run.active:
            _refuse_unanswered(open_questions(last.calls))
            brought = CallAnswers(tuple(_of_run(post.results, last)), ())
            results = tuple(await self._turns.prepare(principal, brought, last.calls))
        place = _place(principal, post, results)
        message = await self._store(place, new)
        try:
            started = await self._start(place, message)
        except Busy:
            if last is None or not await self._is_left(last.run):
                raise
            await self._stop(last.run, ABANDONED)
            started = await self._start(place, message)
        return await self._begun(started, message, is_corrected=_is_lost(started.receipts))

    async def begin_following(self, principal: Principal, post: Post, new: PostedMessage) -> PostedTurn:
        """The message that came beside answers. What the run asks since then nobody was shown: the user has
        moved on."""
        place = _place(principal, post)
        message = await self._store(place, new)
        return await self._begun(await self._start(place, message), message, is_corrected=True)

    async def _store(self, place: ThreadPlace, new: PostedMessage) -> UserMessage:
        return await store_message(
            self._context.files, place.owner, place.thread_id, message_id=new.message_id, said=new.parts
        )

    async def _start(self, place: ThreadPlace, message: UserMessage) -> StartedRun:
        return await bounded_wait(self._context.log, start_run(self._context, place, message, hold_for=0.0))

    async def _begun(
        self, started: StartedRun, message: UserMessage | None, *, is_corrected: bool
    ) -> PostedTurn:
        if started.again:
            return await self._replay(await self._turns.load(started.run))
        turn = begun_turn(started.run, message)
        history = await self._before(turn.run) if is_corrected else None
        return PostedTurn(run=turn.run, after=turn.after, past=turn.after.seq, history=history)

    async def _is_left(self, run: Run) -> bool:
        """Whether nobody reads the run any more."""
        broker = self._context.log.broker
        for _ in range(round(READER_LEAVES_WITHIN_SEC / LOOK_SEC)):
            if not broker.count(run.run_id):
                return True
            await asyncio.sleep(LOOK_SEC)
        return False

    async def _stop(self, run: Run, reason: str) -> bool:
        # what the model has written so far is kept
        self._worker.flush(run.run_id)
        return await bounded_wait(self._context.log, stop_run(self._context, run, reason))

    # ---------------------------------------------------------------------------------- nothing is new

    async def _repeat(
        self, principal: Principal, post: Post, look: _Look, asked: PostedMessage
    ) -> PostedTurn:
        """The last message of the post is known: the answer that it has, if nobody has read that, or else
        another one. Nothing is cut where the thread has gone on since."""
        known, turn = look.user_message(asked.message_id), look.turn
        assert known is not None, "a message that is not known is a new one"
        assert turn is not None, "a thread with a message has a run"
        if text_of(known) not in (asked.text, _text_sent_with_last(post.messages, look)):
            raise Malformed(
                "A different message with this id already exists in this thread.",
                hint="Give a new message an id of its own.",
            )
        if turn.run.user_message_id != asked.message_id:
            return await self._whole(post, turn)
        if turn.run.active or not turn.run.is_delivered:
            return await self._whole(post, turn)
        again = answer_again(self._context, _place(principal, post), instead_of=None, hold_for=0.0)
        return await self._begun(await bounded_wait(self._context.log, again), None, is_corrected=False)

    async def _whole(self, post: Post, turn: Turn) -> PostedTurn:
        """The last run from its start, behind the record, whatever the client has."""
        await self._bring(post, turn.run)
        shown = await self._replay(turn)
        if shown.after != START:
            messages = await self._context.log.messages(turn.run.owner, turn.run.thread_id)
            return replace(shown, history=tuple(messages))
        return replace(shown, history=await self._before(turn.run))

    async def _replay(self, turn: Turn) -> PostedTurn:
        run = turn.run
        shown = PostedTurn(run=run, past=run.last_seq, is_at_rest=turn.is_at_rest)
        if run.active:
            return shown
        journal = await self._context.log.entries(run)
        if journal and journal[0].seq == 1:
            return shown
        # its events were removed since; the messages are all that is kept of it
        return replace(shown, after=Position(run.last_seq), is_at_rest=True)

    # --------------------------------------------------------------------------------- results and answers

    async def _settle(
        self, principal: Principal, post: Post, run: Run, results: Sequence[Result]
    ) -> PostedTurn:
        call_ids = tuple(dict.fromkeys(each.call_id for each in results))
        answers = CallAnswers(tuple(results), call_ids)
        return await self._accept(principal, post, run, answers)

    async def _answer(self, principal: Principal, post: Post, look: _Look) -> PostedTurn:
        """Answers to every open question of the run, and to none that was never asked."""
        if "approve" not in principal.scopes:
            raise NotAllowed("This credential may not approve.", hint="Nothing was applied.")
        if look.turn is None:
            raise Unanswered("There is no such thread, so it has no interrupts.")
        asked = {question_id(call): call for call in look.turn.calls if was_asked(call)}
        named = {each.question_id for each in post.answers}
        if len(named) < len(post.answers):
            raise Malformed("An interrupt is answered twice in one request.", hint="Nothing was applied.")
        _refuse_unanswered([call for call in open_questions(look.turn.calls) if call.parent is None], named)
        await self._refuse_unknown(principal.owner, post.thread_id, named - set(asked))
        calls = [asked[each] for each in named if each in asked]
        following = _new_message(post.messages, look)
        if not calls:
            # answered in a run before this one, but what the user says now is new
            return replace(await self._whole(post, look.turn), following=following)
        answered = frozenset(call.call_id for call in calls)
        named_here = (each for each in post.answers if each.question_id in asked)
        items = [item for each in named_here if (item := _submission(each, asked[each.question_id]))]
        for item in await self._turns.prepare(principal, CallAnswers(tuple(items), ()), look.turn.calls):
            if isinstance(item, Result):
                await self._context.desk.check_fit(principal.owner, item)
        beside = [each for each in _of_run(post.results, look.turn) if each.call_id not in answered]
        call_ids = (*answered, *(each.call_id for each in beside))
        # a page may keep the answer as the result of the call that it approved
        mistaken = answered & post.shown_results
        answers = CallAnswers((*items, *beside), call_ids)
        turn = await self._accept(principal, post, look.turn.run, answers, mistaken=mistaken)
        return replace(turn, following=following)

    async def _refuse_unknown(self, owner: Owner, thread_id: str, named: Collection[str]) -> None:
        for each in named:
            call = await self._context.log.get_asking(owner, each) or await self._context.log.get_call(
                owner, each
            )
            if call is None or call.thread_id != thread_id:
                raise Unanswered(f"There is no interrupt {each} in this thread.", hint="Nothing was applied.")

    async def _accept(
        self,
        principal: Principal,
        post: Post,
        run: Run,
        answers: CallAnswers,
        *,
        mistaken: frozenset[str] = frozenset(),
    ) -> PostedTurn:
        """`mistaken` are calls that the client shows with a result which they do not have."""
        await self._bring(post, run)
        turn = await self._turns.answer(principal, post.thread_id, answers, wait="turn")
        is_lost = bool(mistaken) or _is_lost(
            [receipt for item, receipt in turn.receipts if isinstance(item, Result)]
        )
        journal = await self._context.log.entries(turn.run)
        shown = PostedTurn(
            run=turn.run,
            after=turn.after,
            seen=tuple(entry for entry in journal if entry.seq <= turn.after.seq),
            past=turn.run.last_seq,
            is_at_rest=turn.is_at_rest,
            shown_calls=post.shown_calls,
            shown_results=post.shown_results,
        )
        return await self._corrected(shown, turn, answers.call_ids) if is_lost else shown

    async def _corrected(self, shown: PostedTurn, turn: Turn, call_ids: Collection[str]) -> PostedTurn:
        """The record as far as the client has the run: up to the step whose calls it answered."""
        run = turn.run
        step = max(call.step for call in turn.calls if call.call_id in call_ids)
        messages = await self._context.log.messages(run.owner, run.thread_id)
        settled = tuple(
            call
            for call in turn.calls
            if call.step == step and call.phase is Phase.SETTLED and call.parent is None
        )
        return replace(
            shown,
            history=tuple(each for each in messages if _is_until(each, run, step)),
            settled=settled,
            shown_results=frozenset(call.call_id for call in settled),
            hidden=frozenset(call.call_id for call in turn.calls if _is_hidden(call, shown.shown_calls)),
        )

    # ---------------------------------------------------------------------------------------------- loading

    async def _look(self, owner: Owner, thread_id: str) -> _Look:
        return await self._context.log.read(owner, thread_id, _looked)

    async def _before(self, run: Run) -> tuple[Message, ...]:
        messages = await self._context.log.messages(run.owner, run.thread_id)
        return tuple(each for each in messages if isinstance(each, UserMessage) or each.run_id != run.run_id)

    async def _bring(self, post: Post, run: Run) -> None:
        """The newest request of a thread says which tools it has, and how it calls the run."""
        if not run.active:
            return
        await bounded_wait(
            self._context.log,
            self._context.log.decide(
                run.owner,
                run.thread_id,
                lambda thread, now: runs.bring_tools(thread, run.run_id, post.tools, alias=post.alias),
            ),
        )


def _place(principal: Principal, post: Post, results: tuple[Submission, ...] = ()) -> ThreadPlace:
    asker = Asker(principal.claims, post.tools, results, post.alias)
    return ThreadPlace(principal.owner, post.thread_id, asker)


def _looked(thread: ThreadState) -> _Look:
    return _Look(last_turn(thread), tuple(thread.messages))


def question_id(call: Call) -> str:
    """An approval by its own id; what a tool asks, by that of its call."""
    if call.approval is None or (call.parent is not None and call.phase is not Phase.ASKING):
        return call.call_id
    return call.approval.approval_id


def was_asked(call: Call) -> bool:
    """Whether a person is or was asked about it: for a yes or no, or by a tool."""
    return call.approval is not None or call.parent is not None


def open_questions(calls: Collection[Call]) -> list[Call]:
    """Calls that wait for a yes or no, and what tools ask."""
    return [
        call
        for call in calls
        if call.phase is Phase.ASKING or (call.parent is not None and call.phase is not Phase.SETTLED)
    ]


def _is_hidden(call: Call, shown: Collection[str]) -> bool:
    is_open = call.executor is Executor.FRONTEND and call.phase is not Phase.SETTLED
    return is_open and call.call_id not in shown


def _new_message(posted: Sequence[PostedMessage], look: _Look) -> PostedMessage | None:
    """What the user said behind the last message that is known; None if that is the last one."""
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


def _text_sent_with_last(posted: Sequence[PostedMessage], look: _Look) -> str:
    """The last message with those right before it that are not known: together they were stored as one."""
    known = look.message_ids()
    texts = [posted[-1].text]
    for each in reversed(posted[:-1]):
        if each.message_id in known:
            break
        texts.append(each.text)
    return "".join(reversed(texts))


def _of_run(results: Sequence[Result], turn: Turn) -> list[Result]:
    """Those for calls of this run that far hands answer: what runs on the server, nobody else answers."""
    far = {call.call_id for call in turn.calls if call.executor is not Executor.SERVER}
    return [each for each in results if each.call_id in far]


def _refuse_unanswered(calls: Sequence[Call], named: Collection[str] = ()) -> None:
    missing = [question_id(call) for call in calls if question_id(call) not in named]
    if missing:
        raise Unanswered(
            f"The thread waits for an answer to {', '.join(missing)}.",
            hint="Answer every open interrupt; nothing was applied.",
        )


def _submission(answered: QuestionAnswer, call: Call) -> Submission | None:
    """None for what has been answered since."""
    if call.phase is Phase.ASKING and call.approval is not None:
        if answered.answer is None:
            raise Malformed(
                f"The answer to {answered.question_id} does not say `approved`: true or false.",
                hint="Nothing was applied.",
            )
        return Reply(answered.question_id, answered.answer)
    if call.parent is not None and call.phase is not Phase.SETTLED:
        return Result(call_id=call.call_id, outcome=answered.outcome)
    return None


def _is_lost(receipts: Sequence[Receipt]) -> bool:
    return any(not isinstance(receipt, Accepted | Repeated) for receipt in receipts)


def _is_until(message: Message, run: Run, step: int) -> bool:
    match message:
        case AssistantMessage(run_id=run.run_id, step=at):
            return at <= step
        case ResultsMessage(run_id=run.run_id, step=at):
            return at < step
        case _:
            return True
