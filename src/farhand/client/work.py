"""The calls that this program was asked for: each run once, some at a time, answered until the receipt.

A call id is remembered from its first sight, so that what is offered again on a new stream is not run again.
Must not know streams.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from msgspec import Struct

from farhand.client.link import Away, Link
from farhand.client.ongoing import Ongoing, begin
from farhand.client.retry import until_reached
from farhand.core.outcome import Failure, Success
from farhand.errors import Rejected
from farhand.tools.toolbox import Toolbox

log = logging.getLogger("farhand.client")

INTERRUPTED = Failure(
    "The client program was restarted while it had this call. Whether it took effect is unknown; "
    "it was not run again."
)
STOPPED = Failure("The client program was stopped before the call was finished.")

A_DAY_SEC = 86_400.0
RENEW_SEC = 10.0
REMEMBERED = 10_000
LAST_WORD_SEC = 3.0
SAID_EVERY_SEC = 0.5
"""A handler may say a thousand things a second; people read two of them."""


class Asked(Struct, frozen=True, rename={"call_id": "requestID", "thread_id": "sessionID"}):
    """One request of the server. `again`: a program that was this client before had it."""

    call_id: str
    tool: str
    input: dict[str, object] = {}
    thread_id: str = ""
    again: bool = False


@dataclass
class Job:
    ongoing: Ongoing
    task: asyncio.Task[None] | None = None
    executing: bool = False
    outcome: Success | Failure | None = None
    """Once it is known; then only the answering is left."""
    said: str = ""
    """How far it is, if the server was not told yet."""


class Work:
    """Its tasks are its own: a handler that will not end holds up nobody who wants to stop."""

    def __init__(self, link: Link, toolbox: Toolbox, *, at_once: int) -> None:
        self._link = link
        self._toolbox = toolbox
        self._slots = asyncio.Semaphore(at_once)
        self._jobs: dict[str, Job] = {}
        self._seen: dict[str, None] = {}
        self._alive = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def take(self, asked: Asked) -> None:
        """Begins with a call that is new; one that is known is under way or answered."""
        if asked.call_id in self._seen or self._closed:
            return
        self._remember(asked.call_id)
        job = Job(Ongoing(asked.call_id, asked.tool, asked.thread_id, partial(self._hear, asked.call_id)))
        self._jobs[asked.call_id] = job
        # in no group: a group would wait for a handler that swallows its cancellation
        job.task = asyncio.create_task(self._do(job, asked))  # noqa: TID251

    def drop(self, call_id: str) -> None:
        """The call has its outcome: whatever still works on it may stop."""
        job = self._jobs.get(call_id)
        if job is not None and job.outcome is None and job.task is not None:
            log.info("call %s of %s is over; its handler is stopped", call_id, job.ongoing.tool)
            job.task.cancel()

    async def keep_alive(self) -> None:
        """For ever: tells the server what is still worked on, and learns what needs no work any more."""
        while True:
            said = await self._something_said()
            for job in [job for job in self._jobs.values() if job.executing and job.outcome is None]:
                # all of them now and then; in between, those that have something to say
                if job.said or not said:
                    await self._report(job)
            await asyncio.sleep(SAID_EVERY_SEC)

    async def _something_said(self) -> bool:
        try:
            async with asyncio.timeout(RENEW_SEC):
                await self._alive.wait()
        except TimeoutError:
            return False
        self._alive.clear()
        return True

    async def close(self, seconds: float) -> None:
        """Takes nothing new; what is under way gets so long, then it is stopped and answered as such."""
        self._closed = True
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        left = list(self._jobs.values())
        for job in left:
            if job.task is not None:
                job.task.cancel()
        await asyncio.gather(*(self._last_word(job) for job in left))

    async def _do(self, job: Job, asked: Asked) -> None:
        try:
            job.outcome = INTERRUPTED if asked.again else await self._execute(job, asked)
            await self._answer(job.ongoing, job.outcome)
        except Exception:
            # this call's own affair: the others go on
            log.exception("call %s of %s broke", asked.call_id, asked.tool)
        finally:
            del self._jobs[asked.call_id]

    async def _execute(self, job: Job, asked: Asked) -> Success | Failure:
        async with self._slots:
            job.executing = True
            begin(job.ongoing)
            # the server keeps the time, and says when it is over
            return await self._toolbox.execute(
                asked.tool, asked.input, within=A_DAY_SEC, call_id=asked.call_id
            )

    async def _answer(self, ongoing: Ongoing, outcome: Success | Failure) -> None:
        try:
            await until_reached(partial(self._link.result, _body(ongoing, outcome)))
        except Rejected as error:
            if error.status in {400, 413} and isinstance(outcome, Success):
                # the server must not wait for what it does not take
                await self._answer(ongoing, Failure(f"The result could not be sent. {error.message}"))
                return
            # late, repeated or unknown: everyday life
            log.info("result of call %s was not taken: %s", ongoing.call_id, error)

    async def _last_word(self, job: Job) -> None:
        """What has been done is said as it was, though nobody took it so far."""
        body = _body(job.ongoing, job.outcome or STOPPED)
        try:
            await until_reached(partial(self._link.result, body), within=LAST_WORD_SEC)
        except (Away, Rejected) as error:
            log.warning("call %s was left unanswered: %s", job.ongoing.call_id, error)

    async def _report(self, job: Job) -> None:
        text, job.said = job.said, ""
        try:
            await self._link.progress(job.ongoing.call_id, text)
        except Away:
            return
        except Rejected as error:
            # a take that somebody else has is no end of the call
            if error.status in {404, 410}:
                self.drop(job.ongoing.call_id)

    def _hear(self, call_id: str, text: str) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(self._note, call_id, text)

    def _note(self, call_id: str, text: str) -> None:
        job = self._jobs.get(call_id)
        if job is not None:
            job.said = text
            self._alive.set()

    def _remember(self, call_id: str) -> None:
        self._seen[call_id] = None
        if len(self._seen) > REMEMBERED:
            # the oldest half that is done: the server does not offer again what is answered
            for old in list(self._seen)[: REMEMBERED // 2]:
                if old not in self._jobs:
                    del self._seen[old]


def _body(ongoing: Ongoing, outcome: Success | Failure) -> dict[str, object]:
    body: dict[str, object] = {"requestID": ongoing.call_id}
    if isinstance(outcome, Failure):
        return {**body, "status": "error", "error": outcome.error}
    return {**body, "status": "success", "output": outcome.output, **ongoing.shown()}
