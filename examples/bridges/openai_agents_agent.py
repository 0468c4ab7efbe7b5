"""An agent of the OpenAI Agents SDK pays an invoice once a person has approved it.

Lines that far hands add or change are marked with `+`.
"""

from __future__ import annotations

import asyncio
import json

from agents import Agent, RunConfig, Runner, RunState
from agents.testing import ScriptedModel, assistant_message, function_call

from examples.bridges.hands import approve_next, hands, paid  # + your own: hands = create_app(toolbox, …)
from farhand.bridges.openai_agents import farhand_tools  # +

# the SDK's own fake model: pays, then says that it is done
model = ScriptedModel(
    [[function_call("pay", {"amount": 3}, call_id="call_0")], [assistant_message("It is paid.")]]
)
agent = Agent(
    "clerk",
    model=model,
    tools=[*farhand_tools(hands, thread="invoices", hold_for=0.2)],  # +
)
offline = RunConfig(tracing_disabled=True)


async def main() -> None:
    async with hands:  # + or serve or mount it
        parked = await Runner.run(agent, "Pay the invoice", run_config=offline)
        assert len(parked.interruptions) == 1, "nobody approved it within 0.2 s"
        stored = json.dumps(parked.to_state().to_json())
        await approve_next(hands)
        state = await RunState.from_json(agent, json.loads(stored))
        for interruption in state.get_interruptions():
            # for the SDK this means "continue"; the person has approved the call itself
            state.approve(interruption)
        done = await Runner.run(agent, state, run_config=offline)
    assert "paid 3 euros" in json.dumps(done.to_input_list())
    assert done.final_output == "It is paid."
    assert paid == [3]


if __name__ == "__main__":
    asyncio.run(main())
