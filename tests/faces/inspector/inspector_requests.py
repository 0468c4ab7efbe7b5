"""Requests to the Inspector, for its tests."""

from __future__ import annotations

from typing import Any

import httpx2

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any
ROOT = "/api/inspect"


async def look(http: httpx2.AsyncClient, path: str = "") -> Json:
    response = await http.get(f"{ROOT}{path}")
    assert response.status_code == 200, response.text
    return response.json()


async def newest(http: httpx2.AsyncClient) -> Json:
    """The run that was begun last, whole."""
    listed = await look(http, "/runs?limit=1")
    return await look(http, f"/runs/{listed['runs'][0]['runId']}")


def kinds(row: Json) -> list[str]:
    return [segment["kind"] for segment in row["segments"]]


def titles(call: Json) -> list[str]:
    return [sentence["title"] for sentence in call["life"]]
