"""A loop of your own over Anthropic's library pays an invoice once a person has approved it.

Lines that far hands add or change are marked with `+`.
"""

from __future__ import annotations

import asyncio
import json

import anthropic
import httpx2
from anthropic.types import MessageParam

from examples.bridges.hands import approve_next, hands, paid  # + your own: hands = create_app(toolbox, …)
from farhand.bridges.anthropic import anthropic_results, anthropic_tools  # +


def think(request: httpx2.Request) -> httpx2.Response:
    """Instead of the real API: pays, then reports the result."""
    said = json.loads(request.content)["messages"][-1]["content"]
    if isinstance(said, str):
        content = [{"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"amount": 3}}]
    else:
        content = [{"type": "text", "text": f"It says: {said[0]['content']}."}]
    stop = "tool_use" if isinstance(said, str) else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "usage": usage}
    return httpx2.Response(
        200, json={**answer, "content": content, "stop_reason": stop, "stop_sequence": None}
    )


client = anthropic.AsyncAnthropic(
    api_key="none", http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(think))
)


async def loop(prompt: str) -> str:
    messages: list[MessageParam] = [{"role": "user", "content": prompt}]
    while True:
        message = await client.messages.create(
            model="claude-sonnet-5",
            max_tokens=1000,
            messages=messages,
            tools=anthropic_tools(hands),  # +
        )
        messages.append({"role": "assistant", "content": message.content})
        if message.stop_reason != "tool_use":
            return "".join(block.text for block in message.content if block.type == "text")
        messages.append(await anthropic_results(hands, message, thread="invoices"))  # +


async def main() -> None:
    async with hands, client, asyncio.TaskGroup() as group:  # + hands: or serve or mount them
        group.create_task(approve_next(hands))
        said = await loop("Pay the invoice")
    assert said == "It says: paid 3 euros."
    assert paid == [3]


if __name__ == "__main__":
    asyncio.run(main())
