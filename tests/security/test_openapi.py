"""The OpenAPI document says what is served; a program that knows nothing else tries all of it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import httpx2
import pytest

from farhand.core.principal import SCOPES, Principal
from farhand.core.settings import Limits, Settings
from farhand.server.app import App, create_app
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene
from tests.requirement import requirement
from tests.security.short_streams import ShortStreams, listening

HERE = Path(__file__).parent
CONFIG = HERE / "schemathesis.toml"
MANY = 100_000


@requirement("openapi:every-route")
async def test_the_document_lists_every_route_with_its_scope_and_a_summary(serve: Serve) -> None:
    served = await serve(Scene(["Hello."]).agent)
    document = (await served.http.get("/openapi.json")).json()
    listed = {
        (method.upper(), path): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert {key: operation["x-scope"] for key, operation in listed.items()} == {
        (route.method, route.path): route.scope
        for face in served.app.faces
        for route in face.routes
        # these say only that a client has to be named
        if not route.path.endswith(("/pending", "/pending/"))
    }
    assert [key for key, operation in listed.items() if not operation["summary"]] == []
    names = [operation["operationId"] for operation in listed.values()]
    assert len(names) == len(set(names))


@requirement("openapi:every-route")
async def test_every_route_that_takes_a_body_has_its_shape(serve: Serve) -> None:
    served = await serve(Scene(["Hello."]).agent)
    routes = [route for face in served.app.faces for route in face.routes]
    assert [route.path for route in routes if route.limit and route.takes is None] == []


async def test_the_document_is_for_development_alone(serve: Serve) -> None:
    agent = Scene(["Hello."]).agent
    open_house = await serve(agent)
    assert (await open_house.stranger.get("/openapi.json")).status_code == 401
    assert (await open_house.http.get("/openapi.json")).status_code == 200
    hooked = await serve(agent, authenticate=lambda request: Principal("house", "ada", SCOPES))
    assert (await hooked.http.get("/openapi.json")).status_code == 404


@pytest.mark.conformance
@pytest.mark.timeout(240)
async def test_a_program_that_tries_every_route_in_every_way_finds_no_fault(tmp_path: Path) -> None:
    app = _app()
    await app.start()
    try:
        async with listening(ShortStreams(app)) as url:
            code, told = await _try_everything(url, app.auth.token or "", tmp_path)
            assert await _is_well(url)
        assert code == 0, told
    finally:
        await app.drain()
        await app.stop()


async def _try_everything(url: str, token: str, folder: Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run", f"{url}/openapi.json",
        "-H", f"Authorization: Bearer {token}",
        cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(220):
            told, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode or 0, told.decode()


async def _is_well(url: str) -> bool:
    async with httpx2.AsyncClient(base_url=url, trust_env=False, verify=False) as http:
        return (await http.get("/readyz")).status_code == 200


def _app() -> App:
    """As it is served, with room for a program that asks a thousand times a second."""
    limits = Limits(
        registrations_per_min=MANY,
        results_burst=MANY,
        results_per_sec=MANY,
        clients_per_principal=MANY,
        failed_sign_ins_per_min=MANY,
    )
    return create_app(Scene(lambda moment: "Hello.").agent, store="memory:", settings=Settings(limits=limits))
