"""`Backboard`: a model over Backboard's threads and runs.

Backboard stores the conversation as well. While both sides have the same position, only what is new is sent:
the results of a round in one submit, or the next message. Otherwise a new thread gets the whole conversation.
An assistant at Backboard stands for one set of tools and instructions and is never changed, since others may
use the same key and name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TypeAlias

from msgspec.structs import replace

from farhand.core.outcome import digest
from farhand.core.thread import UserMessage
from farhand.errors import BadSetting, ModelFault
from farhand.models.backboard.client import (
    MAX_RETRIES,
    WHO,
    BackboardApi,
    BackboardEvent,
    BackboardRefusal,
    Events,
    ProviderBusy,
    ThreadRecord,
    connection,
    message_options,
    translate_errors,
    with_retries,
)
from farhand.models.backboard.position import (
    AnswerPlace,
    ThreadPosition,
    position_of,
    text_after_cancel,
    user_text,
    whole_conversation,
)
from farhand.models.backboard.stream import RoundDecoder
from farhand.models.base import ModelEvent, Prompt
from farhand.models.error_messages import stream_cut
from farhand.models.prompt_encoding import PromptEncoder
from farhand.models.settings import TIMEOUT_SEC, check_model, check_timeout, one_line
from farhand.models.stream_guard import guard_stream

MARK = "farhand_message"
"""A key in the metadata of a message: the id of our message."""
WAITS = "REQUIRES_ACTION"
"""The status of a message whose calls have no outputs yet."""
DEFAULT = "default"
THREADS_KEPT = 10_000

Round: TypeAlias = tuple[AnswerPlace, Events]
"""The place of an answer, and its events."""


class Backboard:
    """A model that Backboard routes to; requires `pip install 'farhand[backboard]'`.

    ```python
    from farhand import Agent
    from farhand.models import Backboard

    agent = Agent(Backboard("openai/gpt-4o", api_key="example"))
    ```

    Args:
        model: The provider and its model, such as `openai/gpt-4o`; `default` leaves the choice to Backboard.
        api_key: Defaults to the environment variable `BACKBOARD_API_KEY`.
        base_url: Defaults to `BACKBOARD_BASE_URL`, if set, otherwise to Backboard's own address.
        assistant: A prefix for the names of the assistants that stand for this agent at Backboard.
        max_retries: How often a request is retried after 429, 5xx or a lost connection.
        timeout_sec: How long Backboard may be silent, before the first event and between two events.
        options: More options of a message: `thinking`, `memory`, `web_search`.
    """

    # each is an option that a user of the model sets by name
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
                f"'{one_line(model)}' is not a model of Backboard.",
                hint="Include the provider, as in openai/gpt-4o, or use default.",
            )
        self.name = f"backboard:{model}"
        self._model = check_model(model, "backboard:openai/gpt-4o")
        self._options = message_options(options or {})
        self._connection = connection(api_key, base_url, check_timeout(timeout_sec))
        self._assistants = Assistants(assistant)
        self._max_retries = max_retries
        self._in_step: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self._cancelling = asyncio.Lock()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        encoder = PromptEncoder(prompt)
        place, events = await self._begin(encoder)
        answer = RoundDecoder(encoder.names, place)
        async with (
            aclosing(_read(events, self._model)) as read,
            aclosing(guard_stream(WHO, read, answer.decode)) as decoded,
        ):
            async for each in decoded:
                yield each
        if answer.stop is None:
            raise stream_cut(WHO)
        _remember(self._in_step, place.thread, place.at)
        yield answer.stop

    async def leave(self, prompt: Prompt) -> None:
        """Cancels the run that waits for results which will never be submitted."""
        position = position_of(prompt.messages)
        if position is not None:
            await self._cancel(await self._connection.client(), position)

    async def close(self) -> None:
        await self._connection.close()

    async def _begin(self, encoder: PromptEncoder) -> Round:
        """The answer, once its first event has arrived: until then, a refused request can be sent again."""
        try:
            return await with_retries(lambda: self._try(encoder), self._max_retries)
        except BackboardRefusal:
            # the assistant may have been deleted: look it up again, or create a new one
            self._assistants.forget()
        try:
            return await with_retries(lambda: self._try(encoder), self._max_retries)
        except BackboardRefusal as refused:
            raise refused.fault from refused

    async def _try(self, encoder: PromptEncoder) -> Round:
        client = await self._connection.client()
        with translate_errors(self._model, is_answering=False):
            assistant = await self._assistants.matching(client, encoder)
            continued = await self._continue(client, encoder, assistant)
            return continued or await self._start_over(client, encoder, assistant)

    async def _continue(self, client: BackboardApi, encoder: PromptEncoder, assistant: str) -> Round | None:
        """In the existing thread; None if that is not possible or if it has other tools."""
        position = position_of(encoder.prompt.messages)
        if position is None:
            return None
        try:
            with translate_errors(self._model, is_answering=False):
                fits = position.place.assistant == assistant
                events = await self._send_new(client, encoder, position) if fits else None
        except BackboardRefusal:
            events = None
        if events is None:
            await self._cancel(client, position)
            return None
        return replace(position.place, at=position.place.at + 1), events

    async def _send_new(
        self, client: BackboardApi, encoder: PromptEncoder, position: ThreadPosition
    ) -> Events | None:
        # known only once: after a failed try, nobody knows whether Backboard received it
        in_step = self._in_step.pop(position.place.thread, None) == position.place.at
        there = None if in_step else await client.get_thread(position.place.thread)
        if there is not None and not _is_in_sync(there, encoder, position):
            return None
        if position.results is None:
            content = user_text(position.users, encoder)
        elif position.users:
            await self._cancel(client, position)
            content = text_after_cancel(position.results, position.users, encoder)
        else:
            return await self._submit(client, encoder, position)
        return await self._send(client, position.place.thread, content, position.users)

    async def _submit(
        self, client: BackboardApi, encoder: PromptEncoder, position: ThreadPosition
    ) -> Events | None:
        """All results of the round at once, in the order of its calls."""
        if position.run is None or position.results is None:
            return None
        outputs = [
            {
                "tool_call_id": resolved.model_call_id or resolved.call_id,
                "output": encoder.result(resolved).text,
            }
            for resolved in position.results.results
        ]
        options = {name: value for name, value in self._options.items() if name == "thinking"}
        return await _first_event(
            await client.submit_tool_outputs(
                position.place.thread, position.run, outputs, stream=True, **options
            )
        )

    async def _start_over(self, client: BackboardApi, encoder: PromptEncoder, assistant: str) -> Round:
        thread = str((await client.create_thread(assistant)).thread_id)
        users = tuple(each for each in encoder.prompt.messages if isinstance(each, UserMessage))
        return AnswerPlace(assistant, thread, 1), await self._send(
            client, thread, whole_conversation(encoder), users
        )

    async def _send(
        self, client: BackboardApi, thread: str, content: str, users: Sequence[UserMessage]
    ) -> Events:
        provider, _, model = self._model.partition("/")
        chosen = {} if self._model == DEFAULT else {"llm_provider": provider, "model_name": model}
        mark = {MARK: users[-1].message_id} if users else {}
        options = {**chosen, **self._options, "metadata": mark}
        return await _first_event(
            await client.send_message(content, thread_id=thread, stream=True, **options)
        )

    async def _cancel(self, client: BackboardApi, position: ThreadPosition) -> None:
        """Only once; an error does not matter, because the run then ends at Backboard by itself."""
        async with self._cancelling:
            if position.run is None or position.run in self._left:
                return
            with (
                suppress(BackboardRefusal, ProviderBusy, ModelFault),
                translate_errors(self._model, is_answering=False),
            ):
                await client.cancel_run(position.place.thread, position.run)
            _remember(self._left, position.run)


def _is_in_sync(there: ThreadRecord, encoder: PromptEncoder, position: ThreadPosition) -> bool:
    """False if the thread has messages that are not in our history, or has moved on from our position.

    Either a crash came before its answer was stored, or the history was changed since.
    """
    marks = {(message.metadata_ or {}).get(MARK) for message in there.messages} - {None}
    new = {user.message_id for user in position.users}
    users = {each.message_id for each in encoder.prompt.messages if isinstance(each, UserMessage)}
    last = there.messages[-1].status if there.messages else None
    waits = position.results is None or last in (None, WAITS)
    return waits and marks <= users - new


async def _first_event(events: Events) -> Events:
    """The same events after waiting for the first one: only then has the request been accepted."""
    first = await anext(events, None)
    return _chained(first, events)


async def _chained(first: BackboardEvent | None, rest: Events) -> Events:
    async with aclosing(rest):
        if first is not None:
            yield first
        async for event in rest:
            yield event


async def _read(events: Events, model: str) -> Events:
    with translate_errors(model, is_answering=True):
        async with aclosing(events):
            async for event in events:
                yield event


def _remember(known: dict[str, int], name: str, at: int = 0) -> None:
    known[name] = at
    while len(known) > THREADS_KEPT:
        del known[next(iter(known))]


_MARK = 16
_KEPT = 1_000


class Assistants:
    def __init__(self, name: str) -> None:
        self._name = name
        self._ids: dict[str, str] = {}
        self._making = asyncio.Lock()

    async def matching(self, client: BackboardApi, encoder: PromptEncoder) -> str:
        """The id of the assistant with these tools and instructions: known, found or created."""
        tools, instructions = encoder.function_tools(), encoder.prompt.instructions
        name = f"{self._name} {digest((tools, instructions))[-_MARK:]}"
        async with self._making:
            if name not in self._ids:
                found = await client.list_assistants(name=name)
                there = next((each for each in found if each.name == name), None)
                made = there or await client.create_assistant(
                    name=name, system_prompt=instructions, tools=tools
                )
                self._ids[name] = str(made.assistant_id)
            while len(self._ids) > _KEPT:
                del self._ids[next(iter(self._ids))]
            return self._ids[name]

    def forget(self) -> None:
        """They may have been deleted: the next answer looks them up again."""
        self._ids.clear()
