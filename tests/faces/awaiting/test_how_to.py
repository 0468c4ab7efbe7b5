"""The commands of docs/how-to/awaiting.md, as they are printed there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from string import Template

import httpx2

from farhand.agent.agent import Agent
from tests.faces.awaiting.client import Turn, read_turn
from tests.faces.conftest import Serve

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "awaiting.md"


async def test_the_quick_start_works_as_printed(serve: Serve) -> None:
    server = await serve(_agent())
    known = {"BASE": server.url, "TOKEN": server.token}
    run, results, stream, sessions, conversations, abort = _commands()
    paused = await _curl(server.stranger, run, known)
    known |= {"AGENT": paused.agent_uuid, "CALL": paused.pause[0]["tool_use_id"]}
    assert paused.pause[0]["input"] == {"message": "Delete the drafts: really?"}
    assert paused.text == "I have one question. "
    resumed = await _curl(server.stranger, results, known)
    assert resumed.text == "You said yes."
    rest = await _curl(server.stranger, stream, known)
    assert "".join(rest.datas[1:]).startswith("I have one question. </content-block-text>")
    listed = (await _curl(server.stranger, sessions, known)).body
    assert [each["agent_uuid"] for each in listed["sessions"]] == [known["AGENT"]]
    history = (await _curl(server.stranger, conversations, known)).body
    assert history["conversations"][0]["final_response"] == "You said yes."
    assert (await _curl(server.stranger, abort, known)).body == {"ok": True, "ignored": True}


def _agent() -> Agent:
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    agent = names["agent"]
    assert isinstance(agent, Agent)
    return agent


def _commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [block for block in blocks if block.startswith("curl")]


async def _curl(http: httpx2.AsyncClient, command: str, known: dict[str, str]) -> Turn:
    """Does what curl does with these few options; curl itself may not be there."""
    words = iter(shlex.split(Template(command.replace("\\\n", " ")).substitute(known))[1:])
    method, url, headers, body = "GET", "", {}, None
    for word in words:
        match word:
            case "-N":
                continue
            case "-X":
                method = next(words)
            case "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            case "-d":
                method, body = "POST", next(words)
            case _:
                url = word
    async with http.stream(method, url, headers=headers, content=body) as response:
        return await read_turn(response)
