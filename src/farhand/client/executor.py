"""Executes the calls that the server sends: each one once, a limited number at a time. Sends each result
until the server accepts it.

A call id is remembered when it is first seen, so a call that is sent again on a new stream is not executed
again. It must not know streams.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from msgspec import Struct

from farhand.client.call_context import CallContext, enter
from farhand.client.connection import ServerConnection, Unreachable, retry_until_reached
from farhand.core.outcome import Failure, Success
from farhand.errors import Rejected
from farhand.tools.toolbox import Toolbox

log = logging.getLogger("farhand.client")

INTERRUPTED = Failure(
    "The client program was restarted while it had this call. Whether it took effect is unknown; "
    "it was not run again."
)
CLIENT_STOPPED = Failure("The client program was stopped before the call was finished.")

A_DAY_SEC = 86_400.0
RENEW_SEC = 10.0
MAX_SEEN_CALLS = 10_000
LAST_RESULT_SEC = 3.0
REPORT_EVERY_SEC = 0.5
"""A handler may report progress a thousand times a second; people can read two texts."""


class CallRequest(Struct, frozen=True, rename={"call_id": "requestID", "thread_id": "sessionID"}):
    """A request of the server. `again` is True if another program took the call as this client before."""

    call_id: str
    tool: str
    input: dict[str, object] = {}
    thread_id: str = ""
    again: bool = False


@dataclass
class RunningCall:
    call: CallContext
    task: asyncio.Task[None] | None = None
    executing: bool = False
    outcome: Success | Failure | None = None
    """Set once it is known; then it only has to be sent."""
    unsent: str = ""
    """The last progress text that the server does not have yet."""


class CallExecutor:
    """Its tasks are in no task group: a handler that never ends must not keep the client from stopping."""

    def __init__(self, server: ServerConnection, toolbox: Toolbox, *, at_once: int) -> None:
        self._server = server
        self._toolbox = toolbox
        self._slots = asyncio.Semaphore(at_once)
        self._jobs: dict[str, RunningCall] = {}
        self._seen: dict[str, None] = {}
        self._alive = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def take(self, request: CallRequest) -> None:
        """Starts a new call. A call that was seen before is ignored: it is running or has its result."""
        if request.call_id in self._seen or self._closed:
            return
        self._remember(request.call_id)
        job = RunningCall(
            CallContext(
                request.call_id, request.tool, request.thread_id, partial(self._report_later, request.call_id)
            )
        )
        self._jobs[request.call_id] = job
        # not in a group, which would wait for a handler that ignores its cancellation
        job.task = asyncio.create_task(self._do(job, request))  # noqa: TID251

    def drop(self, call_id: str) -> None:
        """Stops the handler of a call that already has an outcome."""
        job = self._jobs.get(call_id)
        if job is not None and job.outcome is None and job.task is not None:
            log.info("call %s of %s is settled; stopping its handler", call_id, job.call.tool)
            job.task.cancel()

    async def keep_alive(self) -> None:
        """Runs forever: tells the server which calls are running, and stops those that are settled."""
        while True:
            has_report = await self._has_report()
            for job in [job for job in self._jobs.values() if job.executing and job.outcome is None]:
                # all of them at intervals; in between, those with something to report
                if job.unsent or not has_report:
                    await self._report(job)
            await asyncio.sleep(REPORT_EVERY_SEC)

    async def _has_report(self) -> bool:
        try:
            async with asyncio.timeout(RENEW_SEC):
                await self._alive.wait()
        except TimeoutError:
            return False
        self._alive.clear()
        return True

    async def close(self, seconds: float) -> None:
        """Starts no more calls. Running ones get this many seconds, then they are stopped and fail."""
        self._closed = True
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        left = list(self._jobs.values())
        for job in left:
            if job.task is not None:
                job.task.cancel()
        await asyncio.gather(*(self._send_last(job) for job in left))

    async def _do(self, job: RunningCall, request: CallRequest) -> None:
        try:
            job.outcome = INTERRUPTED if request.again else await self._execute(job, request)
            await self._answer(job.call, job.outcome)
        except Exception:
            # the other calls continue
            log.exception("call %s of %s crashed", request.call_id, request.tool)
        finally:
            del self._jobs[request.call_id]

    async def _execute(self, job: RunningCall, request: CallRequest) -> Success | Failure:
        async with self._slots:
            job.executing = True
            enter(job.call)
            # the server enforces the deadline and sends an event when it has passed
            return await self._toolbox.execute(
                request.tool, request.input, within=A_DAY_SEC, call_id=request.call_id
            )

    async def _answer(self, call: CallContext, outcome: Success | Failure) -> None:
        try:
            await retry_until_reached(partial(self._server.result, _body(call, outcome)))
        except Rejected as error:
            if error.status in {400, 413} and isinstance(outcome, Success):
                # otherwise the server would keep waiting for a result that it does not accept
                await self._answer(call, Failure(f"The result could not be sent. {error.message}"))
                return
            # late, repeated or unknown results are expected
            log.info("the server did not accept the result of call %s: %s", call.call_id, error)

    async def _send_last(self, job: RunningCall) -> None:
        """Sends an outcome that the server has not accepted yet; a call without one was stopped."""
        body = _body(job.call, job.outcome or CLIENT_STOPPED)
        try:
            await retry_until_reached(partial(self._server.result, body), within=LAST_RESULT_SEC)
        except (Unreachable, Rejected) as error:
            log.warning("could not send the result of call %s: %s", job.call.call_id, error)

    async def _report(self, job: RunningCall) -> None:
        text, job.unsent = job.unsent, ""
        try:
            await self._server.progress(job.call.call_id, text)
        except Unreachable:
            return
        except Rejected as error:
            # a conflict only means that another program has taken the call; that does not end it
            if error.status in {404, 410}:
                self.drop(job.call.call_id)

    def _report_later(self, call_id: str, text: str) -> None:
        """Safe to call from any thread."""
        self._loop.call_soon_threadsafe(self._note, call_id, text)

    def _note(self, call_id: str, text: str) -> None:
        job = self._jobs.get(call_id)
        if job is not None:
            job.unsent = text
            self._alive.set()

    def _remember(self, call_id: str) -> None:
        self._seen[call_id] = None
        if len(self._seen) > MAX_SEEN_CALLS:
            # the older half, without calls that are running: settled calls are not sent again
            for old in list(self._seen)[: MAX_SEEN_CALLS // 2]:
                if old not in self._jobs:
                    del self._seen[old]


def _body(call: CallContext, outcome: Success | Failure) -> dict[str, object]:
    body: dict[str, object] = {"requestID": call.call_id}
    if isinstance(outcome, Failure):
        return {**body, "status": "error", "error": outcome.error}
    return {**body, "status": "success", "output": outcome.output, **call.extras()}
