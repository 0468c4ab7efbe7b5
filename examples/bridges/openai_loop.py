"""A loop of your own over OpenAI's Responses pays an invoice once a person has approved it.

Lines that far hands add or change are marked with `+`.
"""

from __future__ import annotations

import asyncio
import json

import httpx2
import openai
from openai.types.responses import ResponseInputParam

from examples.bridges.hands import approve_next, hands, paid  # + your own: hands = create_app(toolbox, …)
from farhand.bridges.openai import responses_outputs, responses_tools  # +


def think(request: httpx2.Request) -> httpx2.Response:
    """Instead of the real API: pays, then reports the result."""
    last = json.loads(request.content)["input"][-1]
    item: dict[str, object] = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "pay"}
    item |= {"arguments": '{"amount": 3}', "status": "completed"}
    if last.get("type") == "function_call_output":
        text = {"type": "output_text", "text": f"It says: {last['output']}.", "annotations": []}
        item = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }
    answer = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt", "status": "completed"}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return httpx2.Response(200, json={**answer, **rest, "output": [item]})


client = openai.AsyncOpenAI(
    api_key="none", http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(think))
)


async def loop(prompt: str) -> str:
    input: ResponseInputParam = [{"role": "user", "content": prompt}]
    while True:
        response = await client.responses.create(
            model="gpt-6-astra",
            store=False,
            input=input,
            tools=responses_tools(hands),  # +
        )
        # the library's types for output and input differ, its JSON does not
        input += [item.to_dict() for item in response.output]  # type: ignore[misc]
        outputs = await responses_outputs(hands, response, thread="invoices")  # +
        if not outputs:
            return response.output_text
        input += outputs


async def main() -> None:
    async with hands, client, asyncio.TaskGroup() as group:  # + hands: or serve or mount them
        group.create_task(approve_next(hands))
        said = await loop("Pay the invoice")
    assert said == "It says: paid 3 euros."
    assert paid == [3]


if __name__ == "__main__":
    asyncio.run(main())
