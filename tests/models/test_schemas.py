"""Schemas of tools over every provider: the demo's, and one that no provider accepts as it is."""

from __future__ import annotations

from farhand import Agent, Toolbox
from farhand.demo.agent import demo_agent
from farhand.models.scripted import Ask, Moment, Step
from tests.models.stage import Provider

SCHEMA: dict[str, object] = {
    "type": "object",
    "oneOf": [
        {"properties": {"path": {"type": "string"}}, "required": ["path"]},
        {"properties": {"web address": {"type": "string"}}, "required": ["web address"]},
    ],
}


def opened(**given: str) -> str:
    return f"opened {given}"


async def test_a_tool_with_a_choice_at_its_top_is_taken_and_its_inputs_are_checked(
    provider: Provider,
) -> None:
    toolbox = Toolbox()
    toolbox.add("open_it", "Open it.", SCHEMA, opened)

    def script(moment: Moment) -> Step:
        inputs: list[dict[str, object]] = [{"path": "a", "web address": "b"}, {"path": "a"}]
        if len(moment.results) < len(inputs):
            return Ask("open_it", inputs[len(moment.results)])
        return f"{moment.results[-1].output}"

    async with provider.fake(script) as fake:
        async with Agent(provider.model(fake), tools=[toolbox]) as agent:
            result = await agent.run("Open it", thread="t")
        assert result.text == "opened {'path': 'a'}"
        assert fake.refused == []
        (offered,) = fake.prompts[0].tools
        assert '"oneOf":[' in offered.description
        assert "path" in str(offered.input_schema["properties"])
        assert "failed" in str(fake.prompts[1].messages[-1]) or "Failure" in str(fake.prompts[1].messages[-1])


async def test_every_tool_of_the_demo_is_offered(provider: Provider) -> None:
    async with provider.fake(["Hello."]) as fake:
        async with demo_agent(provider.model(fake)) as agent:
            result = await agent.run("Say hello", thread="t")
        assert result.text == "Hello."
        assert fake.refused == []
        offered = {tool.name for tool in fake.prompts[0].tools}
        assert {"get_current_weather", "delete_file", "open_url", "take_photo"} <= offered
