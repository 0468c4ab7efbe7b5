"""An application with a registry of tools that talks to Backboard as its library for JavaScript does.

The library posts messages as a multipart form to `/threads/{id}/messages`, reads `data:` lines, and submits
outputs as JSON with `stream` in the address.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx2

# Any: bodies of a wire
Json = Any
ToolFunction = Callable[[Json], Json]


@dataclass(frozen=True)
class Registered:
    name: str
    description: str
    parameters: Json
    function: ToolFunction

    def for_backboard(self) -> Json:
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


class ToolRegistry:
    """Tools by their names; what goes wrong in one is its output, so that the stream is never interrupted."""

    def __init__(self) -> None:
        self._tools: dict[str, Registered] = {}

    def register(self, tool: Registered) -> None:
        self._tools[tool.name] = tool

    def get(self, name: str) -> Registered | None:
        return self._tools.get(name)

    def execute(self, name: str, arguments: Json) -> str:
        tool = self.get(name)
        if tool is None:
            return json.dumps({"error": f"Unknown tool: {name}"})
        try:
            return json.dumps(tool.function(arguments))
        except (KeyError, ValueError) as error:
            return json.dumps({"error": str(error)})

    def for_backboard(self) -> list[Json]:
        return [tool.for_backboard() for tool in self._tools.values()]


class ChatRoute:
    """One session of the application."""

    def __init__(self, url: str, registry: ToolRegistry) -> None:
        self.http = httpx2.AsyncClient(
            base_url=url, headers={"X-API-Key": "key"}, timeout=20, trust_env=False, verify=False
        )
        self.registry = registry
        self.thread = ""
        self.rounds: list[Json] = []
        """What was submitted, round by round."""

    async def open(self) -> None:
        tools = self.registry.for_backboard()
        assistant = (await self.http.post("/assistants", json={"name": "app", "tools": tools})).json()
        threads = f"/assistants/{assistant['assistant_id']}/threads"
        self.thread = (await self.http.post(threads, json={})).json()["thread_id"]

    async def chat(self, content: str) -> str:
        """The answer, after as many rounds of tools as the model wants."""
        text, waiting = await self._hear(self.add_message(content))
        while waiting is not None:
            calls = [(call["id"], call["function"]) for call in waiting["tool_calls"]]
            outputs = [
                {
                    "tool_call_id": call_id,
                    "output": self.registry.execute(function["name"], json.loads(function["arguments"])),
                }
                for call_id, function in calls
            ]
            self.rounds.append(outputs)
            more, waiting = await self._hear(self.submit(waiting["run_id"], outputs))
            text += more
        return text

    async def add_message(self, content: str) -> AsyncIterator[Json]:
        form = _form(stream="true", content=content, llm_provider="openai", model_name="gpt-4o")
        async for event in self._events(f"/threads/{self.thread}/messages", **form):
            yield event

    async def submit(self, run_id: str, outputs: list[Json]) -> AsyncIterator[Json]:
        path = f"/threads/{self.thread}/runs/{run_id}/submit-tool-outputs?stream=true"
        async for event in self._events(path, json={"tool_outputs": outputs}):
            yield event

    async def _events(self, path: str, **body: Json) -> AsyncIterator[Json]:
        async with self.http.stream("POST", path, **body) as response:
            if response.status_code >= 400:
                raise Refused(response.status_code, json.loads(await response.aread())["detail"])
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    async def _hear(self, events: AsyncIterator[Json]) -> tuple[str, Json]:
        text = ""
        async for event in events:
            if event["type"] == "content_streaming":
                text += event["content"]
            elif event["type"] == "tool_submit_required":
                return text, event
        return text, None


class Refused(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def _form(**fields: str) -> Json:
    """As the package form-data writes it, one part for each field."""
    return {"files": [(name, (None, value.encode())) for name, value in fields.items()]}
