"""farhand as `farhand run` serves it: with authentication, limits, schema checks, journal and store.

Options: the store's address; `--provider ADDRESS` uses a model through OpenAI's API; `--pending COUNT FILE`
opens calls before it listens and writes their ids to the file; `--profile FILE` profiles the event loop;
`--tell FILE` writes the configuration to the file.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import os
from collections.abc import AsyncGenerator
from pathlib import Path

from starlette.requests import HTTPConnection

from bench.dialects import PACE_SEC
from bench.pending import Pending
from bench.words import CHAT, words
from farhand import Agent, Limits, Principal, Settings, create_app, models, tool
from farhand.cli.serve import listen, serve_process
from farhand.messages import ResultsMessage, UserMessage, text_of
from farhand.models import CallDone, CallStart, InputDelta, ModelEvent, Prompt, Stop, TextDelta
from farhand.server.app import App
from farhand.store.base import Store
from farhand.store.sqlite.store import SqliteStore
from farhand.store.sqlite.writer import WriteConnection

SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")
INPUT = '{"url":"https://example.org/report"}'


@tool(executor="frontend")
def open_url(url: str) -> str:
    """Open a page beside the chat.

    Args:
        url: The address, http or https.

    Returns:
        What the page said.
    """
    raise NotImplementedError


class BenchModel:
    """Requests one call and then reports its result; or writes many words at some pace."""

    name = "bench"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        last = prompt.messages[-1]
        if isinstance(last, ResultsMessage):
            outcome = last.results[0].outcome
            yield TextDelta(f"The page said {getattr(outcome, 'output', outcome)}.")
            yield Stop("end")
            return
        asked = text_of(last) if isinstance(last, UserMessage) else "trip"
        kind, _, count = asked.partition(" ")
        if kind == CHAT:
            async for word in words(asked):
                yield TextDelta(word)
            yield Stop("end")
            return
        if kind == "trip":
            yield CallStart(0, "open_url", "call_0")
            yield InputDelta(0, INPUT)
            yield CallDone(0, INPUT)
            yield Stop("calls")
            return
        for number in range(int(count)):
            yield TextDelta(f"word {number} ")
            if kind == "paced":
                await asyncio.sleep(PACE_SEC)
            elif number % 64 == 63:
                # a backlog: other tasks get a turn after about one network packet
                await asyncio.sleep(0)
        yield Stop("end")


def authenticate(request: HTTPConnection) -> Principal | None:
    """The token is the user's name; its last digits are the tenant's."""
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    return Principal(f"tenant{token[-2:]}", token) if token else None


agent = Agent(model=BenchModel(), frontend_tools=[open_url])


def make_app(store: str, provider: str | None = None) -> App:
    # still counted, but high enough for one load client that answers for all users
    many = 1_000_000
    limits = Limits(
        open_calls_per_tenant=many,
        results_per_sec=many,
        results_burst=many,
        running_per_principal=many,
        running_per_tenant=many,
        runs_per_min=many,
        runs_per_min_of_tenant=many,
    )
    asked = agent if provider is None else _asking(provider)
    return create_app(asked, store=store, authenticate=authenticate, settings=Settings(limits=limits))


def _asking(provider: str) -> Agent:
    # loaded by its name, so that a server without it does not load its library
    model = models.OpenAIChat("m", base_url=f"{provider}/v1", api_key="none")
    return Agent(model=model, frontend_tools=[open_url])


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("store")
    options.add_argument("port", type=int)
    options.add_argument("--provider")
    options.add_argument("--pending", nargs=2)
    options.add_argument("--profile")
    options.add_argument("--tell")
    chosen = options.parse_args()
    app = make_app(chosen.store, chosen.provider)
    if chosen.pending:
        _open_before(app, int(chosen.pending[0]), Path(chosen.pending[1]))
    if chosen.tell:
        _tell_before(app, Path(chosen.tell))
    sockets = listen("127.0.0.1", chosen.port)
    if chosen.profile is None:
        serve_process(app, sockets, ready=lambda: None)
        return
    # the start is not part of a round trip
    profile = cProfile.Profile()
    serve_process(app, sockets, ready=profile.enable)
    profile.disable()
    profile.dump_stats(chosen.profile)


def _open_before(app: App, count: int, ids: Path) -> None:
    """Opens the calls when the app starts, in its own loop."""
    start = app.start

    async def start_with_calls() -> None:
        await start()
        if not ids.exists():
            opened = await Pending(app.service, open_url.tool).open(count)
            ids.write_text("\n".join(opened))
            gc.collect()

    # the app is started by the server, in the loop that will serve it
    app.start = start_with_calls  # type: ignore[method-assign]


def _tell_before(app: App, place: Path) -> None:
    """Writes the configuration of this process, as the app and its store report it themselves."""
    start = app.start

    async def start_and_tell() -> None:
        await start()
        context = app.service.context
        raised = _raised(context.settings.limits)
        cores = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
        place.write_text(f"{await _durability(context.log.store)}; limits {raised}; server on core {cores}")

    # as above
    app.start = start_and_tell  # type: ignore[method-assign]


async def _durability(store: Store) -> str:
    if not isinstance(store, SqliteStore):
        return type(store).__name__.removesuffix("Store")
    # from the writer's own connection: SQLite does not store this setting in the file
    level = await store._writer.do(_synchronous)  # noqa: SLF001
    return f"SQLite with synchronous={SYNCHRONOUS[level]}"


def _synchronous(writing: WriteConnection) -> int:
    level: int = writing.db.execute("PRAGMA synchronous").fetchone()[0]
    return level


def _raised(limits: Limits) -> str:
    shipped = Limits()
    others = [name for name in limits.__struct_fields__ if getattr(limits, name) != getattr(shipped, name)]
    changed = ", ".join(f"{name}={getattr(limits, name):,}" for name in others)
    return f"as shipped but for {changed}" if others else "as shipped"


if __name__ == "__main__":
    main()
