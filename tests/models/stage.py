"""A real agent over a provider's real library, talking to that provider's fake on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from farhand import Agent, tool
from farhand.agent.service import AgentService
from farhand.core.event import Event, RunFailed, RunFinished, TextAdded
from farhand.core.principal import LOCAL
from farhand.models.anthropic import Anthropic
from farhand.models.backboard import Backboard
from farhand.models.base import ClosableModel, Model, ModelEvent, Prompt
from farhand.models.openai import OpenAI, OpenAIChat
from farhand.models.scripted import Step
from farhand.models.scripted.model import Script
from tests.fakes.anthropic import FakeAnthropic
from tests.fakes.backboard import FakeBackboard
from tests.fakes.openai import FakeOpenAI
from tests.fakes.provider import FakeProvider


@dataclass(frozen=True)
class Provider:
    name: str
    fake: Callable[[Script | Sequence[Step | Script]], FakeProvider]
    model: Callable[[FakeProvider], Model]


PROVIDERS = (
    Provider(
        "anthropic",
        FakeAnthropic,
        lambda fake: Anthropic("claude-sonnet-5", api_key="key", base_url=fake.url),
    ),
    Provider(
        "openai",
        FakeOpenAI,
        lambda fake: OpenAI("gpt-6-astra", api_key="key", base_url=fake.url),
    ),
    Provider(
        "openai-chat",
        FakeOpenAI,
        lambda fake: OpenAIChat("llama3", base_url=fake.url),
    ),
    Provider(
        "backboard",
        lambda script: FakeBackboard(script, cumulative=True),
        lambda fake: Backboard("openai/gpt-4o", api_key="key", base_url=fake.url),
    ),
)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The one.
        b: The other.

    Returns:
        Their sum.
    """
    return a + b


@tool(executor="frontend")
def ask_text(question: str) -> str:
    """Ask the user.

    Args:
        question: What to ask.

    Returns:
        The answer.
    """
    raise AssertionError("a frontend tool is never executed here")


@tool(executor="frontend", timeout_sec=1)
def ask_quickly(question: str) -> str:
    """Ask the user, who has a second.

    Args:
        question: What to ask.

    Returns:
        The answer.
    """
    raise AssertionError("a frontend tool is never executed here")


# Any: what a person brings may be of every shape
@tool(executor="frontend")
def bring(what: str) -> Any:
    """Ask the user to bring something.

    Args:
        what: Such as photos.

    Returns:
        Whatever they bring.
    """
    raise AssertionError("a frontend tool is never executed here")


@tool(needs_approval=True)
def delete_file(path: str) -> str:
    """Delete a file.

    Args:
        path: Which one.

    Returns:
        What was deleted.
    """
    deleted.append(path)
    return f"deleted {path}"


@tool
def note(words: str) -> str:
    """Write something down.

    Args:
        words: What to write.

    Returns:
        What was written.
    """
    noted.append(words)
    return words


deleted: list[str] = []
noted: list[str] = []


@dataclass
class Stage:
    """The fake outlives the agents: `restart` is another agent, with another model, on the same store."""

    provider: Provider
    fake: FakeProvider
    store: str
    agent: Agent
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def restart(self) -> None:
        await self.agent.close()
        self.agent = await self._open.enter_async_context(agent_on(self.provider, self.fake, self.store))

    async def service(self) -> AgentService:
        return await self.agent._open()

    async def until(self, thread: str, *kinds: type[Event]) -> list[Event]:
        """The events of the thread's run up to one of these; bounded by the test's own limit."""
        service = await self.service()
        events: list[Event] = []
        with service.read(await service.last_run(LOCAL, thread)) as reader:
            while not any(isinstance(event, kinds) for event in events):
                entries = await reader.next(30)
                assert entries is not None, f"the run ended without {kinds}: {events}"
                events += [entry.event for entry in entries]
        return events

    async def text_at_end(self, thread: str) -> str:
        """All that was said, once the run has ended by itself."""
        events = await self.until(thread, RunFinished, RunFailed)
        return "".join(event.text for event in events if isinstance(event, TextAdded))

    async def stop(self, thread: str) -> None:
        await (await self.service()).stop(LOCAL, thread, "stopped by the user")

    def check(self) -> None:
        assert [(request.path, request.body) for request in self.fake.refused] == []


@asynccontextmanager
async def agent_on(provider: Provider, fake: FakeProvider, store: str) -> AsyncIterator[Agent]:
    agent = Agent(
        provider.model(fake),
        tools=[add, delete_file, note],
        frontend_tools=[ask_text, ask_quickly, bring],
        instructions="Be brief.",
        store=store,
    )
    try:
        yield agent
    finally:
        await agent.close()


@asynccontextmanager
async def stage(
    provider: Provider, script: Script | Sequence[Step | Script], store: str = "memory:"
) -> AsyncIterator[Stage]:
    """At the end, no request may have broken a rule of the provider."""
    async with provider.fake(script) as fake, AsyncExitStack() as open_agents:
        agent = await open_agents.enter_async_context(agent_on(provider, fake, store))
        staged = Stage(provider, fake, store, agent, open_agents)
        yield staged
        staged.check()


async def said(model: Model, prompt: Prompt) -> list[ModelEvent]:
    """All that a model answers; afterwards it is closed."""
    assert isinstance(model, ClosableModel)
    try:
        async with aclosing(model.stream(prompt)) as events:
            return [event async for event in events]
    finally:
        await model.close()
