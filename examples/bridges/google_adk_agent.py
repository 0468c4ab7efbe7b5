"""An agent of Google's ADK pays an invoice once a person has approved it.

Lines that far hands add or change are marked with `+`.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, FunctionCall, Part

from examples.bridges.hands import approve_next, hands, paid  # + your own: hands = create_app(toolbox, …)
from farhand.bridges.google_adk import farhand_tools, hands_responses  # +

# ADK warns that its resumability is experimental
warnings.filterwarnings("ignore", message=".*EXPERIMENTAL", category=UserWarning)


class Model(BaseLlm):
    """Instead of a real model: pays, then reports the result."""

    async def generate_content_async(  # the flag is ADK's
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
    ) -> AsyncGenerator[LlmResponse, None]:
        done = (llm_request.contents[-1].parts or [Part()])[-1].function_response
        pay = Part(function_call=FunctionCall(name="pay", args={"amount": 3}))
        answer = pay if done is None else Part(text=f"It says: {(done.response or {})['result']}.")
        yield LlmResponse(content=Content(role="model", parts=[answer]))


agent = LlmAgent(
    name="clerk",
    model=Model(model="example"),
    tools=[*farhand_tools(hands, hold_for=0.2)],  # +
)
app = App(name="shop", root_agent=agent, resumability_config=ResumabilityConfig(is_resumable=True))
runner = InMemoryRunner(app=app)


async def main() -> None:
    session = await runner.session_service.create_session(app_name="shop", user_id="ann")
    async with hands:  # + or serve or mount it
        assert await say(session.id, Content(role="user", parts=[Part(text="Pay the invoice")])) == ""
        await approve_next(hands)
        stored = await runner.session_service.get_session(
            app_name="shop", user_id="ann", session_id=session.id
        )
        assert stored is not None
        message = await hands_responses(hands, stored)  # +
        assert message is not None, "nobody approved it within 0.2 s"
        assert await say(session.id, message) == "It says: paid 3 euros."
    assert paid == [3]


async def say(session_id: str, message: Content) -> str:
    """The model's answer; empty if the invocation is paused."""
    said = ""
    async for event in runner.run_async(user_id="ann", session_id=session_id, new_message=message):
        parts = event.content.parts if event.content is not None else None
        said += "".join(part.text or "" for part in parts or [])
    return said


if __name__ == "__main__":
    asyncio.run(main())
