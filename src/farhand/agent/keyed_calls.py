"""Calls with a key, for the loops of other programs: any process can find the call, wait for it, and have it
reported.

A key names a call in its owner's space, forever. A program that asked to be told of its keyed calls is told
of each outcome at least once: by the worker that stored it or, if that one dies first, by another's sweep.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.context import AgentContext
from farhand.core.call import KEY, Call
from farhand.core.decide.direct import claim_report, reported
from farhand.core.outcome import Outcome
from farhand.core.principal import Owner
from farhand.errors import Misuse, StoreDown

log = logging.getLogger("farhand.calls")

KEY_SHAPE = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
RETRY_SEC = 1.0
LONGEST_RETRY_SEC = 60.0


class Waiting(Struct, frozen=True):
    """The call is still open after the time to wait: ask again with the same key, or have it reported through
    `on_settled`. `approval_id` is set while a person has to approve it."""

    call_id: str
    approval_id: str | None = None
    key: str | None = None


class SettledCall(Struct, frozen=True):
    """A keyed call that has its outcome."""

    key: str
    outcome: Outcome
    call_id: str
    tool: str
    owner: Owner
    thread_id: str
    is_last: bool = True
    """No other open call of its thread has a key with the prefix that the function is registered for."""


OnSettled: TypeAlias = Callable[[SettledCall], Awaitable[object]]


class Reporter:
    """Reports settled calls to the program."""

    def __init__(self, context: AgentContext, worker: str) -> None:
        self._context = context
        self._worker = worker
        self._listeners: list[tuple[str, OnSettled]] = []
        self._under_way: set[str] = set()

    def listen(self, prefix: str, function: OnSettled) -> None:
        if not callable(function):
            raise Misuse("on_settled takes the beginning of the keys, and an async function.")
        self._listeners.append((prefix, function))

    def is_wanted(self, key: str) -> bool:
        """Whether a function in this process is registered for this key."""
        return any(key.startswith(prefix) for prefix, _ in self._listeners)

    async def report(self, call: Call, *, is_lost: bool) -> None:
        """Reports the call to the program, unless another worker does; retries until the function returns.
        `is_lost`: the worker that was reporting it is gone."""
        key = _key_of(call)
        if key is None or call.call_id in self._under_way or not self.is_wanted(key):
            return
        self._under_way.add(call.call_id)
        try:
            own = await self._context.log.decide(
                call.owner,
                call.thread_id,
                lambda thread, now: claim_report(thread, call, self._worker, is_lost=is_lost),
            )
            if own is not None:
                await self._tell(own, key)
        finally:
            self._under_way.discard(call.call_id)

    async def _tell(self, call: Call, key: str) -> None:
        assert call.outcome is not None, "only settled calls are reported"
        settled = SettledCall(key, call.outcome, call.call_id, call.tool, call.owner, call.thread_id)
        waiting = [
            _key_of(each) or "" for each in await self._context.log.open_calls(call.owner, call.thread_id)
        ]
        async with asyncio.TaskGroup() as group:
            # separate tasks: one function may fail again and again
            for prefix, function in self._listeners:
                if key.startswith(prefix):
                    is_last = not any(each and each.startswith(prefix) for each in waiting)
                    group.create_task(_call_until_it_returns(function, replace(settled, is_last=is_last)))
        await self._note(call)

    async def _note(self, call: Call) -> None:
        while True:
            try:
                await self._context.log.decide(
                    call.owner, call.thread_id, lambda thread, now: reported(thread, call.call_id)
                )
            except StoreDown as error:
                log.debug("could not store yet that call %s was reported: %s", call.call_id, error)
                await asyncio.sleep(RETRY_SEC)
            else:
                return


def _key_of(call: Call) -> str | None:
    return None if call.request is None else call.request.key


async def _call_until_it_returns(function: OnSettled, settled: SettledCall) -> None:
    pause = RETRY_SEC
    while True:
        try:
            answer: object = function(settled)
            if inspect.isawaitable(answer):
                await answer
        # the program's function may raise anything; it is called again, as promised
        except Exception:
            log.exception("on_settled failed for key %s; it is called again in %g s", settled.key, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_RETRY_SEC)
        else:
            return


def request_id_of(key: object) -> str:
    """The name under which the store knows the key."""
    if not isinstance(key, str) or KEY_SHAPE.fullmatch(key) is None:
        raise Misuse(f"A key has 1 to 200 letters, digits or _ . : -, not {key!r}.")
    return KEY + key
