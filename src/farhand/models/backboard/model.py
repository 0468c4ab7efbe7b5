"""`Backboard`: a model over Backboard's threads and runs.

Backboard keeps the conversation, too. As long as both sides stand at the same place it is told only what is
new: the results of a round in one submit, or the next message. Otherwise a new thread is told everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TypeAlias

from msgspec.structs import replace

from farhand.core.thread import UserMessage
from farhand.errors import BadSetting, ModelFault
from farhand.models.backboard.answer import Answer
from farhand.models.backboard.assistant import Assistants
from farhand.models.backboard.client import (
    WHO,
    Busy,
    Client,
    Event,
    Events,
    Refused,
    ThreadRecord,
    checked_options,
    connection,
    in_our_words,
)
from farhand.models.backboard.patience import MAX_RETRIES, patiently
from farhand.models.backboard.standing import Place, Standing, standing_of
from farhand.models.backboard.words import after_cancelled, everything, user_words
from farhand.models.base import ModelEvent, Prompt
from farhand.models.faults import broke_off
from farhand.models.reading import heard
from farhand.models.settings import TIMEOUT_SEC, checked_model, checked_timeout, shown_as_set
from farhand.models.telling import Telling

MARK = "farhand_message"
"""In the metadata of a message: which of ours it is."""
WAITS = "REQUIRES_ACTION"
"""The status of a message whose calls have no outputs yet."""
DEFAULT = "default"
THREADS_KEPT = 10_000

Round: TypeAlias = tuple[Place, Events]
"""Where an answer is said, and what is said in it."""


class Backboard:
    """A model that Backboard routes to.

    Args:
        model: The provider and its model, such as `openai/gpt-4o`; `default` leaves the choice to Backboard.
        api_key: Without it the environment's, `BACKBOARD_API_KEY`.
        base_url: Without it `BACKBOARD_BASE_URL`, if set, else Backboard's own.
        assistant: How the assistants begin their names that stand for this agent at Backboard.
        max_retries: How often it is asked again after 429, 5xx or a lost connection.
        timeout_sec: How long it may be silent, before its first word and between two of them.
        options: More of what Backboard takes with a message: `thinking`, `memory`, `web_search`.
    """

    # the knobs of a model, each of them a word that its user writes
    def __init__(  # noqa: PLR0913
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        assistant: str = "farhand",
        max_retries: int = MAX_RETRIES,
        timeout_sec: float = TIMEOUT_SEC,
        options: Mapping[str, object] | None = None,
    ) -> None:
        if model != DEFAULT and not all(model.partition("/")):
            raise BadSetting(
                f"'{shown_as_set(model)}' is no model of Backboard.",
                hint="Name its provider, too: openai/gpt-4o; or default.",
            )
        self.name = f"backboard:{model}"
        self._model = checked_model(model, "backboard:openai/gpt-4o")
        self._options = checked_options(options or {})
        self._connection = connection(api_key, base_url, checked_timeout(timeout_sec))
        self._assistants = Assistants(assistant)
        self._max_retries = max_retries
        self._in_step: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self._cancelling = asyncio.Lock()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        telling = Telling(prompt)
        place, events = await self._begin(telling)
        answer = Answer(telling.names, place)
        async with (
            aclosing(_read(events, self._model)) as read,
            aclosing(heard(WHO, read, answer.hear)) as said,
        ):
            async for each in said:
                yield each
        if answer.stop is None:
            raise broke_off(WHO)
        _remember(self._in_step, place.thread, place.at)
        yield answer.stop

    async def leave(self, prompt: Prompt) -> None:
        """Cancels the run that waits for results which will never be submitted."""
        standing = standing_of(prompt.messages)
        if standing is not None:
            await self._cancel(self._connection.client(), standing)

    async def close(self) -> None:
        await self._connection.close()

    async def _begin(self, telling: Telling) -> Round:
        """The answer, once its first word is there: up to then, what Backboard refuses can be told anew."""
        try:
            return await patiently(lambda: self._try(telling), self._max_retries)
        except Refused:
            # the assistant may be gone; one more look for it, or a new one
            self._assistants.forget()
        try:
            return await patiently(lambda: self._try(telling), self._max_retries)
        except Refused as refused:
            raise refused.fault from refused

    async def _try(self, telling: Telling) -> Round:
        client = self._connection.client()
        with in_our_words(self._model, begun=False):
            assistant = await self._assistants.fitting(client, telling)
            gone_on = await self._go_on(client, telling, assistant)
            return gone_on or await self._start_over(client, telling, assistant)

    async def _go_on(self, client: Client, telling: Telling, assistant: str) -> Round | None:
        """In the thread as it is; None if that is not possible, or if it has other tools."""
        standing = standing_of(telling.prompt.messages)
        if standing is None:
            return None
        try:
            with in_our_words(self._model, begun=False):
                fits = standing.place.assistant == assistant
                said = await self._say(client, telling, standing) if fits else None
        except Refused:
            said = None
        if said is None:
            await self._cancel(client, standing)
            return None
        return replace(standing.place, at=standing.place.at + 1), said

    async def _say(self, client: Client, telling: Telling, standing: Standing) -> Events | None:
        # known once only: of a try that failed, nobody knows whether Backboard heard it
        in_step = self._in_step.pop(standing.place.thread, None) == standing.place.at
        there = None if in_step else await client.get_thread(standing.place.thread)
        if there is not None and not _is_where_we_are(there, telling, standing):
            return None
        if standing.results is None:
            content = user_words(standing.users, telling)
        elif standing.users:
            await self._cancel(client, standing)
            content = after_cancelled(standing.results, standing.users, telling)
        else:
            return await self._submit(client, telling, standing)
        return await self._send(client, standing.place.thread, content, standing.users)

    async def _submit(self, client: Client, telling: Telling, standing: Standing) -> Events | None:
        """All results of the round at once, in the order of its calls."""
        if standing.run is None or standing.results is None:
            return None
        outputs = [
            {
                "tool_call_id": resolved.model_call_id or resolved.call_id,
                "output": telling.result(resolved).text,
            }
            for resolved in standing.results.results
        ]
        options = {name: value for name, value in self._options.items() if name == "thinking"}
        return await _begun(
            await client.submit_tool_outputs(
                standing.place.thread, standing.run, outputs, stream=True, **options
            )
        )

    async def _start_over(self, client: Client, telling: Telling, assistant: str) -> Round:
        thread = str((await client.create_thread(assistant)).thread_id)
        users = tuple(each for each in telling.prompt.messages if isinstance(each, UserMessage))
        return Place(assistant, thread, 1), await self._send(client, thread, everything(telling), users)

    async def _send(self, client: Client, thread: str, content: str, users: Sequence[UserMessage]) -> Events:
        provider, _, model = self._model.partition("/")
        chosen = {} if self._model == DEFAULT else {"llm_provider": provider, "model_name": model}
        mark = {MARK: users[-1].message_id} if users else {}
        options = {**chosen, **self._options, "metadata": mark}
        return await _begun(await client.send_message(content, thread_id=thread, stream=True, **options))

    async def _cancel(self, client: Client, standing: Standing) -> None:
        """Once, and if Backboard does not want to, it is no matter: the run ends there by itself."""
        async with self._cancelling:
            if standing.run is None or standing.run in self._left:
                return
            with suppress(Refused, Busy, ModelFault), in_our_words(self._model, begun=False):
                await client.cancel_run(standing.place.thread, standing.run)
            _remember(self._left, standing.run)


def _is_where_we_are(there: ThreadRecord, telling: Telling, standing: Standing) -> bool:
    """False if the thread heard what is not in our history, or has gone on from where we are.

    A crash came before its answer was stored, or the history was changed since.
    """
    marks = {(message.metadata_ or {}).get(MARK) for message in there.messages} - {None}
    new = {user.message_id for user in standing.users}
    users = {each.message_id for each in telling.prompt.messages if isinstance(each, UserMessage)}
    last = there.messages[-1].status if there.messages else None
    waits = standing.results is None or last in (None, WAITS)
    return waits and marks <= users - new


async def _begun(events: Events) -> Events:
    """The same events, with the first one waited for: only then the request was sent and taken."""
    first = await anext(events, None)
    return _chained(first, events)


async def _chained(first: Event | None, rest: Events) -> Events:
    async with aclosing(rest):
        if first is not None:
            yield first
        async for event in rest:
            yield event


async def _read(events: Events, model: str) -> Events:
    with in_our_words(model, begun=True):
        async with aclosing(events):
            async for event in events:
                yield event


def _remember(known: dict[str, int], name: str, at: int = 0) -> None:
    known[name] = at
    while len(known) > THREADS_KEPT:
        del known[next(iter(known))]
