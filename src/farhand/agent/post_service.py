"""What one post does of a client that sends all it has: its tools, results, answers and a new message.

A post loads the thread once, decides, and returns a value for a face to encode. `post_content` decides what
to trust of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from msgspec.structs import replace

from farhand.agent.attachments import PreparedMessage, prepare_message
from farhand.agent.context import AgentContext
from farhand.agent.offered_tools import ToolDescription, admit_request_tools
from farhand.agent.post_content import (
    Post,
    PostedMessage,
    PostedTurn,
    PostView,
    is_approved_work,
    is_hidden,
    is_lost,
    is_until,
    looked,
    new_message,
    open_questions,
    question_id,
    refuse_unanswered,
    results_of_run,
    submission_of,
    text_sent_with_last,
    was_asked,
    with_short_errors,
)
from farhand.agent.start_run import (
    STOPPED_BY_USER,
    Asker,
    StartedRun,
    ThreadPlace,
    answer_again,
    follow_run,
    start_run,
    stop_run,
)
from farhand.agent.turns import CallAnswers, Turn, Turns, started_turn
from farhand.agent.worker import Worker
from farhand.calls.desk import Submission
from farhand.core.call import Phase
from farhand.core.decide import runs
from farhand.core.decide.queued_messages import accept_with_tools
from farhand.core.event import MessageQueued
from farhand.core.position import START, Position
from farhand.core.principal import Owner, Principal
from farhand.core.result import Receipt, Result
from farhand.core.run import Run, RunState
from farhand.core.thread import Message, UserMessage, text_of
from farhand.core.tool import Tool
from farhand.errors import Busy, Malformed, NotAllowed, NotFound, Unanswered
from farhand.eventlog.pubsub import LOOK_SEC, unread_topic
from farhand.store.base import bounded_wait
from farhand.tools.context import Context

STOP_FIRST = "Wait for its answer, or stop it; nothing was applied."
ABANDONED = "nobody was reading this answer when the next message arrived"
READER_LEAVES_WITHIN_SEC = 1.0
"""A client that gave up a response and posts at once may be faster than the notice that it has left."""


class Posts:
    def __init__(self, context: AgentContext, worker: Worker, turns: Turns) -> None:
        self._context = context
        self._worker = worker
        self._turns = turns

    async def admit(self, principal: Principal, tools: Sequence[ToolDescription]) -> tuple[Tool, ...]:
        """The request tools that are accepted; raises `Malformed` for an invalid tool."""
        if not tools:
            return ()
        person = Context(owner=principal.owner, claims=principal.claims)
        return admit_request_tools(tools, await self._context.offered(person))

    async def take(self, principal: Principal, post: Post) -> PostedTurn:
        """Decides what the post means. `Unanswered`, `Busy`, `NotFound` and `Malformed` say why it cannot be
        applied now; then nothing is applied."""
        look = await self._look(principal.owner, post.thread_id)
        limit = self._context.settings.limits.error_text
        post = replace(post, results=with_short_errors(post.results, limit))
        if post.answers:
            return await self._answer(principal, post, look)
        new = new_message(post.messages, look)
        if new is not None:
            return await self._begin(principal, post, look.turn, new)
        if look.turn is None:
            raise NotFound("There is no such thread, and no user message to start one.")
        if post.messages:
            return await self._repeat(principal, post, look, post.messages[-1])
        mine = results_of_run(post.results, look.turn)
        if not mine:
            return await self._whole(post, look.turn, look.queued)
        return await self._settle(principal, post, look.turn.run, mine)

    async def connect(
        self, principal: Principal, thread_id: str, tools: tuple[Tool, ...]
    ) -> PostedTurn | None:
        """The thread's last run from its start, and the messages before it; None if there is none."""
        look = await self._look(principal.owner, thread_id)
        if look.turn is None:
            return None
        return await self._whole(Post(thread_id=thread_id, alias="", tools=tools), look.turn, look.queued)

    async def follow(self, owner: Owner, run_id: str) -> PostedTurn | None:
        """The run that follows in a response, once the previous one is over; None if it never started."""
        run = await self._context.log.get_run(owner, run_id)
        if run is None:
            return None
        # the messages sent before may have replaced the one that starts this run
        return await self._posted_turn(StartedRun(run), is_corrected=True)

    async def stop(self, owner: Owner, thread_id: str, alias: str | None) -> bool:
        """Stops the thread's run if it still has this name; with None, whatever its name is."""
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
            refuse_unanswered(open_questions(last.calls))
            answers = CallAnswers(tuple(results_of_run(post.results, last)), ())
            results = tuple(await self._turns.prepare(principal, answers, last.calls))
            if last.run.state is RunState.RUNNING and not await self._may_be_stopped(last.run):
                # before anything is stored
                raise Busy("The assistant is still working on the last message.", hint=STOP_FIRST)
        asker = Asker(principal.claims, post.tools, results, post.alias, spares_questions=True)
        place = ThreadPlace(principal.owner, post.thread_id, asker)
        message = await self._prepare(place, new)
        try:
            started = await self._start(place, message)
        except Busy:
            if last is None or not await self._may_be_stopped(last.run):
                raise
            await self._stop(last.run, ABANDONED)
            started = await self._start(place, message)
        if started.again:
            return await self._replay(await self._turns.load(started.run))
        return await self._posted_turn(started, is_corrected=is_lost(started.receipts))

    async def _prepare(self, place: ThreadPlace, new: PostedMessage) -> PreparedMessage:
        return await prepare_message(
            self._context.files, place.owner, place.thread_id, message_id=new.message_id, said=new.parts
        )

    async def _start(self, place: ThreadPlace, message: PreparedMessage) -> StartedRun:
        return await bounded_wait(self._context.log, start_run(self._context, place, message, hold_for=0.0))

    async def _posted_turn(self, started: StartedRun, *, is_corrected: bool) -> PostedTurn:
        turn = started_turn(started.run)
        history = await self._before(turn.run) if is_corrected else None
        return PostedTurn(run=turn.run, after=turn.after, past=turn.after.seq, history=history)

    async def _may_be_stopped(self, run: Run) -> bool:
        """Whether the run has no readers left and does nothing that a person approved: an accepted approval
        is acted on."""
        if not await self._is_left(run):
            return False
        return not any(is_approved_work(call) for call in (await self._turns.load(run)).calls)

    async def _is_left(self, run: Run) -> bool:
        """Whether the run has no readers left."""
        broker, is_shared = self._context.log.broker, self._context.log.is_shared
        # other processes announce their readers only from time to time
        until = broker.loop.time() + READER_LEAVES_WITHIN_SEC + (LOOK_SEC if is_shared else 0.0)
        with broker.subscribe(unread_topic(run.run_id)) as left:
            while broker.count(run.run_id):
                seconds = until - broker.loop.time()
                if seconds <= 0:
                    return False
                left.items.clear()
                await left.wait(seconds)
        return True

    async def _stop(self, run: Run, reason: str) -> bool:
        # what the model has written so far is kept
        self._worker.flush(run.run_id)
        return await bounded_wait(self._context.log, stop_run(self._context, run, reason))

    # ---------------------------------------------------------------------------------- nothing is new

    async def _repeat(
        self, principal: Principal, post: Post, look: PostView, asked: PostedMessage
    ) -> PostedTurn:
        """The last message of the post is known: the answer it has, if nobody has read that, or else another
        one. Nothing is cut if the thread has moved on since."""
        known, turn = look.user_message(asked.message_id), look.turn
        assert known is not None, "a message that is not known is a new one"
        assert turn is not None, "a thread with a message has a run"
        if text_of(known) not in (asked.text, text_sent_with_last(post.messages, look)):
            raise Malformed(
                "A different message with this id already exists in this thread.",
                hint="Give a new message a new id.",
            )
        is_answered = turn.run.user_message_id == asked.message_id
        if turn.run.active or not look.is_last(asked.message_id):
            return await self._whole(post, turn, look.queued)
        if is_answered and not turn.run.is_delivered:
            return await self._whole(post, turn)
        again = answer_again(
            self._context,
            _place(principal, post),
            instead_of=None,
            hold_for=0.0,
            after_run=turn.run.run_id,
        )
        return await self._posted_turn(await bounded_wait(self._context.log, again), is_corrected=False)

    async def _whole(self, post: Post, turn: Turn, queued: MessageQueued | None = None) -> PostedTurn:
        """The last run from its start, after the earlier messages, whatever the client has; then what is
        queued."""
        await self._bring(post, turn.run)
        following = None if queued is None else queued.run_id
        return replace(await self._record(turn), following=following)

    async def _record(self, turn: Turn) -> PostedTurn:
        response = await self._replay(turn)
        if response.after != START:
            messages = await self._context.log.messages(turn.run.owner, turn.run.thread_id)
            return replace(response, history=tuple(messages))
        return replace(response, history=await self._before(turn.run))

    async def _replay(self, turn: Turn) -> PostedTurn:
        run = turn.run
        response = PostedTurn(run=run, past=run.last_seq, is_at_rest=turn.is_at_rest)
        if run.active:
            return response
        journal = await self._context.log.entries(run)
        if journal and journal[0].seq == 1:
            return response
        # its events have been removed since; only its messages are kept
        return replace(response, after=Position(run.last_seq), is_at_rest=True)

    # --------------------------------------------------------------------------------- results and answers

    async def _settle(
        self, principal: Principal, post: Post, run: Run, results: Sequence[Result]
    ) -> PostedTurn:
        call_ids = tuple(dict.fromkeys(each.call_id for each in results))
        answers = CallAnswers(tuple(results), call_ids)
        return await self._accept(principal, post, run, answers)

    async def _answer(self, principal: Principal, post: Post, look: PostView) -> PostedTurn:
        """Answers to every open question of the run, and to none that was never asked."""
        if "approve" not in principal.scopes:
            raise NotAllowed("This credential may not approve.", hint="Nothing was applied.")
        if look.turn is None:
            raise Unanswered("There is no such thread, so it has no interrupts.")
        asked = {question_id(call): call for call in look.turn.calls if was_asked(call)}
        named = {each.question_id for each in post.answers}
        if len(named) < len(post.answers):
            raise Malformed("An interrupt is answered twice in one request.", hint="Nothing was applied.")
        refuse_unanswered([call for call in open_questions(look.turn.calls) if call.parent is None], named)
        await self._refuse_unknown(principal.owner, post.thread_id, named - set(asked))
        calls = [asked[each] for each in named if each in asked]
        new = new_message(post.messages, look)
        if new is not None and look.queued is not None:
            raise Busy("Another message is already queued behind this one.", hint=STOP_FIRST)
        if not calls:
            # answered in an earlier run, but the user's message is new
            response = await self._record(look.turn)
            await self._store_answers(principal, post, look.turn.run, new, ())
            return replace(response, following=await self._run_after(look, principal.owner, new))
        answered = frozenset(call.call_id for call in calls)
        named_here = (each for each in post.answers if each.question_id in asked)
        items = [item for each in named_here if (item := submission_of(each, asked[each.question_id]))]
        for item in await self._turns.prepare(principal, CallAnswers(tuple(items), ()), look.turn.calls):
            if isinstance(item, Result):
                await self._context.desk.check_fit(principal.owner, item)
        beside = [each for each in results_of_run(post.results, look.turn) if each.call_id not in answered]
        call_ids = (*answered, *(each.call_id for each in beside))
        # a page may keep the answer as the result of the call that it approved
        mistaken = answered & post.shown_results
        answers = CallAnswers((*items, *beside), call_ids)
        turn = await self._accept(principal, post, look.turn.run, answers, mistaken=mistaken, new=new)
        return replace(turn, following=await self._run_after(look, principal.owner, new))

    async def _refuse_unknown(self, owner: Owner, thread_id: str, named: Collection[str]) -> None:
        for each in named:
            call = await self._context.log.get_call_of_approval(
                owner, each
            ) or await self._context.log.get_call(owner, each)
            # a call that a program makes beside the run is answered elsewhere
            if call is None or call.thread_id != thread_id or call.run_id is None:
                raise Unanswered(f"There is no interrupt {each} in this thread.", hint="Nothing was applied.")

    async def _accept(
        self,
        principal: Principal,
        post: Post,
        run: Run,
        answers: CallAnswers,
        *,
        mistaken: frozenset[str] = frozenset(),
        new: PostedMessage | None = None,
    ) -> PostedTurn:
        """`mistaken` are calls that the client shows with a result that they do not have, `new` is the
        message that the user sent with the answers."""
        accept = partial(self._store_answers, principal, post, run, new)
        turn = await self._turns.answer(principal, post.thread_id, answers, wait="turn", accept=accept)
        is_wrong = bool(mistaken) or is_lost(
            [receipt for item, receipt in turn.receipts if isinstance(item, Result)]
        )
        journal = await self._context.log.entries(turn.run)
        response = PostedTurn(
            run=turn.run,
            after=turn.after,
            seen=tuple(entry for entry in journal if entry.seq <= turn.after.seq),
            past=turn.run.last_seq,
            is_at_rest=turn.is_at_rest,
            shown_calls=post.shown_calls,
            shown_results=post.shown_results,
        )
        return await self._corrected(response, turn, answers.call_ids) if is_wrong else response

    async def _store_answers(
        self,
        principal: Principal,
        post: Post,
        run: Run,
        new: PostedMessage | None,
        items: Sequence[Submission],
    ) -> list[Receipt]:
        """Stores answers, tools and a message in one append: a refused post changes nothing."""
        log, desk, place = self._context.log, self._context.desk, _place(principal, post, tuple(items))
        if new is not None:
            message = await self._prepare(place, new)
            return await bounded_wait(log, follow_run(self._context, place, message, run_id=run.run_id))
        accepted = desk.accept_with(
            run.owner,
            run.thread_id,
            items,
            lambda thread, accepted: accept_with_tools(
                thread, accepted, run.run_id, post.tools, alias=post.alias
            ),
            lambda thread, receipts: receipts,
        )
        return await desk.complete(run.owner, items, await bounded_wait(log, accepted))

    async def _run_after(self, look: PostView, owner: Owner, new: PostedMessage | None) -> str | None:
        """The run that answers the message sent with these answers, or with the same answers earlier; it may
        have started meanwhile. `look` is from before."""
        if look.queued is not None:
            return look.queued.run_id
        if new is None or look.turn is None:
            return None
        current = await self._look(owner, look.turn.run.thread_id)
        if current.queued is not None:
            return current.queued.run_id
        if current.turn is None or current.turn.run.user_message_id != new.message_id:
            return None
        return current.turn.run.run_id

    async def _corrected(self, response: PostedTurn, turn: Turn, call_ids: Collection[str]) -> PostedTurn:
        """The messages as far as the client has the run: up to the step whose calls it answered."""
        run = turn.run
        messages = await self._context.log.messages(run.owner, run.thread_id)
        step = max((call.step for call in turn.calls if call.call_id in call_ids), default=None)
        if step is None:
            # its details were removed, and another run has started since
            return replace(response, history=tuple(messages))
        settled = tuple(
            call
            for call in turn.calls
            if call.step == step and call.phase is Phase.SETTLED and call.parent is None
        )
        return replace(
            response,
            history=tuple(each for each in messages if is_until(each, run, step)),
            settled=settled,
            shown_results=frozenset(call.call_id for call in settled),
            hidden=frozenset(call.call_id for call in turn.calls if is_hidden(call, response.shown_calls)),
        )

    # ---------------------------------------------------------------------------------------------- loading

    async def _look(self, owner: Owner, thread_id: str) -> PostView:
        return await self._context.log.read(owner, thread_id, looked)

    async def _before(self, run: Run) -> tuple[Message, ...]:
        messages = await self._context.log.messages(run.owner, run.thread_id)
        return tuple(each for each in messages if isinstance(each, UserMessage) or each.run_id != run.run_id)

    async def _bring(self, post: Post, run: Run) -> None:
        """The newest request of a thread says which tools it has, and how it names the run."""
        if not run.active:
            return
        await bounded_wait(
            self._context.log,
            self._context.log.decide(
                run.owner,
                run.thread_id,
                lambda thread, now: runs.change_request_tools(
                    thread, run.run_id, post.tools, alias=post.alias
                ),
            ),
        )


def _place(principal: Principal, post: Post, results: tuple[Submission, ...] = ()) -> ThreadPlace:
    asker = Asker(principal.claims, post.tools, results, post.alias)
    return ThreadPlace(principal.owner, post.thread_id, asker)
