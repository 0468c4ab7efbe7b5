"""A Python script that calls what only a page can do, and serves the page's requests: STORE PORT ORIGIN WHAT.

WHAT is `open` or `count`: the tool that it calls, with a key, so that it may be killed and run again. Each
outcome is a line. `serve` makes no call: it is another worker, which the page talks to.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec
import uvicorn
from starlette.requests import HTTPConnection

from farhand import Owner, Principal, Toolbox, create_app
from farhand.core import call_state
from farhand.core.principal import SCOPES
from farhand.server.app import App

ADA = Owner("acme", "ada")
COUNT = "client_tab_count"
TAKE_LASTS_SEC = 2.0
"""Of a page that is gone: half a minute would tell no more."""

toolbox = Toolbox()


@toolbox.tool(executor="frontend")
def open_url(url: str) -> dict[str, object]:
    """Open a page.

    Args:
        url: Its address.

    Returns:
        url and viewKey of the page.
    """
    raise NotImplementedError


def authenticate(request: HTTPConnection) -> Principal | None:
    return Principal("acme", "ada", SCOPES) if request.headers.get("x-api-key") == "sesame" else None


def main() -> None:
    store, port, origin, what = sys.argv[1:]
    setattr(call_state, "TAKE_LASTS_SEC", TAKE_LASTS_SEC)  # noqa: B010
    hands = create_app(toolbox, store=store, authenticate=authenticate, allow_origins=[origin])
    asyncio.run(_serve(hands, int(port), what))


async def _serve(hands: App, port: int, what: str) -> None:
    server = uvicorn.Server(uvicorn.Config(hands, port=port, log_level="warning"))
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        say("ready")
        match what:
            case "open":
                await _call(hands, "open_url", {"url": "https://example.org/"}, "page-7")
            case "count":
                await _offered(hands, "in life")
                await _call(hands, COUNT, {"wait": True}, "count-1")
                # the reloaded page withdraws its tool and offers it again, at another worker: this one may
                # list the withdrawn tool for a moment, and its calls fail
                await _offered(hands, "in life 2")
                await _call(hands, COUNT, {"wait": False}, "count-2")
            case _:
                pass


async def _call(hands: App, tool: str, input: dict[str, object], key: str) -> None:
    outcome = await hands.call(tool, input, thread="t1", key=key, owner=ADA, timeout_sec=120)
    say(msgspec.json.encode(outcome).decode())


async def _offered(hands: App, words: str) -> None:
    """Until the page is there, and describes its tool with these words."""
    while not any(tool.name == COUNT and words in tool.description for tool in hands.tools(ADA)):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
