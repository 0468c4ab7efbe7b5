"""Files that a program uploads for its results."""

from __future__ import annotations

import pytest

from farhand.client import Client
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.errors import BadSetting, Rejected
from tests.unit.client.served_clients import call, house, running

CHART = b"\x89PNG" + bytes(300_000)


async def test_a_handler_brings_a_file_and_its_result_refers_to_it() -> None:
    async with house() as server:
        client = Client(server.url, "notes", token=server.token)

        @client.tool
        async def chart(title: str) -> dict[str, object]:
            """Draw a chart.

            Args:
                title: What stands above it.
            """
            return {"chart": await client.upload(CHART, name=f"{title} ü.png", media_type="image/png")}

        async with running(client):
            outcome = await call(server, "chart", {"title": "sales"})
        assert isinstance(outcome, Success)
        assert isinstance(outcome.output, dict)
        file = outcome.output["chart"]
        assert (file["name"], file["type"], file["size"]) == ("sales ü.png", "image/png", len(CHART))
        loaded = await server.service.files.load(LOCAL, file["ref"])
        assert loaded is not None
        assert loaded[1] == CHART
        # it goes with the thread of the call
        await server.service.delete(LOCAL, "t1")
        assert await server.service.files.load(LOCAL, file["ref"]) is None


async def test_a_file_that_the_server_does_not_take_is_reported_in_its_words() -> None:
    async with house() as server:
        client = Client(server.url, "notes", token=server.token)
        with pytest.raises(Rejected, match="not accepted"):
            await client.upload(b"x", name="a.exe", media_type="application/x-msdownload")
        with pytest.raises(Rejected, match="larger than"):
            await client.upload(bytes(10 * 1024 * 1024 + 1), name="a.png", media_type="image/png")
        with pytest.raises(BadSetting, match="not a media type"):
            await client.upload(b"x", name="a.png", media_type="png\r\nx: y")
