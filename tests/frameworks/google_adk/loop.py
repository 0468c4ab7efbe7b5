"""An agent of Google's ADK with a scripted model; an app that is resumable, with stored sessions, where it
parks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Self

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.errors import StaleSessionError
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.genai.types import Content, FunctionCall, FunctionDeclaration, FunctionResponse, Part, Tool
from pydantic import Field

from farhand.bridges.google_adk import approved, farhand_tools, hands_responses
from farhand.core.outcome import canonical
from tests.frameworks.loop import Loop, Steps, next_step

APP = "shop"
USER = "ann"


class Scripted(BaseLlm):
    """Step by step its calls; afterwards a text with all results."""

    model: str = "scripted"
    steps: Steps
    declared: list[FunctionDeclaration] = Field(default_factory=list)
    """The tools of the last request."""
    asked: int = 0

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked += 1
        tools = [each for each in llm_request.config.tools or [] if isinstance(each, Tool)]
        self.declared = [each for tool in tools for each in tool.function_declarations or []]
        parts = [part for content in llm_request.contents for part in content.parts or []]
        results = [read(part.function_response) for part in parts if part.function_response]
        step = next_step(self.steps, len(results))
        calls = [FunctionCall(name=ask.tool, args=ask.input, id=ask.call_id) for ask in step or ()]
        answer = [Part(function_call=call) for call in calls] or [Part(text=" | ".join(results))]
        yield LlmResponse(content=Content(role="model", parts=answer))


def read(response: FunctionResponse) -> str:
    told = response.response or {}
    if "error" in told:
        return f"failed: {told['error']}"
    result = told["result"]
    return result if isinstance(result, str) else canonical(result).decode()


class AdkLoop(Loop):
    failed = "failed: "
    race_is_lost = (StaleSessionError,)
    tools: list[BaseTool] | None = None

    async def __aenter__(self) -> Self:
        tools = self.tools or farhand_tools(self.hands, hold_for=self.hold_for)
        self.model = Scripted(steps=self.steps)
        agent = LlmAgent(name="clerk", model=self.model, tools=[*tools])
        parks = self.hold_for is not None
        app = App(
            name=APP,
            root_agent=agent,
            resumability_config=ResumabilityConfig(is_resumable=True) if parks else None,
        )
        self.sessions: BaseSessionService = (
            SqliteSessionService(str(self.folder / "sessions.db")) if parks else InMemorySessionService()
        )
        self.runner = Runner(app=app, session_service=self.sessions)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.runner.close()

    def charging(self, charge: Callable[[int], str]) -> Self:
        self.tools = [approved(self.hands, FunctionTool(charge), hold_for=self.hold_for)]
        return self

    async def run(self, thread: str = "t") -> str | None:
        await self.sessions.create_session(app_name=APP, user_id=USER, session_id=thread)
        return await self.say("Go", thread)

    async def say(self, text: str, thread: str = "t") -> str | None:
        return await self._go(Content(role="user", parts=[Part(text=text)]), thread)

    async def resume(self, thread: str = "t") -> str | None:
        message = await hands_responses(self.hands, await self.session(thread))
        assert message is not None
        return await self._go(message, thread)

    async def session(self, thread: str = "t") -> Session:
        found = await self.sessions.get_session(app_name=APP, user_id=USER, session_id=thread)
        assert found is not None
        return found

    async def _go(self, message: Content, thread: str) -> str | None:
        said: str | None = None
        async for event in self.runner.run_async(user_id=USER, session_id=thread, new_message=message):
            parts = event.content.parts if event.content is not None else None
            said = next((part.text for part in parts or [] if part.text is not None), said)
        return said


LOOP = AdkLoop
